//! The forecast of a watched process: a thread answers the last question.

use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blockyard_lab::{Conditions, Forecast, Run, forecast, forecast_settings};
use blockyard_record::Bytes;
use blockyard_watch::Steps;

use super::processes::Processes;
use super::text::{self, DeviceForecast, Say};

/// The thread rests this many times as long as it worked.
const REST: u32 = 3;
/// For how long settings are tried at most.
const MAX_SEARCH: Duration = Duration::from_secs(5);

/// What is asked for a forecast.
pub(super) struct Question {
    pub(super) steps: Steps,
    /// The number of the last step that ended.
    pub(super) step: u64,
    /// The place of the device among those of the steps, and its bytes for PyTorch: all, and the limit.
    pub(super) devices: Vec<(usize, Bytes, Option<Bytes>)>,
    /// What a straight line says about each device that is used.
    pub(super) trends: Vec<DeviceForecast>,
}

/// The place of the next question: a newer one replaces one that nobody has taken.
#[derive(Default)]
pub(super) struct Slot {
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

    pub(super) fn ask(&self, question: Question) {
        self.lock().question = Some(question);
        self.changed.notify_one();
    }

    pub(super) fn is_idle(&self) -> bool {
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

    /// There are no more questions but one that is asked right after this call.
    pub(super) fn close(&self) {
        let mut next = self.lock();
        next.is_over = true;
        next.is_idle = true;
    }

    /// Wakes the thread of forecasts, which looks for a question and whether there will be more.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits so long, or until there are no more questions.
    fn rest(&self, time: Duration) {
        let next = self.lock();
        let _ = self.changed.wait_timeout_while(next, time, |next| !next.is_over);
    }
}

/// Answers questions about a process until there are no more, and says each forecast.
pub(super) fn answer_questions(slot: &Slot, say: &Say, processes: &Processes, pid: u32) {
    let mut before: Vec<DeviceForecast> = Vec::new();
    let mut printed = None;
    while let Some(question) = slot.take() {
        let began = Instant::now();
        let runs = question.runs();
        let mut answers = answers(&question, &runs);
        if let Some(stop) = &processes.stop {
            stop.note_forecast(pid, failing_step(&answers), say);
        }
        add_settings(&question, &runs, &before, &mut answers);
        let text = text::forecasts(&answers);
        say.status.set_forecast(&text);
        let fails = failing_step(&answers).is_some();
        if let Some(live) = &say.live {
            live.change(|state| state.forecast = Some((text.clone(), fails)));
        }
        // About the same again is not printed again.
        let kinds = text::forecast_kinds(&answers);
        if printed.as_ref() != Some(&kinds) {
            say.line(&format!("forecast: {text}"));
            printed = Some(kinds);
        }
        before = answers;
        slot.rest(began.elapsed().saturating_mul(REST));
    }
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
    /// The runs of the devices; none where the steps cannot be replayed, and then there is no forecast.
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

/// The forecast of each device: by a replay if its steps are alike, else by a straight line.
fn answers(question: &Question, runs: &[Run]) -> Vec<DeviceForecast> {
    let replayed = replayed(question, runs);
    let is_known = replayed.iter().any(|of| of.own.is_some());
    let has_trend = question.trends.iter().any(|of| of.own.is_some());
    if has_trend && !is_known { question.trends.clone() } else { replayed }
}

fn replayed(question: &Question, runs: &[Run]) -> Vec<DeviceForecast> {
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
    use blockyard_watch::{DeviceMemory, Event, FORMAT, Frame, Hello, StackFrame, StackText, Watched};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The forecast after so many steps, of a device with so many MiB for PyTorch. A step is a list of blocks:
    /// positive numbers allocate these in MiB, and the others free the blocks of so many allocations earlier, 0 the
    /// last one.
    fn forecast_after(step: impl Fn(u64) -> Vec<i64>, steps: u64, available: u64) -> Vec<DeviceForecast> {
        let mut watched = Watched::default();
        let mut apply = |frame| watched.apply(frame).unwrap();
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
        let steps = watched.steps(0);
        let devices = vec![(0, Bytes::mib(available), None)];
        let question = Question { steps, step: watched.step, devices, trends: Vec::new() };
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

    /// A program that has a block before it is watched, and gets two in each of five steps.
    #[test]
    fn the_first_marked_step_is_the_first_iteration() {
        let events = |blocks: std::ops::Range<u64>| {
            let event = |action, block| {
                let (addr, size) = (block * 1000 * MIB, 20 * MIB);
                Event { action, addr, size, time_us: block, ..Event::default() }
            };
            let events = blocks.flat_map(|block| [event(3, block), event(0, block)]).collect();
            Frame::Events { device: 0, events }
        };
        let begin = |file: &blockyard_pytorch::snapshot::SnapshotFile| {
            let mut watched = Watched::default();
            let hello = Hello { format: FORMAT, devices: vec!["a GPU".into()], ..Hello::default() };
            watched.apply(Frame::Hello(hello)).unwrap();
            let mut pickle = Vec::new();
            file.write_pickle(&mut pickle).unwrap();
            watched.apply(Frame::Snapshot(pickle)).unwrap();
            watched
        };
        let mut before = begin(&blockyard_pytorch::snapshot::SnapshotFile::default());
        before.apply(events(1..2)).unwrap();
        let mut file = before.steps(0).file;
        file.devices[0].trace = blockyard_pytorch::snapshot::DeviceTrace::default();
        let mut watched = begin(&file);
        for number in 1..=5 {
            watched.apply(events(2 * number..2 * number + 2)).unwrap();
            watched.apply(Frame::Step { number, memory: Vec::new() }).unwrap();
        }
        let runs =
            Run::from_snapshot("", &watched.steps(0).file, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(runs[0].requests_from_before() > 0);
        let found = blockyard_lab::leaks(&runs[0], &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(found.answer.boundaries.len(), 5);
    }
}
