//! One watched process: its lines in the terminal and its recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_record::Bytes;
use blockyard_watch::{DeviceStep, Frame, Hello, Steps, Watched, WatchedError};

use super::failure::FailureReport;
use super::forecasts::{Question, Slot, answer_questions};
use super::processes::Processes;
use super::status::Status;
use super::text::{self, DeviceForecast, Say};
use super::trend::Trend;
use crate::output;

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
    report: FailureReport,
    /// By device, how many events of the current step were lost.
    lost: BTreeMap<usize, u64>,
    /// How many frames have changed the memory.
    moment: u64,
    forecasts: Arc<Slot>,
    thread: Option<JoinHandle<()>>,
    /// By device, for steps that are not alike.
    trends: BTreeMap<usize, Trend>,
    /// The last step, if no forecast was asked for it.
    unasked: Vec<DeviceStep>,
    /// The number of the step after the last failed request.
    after_failure: u64,
}

impl ProgramReader {
    /// The reader of the process that connected as this one, counted from 0. A page that is served gets it too.
    pub(super) fn new(index: usize, out: &Path, processes: &Arc<Processes>) -> Self {
        Self { out: out.to_owned(), index, processes: processes.clone(), ..Self::default() }
    }

    /// Applies a frame and prints what it says.
    pub(crate) fn apply(&mut self, frame: Frame) -> Result<(), WatchedError> {
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
            let text = text::out_of_memory(*device, Bytes::new(*size), self.watched.step);
            self.say.note(&text);
            self.say.status.set_step(text);
            if let Some(live) = &self.say.live {
                live.change(|state| state.failures += 1);
            }
            self.after_failure = self.watched.step.saturating_add(2);
            self.unasked.clear();
            self.failures = self.processes.note_failure();
            self.write_failure();
        }
        if !steps.is_empty() {
            for (device, lost) in std::mem::take(&mut self.lost) {
                self.say.note(&text::gap(device, lost));
            }
            self.say.status.set_step(self.step_lines(&steps).join("\n"));
            self.print_step(&steps);
            if let Some(stop) = &self.processes.stop {
                stop.note_step(self.watched.hello.pid, self.watched.step, &self.say);
            }
            if let Some(live) = &self.say.live {
                live.add_step(self.watched.step, &steps);
            }
            for step in &steps {
                self.trends.entry(step.device).or_default().add(self.watched.step, step);
            }
            self.ask(&steps);
        }
        Ok(())
    }

    /// Prints the line of a step; ranks share one.
    fn print_step(&self, steps: &[DeviceStep]) {
        match self.processes.note_step(self.say.name(), self.watched.step, steps) {
            Some(lines) => lines.iter().for_each(|line| Say::default().line(line)),
            None => self.step_lines(steps).iter().for_each(|line| self.say.line(line)),
        }
    }

    /// A line for each device.
    fn step_lines(&self, steps: &[DeviceStep]) -> Vec<String> {
        steps.iter().map(|step| text::step(self.watched.step, step, steps.len() > 1)).collect()
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
        let status = hello.rank.as_ref().map(|_| self.processes.folder.join(format!("{}.status", hello.pid)));
        self.say.status = Arc::new(Status::of(status));
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
        self.thread = Some(std::thread::spawn(move || answer_questions(&slot, &say, &processes, pid)));
    }

    /// Asks for the forecast of the steps: of what is left at their ends, and of a replay if the last two are alike and
    /// the thread of forecasts is idle.
    fn ask(&mut self, steps: &[DeviceStep]) {
        let trend = |step: &DeviceStep| DeviceForecast {
            device: u32::try_from(step.device).unwrap_or(u32::MAX),
            own: self.trends.get(&step.device).and_then(|trend| trend.forecast(step.memory)),
            setting: None,
        };
        let mut question = Question {
            steps: Steps::default(),
            step: self.watched.step,
            devices: Vec::new(),
            trends: steps.iter().map(trend).collect(),
        };
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

    fn ask_unasked(&mut self) {
        let steps = std::mem::take(&mut self.unasked);
        if !steps.is_empty() {
            self.ask(&steps);
        }
    }

    /// Writes the recording and the report if another process ran out of memory.
    pub(super) fn write_with_others(&mut self) {
        let failures = self.processes.failures();
        if std::mem::replace(&mut self.failures, failures) < failures {
            self.write_failure();
        }
    }

    fn write_failure(&mut self) {
        let (file, _) = self.write();
        self.report.begin(&self.out, file, &self.say);
    }

    /// Gives the page, the other ranks and the thread of forecasts what they wait for.
    pub(crate) fn answer(&mut self) {
        if self.forecasts.is_idle() {
            // A long step may follow, or none.
            self.ask_unasked();
        }
        self.say.status.write();
        if let Some(live) = &self.say.live {
            live.answer(&self.watched, self.moment);
        }
    }

    /// Writes the recording. Returns it and its bytes.
    fn write(&self) -> (SnapshotFile, Vec<u8>) {
        let mut bytes = Vec::new();
        let file = self.watched.steps(0).file;
        let written = file
            .write_pickle(&mut bytes)
            .map_err(anyhow::Error::from)
            .and_then(|()| output::write_whole(&self.out, &bytes));
        if let Err(error) = written {
            self.say.note(&format!("the recording is not written: {error:#}"));
        }
        (file, bytes)
    }

    /// Writes the recording and says how to open it. The process has ended.
    pub(crate) fn finish(&mut self) {
        if let Some(stop) = &self.processes.stop {
            stop.remove(self.watched.hello.pid);
        }
        self.processes.remove_rank(self.say.name()).iter().for_each(|line| Say::default().line(line));
        self.forecasts.close();
        if self.watched.out_of_memory.is_empty() {
            self.ask_unasked();
        }
        self.forecasts.wake();
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
        let (_, recording) = self.write();
        if let Some(live) = &self.say.live {
            live.end(recording);
        }
        if self.out.is_file() {
            let out = self.out.display();
            let report =
                self.report.finish().map(|path| format!("; the report of the failure is {}", path.display()));
            self.say.line(&format!(
                "the last steps are in {out}: `blockyard {out}` says what happened, `blockyard open {out}` shows them{}",
                report.unwrap_or_default()
            ));
        }
    }
}

