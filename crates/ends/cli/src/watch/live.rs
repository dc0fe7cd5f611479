//! What the page gets of watched programs, with `--page`: a list of them, and recordings of their last steps.
//!
//! The reader of a program never waits for the page: it copies the steps that the page has asked for, and the
//! thread of the server writes them as a file.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blockyard_lab::{LAST_STEPS, MAX_RUNNING_STEPS, RUNNING, RunningProgram, RunningStep, WHOLE_RECORDING};
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_record::Bytes;
use blockyard_serve::Beside;
use blockyard_watch::{DeviceStep, Watched};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The most notes that are kept.
const MAX_NOTES: usize = 50;
/// How long the page waits for steps of a process.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// A page that asked within this time is open.
const MAX_SILENCE: Duration = Duration::from_secs(3);
/// How long an open page may take for the end of a program.
const MAX_END: Duration = Duration::from_secs(10);
/// Between two looks whether a page has the end of a program.
const PAUSE: Duration = Duration::from_millis(50);

/// All processes that are watched.
#[derive(Debug, Default)]
pub(super) struct LivePrograms {
    all: Mutex<Vec<Arc<LiveProgram>>>,
    page: Mutex<PageState>,
}

/// What the page has asked for.
#[derive(Debug, Default)]
struct PageState {
    asked_at: Option<Instant>,
    /// The programs whose ends were asked for.
    ends: BTreeSet<String>,
    /// Whether the page asked for the list after it had all ends.
    has_ends: bool,
}

/// One process.
#[derive(Debug, Default)]
pub(super) struct LiveProgram {
    state: Mutex<State>,
    changed: Condvar,
    /// Held by the request that is answered: one at a time.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    reported: RunningProgram,
    /// How many steps are asked for.
    asked: Option<u64>,
    given: Option<SnapshotFile>,
    /// The recording of a process that has ended.
    end: Option<Vec<u8>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LivePrograms {
    /// A new process under the name of its recording.
    pub(super) fn add(&self, name: &str) -> Arc<LiveProgram> {
        let program = Arc::new(LiveProgram::default());
        program.change(|state| name.clone_into(&mut state.name));
        lock(&self.all).push(program.clone());
        program
    }

    /// What the page gets at `/open/NAME`.
    pub(super) fn find(&self, name: &str) -> Option<Beside> {
        let all = lock(&self.all).clone();
        let mut page = lock(&self.page);
        page.asked_at = Some(Instant::now());
        if name.ends_with(RUNNING) {
            page.has_ends = page.ends.len() >= all.len();
            drop(page);
            let reported: Vec<RunningProgram> =
                all.iter().map(|program| program.lock().reported.clone()).collect();
            return postcard::to_allocvec(&reported).ok().map(Beside::Bytes);
        }
        let (name, steps) = match name.strip_suffix(LAST_STEPS) {
            Some(name) => (name, MAX_RUNNING_STEPS as u64),
            None => (name.strip_suffix(WHOLE_RECORDING)?, u64::MAX),
        };
        // A process that was started again has the name of the one before.
        let program = all.into_iter().rev().find(|program| program.lock().reported.name == name)?;
        if program.lock().reported.is_over {
            page.ends.insert(name.to_owned());
        }
        drop(page);
        program.recording(steps).map(Beside::Bytes)
    }

    /// Waits until an open page has the ends of all programs, but not for long.
    pub(super) fn wait_for_page(&self) {
        let began = Instant::now();
        while began.elapsed() < MAX_END {
            let page = lock(&self.page);
            if page.has_ends || page.asked_at.is_none_or(|at| at.elapsed() > MAX_SILENCE) {
                return;
            }
            drop(page);
            std::thread::sleep(PAUSE);
        }
    }
}

impl LiveProgram {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Changes what is reported to the page.
    pub(super) fn change(&self, change: impl FnOnce(&mut RunningProgram)) {
        change(&mut self.lock().reported);
    }

    pub(super) fn note(&self, text: &str) {
        self.change(|state| {
            state.notes.push(text.to_owned());
            keep_last(&mut state.notes, MAX_NOTES);
        });
    }

