//! The allocator's lock compared with an ordinary lock, and with none.

use anyhow::Result;
use blockyard_allocator::lock::BiasedMutex;
use blockyard_allocator::{AllocError, Allocation, CachingAllocator};
use blockyard_device::VirtualDevice;
use blockyard_measure::{Contender, Measurement, OperationList, RatioGoal, ReportRow, Section, alternate};
use blockyard_record::{Bytes, NullSink, StreamId};
use blockyard_rules::AllocatorConfig;
use parking_lot::Mutex;

use super::{BenchContext, times_for};
use crate::suite::CAPACITY;

type Allocator = CachingAllocator<VirtualDevice, NullSink>;

/// Nanoseconds a pair of allocation and free by one thread, with our lock and with `parking_lot`'s.
///
/// # Errors
///
/// When an allocation fails.
pub(super) fn lock(context: &BenchContext) -> Result<Section> {
    let traces = [
        OperationList::ping_pong("pingpong_1KiB", 1 << 10, 100_000),
        OperationList::ping_pong("pingpong_64MiB", 64 << 20, 100_000),
        OperationList::random_allocations("rmm_1k_1MiB", 1000, 1 << 20),
        OperationList::random_allocations("rmm_10k_1MiB", 10_000, 1 << 20),
    ];
    let progress = super::progress("lock", traces.len())?;
    let mut rows = Vec::new();
    for trace in &traces {
        progress.set_message(trace.name.clone());
        rows.push(row(trace, context.rounds)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(Section {
        rows,
        goal: Some(RatioGoal::AtLeast { mean: 1.1, each: 1.0 }),
        notes: vec![
            "one thread, as in most programs; the allocator is called with handles, the lock is taken once for each call; \
             the goal is a tenth of a pair, which the lock must save to be worth its code"
                .to_owned(),
        ],
        ..Section::new(
            "lock",
            "The allocator under our lock and under parking_lot's",
            "ns a pair of allocation and free",
            ["BiasedMutex", "parking_lot", "no lock"],
        )
    })
}

fn row(trace: &OperationList, rounds: usize) -> Result<ReportRow> {
    let times = times_for(trace.pairs())?;
    let mut contenders: [Box<dyn Contender<Error = AllocError>>; 3] = [
        Box::new(LockContender::new("BiasedMutex", BiasedMutex::new(allocator()), trace)),
        Box::new(LockContender::new("parking_lot", Mutex::new(allocator()), trace)),
        Box::new(LockContender::new("no lock", NoLock(allocator()), trace)),
    ];
    let nanos = alternate(rounds, times, trace.pairs(), &mut contenders, |contender, times| {
        contender.time_replay(trace, times)
    })?;
    let ratio = Measurement::ratio(&nanos[1], &nanos[0]);
    Ok(ReportRow::new(&trace.name, trace.pairs(), &nanos).with_ratio(ratio))
}

fn allocator() -> Allocator {
    CachingAllocator::new(VirtualDevice::new(Bytes::new(CAPACITY)), AllocatorConfig::default(), NullSink)
}

/// A lock around an allocator. The receiver is `&mut`, so that "no lock" can implement the trait too.
trait Lock {
    fn with<R>(&mut self, act: impl FnMut(&mut Allocator) -> R) -> R;
}

impl Lock for BiasedMutex<Allocator> {
    #[inline]
    fn with<R>(&mut self, mut act: impl FnMut(&mut Allocator) -> R) -> R {
        match self.with_as_owner(&mut act) {
            Some(result) => result,
            None => BiasedMutex::with(self, act),
        }
    }
}

impl Lock for Mutex<Allocator> {
    #[inline]
    fn with<R>(&mut self, mut act: impl FnMut(&mut Allocator) -> R) -> R {
        act(&mut self.lock())
    }
}

struct NoLock(Allocator);

impl Lock for NoLock {
    #[inline]
    fn with<R>(&mut self, mut act: impl FnMut(&mut Allocator) -> R) -> R {
        act(&mut self.0)
    }
}

struct LockContender<L> {
    name: &'static str,
    lock: L,
    live: Vec<Option<Allocation>>,
}

impl<L: Lock> LockContender<L> {
    fn new(name: &'static str, lock: L, trace: &OperationList) -> Self {
        Self { name, lock, live: (0..trace.slots).map(|_| None).collect() }
    }
}

impl<L: Lock> Contender for LockContender<L> {
    type Error = AllocError;

    fn name(&self) -> &'static str {
        self.name
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize_with(count.max(self.live.len()), || None);
    }

    #[inline]
    fn allocate(&mut self, slot: usize, size: Bytes, stream: StreamId) -> Result<(), AllocError> {
        let allocate = |allocator: &mut Allocator| allocator.allocate(size, stream);
        self.live[slot] = Some(self.lock.with(allocate)?);
        Ok(())
    }

    #[inline]
    fn free(&mut self, slot: usize) -> Result<(), AllocError> {
        let block = &mut self.live[slot];
        self.lock.with(|allocator| match block.take() {
            Some(allocation) => allocator.free(allocation),
            None => Ok(()),
        })
    }
}