/// The name of a file without its folder and its last ending.
pub(super) fn stem(out: &Path) -> String {
    out.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use blockyard_watch::{Event, FORMAT, StackFrame, StackText};

    use super::*;

    /// What a process sends that gets 20 MiB twice, and then fails.
    fn frames_of_a_failure(rank: &str) -> Vec<Frame> {
        const MIB: u64 = 1 << 20;
        let mut pickle = Vec::new();
        SnapshotFile::default().write_pickle(&mut pickle).unwrap();
        let rank = Some(rank.to_owned());
        let devices = vec!["a GPU".to_owned()];
        let frame = StackFrame { file: "train.py".into(), name: "main".into(), line: 45 };
        let event = |action, place: u64, size| Event {
            action,
            addr: place * 1000 * MIB,
            size: size * MIB,
            time_us: 1 + place,
            stack: 1,
            ..Event::default()
        };
        // A failed request has the free bytes of the driver as its address.
        let failed = Event { addr: 3 * MIB, ..event(8, 3, 200) };
        vec![
            Frame::Hello(Hello { format: FORMAT, rank, devices, ..Hello::default() }),
            Frame::Snapshot(pickle),
            Frame::Stack { device: 0, stack: StackText { number: 1, frames: vec![frame] } },
            Frame::Events {
                device: 0,
                events: vec![event(3, 1, 20), event(0, 1, 20), event(3, 2, 20), event(0, 2, 20)],
            },
            Frame::Step { number: 1, memory: Vec::new() },
            Frame::Events { device: 0, events: vec![failed] },
            Frame::OutOfMemory { device: 0, size: 200 * MIB },
        ]
    }

    #[test]
    fn a_failure_of_one_rank_writes_the_reports_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let (out, processes) = (folder.path().join("watch.pickle"), Arc::default());
        let mut ranks = ["0", "1"].map(|rank| {
            let mut reader = ProgramReader::new(0, &out, &processes);
            let mut frames = frames_of_a_failure(rank);
            if rank == "1" {
                frames.truncate(5);
            }
            for frame in frames {
                reader.apply(frame).unwrap();
            }
            reader
        });
        ranks[1].write_with_others();
        let reports =
            ranks.map(|mut reader| std::fs::read_to_string(reader.report.finish().unwrap()).unwrap());
        assert!(reports.iter().all(|html| html.starts_with("<!doctype html>") && html.contains("train.py")));
        assert_eq!(reports.map(|html| html.contains("200 MiB")), [true, false]);
        assert!(folder.path().join("watch.rank1.report.html").is_file());
    }

    #[test]
    fn a_program_that_does_not_fail_has_no_report() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("watch.pickle");
        let mut reader = ProgramReader::new(0, &out, &Arc::default());
        for frame in frames_of_a_failure("0").into_iter().take(5) {
            reader.apply(frame).unwrap();
        }
        reader.finish();
        assert_eq!((reader.report.finish(), reader.out.is_file()), (None, true));
    }

    #[test]
    fn an_unwritable_file_ends_nothing() {
        let mut reader = ProgramReader::new(0, Path::new("/proc/nothing/watch.pickle"), &Arc::default());
        reader.apply(Frame::Hello(Hello { format: FORMAT, ..Hello::default() })).unwrap();
        reader.finish();
        assert!(reader.apply(Frame::Hello(Hello { format: 99, ..Hello::default() })).is_err());
    }
}
