//! Random workloads in which every block is filled with its own pattern on its stream and checked before it
//! is freed.
//!
//! An overlap, a block that is allocated again before its streams are done, and data that is lost when memory
//! is mapped again each show as a [`Fault`].

use blockyard_allocator::{AllocError, Allocation, CachingAllocator};
use blockyard_device::{Advance, DeviceMemory, Random};
use blockyard_record::{Bytes, DeviceAddr, Event, EventSink, StreamId};
use blockyard_replay::PatternedBlock;

use crate::pattern_memory::patterned;
use crate::{Fault, PatternMemory};

/// The allocator under test, or in tests of this harness a broken one.
pub trait BlockAllocator {
    /// The device of the allocator.
    type Device: PatternMemory;
    /// An allocated block.
    type Block;

    /// As [`CachingAllocator::allocate`].
    ///
    /// # Errors
    ///
    /// As [`CachingAllocator::allocate`].
    fn allocate(&mut self, size: Bytes, stream: StreamId) -> Result<Self::Block, AllocError>;

    /// Where a block starts.
    fn addr(block: &Self::Block) -> DeviceAddr;

    /// As [`CachingAllocator::free`].
    ///
    /// # Errors
    ///
    /// As [`CachingAllocator::free`].
    fn free(&mut self, block: Self::Block) -> Result<(), AllocError>;

    /// As [`CachingAllocator::record_stream`].
    ///
    /// # Errors
    ///
    /// As [`CachingAllocator::record_stream`].
    fn record_stream(&mut self, block: &Self::Block, stream: StreamId) -> Result<(), AllocError>;

    /// As [`CachingAllocator::empty_cache`].
    ///
    /// # Errors
    ///
    /// As [`CachingAllocator::empty_cache`].
    fn empty_cache(&mut self) -> Result<(), AllocError>;

    /// The device of the allocator.
    fn device(&mut self) -> &mut Self::Device;
}

impl<D: PatternMemory, S: EventSink> BlockAllocator for CachingAllocator<D, S> {
    type Device = D;
    type Block = Allocation;

    fn allocate(&mut self, size: Bytes, stream: StreamId) -> Result<Allocation, AllocError> {
        Self::allocate(self, size, stream)
    }

    fn addr(block: &Allocation) -> DeviceAddr {
        block.addr()
    }

    fn free(&mut self, block: Allocation) -> Result<(), AllocError> {
        Self::free(self, block)
    }

    fn record_stream(&mut self, block: &Allocation, stream: StreamId) -> Result<(), AllocError> {
        Self::record_stream(self, block, stream)
    }

    fn empty_cache(&mut self) -> Result<(), AllocError> {
        Self::empty_cache(self)
    }

    fn device(&mut self) -> &mut D {
        self.device_mut()
    }
}

/// The form of a random workload.
#[derive(Clone, Copy, Debug)]
pub struct RandomWorkload {
    /// The seed that decides the requests.
    pub seed: u64,
    /// The number of requests.
    pub requests: u32,
    /// The number of streams, the first of which is the default stream.
    pub streams: u64,
    /// The largest request.
    pub largest: Bytes,
    /// The most bytes that are in use at once.
    pub most_live: Bytes,
}

impl RandomWorkload {
    /// The same workload with another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// The result of a workload.
#[derive(Clone, Debug, Default)]
pub struct WorkloadReport {
    /// The mismatches; none if the allocator and the device are right.
    pub faults: Vec<Fault>,
    /// The number of blocks that were allocated.
    pub blocks: u32,
    /// The bytes that were filled.
    pub filled: Bytes,
    /// The number of blocks that another stream used.
    pub crossings: u32,
    /// The number of requests that ran out of memory.
    pub failures: u32,
    /// The number of blocks at an address that an earlier block had.
    pub reused: u32,
}

/// Counts of an allocator's events: a workload without splits proves nothing about splits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// The number of splits.
    pub splits: u32,
    /// The number of merges of a block into its neighbor.
    pub merges: u32,
    /// The number of released segments.
    pub released: u32,
    /// The number of pages that got memory.
    pub mapped: u32,
    /// The number of pages whose memory was taken away.
    pub unmapped: u32,
}

