//! Cuts through random runs of our own allocator.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use blockyard_device::VirtualDevice;
use blockyard_pytorch::trace::rewind;
use blockyard_pytorch::{Meta, RecordedBlock, RecordedRun, RecordedSegment};
use blockyard_record::{BlockSnapshot, Event, Recording, SegmentSnapshot, Snapshot, TraceEntry};
use blockyard_replay::{Runner, Verification, device_of, open, verify};
use blockyard_workload::{Request, Workload};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;

use super::truth::{MemoryAtCut, moments};
use crate::cases::{Case, cases};

/// How many cases a property compared, and how many it left out for a reason: a property that leaves out too
/// many cases must not pass.
struct Tally {
    compared: AtomicUsize,
    left_out: AtomicUsize,
}

impl Tally {
    const fn new() -> Self {
        Self { compared: AtomicUsize::new(0), left_out: AtomicUsize::new(0) }
    }

    fn note(&self, is_compared: bool) {
        let count = if is_compared { &self.compared } else { &self.left_out };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Fails where fewer than this percentage of the cases was compared.
    #[track_caller]
    fn check(&self, least_percent: usize) {
        let (compared, left_out) =
            (self.compared.load(Ordering::Relaxed), self.left_out.load(Ordering::Relaxed));
        println!("{compared} compared, {left_out} left out");
        let total = compared + left_out;
        assert!(
            compared > 0 && compared * 100 >= least_percent * total,
            "{compared} of {total} were compared, fewer than {least_percent} %"
        );
    }
}

fn conf(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 4096, ..Config::default() }
}

/// The run as a program's recording shows it: the trace and the final segments.
fn record(case: &Case, requests: Vec<Request>) -> (RecordedRun, Recording) {
    let workload = Workload::from_requests(requests);
    let mut runner = Runner::new(VirtualDevice::new(case.capacity), &case.settings(), &workload).with_trace();
    while runner.step().unwrap().is_some() {}
    let segments = recorded_segments(&runner.snapshot());
    let (recording, trace) = runner.finish().unwrap();
    let meta = Meta { conf: case.config.clone(), total_memory: case.capacity, ..Meta::default() };
    let run = RecordedRun { meta, trace: Some(trace), segments: Some(segments), ..RecordedRun::default() };
    (run, recording)
}

fn recorded_segments(snapshot: &Snapshot) -> Vec<RecordedSegment> {
    let runs = snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs);
    let block = |block: &BlockSnapshot| RecordedBlock {
        addr: block.addr.get(),
        size: block.size,
        requested: block.requested,
        state: block.state.name().to_owned(),
    };
    let segment = |run: SegmentSnapshot| RecordedSegment {
        addr: run.addr.get(),
        size: run.size,
        stream: run.stream,
        pool_id: run.pool_id,
        pool: run.pool,
        is_expandable: run.is_expandable,
        sums: [run.allocated(), run.active(), run.requested()],
        blocks: run.blocks.iter().map(block).collect(),
    };
    runs.map(segment).collect()
}

fn without_head(run: &RecordedRun, cut: usize) -> RecordedRun {
    let trace = run.trace.as_ref().map(|trace| trace[cut..].to_vec());
    RecordedRun { trace, ..run.clone() }
}

/// Whether a trace shows everything that decides the events under these settings: no ages of cached blocks,
/// and no space that is released because a limit on splitting hides it from best fit.
fn is_in_a_trace(config: &str) -> bool {
    let has = |option: &str| config.contains(option);
    let hides_space = has("expandable_segments") && has("max_split_size");
    !has("garbage_collection") && !hides_space
}

/// Whether a trace shows the request. A trace does not show whether a wait ended by itself or because the
/// cache was released, so a case has only one of the two.
fn is_request_in_a_trace(request: &Request, waits: bool) -> bool {
    match request {
        Request::EnterPool { .. }
        | Request::LeavePool { .. }
        | Request::SetFraction { .. }
        | Request::ResetPeak
        | Request::ResetAccumulated => false,
        Request::RecordStream { .. } | Request::Advance { .. } => waits,
        Request::EmptyCache => !waits,
        _ => true,
    }
}

/// Whether addresses were reserved and got no memory at once, or a wait ended because a request was refused:
/// a trace does not show that.
fn hides_something(recording: &Recording) -> bool {
    (0..recording.event_count()).any(|index| {
        let next = recording.event(index + 1);
        match recording.event(index) {
            Some(Event::RangeReserved { .. }) => !matches!(next, Some(Event::Mapped { .. })),
            Some(Event::StreamsSynchronized) => matches!(next, Some(Event::FreeCompleted { .. })),
            _ => false,
        }
    })
}

static FOUND: Tally = Tally::new();
static REPLAYED: Tally = Tally::new();
static TAKEN_OVER: Tally = Tally::new();

#[test]
fn what_was_there_is_found() {
    find_what_was_there();
    FOUND.check(90);
}

#[test]
fn what_follows_is_replayed() {
    replay_what_follows();
    REPLAYED.check(30);
}

