//! What the allocator's lock saves beside an ordinary one.

use std::time::Instant;

use anyhow::{Result, ensure};
use blockyard_allocator::{AllocError, Allocation, AllocatorConfig, CachingAllocator};
use blockyard_bench_trace::{OpKind, Trace, stream_handle};
use blockyard_device::VirtualDevice;
use blockyard_lock::BiasedMutex;
use blockyard_record::{Bytes, NullSink, StreamId};
use parking_lot::Mutex;

use super::{BenchContext, times_for};
use crate::measure::{Measure, alternate};
use crate::report::{Goal, Row, Section};
use crate::suite::CAPACITY;

type Allocator = CachingAllocator<VirtualDevice, NullSink>;

/// Nanoseconds a pair of allocation and free by one thread, with our lock and with `parking_lot`'s.
///
/// # Errors
///
/// When an allocation fails.
pub fn lock(context: &BenchContext) -> Result<Section> {
    let traces = [
        Trace::ping_pong("pingpong_1KiB", 1 << 10, 100_000),
        Trace::ping_pong("pingpong_64MiB", 64 << 20, 100_000),
        Trace::random_allocations("rmm_1k_1MiB", 1000, 1 << 20),
        Trace::random_allocations("rmm_10k_1MiB", 10_000, 1 << 20),
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
        name: "lock".to_owned(),
        title: "The allocator behind our lock and behind parking_lot's".to_owned(),
        unit: "ns a pair of allocation and free".to_owned(),
        contenders: ["BiasedMutex", "parking_lot", "no lock"].map(str::to_owned).to_vec(),
        rows,
        goal: Some(Goal::AtLeast { mean: 1.1, each: 1.0 }),
        notes: vec![
            "one thread, as in most programs; the allocator is called with handles, the lock is taken once for each call; \
             the goal is what the lock must save to be worth its text: a tenth of a pair"
                .to_owned(),
        ],
    })
}

fn row(trace: &Trace, rounds: usize) -> Result<Row> {
    let times = times_for(trace.pairs())?;
    let mut contenders: [Box<dyn Replayed>; 3] = [
        Box::new(Locked::new(BiasedMutex::new(allocator()), trace)),
        Box::new(Locked::new(Mutex::new(allocator()), trace)),
        Box::new(Locked::new(NoLock(allocator()), trace)),
    ];
    let nanos = alternate(rounds, times, trace.pairs(), &mut contenders, |contender, times| {
        let begun = Instant::now();
        for _ in 0..times {
            contender.replay(trace)?;
        }
        Ok(begun.elapsed())
    })?;
    Ok(Row {
        name: trace.name.clone(),
        units: trace.pairs(),
        values: nanos.iter().map(|nanos| Some(Measure::of(nanos))).collect(),
        ratio: Some(Measure::ratio(&nanos[1], &nanos[0])),
    })
}

fn allocator() -> Allocator {
    CachingAllocator::new(VirtualDevice::new(Bytes::new(CAPACITY)), AllocatorConfig::default(), NullSink)
}

/// A lock around an allocator; `&mut` only so that no lock is one too.
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

trait Replayed {
    fn replay(&mut self, trace: &Trace) -> Result<()>;
}

struct Locked<L> {
    lock: L,
    live: Vec<Option<Allocation>>,
}

impl<L: Lock> Locked<L> {
    fn new(lock: L, trace: &Trace) -> Self {
        Self { lock, live: (0..trace.slots).map(|_| None).collect() }
    }
}

impl<L: Lock> Replayed for Locked<L> {
    fn replay(&mut self, trace: &Trace) -> Result<()> {
        for op in &trace.ops {
            let slot = &mut self.live[op.slot as usize];
            match op.kind {
                OpKind::Allocate => {
                    let stream = StreamId::new(stream_handle(op.stream));
                    let allocate =
                        |allocator: &mut Allocator| allocator.allocate(Bytes::new(op.size), stream);
                    *slot = Some(self.lock.with(allocate)?);
                }
                OpKind::Free => {
                    self.lock.with(|allocator| -> Result<(), AllocError> {
                        let Some(allocation) = slot.take() else { return Ok(()) };
                        allocator.free(allocation)
                    })?;
                }
                _ => ensure!(false, "{} is not a trace of pairs", trace.name),
            }
        }
        Ok(())
    }
}
