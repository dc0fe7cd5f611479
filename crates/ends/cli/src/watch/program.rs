//! One watched process: its lines in the terminal, its forecast and its recording.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blockyard_lab::{Conditions, Forecast, Run, forecast};
use blockyard_record::Bytes;
use blockyard_watch::{DeviceStep, Frame, Hello, Steps, Watched};

use super::processes::Processes;
use super::text::{self, Say};
use crate::output;

/// The thread of forecasts rests this many times as long as it worked.
const REST: u32 = 3;

/// Reads the frames of one process.
#[derive(Default)]
pub(crate) struct ProgramReader {
    watched: Watched,
    out: PathBuf,
    index: usize,
    say: Say,
    processes: Arc<Processes>,
    /// How many failures of any process the recording has.
    failures: u64,
    /// By device, how many events of the current step were lost.
    lost: BTreeMap<usize, u64>,
    /// How many frames have changed the memory.
    moment: u64,
    forecasts: Arc<Slot>,
    thread: Option<JoinHandle<()>>,
    /// The last step, if no forecast was asked for it.
    unasked: Vec<DeviceStep>,
    /// The number of the step after the last failed request.
    after_failure: u64,
}

/// What is asked for a forecast.
struct Question {
    steps: Steps,
    /// The number of the last step that ended.
    step: u64,
    /// The place of the device among those of the steps, and its bytes for PyTorch: all, and the limit.
    devices: Vec<(usize, Bytes, Option<Bytes>)>,
}

/// The place of the next question: a newer one replaces one that nobody has taken.
#[derive(Default)]
struct Slot {
    next: Mutex<Next>,
    changed: Condvar,
}

#[derive(Default)]
struct Next {
    question: Option<Question>,
    /// Whether the thread of forecasts waits for a question.
    is_idle: bool,
    is_over: bool,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, question: Question) {
        self.lock().question = Some(question);
        self.changed.notify_one();
    }

    fn is_idle(&self) -> bool {
        let next = self.lock();
        next.is_idle && next.question.is_none()
    }

    /// Waits for a question; `None` once there will be none.
    fn take(&self) -> Option<Question> {
        let mut next = self.lock();
        next.is_idle = true;
        let waits = |next: &mut Next| next.question.is_none() && !next.is_over;
        let mut next = self.changed.wait_while(next, waits).unwrap_or_else(PoisonError::into_inner);
        next.is_idle = false;
        next.question.take()
    }

    /// Waits so long, or until there are no more questions.
    fn rest(&self, time: Duration) {
        let next = self.lock();
        let _ = self.changed.wait_timeout_while(next, time, |next| !next.is_over);
    }
}

impl ProgramReader {
    /// The reader of the process that connected as this one, counted from 0. A page that is served gets it too.
    pub(super) fn new(index: usize, out: &Path, processes: &Arc<Processes>) -> Self {
        Self { out: out.to_owned(), index, processes: processes.clone(), ..Self::default() }
    }

