//! One watched process: its lines in the terminal, its forecast and its recording.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blockyard_lab::{Conditions, Forecast, Run, forecast, forecast_settings};
use blockyard_record::Bytes;
use blockyard_watch::{DeviceStep, Frame, Hello, Steps, Watched};

use super::processes::Processes;
use super::text::{self, DeviceForecast, Say};
use crate::output;

/// The thread of forecasts rests this many times as long as it worked.
const REST: u32 = 3;
/// For how long settings are tried at most.
const MAX_SEARCH: Duration = Duration::from_secs(5);

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
            match &self.say.picture {
                Some(picture) => picture.add_step(self.say.name(), &self.watched, &steps),
                None => self.print_step(&steps),
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

    /// Prints the line of a step; ranks share one.
    fn print_step(&self, steps: &[DeviceStep]) {
        match self.processes.note_step(self.say.name(), self.watched.step, steps) {
            Some(lines) => lines.iter().for_each(|line| Say::default().line(line)),
            None => steps
                .iter()
                .for_each(|step| self.say.line(&text::step(self.watched.step, step, steps.len() > 1))),
        }
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
        self.say = Say::of(&name, live, self.processes.picture.clone());
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
            let mut before: Vec<DeviceForecast> = Vec::new();
            let mut printed = None;
            while let Some(question) = slot.take() {
                let began = Instant::now();
                let runs = question.runs();
                let mut answers = answers(&question, &runs);
                if let Some(stop) = &processes.stop {
                    stop.note_forecast(pid, failing_step(&answers), &say);
                }
                add_settings(&question, &runs, &before, &mut answers);
                let text = text::forecasts(&answers);
                let fails = failing_step(&answers).is_some();
                if let Some(live) = &say.live {
                    live.tell(|told| told.forecast = Some((text.clone(), fails)));
                }
                // About the same again is not printed again.
                let kinds = text::forecast_kinds(&answers);
                if let Some(picture) = &say.picture {
                    picture.set_forecast(say.name(), &text, fails);
                } else if printed.as_ref() != Some(&kinds) {
                    say.line(&format!("forecast: {text}"));
                    printed = Some(kinds);
                }
                before = answers;
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

/// What is asked about one device.
struct DeviceQuestion<'a> {
    device: u32,
    run: &'a Run,
    later: &'a [usize],
    conditions: Conditions,
    /// How many steps come before the first of these.
    before: u64,
}

impl Question {
    fn runs(&self) -> Vec<Run> {
        Run::from_snapshot("", &self.steps.file, &mut |_| ControlFlow::Continue(())).unwrap_or_default()
    }

    fn of_devices<'a>(&'a self, runs: &'a [Run]) -> impl Iterator<Item = DeviceQuestion<'a>> {
        self.devices.iter().filter_map(|(place, available, limit)| {
            let device = self.steps.file.devices.get(*place)?.index;
            let run = runs.get(*place)?;
            // The first of the steps is the first iteration.
            let (_, later) = self.steps.later.get(*place)?.split_first()?;
            let conditions = Conditions { capacity: Some(*available), limit: *limit, ..run.conditions() };
            let before = self.step.saturating_sub(later.len() as u64);
            Some(DeviceQuestion { device, run, later, conditions, before })
        })
    }
}

/// The forecast of each device.
fn answers(question: &Question, runs: &[Run]) -> Vec<DeviceForecast> {
    let answer = |of: DeviceQuestion<'_>| {
        let go_on = &mut |_| ControlFlow::Continue(());
        let found = forecast(of.run, of.later, &of.conditions, go_on).ok().flatten();
        let found = found.map(|found| found.counted_after(of.before));
        // A failure in a step that has ended did not happen: the replay is not this program.
        let own = found.filter(|found| fails(found).is_none_or(|step| step > question.step));
        DeviceForecast { device: of.device, own, setting: None }
    };
    question.of_devices(runs).map(answer).collect()
}

/// Adds to each forecast of a failure the setting that lets the program go on, as the forecast before has it if it
/// says the same.
fn add_settings(
    question: &Question,
    runs: &[Run],
    before: &[DeviceForecast],
    answers: &mut [DeviceForecast],
) {
    let began = Instant::now();
    for (of, answer) in question.of_devices(runs).zip(answers) {
        let Some(own) = answer.own.as_ref().and_then(fails) else { continue };
        if let Some(known) = before.iter().find(|before| before.is_like(answer)) {
            answer.setting.clone_from(&known.setting);
            continue;
        }
        let go_on = &mut |_| match began.elapsed() {
            elapsed if elapsed > MAX_SEARCH => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let found = forecast_settings(of.run, of.later, &of.conditions, go_on).ok().flatten();
        let found = found.map(|(conf, found)| (conf, found.counted_after(of.before)));
        // A setting counts from the next start of the program: few more steps are not worth it.
        let is_much = |step: u64| step >= own.saturating_add(own / 4).saturating_add(1);
        answer.setting = found.filter(|(_, found)| match found {
            Forecast::Finishes => true,
            Forecast::Fails { iteration, .. } | Forecast::Passes { iteration } => is_much(*iteration),
        });
    }
}

/// The step that fails.
fn fails(of: &Forecast) -> Option<u64> {
    if let Forecast::Fails { iteration, .. } = of { Some(*iteration) } else { None }
}

/// The first step that fails on any device.
fn failing_step(answers: &[DeviceForecast]) -> Option<u64> {
    answers.iter().filter_map(|answer| fails(answer.own.as_ref()?)).min()
}

#[cfg(test)]
mod tests {
    use blockyard_watch::{DeviceMemory, Event, FORMAT, Hello, StackFrame, StackText};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The forecast after so many steps, of a device with so many MiB for PyTorch. A step is a list of blocks:
    /// positive numbers allocate these in MiB, and the others free the blocks of so many allocations earlier, 0 the
    /// last one.
    fn forecast_after(step: impl Fn(u64) -> Vec<i64>, steps: u64, available: u64) -> Vec<DeviceForecast> {
        let mut reader = ProgramReader::new(0, Path::new("/nothing/watch.pickle"), &Arc::default());
        let mut apply = |frame| reader.watched.apply(frame).unwrap();
        apply(Frame::Hello(Hello { format: FORMAT, devices: vec!["a GPU".into()], ..Hello::default() }));
        let mut pickle = Vec::new();
        blockyard_pytorch::snapshot::SnapshotFile::default().write_pickle(&mut pickle).unwrap();
        apply(Frame::Snapshot(pickle));
        let frame = StackFrame { file: "train.py".into(), name: "main".into(), line: 45 };
        apply(Frame::Stack { device: 0, stack: StackText { number: 1, frames: vec![frame] } });
        let (mut time_us, mut blocks) = (1, Vec::new());
        for number in 1..=steps {
            let mut events = Vec::new();
            for request in step(number) {
                if let Ok(size @ 1..) = u64::try_from(request) {
                    let block = ((blocks.len() as u64 + 1) * 1000 * MIB, size * MIB);
                    blocks.push(block);
                    events.extend([(3, block), (0, block)]);
                } else if let Some(block) = blocks.iter().rev().nth(usize::try_from(-request).unwrap()) {
                    events.extend([(1, *block), (2, *block)]);
                }
            }
            let event = |(action, (addr, size))| {
                time_us += 1;
                Event { action, addr, size, time_us, stack: u32::from(action == 0), ..Event::default() }
            };
            apply(Frame::Events { device: 0, events: events.into_iter().map(event).collect() });
            let memory = vec![DeviceMemory { available: available * MIB, total: 300 * MIB, limit: 0 }];
            let ended = apply(Frame::Step { number, memory });
            let is_like = number > 1 && step(number).len() == step(number - 1).len();
            assert_eq!(ended[0].is_like_before, is_like, "step {number}");
        }
        let steps = reader.watched.steps(0);
        let devices = vec![(0, Bytes::mib(available), None)];
        let question = Question { steps, step: reader.watched.step, devices };
        let runs = question.runs();
        let mut found = answers(&question, &runs);
        add_settings(&question, &runs, &[], &mut found);
        found
    }

    /// As above: each step works in 20 MiB and keeps so many more, of the 200 MiB that can be reserved.
    fn after(kept: impl Fn(u64) -> i64, steps: u64) -> Vec<DeviceForecast> {
        let step = |number| match kept(number) {
            0 => vec![20, 0],
            kept => vec![20, kept, -1],
        };
        forecast_after(step, steps, 200)
    }

    fn failure(answers: &[DeviceForecast]) -> Option<(u64, Option<Bytes>, Option<&str>)> {
        match answers {
            [
                DeviceForecast {
                    own: Some(Forecast::Fails { iteration, size, line, is_estimate: false, .. }),
                    setting: None,
                    ..
                },
            ] => Some((*iteration, *size, line.as_deref())),
            _ => None,
        }
    }

    fn only(own: Option<Forecast>) -> [DeviceForecast; 1] {
        [DeviceForecast { own, ..DeviceForecast::default() }]
    }

    #[test]
    fn two_equal_steps_say_which_step_fails() {
        // 20 MiB for work and 20 MiB a step: nine steps fit in 200 MiB.
        let wanted = Some((10, Some(Bytes::mib(20)), Some("main train.py:45")));
        for steps in 3..=9 {
            assert_eq!(failure(&after(|_| 20, steps)), wanted, "after {steps} steps");
        }
        assert_eq!(after(|_| 20, 2), only(None));
    }

    #[test]
    fn steps_that_keep_nothing_repeat_and_unlike_ones_are_not_periodic() {
        assert_eq!(after(|_| 0, 4), only(Some(Forecast::Finishes)));
        assert_eq!(after(|number| (10 + number * number).cast_signed() * 2, 4), only(None));
    }

    #[test]
    fn a_failure_that_did_not_happen_is_no_forecast() {
        // The device had less than these steps took: the number was not that of this program.
        assert_eq!(after(|_| 20, 12), only(None));
    }

    #[test]
    fn a_setting_that_cures_fragmentation_is_named() {
        // Three of the four blocks live for a step more, and free blocks fit ever worse.
        let step =
            |number| if number == 1 { vec![14, 18, 0, 5, 7] } else { vec![14, -4, 18, 0, 5, -4, 7, -4] };
        let found = forecast_after(step, 5, 70);
        assert_eq!(
            text::forecasts(&found),
            "at this growth step 7 fails: 18 MiB for main train.py:45; with expandable_segments:True no step fails"
        );
    }

    #[test]
    fn a_setting_that_postpones_the_failure_is_named_with_the_step() {
        // What is kept splits the block of the work, whose rest is too small for anything: ten steps take all. Without
        // such rests there is room for 20 MiB beside those that 16 steps keep.
        let found = forecast_after(|_| vec![20, 0, 11], 4, 200);
        assert_eq!(
            text::forecasts(&found),
            "at this growth step 11 fails: 20 MiB for main train.py:45; expandable_segments:True postpones it to step 18"
        );
    }

    #[test]
    fn an_unwritable_file_ends_nothing() {
        let mut reader = ProgramReader::new(0, Path::new("/proc/nothing/watch.pickle"), &Arc::default());
        reader.apply(Frame::Hello(Hello { format: FORMAT, ..Hello::default() })).unwrap();
        reader.finish();
        assert!(reader.apply(Frame::Hello(Hello { format: 99, ..Hello::default() })).is_err());
    }
}