impl EventSink for EventCounts {
    fn record(&mut self, event: Event) {
        match event {
            Event::Split { .. } => self.splits += 1,
            Event::Merged { .. } => self.merges += 1,
            Event::SegmentReleased { .. } => self.released += 1,
            Event::Mapped { .. } => self.mapped += 1,
            Event::Unmapped { .. } => self.unmapped += 1,
            _ => {}
        }
    }
}

/// Runs a random workload to its end: everything is freed, and the cache is empty.
///
/// # Errors
///
/// A request that the allocator refuses for another reason than a lack of memory.
pub fn run<B: BlockAllocator>(blocks: &mut B, plan: RandomWorkload) -> Result<WorkloadReport, AllocError> {
    let mut run = RandomRun {
        blocks,
        plan,
        random: Random::new(plan.seed),
        live: Vec::new(),
        in_use: Bytes::ZERO,
        seen: std::collections::BTreeSet::new(),
        report: WorkloadReport::default(),
    };
    for _ in 0..plan.requests {
        run.step()?;
    }
    while !run.live.is_empty() {
        run.free_one()?;
    }
    run.blocks.device().advance_streams(None);
    run.blocks.empty_cache()?;
    let faults = run.blocks.device().faults()?;
    run.report.faults.extend(faults);
    Ok(run.report)
}

struct RandomRun<'a, B: BlockAllocator> {
    blocks: &'a mut B,
    plan: RandomWorkload,
    random: Random,
    live: Vec<LiveAllocation<B::Block>>,
    in_use: Bytes,
    seen: std::collections::BTreeSet<DeviceAddr>,
    report: WorkloadReport,
}

struct LiveAllocation<T> {
    block: T,
    filled: PatternedBlock,
    stream: StreamId,
    /// Whether another stream used the block last; then that stream checks its data.
    is_used_elsewhere: bool,
}

impl<B: BlockAllocator> RandomRun<'_, B> {
    fn step(&mut self) -> Result<(), AllocError> {
        match self.random.below(100) {
            0..=54 => self.allocate(),
            55..=89 => self.free_one(),
            90..=95 => {
                let stream = self.stream();
                self.blocks.device().advance_streams(Some(stream));
                Ok(())
            }
            96..=97 => {
                self.blocks.device().advance_streams(None);
                Ok(())
            }
            98 => self.blocks.empty_cache(),
            _ => {
                let faults = self.blocks.device().faults()?;
                self.report.faults.extend(faults);
                Ok(())
            }
        }
    }

    fn allocate(&mut self) -> Result<(), AllocError> {
        let (requested, stream) = (self.size(), self.stream());
        // A block is never smaller than its request in units of 512.
        let size = Bytes::new(requested.get().next_multiple_of(512));
        while self.in_use.saturating_add(size) > self.plan.most_live && !self.live.is_empty() {
            self.free_one()?;
        }
        let block = match self.blocks.allocate(requested, stream) {
            Ok(block) => block,
            Err(AllocError::OutOfMemory(_)) => {
                self.report.failures += 1;
                return if self.live.is_empty() { Ok(()) } else { self.free_one() };
            }
            Err(error) => return Err(error),
        };
        let addr = B::addr(&block);
        self.report.blocks += 1;
        self.report.filled += size;
        self.report.reused += u32::from(!self.seen.insert(addr));
        let filled = patterned(addr, size, self.report.blocks.wrapping_mul(0x0101_0101));
        self.blocks.device().fill(stream, filled)?;
        self.in_use += size;
        let mut live = LiveAllocation { block, filled, stream, is_used_elsewhere: false };
        if self.plan.streams > 1 && self.random.percent(25) {
            self.use_elsewhere(&mut live)?;
        }
        self.live.push(live);
        Ok(())
    }

    /// Lets another stream use the block, as programs do: the work of that stream begins when the work of the
    /// block's own stream is done, and no one waits for its end.
    fn use_elsewhere(&mut self, live: &mut LiveAllocation<B::Block>) -> Result<(), AllocError> {
        let user = StreamId::new(
            (live.stream.get() + 1 + self.random.below(self.plan.streams - 1)) % self.plan.streams,
        );
        let device = self.blocks.device();
        device.check(live.stream, live.filled)?;
        let event = device.record_event(live.stream)?;
        device.wait(&event)?;
        self.blocks.record_stream(&live.block, user)?;
        let device = self.blocks.device();
        device.check(user, live.filled)?;
        // The other stream also writes, so that a block that is allocated too early would be damaged in its
        // new allocation.
        let overwritten = PatternedBlock { pattern: live.filled.pattern ^ 0x8000_0000, ..live.filled };
        device.fill(user, overwritten)?;
        device.check(user, overwritten)?;
        live.is_used_elsewhere = true;
        self.report.crossings += 1;
        Ok(())
    }

    fn free_one(&mut self) -> Result<(), AllocError> {
        if self.live.is_empty() {
            return Ok(());
        }
        // Often the youngest block is freed, as in programs; then blocks are used again at once.
        let index =
            if self.random.percent(40) { self.live.len() - 1 } else { self.random.index(self.live.len()) };
        let live = self.live.swap_remove(index);
        if !live.is_used_elsewhere {
            self.blocks.device().check(live.stream, live.filled)?;
        }
        self.in_use -= live.filled.size;
        self.blocks.free(live.block)
    }

    fn stream(&mut self) -> StreamId {
        // The default stream has half of the work.
        if self.random.percent(50) {
            return StreamId::DEFAULT;
        }
        StreamId::new(self.random.below(self.plan.streams))
    }

    /// Sizes crowd around the borders between the allocator's kinds of requests.
    fn size(&mut self) -> Bytes {
        const BORDERS: [u64; 8] = [512, 2048, 64 << 10, 1 << 20, 2 << 20, 10 << 20, 20 << 20, 64 << 20];
        let most = self.plan.largest.get();
        let size = if self.random.percent(30) {
            let border = BORDERS[self.random.index(BORDERS.len())];
            border.saturating_sub(512) + 256 * self.random.below(5)
        } else {
            // Small sizes are as frequent as large ones, by orders of magnitude.
            let bits = self.random.below(u64::from(most.ilog2()) + 1);
            self.random.below(1 << (bits + 1))
        };
        Bytes::new(size.clamp(1, most))
    }
}