    /// Applies a frame and prints what it says.
    pub(crate) fn apply(&mut self, frame: Frame) -> Result<(), String> {
        match &frame {
            Frame::Hello(hello) => self.begin(hello),
            Frame::Gap { device, lost } => *self.lost.entry(*device).or_default() += lost,
            Frame::Note(note) => self.say.note(note),
            _ => {}
        }
        self.moment += u64::from(matches!(frame, Frame::Events { .. } | Frame::Step { .. }));
        let is_out_of_memory = matches!(frame, Frame::OutOfMemory { .. });
        let different = self.watched.compared.1;
        let steps = self.watched.apply(frame)?;
        if self.watched.compared.1 > different {
            self.say.note(
                "PyTorch's snapshot differs from the state that the events lead to: it counts from here on",
            );
        }
        if let (true, Some((device, size))) = (is_out_of_memory, self.watched.out_of_memory.last()) {
            self.say.note(&text::out_of_memory(*device, Bytes::new(*size), self.watched.step));
            if let Some(live) = &self.say.live {
                live.tell(|told| told.failures += 1);
            }
            self.after_failure = self.watched.step.saturating_add(2);
            self.failures = self.processes.note_failure();
            self.write();
        }
        if !steps.is_empty() {
            for (device, lost) in std::mem::take(&mut self.lost) {
                self.say.note(&text::gap(device, lost));
            }
            match self.processes.note_step(self.say.name(), self.watched.step, &steps) {
                Some(lines) => lines.iter().for_each(|line| Say::default().line(line)),
                None => steps
                    .iter()
                    .for_each(|step| self.say.line(&text::step(self.watched.step, step, steps.len() > 1))),
            }
            if let Some(stop) = &self.processes.stop {
                stop.note_step(self.watched.hello.pid, self.watched.step, &self.say);
            }
            if let Some(live) = &self.say.live {
                live.add_step(self.watched.step, &steps);
            }
            self.ask(&steps);
        }
        Ok(())
    }

    fn begin(&mut self, hello: &Hello) {
        let name = hello
            .rank
            .as_ref()
            .map(|rank| format!("rank{rank}"))
            .or_else(|| (self.index > 0).then(|| format!("process{}", self.index + 1)))
            .unwrap_or_default();
        if !name.is_empty() {
            self.out.set_extension(format!("{name}.pickle"));
        }
        let live = self.processes.live.as_ref().map(|live| live.add(&stem(&self.out)));
        self.say = Say::of(&name, live);
        if let Some(why) = &hello.no_stacks {
            self.say.note(&format!("lines are not known: {why}"));
        }
        let (slot, say, processes, pid) =
            (self.forecasts.clone(), self.say.clone(), self.processes.clone(), hello.pid);
        if hello.rank.is_some() {
            processes.add_rank(say.name());
        }
        if let Some(stop) = &processes.stop {
            stop.note_step(pid, 0, &say);
        }
        self.thread = Some(std::thread::spawn(move || {
            let mut before = None;
            while let Some(question) = slot.take() {
                let began = Instant::now();
                let answers = answers(&question);
                let text = text::forecasts(&answers);
                if let Some(live) = &say.live {
                    let fails = |(_, of): &(_, Option<Forecast>)| matches!(of, Some(Forecast::Fails { .. }));
                    let fails = answers.iter().any(fails);
                    live.tell(|told| told.forecast = Some((text.clone(), fails)));
                }
                // About the same again is not printed again.
                let kinds = text::forecast_kinds(&answers);
                if before.as_ref() != Some(&kinds) {
                    say.line(&format!("forecast: {text}"));
                    before = Some(kinds);
                }
                if let Some(stop) = &processes.stop {
                    stop.note_forecast(pid, failing_step(&answers), &say);
                }
                slot.rest(began.elapsed().saturating_mul(REST));
            }
        }));
    }

    /// Asks for the forecast of the steps, if the last two are alike and the thread of forecasts is idle.
    fn ask(&mut self, steps: &[DeviceStep]) {
        let mut question = Question { steps: Steps::default(), step: self.watched.step, devices: Vec::new() };
        self.unasked.clear();
        if steps.iter().all(|step| step.is_like_before) {
            if !self.forecasts.is_idle() {
                // The steps are many: they are not copied for a question that nobody takes.
                self.unasked.extend_from_slice(steps);
                return;
            }
            // A program that went on after a failed request is another one from there on.
            question.steps = self.watched.steps(self.after_failure);
            let devices = steps.iter().filter(|step| step.memory.available > 0).filter_map(|step| {
                let devices = &question.steps.file.devices;
                let place = devices.iter().position(|device| device.index as usize == step.device)?;
                let limit = Some(Bytes::new(step.memory.limit)).filter(|limit| !limit.is_zero());
                Some((place, Bytes::new(step.memory.available), limit))
            });
            question.devices = devices.collect();
        }
        self.forecasts.ask(question);
    }

