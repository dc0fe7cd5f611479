//! After every request the allocator, its events and a naive model agree.

use std::collections::BTreeMap;

use blockyard_device::VirtualDevice;
use blockyard_pytorch::AllocationResult;
use blockyard_record::{
    Backend, BlockId, BlockState, Breakdown, Bytes, DeviceAddr, PoolId, SegmentId, SegmentSnapshot, Snapshot,
    StepOutcome, StreamId,
};
use blockyard_replay::Runner;
use blockyard_workload::{Request, TensorId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::config;
use crate::cases::{Case, cases};

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn allocator_events_and_model_agree_after_every_request(case in cases(1..150)) {
        follow(&case);
    }

    #[test]
    fn they_agree_about_pools_with_options_that_are_made_and_given_up(
        case in cases(1..150),
        options in any::<[bool; 2]>(),
        ends in vec(any::<Index>(), 0..3),
    ) {
        follow(&with_own_pool(case, options, &ends));
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn the_drivers_pool_its_events_and_a_model_agree_after_every_request(case in cases(1..150)) {
        follow(&Case { config: "backend:cudaMallocAsync".to_owned(), ..case });
    }
}

/// The case with the program's own pool made before everything else, and given up now and then.
fn with_own_pool(mut case: Case, [never_splits, serves_on_oom]: [bool; 2], ends: &[Index]) -> Case {
    let pool = PoolId { capture: 0, user: 1 };
    for end in ends {
        case.requests.insert(end.index(case.drained_from + 1), Request::DestroyPool { pool_id: pool });
        case.drained_from += 1;
    }
    case.requests.insert(0, Request::CreatePool { pool_id: pool, never_splits, serves_on_oom });
    case.drained_from += 1;
    case
}

/// The allocations that callers hold: address, requested bytes, stream.
type LiveAllocations = BTreeMap<TensorId, (DeviceAddr, Bytes, StreamId)>;

/// Where each block was when it was first seen, whatever its state.
type FirstPlaces = BTreeMap<BlockId, (SegmentId, StreamId)>;

fn follow(case: &Case) {
    let workload = case.workload();
    let mut runner = Runner::new(VirtualDevice::new(case.capacity), &case.settings(), &workload);
    let (mut held, mut places) = (LiveAllocations::new(), FirstPlaces::new());
    for request in &case.requests {
        let outcome = runner.step().expect("a virtual device does not fail").expect("a request is left");
        let answer = runner.answer(&outcome);
        update(&mut held, request, &outcome, answer.as_ref());
        check_streams(&runner.snapshot(), &mut places);
        check(&runner, &held, case.capacity);
    }
    assert_eq!(runner.step().unwrap(), None);
    assert!(held.is_empty());
    // Addresses whose first mapping fails stay reserved, as in PyTorch; they hold no memory.
    let mut left = runner.snapshot().segments;
    left.retain(|segment| !segment.mapped().is_zero());
    assert!(left.iter().all(|segment| segment.pool_id.user > 0), "only a program's own pool keeps its cache");
    assert!(left.iter().all(|segment| segment.active().is_zero()));
    let reserved: Bytes = left.iter().map(SegmentSnapshot::mapped).sum();
    assert_eq!(runner.stats().reserved_bytes.all.current, reserved.signed());
}

fn update(
    held: &mut LiveAllocations,
    request: &Request,
    outcome: &StepOutcome,
    answer: Option<&AllocationResult>,
) {
    match *request {
        Request::Allocate { tensor, size, stream } => match (outcome, answer) {
            (StepOutcome::Done, Some(AllocationResult::At(addr))) if size.is_zero() => assert_eq!(*addr, 0),
            (StepOutcome::Done, Some(AllocationResult::At(addr))) => {
                assert!(size < Bytes::new(1 << 60));
                held.insert(tensor, (DeviceAddr::new(*addr), size, stream));
            }
            (StepOutcome::OutOfMemory(_), _) => assert!(size < Bytes::new(1 << 60)),
            (StepOutcome::Refused(_), _) => assert!(size >= Bytes::new(1 << 60)),
            other => panic!("an allocation came to {other:?}"),
        },
        Request::Free { tensor } => {
            held.remove(&tensor);
        }
        Request::SetFraction { fraction } => {
            let is_refused = matches!(outcome, StepOutcome::Refused(_));
            assert_eq!(is_refused, !(0.0..=1.0).contains(&fraction), "{fraction}");
        }
        _ => {}
    }
}

/// Blocks never move between streams, and a segment keeps its stream.
fn check_streams(snapshot: &Snapshot, places: &mut FirstPlaces) {
    for segment in &snapshot.segments {
        for block in &segment.blocks {
            let place = (segment.id, segment.stream);
            let first = places.entry(block.id).or_insert(place);
            assert_eq!(*first, place, "block {} moved to another segment or stream", block.id);
        }
    }
}

fn check(runner: &Runner<'_, VirtualDevice>, held: &LiveAllocations, capacity: Bytes) {
    runner.allocator().check().unwrap();
    let snapshot = runner.snapshot();
    let state = runner.recorder().state();
    assert_eq!(state.snapshot(), snapshot, "events give the snapshot");
    assert_eq!(state.reported_stats(), runner.stats(), "events give the statistics");
    check_segments(&snapshot);

    let breakdown = state.breakdown();
    assert_eq!(breakdown, counted(&snapshot, capacity), "the classes are what the blocks add up to");
    assert_eq!(breakdown.capacity(), capacity, "every byte is in one class");
    for segment in state.segments() {
        let with_blocks = state.segment(segment.id).expect("a listed segment is there");
        assert_eq!((with_blocks.addr, with_blocks.size), (segment.addr, segment.size));
        assert_eq!(with_blocks.blocks.iter().map(|block| block.size).sum::<Bytes>(), segment.size);
    }

    // The pool's segments serve all streams.
    let is_native = runner.allocator().config().backend() == Backend::Native;
    let expected = held
        .values()
        .map(|&(addr, size, stream)| (addr, size, if is_native { stream } else { StreamId::DEFAULT }));
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(allocated(&snapshot), expected, "what callers hold is what is allocated");
}

fn check_segments(snapshot: &Snapshot) {
    let mut end = DeviceAddr::default();
    for segment in &snapshot.segments {
        assert!(segment.addr >= end, "segments ascend and do not overlap");
        end = segment.addr;
        for block in &segment.blocks {
            assert_eq!(block.addr, end, "blocks cover their segment");
            end = block.addr.offset(block.size);
        }
        assert_eq!(end, segment.addr.offset(segment.size));
    }
}

fn counted(snapshot: &Snapshot, capacity: Bytes) -> Breakdown {
    let mut breakdown = Breakdown { free: capacity, ..Breakdown::default() };
    for segment in &snapshot.segments {
        breakdown.free -= segment.mapped();
        for block in &segment.blocks {
            match block.state {
                BlockState::Allocated => {
                    breakdown.requested += block.requested;
                    breakdown.rounding += block.size - block.requested;
                }
                BlockState::PendingFree => breakdown.pending += block.size,
                BlockState::Inactive => breakdown.cached += block.size,
                BlockState::Unmapped => assert!(segment.is_expandable),
            }
        }
    }
    breakdown
}

fn allocated(snapshot: &Snapshot) -> Vec<(DeviceAddr, Bytes, StreamId)> {
    let blocks = snapshot.segments.iter().flat_map(|segment| {
        segment
            .blocks
            .iter()
            .filter(|block| block.state == BlockState::Allocated)
            .map(move |block| (block, segment))
    });
    blocks.map(|(block, segment)| (block.addr, block.requested, segment.stream)).collect()
}