/// Checks that a block that another stream still uses is not allocated again before that stream is done, and
/// is allocated again afterwards.
///
/// # Errors
///
/// Requests that the allocator refuses.
pub fn check_reuse_waits<B: BlockAllocator>(blocks: &mut B) -> Result<Vec<Fault>, AllocError> {
    let (own, other) = (StreamId::DEFAULT, StreamId::new(1));
    let size = Bytes::mib(4);
    // All requests below fit into an existing segment: a driver may wait for its streams when it makes a
    // segment.
    let warm = blocks.allocate(size, own)?;
    blocks.free(warm)?;
    let first = blocks.allocate(size, own)?;
    let addr = B::addr(&first);
    let device = blocks.device();
    device.fill(own, patterned(addr, size, 1))?;
    let filled = device.record_event(own)?;
    device.wait(&filled)?;
    device.check(other, patterned(addr, Bytes::new(512), 1))?;
    let ready = device.record_event(other)?;
    device.wait(&ready)?;
    device.hold(other)?;
    blocks.record_stream(&first, other)?;
    blocks.device().check(other, patterned(addr, size, 1))?;
    blocks.free(first)?;
    let second = blocks.allocate(size, own)?;
    blocks.device().fill(own, patterned(B::addr(&second), size, 2))?;
    let filled = blocks.device().record_event(own)?;
    blocks.device().wait(&filled)?;
    blocks.device().resume(other)?;
    blocks.device().advance_streams(Some(other));
    let third = blocks.allocate(size, own)?;
    assert_eq!(B::addr(&third), addr, "the block is free again and fits best");
    blocks.device().fill(own, patterned(B::addr(&third), size, 3))?;
    blocks.device().check(own, patterned(B::addr(&second), size, 2))?;
    blocks.device().check(own, patterned(B::addr(&third), size, 3))?;
    blocks.free(second)?;
    blocks.free(third)?;
    Ok(blocks.device().faults()?)
}