    /// Writes the recording if another process ran out of memory.
    pub(super) fn write_with_others(&mut self) {
        let failures = self.processes.failures();
        if std::mem::replace(&mut self.failures, failures) < failures {
            self.write();
        }
    }

    /// Gives the page what it waits for.
    pub(crate) fn answer(&self) {
        if let Some(live) = &self.say.live {
            live.answer(&self.watched, self.moment);
        }
    }

    /// Writes the recording, and returns it.
    fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let file = self.watched.steps(0).file;
        let written = file
            .write_pickle(&mut bytes)
            .map_err(anyhow::Error::from)
            .and_then(|()| output::write_whole(&self.out, &bytes));
        if let Err(error) = written {
            self.say.note(&format!("the recording is not written: {error:#}"));
        }
        bytes
    }

    /// Writes the recording and says how to open it. The process has ended.
    pub(crate) fn finish(&mut self) {
        if let Some(stop) = &self.processes.stop {
            stop.remove(self.watched.hello.pid);
        }
        self.processes.remove_rank(self.say.name()).iter().for_each(|line| Say::default().line(line));
        {
            let mut next = self.forecasts.lock();
            next.is_over = true;
            next.is_idle = true;
        }
        if !self.unasked.is_empty() && self.watched.out_of_memory.is_empty() {
            let steps = std::mem::take(&mut self.unasked);
            self.ask(&steps);
        }
        self.forecasts.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let (compared, different) = self.watched.compared;
        if compared > 0 {
            self.say.line(&text::compared(compared, different));
        }
        if self.watched.misfits() > 0 {
            self.say.line(&format!("{} events did not fit the state", self.watched.misfits()));
        }
        let recording = self.write();
        if let Some(live) = &self.say.live {
            live.end(recording);
        }
        if self.out.is_file() {
            let out = self.out.display();
            self.say.line(&format!("the last steps are in {out}: `blockyard {out}` says what happened, `blockyard open {out}` shows them"));
        }
    }
}