    /// The end of a step, on each device that is used.
    pub(super) fn add_step(&self, number: u64, devices: &[DeviceStep]) {
        let has_several = devices.len() > 1;
        self.change(|state| {
            state.step = number;
            state.steps.extend(devices.iter().map(|step| RunningStep {
                number,
                device: has_several.then_some(step.device),
                peaks: (!step.has_gap).then_some([step.peak_allocated, step.peak_reserved]),
                growth: step.growth,
                line: step.growing_line.clone().map(|(line, more)| (line, Bytes::new(more))),
            }));
            keep_last(&mut state.steps, MAX_RUNNING_STEPS * devices.len());
        });
    }

    /// Copies the steps that the page waits for, if it waits.
    pub(super) fn answer(&self, watched: &Watched, moment: u64) {
        let mut state = self.lock();
        state.reported.moment = moment;
        if let Some(steps) = state.asked.take() {
            let first = watched.step.saturating_add(1).saturating_sub(steps);
            state.given = Some(watched.steps(first).file);
            self.changed.notify_all();
        }
    }

    /// The process has ended, and this is its recording.
    pub(super) fn end(&self, recording: Vec<u8>) {
        let mut state = self.lock();
        state.reported.is_over = true;
        state.end = Some(recording);
        self.changed.notify_all();
    }

    /// The last steps as a packed file; all that is kept of a process that has ended.
    fn recording(&self, steps: u64) -> Option<Vec<u8>> {
        let _turn = lock(&self.turn);
        let mut state = self.lock();
        state.asked = Some(steps);
        let waits = |state: &mut State| state.given.is_none() && state.end.is_none();
        let (mut state, _) =
            self.changed.wait_timeout_while(state, MAX_WAIT, waits).unwrap_or_else(PoisonError::into_inner);
        state.asked = None;
        let given = state.given.take();
        if state.end.is_some() {
            return state.end.clone();
        }
        drop(state);
        // Packed for a page at the other end of SSH: a tenth of the bytes.
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        given?.write_pickle(&mut packed).ok()?;
        packed.finish().ok()
    }
}

fn keep_last<T>(of: &mut Vec<T>, most: usize) {
    of.drain(..of.len().saturating_sub(most));
}

#[cfg(test)]
mod tests {
    use blockyard_watch::{FORMAT, Frame, Hello};

    use super::*;

    fn reported(programs: &LivePrograms) -> Vec<RunningProgram> {
        let Some(Beside::Bytes(bytes)) = programs.find("any.live") else { return Vec::new() };
        postcard::from_bytes(&bytes).unwrap()
    }

    #[test]
    fn the_page_gets_steps_from_the_reader_and_the_end_without_it() {
        let programs = Arc::new(LivePrograms::default());
        assert_eq!(reported(&programs), []);
        let program = programs.add("watch");
        let step = DeviceStep { peak_allocated: Bytes::mib(3), ..DeviceStep::default() };
        (1..=30).for_each(|number| program.add_step(number, std::slice::from_ref(&step)));
        program.note("lost");
        let now = reported(&programs);
        assert_eq!((now[0].step, now[0].steps.len(), now[0].steps[0].number), (30, MAX_RUNNING_STEPS, 11));
        assert_eq!((now[0].notes.as_slice(), now[0].is_over), (&["lost".to_owned()][..], false));
        assert_eq!(programs.find("other.pickle"), None);
        assert_eq!(programs.find("watch"), None);

        // The thread of the server waits until the reader gives the steps.
        let asking = programs.clone();
        let asked = std::thread::spawn(move || asking.find("watch.steps"));
        let mut watched = Watched::default();
        watched.apply(Frame::Hello(Hello { format: FORMAT, ..Hello::default() })).unwrap();
        while !asked.is_finished() {
            program.answer(&watched, 7);
            std::thread::yield_now();
        }
        assert!(matches!(asked.join().unwrap(), Some(Beside::Bytes(bytes)) if !bytes.is_empty()));
        assert_eq!(reported(&programs)[0].moment, 7);

        program.end(b"the end".to_vec());
        assert!(reported(&programs)[0].is_over);
        assert_eq!(programs.find("watch.pickle"), Some(Beside::Bytes(b"the end".to_vec())));
        // The page has it once it asks for something else.
        assert!(!lock(&programs.page).has_ends);
        reported(&programs);
        assert!(lock(&programs.page).has_ends);
        programs.wait_for_page();
    }
}