#[test]
fn a_run_taken_over_in_the_middle_is_valid_and_its_events_are_complete() {
    take_over_in_the_middle();
    TAKEN_OVER.check(90);
}

proptest! {
    #![proptest_config(conf(256))]

    fn find_what_was_there(case in cases(20..300), cuts in vec(any::<Index>(), 6)) {
        let (run, recording) = record(&case, case.requests[..case.drained_from].to_vec());
        let length = run.trace.as_ref().unwrap().len();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(length + 1)).chain([0]).collect();
        cuts.sort_unstable();
        let settings = case.settings();
        for (cut, truth) in cuts.iter().zip(moments(&recording, &cuts)) {
            // Only on a device smaller than its ranges of addresses do two of these touch.
            FOUND.note(!truth.has_touching_ranges());
            if truth.has_touching_ranges() {
                continue;
            }
            let rewound = rewind(&without_head(&run, *cut), &settings.config).unwrap();
            let found = MemoryAtCut::of(&rewound.start);
            prop_assert!(*cut > 0 || rewound.start.segments.is_empty());
            prop_assert_eq!(found.where_segments_are(), truth.where_segments_are(), "cut at {}", cut);
            prop_assert_eq!(found.blocks.len(), truth.blocks.len());
            for ((addr, found), (true_addr, truth)) in found.blocks.iter().zip(&truth.blocks) {
                prop_assert_eq!((addr, found.1, found.2), (true_addr, truth.1, truth.2), "cut at {}", cut);
                if let Some(open) = rewound.open.iter().find(|open| open.addr == *addr) {
                    prop_assert!((open.least..=open.most).contains(&truth.0), "{open:?} {truth:?}");
                } else {
                    prop_assert_eq!(found.0, truth.0, "block {:#x}, cut at {}", addr, cut);
                }
            }
        }
    }

    fn replay_what_follows(case in cases(20..300), waits in any::<bool>(), cuts in vec(any::<Index>(), 3)) {
        let requests = case.requests[..case.drained_from].iter();
        let requests = requests.filter(|request| is_request_in_a_trace(request, waits)).copied().collect();
        let (run, recording) = record(&case, requests);
        let is_compared = is_in_a_trace(&case.config) && !hides_something(&recording);
        REPLAYED.note(is_compared);
        if !is_compared {
            return Ok(());
        }
        let length = run.trace.as_ref().unwrap().len();
        for cut in cuts.iter().map(|cut| cut.index(length + 1)).chain([0]) {
            let late = without_head(&run, cut);
            let verified = verify(&late, &mut |_| ControlFlow::Continue(()));
            prop_assert!(verified.is_ok() || cut == length, "cut at {cut}: {:?}\n{}", verified.err(), entries(&late));
            let Ok(Verification { comparison, .. }) = verified else { continue };
            let is_empty = comparison.counts.iter().all(|count| count.total == 0);
            prop_assert!(
                is_empty || comparison.is_identical(),
                "cut at {cut}: {}: {comparison:?}\n{}",
                case.config,
                entries(&late)
            );
        }
    }
}

proptest! {
    #![proptest_config(conf(64))]

    fn take_over_in_the_middle(
        case in cases(20..200),
        cut in any::<Index>(),
    ) {
        let (run, _) = record(&case, case.requests[..case.drained_from].to_vec());
        let cut = cut.index(run.trace.as_ref().unwrap().len() + 1);
        let late = without_head(&run, cut);
        let settings = case.settings();
        // Facts that a trace does not have may lead to other events, which must still be valid and complete.
        let opened = open(&late, &settings, &mut |_| ControlFlow::Continue(()));
        TAKEN_OVER.note(opened.is_ok());
        let Ok(opened) = opened else { return Ok(()) };
        let start = &opened.inferred.start;
        let device = device_of(&opened.run, &opened.inferred);
        let workload = &opened.inferred.workload;
        let runner = Runner::beginning_with(device, &settings, workload, start);
        prop_assert!(runner.is_ok(), "cut at {cut}: {start:?}\n{}\n{}", entries(&run), case.config);
        let mut runner = runner.unwrap();
        loop {
            prop_assert_eq!(runner.allocator().check(), Ok(()));
            prop_assert_eq!(runner.recorder().state().snapshot(), runner.snapshot());
            prop_assert_eq!(runner.recorder().state().stats(), &runner.stats());
            if !matches!(runner.step(), Ok(Some(_))) {
                break;
            }
        }
        if let Ok((recording, _)) = runner.finish() {
            let bytes = recording.to_bytes().unwrap();
            let again = Recording::from_bytes(&bytes).unwrap();
            prop_assert_eq!(again.initial_state().snapshot(), recording.initial_state().snapshot());
            prop_assert_eq!(again.begins_late(), !start.segments.is_empty());
        }
    }
}

fn entries(run: &RecordedRun) -> String {
    let trace = run.trace.iter().flatten();
    let entry = |entry: &TraceEntry| {
        let TraceEntry { action, addr, size, stream } = entry;
        format!("{action} {addr:x} {} {stream}\n", size.get())
    };
    trace.map(entry).collect()
}