/// The name of a file without its folder and its last ending.
pub(super) fn stem(out: &Path) -> String {
    out.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The forecast of each device with its index; `None` where its steps are not periodic.
fn answers(question: &Question) -> Vec<(u32, Option<Forecast>)> {
    let file = &question.steps.file;
    let runs = Run::from_snapshot("", file, &mut |_| ControlFlow::Continue(())).unwrap_or_default();
    let answers = question.devices.iter().filter_map(|(place, available, limit)| {
        let index = file.devices.get(*place)?.index;
        let (run, later) = (runs.get(*place)?, question.steps.later.get(*place)?);
        let conditions = Conditions { capacity: Some(*available), limit: *limit, ..run.conditions() };
        let (_, later) = later.split_first()?;
        // The first of the steps is the first iteration.
        let before = question.step.saturating_sub(later.len() as u64);
        let found = forecast(run, later, &conditions, &mut |_| ControlFlow::Continue(())).ok().flatten();
        let found = found.map(|found| found.counted_after(before));
        // A failure in a step that has ended did not happen: the replay is not this program.
        let is_over = |found: &Forecast| {
            matches!(found, Forecast::Fails { iteration, .. } if *iteration <= question.step)
        };
        Some((index, found.filter(|found| !is_over(found))))
    });
    answers.collect()
}

/// The first step that fails on any device.
fn failing_step(answers: &[(u32, Option<Forecast>)]) -> Option<u64> {
    let fails = |of: &Forecast| match of {
        Forecast::Fails { iteration, .. } => Some(*iteration),
        _ => None,
    };
    answers.iter().filter_map(|(_, of)| fails(of.as_ref()?)).min()
}

#[cfg(test)]
mod tests {
    use blockyard_watch::{DeviceMemory, Event, FORMAT, Hello, StackFrame, StackText};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The forecast after these steps: each works in 20 MiB and keeps so many more, of the 200 MiB that can be
    /// reserved.
    fn after(kept: impl Fn(u64) -> u64, steps: u64) -> Vec<(u32, Option<Forecast>)> {
        let mut reader = ProgramReader::new(0, Path::new("/nothing/watch.pickle"), &Arc::default());
        let mut apply = |frame| reader.watched.apply(frame).unwrap();
        apply(Frame::Hello(Hello { format: FORMAT, devices: vec!["a GPU".into()], ..Hello::default() }));
        let mut pickle = Vec::new();
        blockyard_pytorch::snapshot::SnapshotFile::default().write_pickle(&mut pickle).unwrap();
        apply(Frame::Snapshot(pickle));
        let frame = StackFrame { file: "train.py".into(), name: "main".into(), line: 45 };
        apply(Frame::Stack { device: 0, stack: StackText { number: 1, frames: vec![frame] } });
        let mut time_us = 1;
        for number in 1..=steps {
            let (kept, place) = (kept(number), (number + 1) * 1000 * MIB);
            let mut events = vec![(0, MIB, 20 * MIB)];
            if number == 1 {
                events.insert(0, (3, MIB, 20 * MIB));
            }
            if kept > 0 {
                events.extend([(3, place, kept), (0, place, kept)]);
            }
            events.extend([(1, MIB, 20 * MIB), (2, MIB, 20 * MIB)]);
            let event = |(action, addr, size)| {
                time_us += 1;
                Event { action, addr, size, time_us, stack: u32::from(action == 0), ..Event::default() }
            };
            apply(Frame::Events { device: 0, events: events.into_iter().map(event).collect() });
            let memory = vec![DeviceMemory { available: 200 * MIB, total: 300 * MIB, limit: 0 }];
            let ended = apply(Frame::Step { number, memory });
            assert_eq!(ended[0].is_like_before, number > 1, "step {number}");
        }
        let steps = reader.watched.steps(0);
        answers(&Question { steps, step: reader.watched.step, devices: vec![(0, Bytes::mib(200), None)] })
    }

    fn failure(answers: &[(u32, Option<Forecast>)]) -> Option<(u64, Option<Bytes>, Option<&str>)> {
        match answers {
            [(0, Some(Forecast::Fails { iteration, size, line, is_estimate: false, .. }))] => {
                Some((*iteration, *size, line.as_deref()))
            }
            _ => None,
        }
    }

    #[test]
    fn two_equal_steps_say_which_step_fails() {
        // 20 MiB for work and 20 MiB a step: nine steps fit in 200 MiB.
        let wanted = Some((10, Some(Bytes::mib(20)), Some("main train.py:45")));
        for steps in 3..=9 {
            assert_eq!(failure(&after(|_| 20 * MIB, steps)), wanted, "after {steps} steps");
        }
        assert_eq!(after(|_| 20 * MIB, 2), [(0, None)]);
    }

    #[test]
    fn steps_that_keep_nothing_repeat_and_unlike_ones_are_not_periodic() {
        assert_eq!(after(|_| 0, 4), [(0, Some(Forecast::Finishes))]);
        assert_eq!(after(|number| (10 + number * number) * 2 * MIB, 4), [(0, None)]);
    }

    #[test]
    fn a_failure_that_did_not_happen_is_no_forecast() {
        // The device had less than these steps took: the number was not that of this program.
        assert_eq!(after(|_| 20 * MIB, 12), [(0, None)]);
    }

    #[test]
    fn an_unwritable_file_ends_nothing() {
        let mut reader = ProgramReader::new(0, Path::new("/proc/nothing/watch.pickle"), &Arc::default());
        reader.apply(Frame::Hello(Hello { format: FORMAT, ..Hello::default() })).unwrap();
        reader.finish();
        assert!(reader.apply(Frame::Hello(Hello { format: 99, ..Hello::default() })).is_err());
    }
}
