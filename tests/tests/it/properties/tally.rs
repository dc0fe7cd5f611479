//! A check of the random runs: every kind of event of an allocator happens in them.

use std::collections::BTreeMap;

use blockyard_device::VirtualDevice;
use blockyard_record::{Event, FailureCause, PoolId, Recording, StepOutcome};
use blockyard_replay::Runner;
use blockyard_workload::Request;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::cases::{Case, cases};

#[test]
fn random_runs_reach_every_kind_of_event() {
    let mut runner = TestRunner::deterministic();
    let strategy = cases(1..150);
    let mut tally = Tally::default();
    for _ in 0..256 {
        tally.add(&strategy.new_tree(&mut runner).unwrap().current());
    }
    println!("{:#?}", tally.0);
    let wanted = [
        ("segment allocated", 100),
        ("segment released", 100),
        ("refused by the device", 100),
        ("refused by the fraction", 50),
        ("split", 100),
        ("merged with the lower neighbor", 20),
        ("merged with the upper neighbor", 20),
        ("stream recorded", 50),
        ("free pending", 30),
        ("pending free completed by an allocation", 10),
        ("pending free completed by waiting", 10),
        ("retry", 100),
        ("retry that worked", 20),
        ("out of memory", 100),
        ("released by garbage collection", 5),
        ("released as oversize", 5),
        ("oversize segment", 20),
        ("oversize allocation", 20),
        ("zero bytes", 20),
        ("too large", 10),
        ("bad fraction", 10),
        ("bad scope", 10),
        ("segment of a private pool", 20),
        ("range reserved", 50),
        ("range released", 20),
        ("mapped", 100),
        ("unmapped", 50),
        ("skipped", 20),
        ("peak reset", 5),
        ("accumulated reset", 5),
        ("snapshot", 5),
    ];
    for (name, least) in wanted {
        let found = tally.0.get(name).copied().unwrap_or(0);
        assert!(found >= least, "{name}: {found} times, wanted {least}");
    }
}

#[derive(Default)]
struct Tally(BTreeMap<&'static str, u32>);

impl Tally {
    fn count(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    fn add(&mut self, case: &Case) {
        let workload = case.workload();
        let mut runner =
            Runner::new(VirtualDevice::new(case.capacity), &case.settings(), &workload).with_trace();
        while runner.step().unwrap().is_some() {}
        let (recording, _) = runner.finish().unwrap();
        // The requests at the end are left out, since they give everything back in any case.
        for (index, request) in case.requests[..case.drained_from].iter().enumerate() {
            self.add_step(&recording, index, request, &case.config);
        }
    }

    fn add_step(&mut self, recording: &Recording, index: usize, request: &Request, config: &str) {
        match recording.outcome(index) {
            StepOutcome::Refused(text) if text.contains("1EB") => self.count("too large"),
            StepOutcome::Refused(text) if text.contains("fraction") => self.count("bad fraction"),
            StepOutcome::Refused(_) => self.count("bad scope"),
            StepOutcome::Skipped(_) => self.count("skipped"),
            StepOutcome::Done | StepOutcome::OutOfMemory(_) => {}
        }
        let step = recording.step(index).unwrap();
        let events: Vec<Event> =
            (step.start..step.end).map(|event| recording.event(event).unwrap()).collect();
        if matches!(request, Request::Allocate { size, .. } if size.is_zero()) {
            // The memory fraction is set before the first request and belongs to its step.
            let is_untouched = events.iter().all(|event| matches!(event, Event::FractionSet { .. }));
            assert!(is_untouched, "{events:?}");
            self.count("zero bytes");
        }
        for (place, event) in events.iter().enumerate() {
            match event {
                Event::Merged { block, absorbed } => {
                    let state = recording.state_at(step.start + place).unwrap();
                    let (block, absorbed) = (state.block(*block).unwrap(), state.block(*absorbed).unwrap());
                    let is_lower = absorbed.addr < block.addr;
                    self.count(if is_lower {
                        "merged with the lower neighbor"
                    } else {
                        "merged with the upper neighbor"
                    });
                }
                event => self.add_event(event),
            }
        }
        self.add_sequence(request, &events, config);
    }

    fn add_event(&mut self, event: &Event) {
        match event {
            Event::SegmentAllocated { is_oversize, pool_id, .. } => {
                self.count("segment allocated");
                if *pool_id != PoolId::DEFAULT {
                    self.count("segment of a private pool");
                }
                if *is_oversize {
                    self.count("oversize segment");
                }
            }
            Event::SegmentReleased { .. } => self.count("segment released"),
            Event::SegmentFailed { cause: FailureCause::Device, .. } => self.count("refused by the device"),
            Event::SegmentFailed { cause: FailureCause::Fraction, .. } => {
                self.count("refused by the fraction");
            }
            Event::RangeReserved { .. } => self.count("range reserved"),
            Event::RangeReleased { .. } => self.count("range released"),
            Event::Mapped { .. } => self.count("mapped"),
            Event::Unmapped { .. } => self.count("unmapped"),
            Event::Split { .. } => self.count("split"),
            Event::Allocated { is_oversize: true, .. } => self.count("oversize allocation"),
            Event::StreamRecorded { .. } => self.count("stream recorded"),
            Event::RetryStarted => self.count("retry"),
            Event::OutOfMemory { .. } => self.count("out of memory"),
            Event::PeakReset => self.count("peak reset"),
            Event::AccumulatedReset => self.count("accumulated reset"),
            Event::SnapshotTaken { .. } => self.count("snapshot"),
            _ => {}
        }
    }

    // Counts the cases that only a sequence of events shows.
    fn add_sequence(&mut self, request: &Request, events: &[Event], config: &str) {
        let position = |wanted: fn(&Event) -> bool| events.iter().position(wanted);
        let waited = position(|event| matches!(event, Event::StreamsSynchronized));
        let completed = position(|event| matches!(event, Event::FreeCompleted { .. }));
        let released = position(|event| matches!(event, Event::SegmentReleased { .. }));
        let refused = position(|event| matches!(event, Event::SegmentFailed { .. }));
        let has_failed = events.iter().any(|event| matches!(event, Event::OutOfMemory { .. }));
        let is_before = |first: Option<usize>, second: Option<usize>| {
            first.is_some_and(|first| second.is_none_or(|second| first < second))
        };
        match request {
            Request::Free { .. } if !events.is_empty() && completed.is_none() => self.count("free pending"),
            Request::Allocate { .. } => {
                if is_before(completed, waited) {
                    self.count("pending free completed by an allocation");
                }
                // Garbage is collected before the first attempt at a segment.
                if is_before(released, refused) && is_before(released, waited) {
                    assert!(config.contains("garbage_collection_threshold"), "{config}");
                    self.count("released by garbage collection");
                }
                if is_before(refused, released) && is_before(released, waited) {
                    assert!(config.contains("max_split_size_mb"), "{config}");
                    self.count("released as oversize");
                }
                if waited.is_some() && !has_failed {
                    self.count("retry that worked");
                }
            }
            _ => {}
        }
        if let (Some(waited), Some(completed)) = (waited, completed)
            && waited < completed
        {
            self.count("pending free completed by waiting");
        }
    }
}
