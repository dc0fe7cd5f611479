//! Recordings made by hand: the events of a small allocator that is plain enough to be read, so that figures
//! are tested without the real one.

use std::sync::Arc;

use blockyard_record::{
    AllocationId, BlockId, BlockSnapshot, BlockState, Bytes, DeviceAddr, Event, EventSink, FailureCause,
    MemoryState, PoolId, PoolKind, Recorder, Recording, RunInfo, SegmentId, SegmentSnapshot, StackId, Stacks,
    StepOutcome, StreamId,
};

use proptest::prelude::*;

/// The stream that the tests call `side`.
pub(crate) const SIDE: StreamId = StreamId::new(7);

/// Writes a recording step by step.
pub(crate) struct Program {
    recorder: Recorder,
    stacks: Stacks,
    named: Vec<(String, BlockId)>,
    segments: u32,
    blocks: u32,
    allocations: u32,
    next_addr: u64,
    pool_id: PoolId,
}

impl Program {
    pub(crate) fn new(capacity: Bytes) -> Self {
        Self::with(RunInfo { title: "test".to_owned(), capacity, max_split_size: -1, ..RunInfo::default() })
    }

    /// A program on a device that is known to have at least `capacity` bytes, and perhaps more.
    pub(crate) fn on_unknown_device(capacity: Bytes) -> Self {
        let is_capacity_unknown = true;
        Self::with(RunInfo { is_capacity_unknown, capacity, max_split_size: -1, ..RunInfo::default() })
    }

    fn with(info: RunInfo) -> Self {
        let mut recorder = Recorder::new(info);
        recorder.name_stream(SIDE, "side");
        Self {
            recorder,
            stacks: Stacks::default(),
            named: Vec::new(),
            segments: 0,
            blocks: 0,
            allocations: 0,
            next_addr: 0x7f00_0000_0000,
            pool_id: PoolId::DEFAULT,
        }
    }

    /// Later blocks are allocated in this memory pool.
    pub(crate) fn in_pool(&mut self, pool: PoolId) -> &mut Self {
        self.pool_id = pool;
        self
    }

    pub(crate) fn state(&self) -> &MemoryState {
        self.recorder.state()
    }

    pub(crate) fn recording(self) -> Recording {
        self.recorder.finish().expect("the program's events fit")
    }

    pub(crate) fn label(&mut self, text: &str) -> &mut Self {
        self.recorder.label(text);
        self
    }

    pub(crate) fn time_us(&mut self, time: u64) -> &mut Self {
        self.recorder.set_time_us(time);
        self
    }

    pub(crate) fn markers(&mut self, markers: Vec<blockyard_record::Marker>) -> &mut Self {
        self.recorder.set_markers(markers);
        self
    }

    /// Later blocks are allocated under a stack of one frame, `name (file:1)`; without a stack for an empty
    /// name.
    pub(crate) fn under(&mut self, name: &str, file: &str) -> &mut Self {
        let stacks = &mut self.stacks;
        let stack = (!name.is_empty()).then(|| {
            let (name, file) = (stacks.intern_text(name).unwrap(), stacks.intern_text(file).unwrap());
            let frame = stacks.intern_frame(name, file, 1).unwrap();
            stacks.intern_stack(&[frame.get()]).unwrap()
        });
        self.recorder.set_stack(stack.unwrap_or(StackId::EMPTY));
        self.recorder.set_stacks(Arc::new(self.stacks.clone()));
        self
    }

    pub(crate) fn event(&mut self, event: Event) -> &mut Self {
        self.recorder.record(event);
        self
    }

    pub(crate) fn done(&mut self) -> &mut Self {
        self.recorder.finish_step(StepOutcome::Done);
        self
    }

    /// Ends a step that ran out of memory.
    pub(crate) fn failed(&mut self) -> &mut Self {
        self.recorder.finish_step(StepOutcome::OutOfMemory("CUDA out of memory.".to_owned()));
        self
    }

    /// A step without events.
    pub(crate) fn refused(&mut self, reason: &str) -> &mut Self {
        self.recorder.finish_step(StepOutcome::Refused(reason.to_owned()));
        self
    }

    pub(crate) fn block(&self, name: &str) -> BlockId {
        self.named.iter().rev().find(|(known, _)| known == name).expect("the block was allocated").1
    }

    pub(crate) fn alloc(&mut self, name: &str, size: Bytes) -> &mut Self {
        self.alloc_on(name, size, StreamId::DEFAULT)
    }

    pub(crate) fn alloc_on(&mut self, name: &str, size: Bytes, stream: StreamId) -> &mut Self {
        let rounded = Bytes::new(size.get().max(1).div_ceil(512) * 512);
        let pool = if rounded <= Bytes::mib(1) { PoolKind::Small } else { PoolKind::Large };
        let segment_size = segment_size(rounded);
        let found = self.best_fit(rounded, pool, stream).or_else(|| {
            if !self.reserve(segment_size, pool, stream) {
                self.event(Event::StreamsSynchronized);
                self.complete_pending();
                self.release_cached();
                self.event(Event::RetryStarted);
                self.reserve(segment_size, pool, stream);
            }
            self.best_fit(rounded, pool, stream)
        });
        let Some(found) = found else {
            let device_free = self.state().breakdown().free;
            self.event(Event::OutOfMemory {
                requested: size,
                rounded,
                segment_size,
                stream,
                device_free,
                is_rejected: false,
            });
            self.recorder.finish_step(StepOutcome::OutOfMemory(format!(
                "CUDA out of memory. Tried to allocate {size}."
            )));
            return self;
        };
        let block = self.cut(&found, rounded, pool);
        self.recorder.name_next_allocation(Some(name));
        let allocation = AllocationId::new(self.allocations);
        self.allocations += 1;
        self.event(Event::Allocated { block, allocation, requested: size, is_oversize: false });
        self.named.push((name.to_owned(), block));
        self.done()
    }

    /// A new segment filled with blocks of `block_size`, every one allocated, in one step.
    pub(crate) fn full_segment(&mut self, size: Bytes, block_size: Bytes) -> &mut Self {
        assert!(self.reserve(size, PoolKind::Small, StreamId::DEFAULT), "the device has room");
        let remainder = BlockId::new(self.blocks - 1);
        let count = size.get() / block_size.get();
        for index in 0..count {
            let block = if index + 1 == count {
                remainder
            } else {
                let front = self.new_block();
                self.event(Event::Split { block: remainder, front, size: block_size });
                front
            };
            let allocation = AllocationId::new(self.allocations);
            self.allocations += 1;
            self.event(Event::Allocated { block, allocation, requested: block_size, is_oversize: false });
            self.named.push((format!("t{}", self.named.len()), block));
        }
        self.done()
    }

    pub(crate) fn record_stream(&mut self, name: &str, stream: StreamId) -> &mut Self {
        let block = self.block(name);
        self.event(Event::StreamRecorded { block, stream }).done()
    }

    pub(crate) fn free(&mut self, name: &str) -> &mut Self {
        let block = self.block(name);
        self.named.retain(|(_, id)| *id != block);
        self.event(Event::FreeRequested { block, is_oversize: false });
        if self.state().block(block).expect("it is allocated").streams.is_empty() {
            self.complete(block);
        }
        self.done()
    }

    /// The work of the other streams is done, so pending frees complete.
    pub(crate) fn advance(&mut self) -> &mut Self {
        self.complete_pending();
        self.done()
    }

    pub(crate) fn empty_cache(&mut self) -> &mut Self {
        self.event(Event::StreamsSynchronized);
        self.complete_pending();
        self.release_cached();
        self.done()
    }

    pub(crate) fn set_limit(&mut self, limit: Bytes) -> &mut Self {
        self.event(Event::FractionSet { limit: Some(limit) }).done()
    }

    pub(crate) fn reset_peak(&mut self) -> &mut Self {
        self.event(Event::PeakReset).done()
    }

    fn segments(&self) -> Vec<SegmentSnapshot> {
        self.state().snapshot().segments
    }

    fn best_fit(&self, size: Bytes, pool: PoolKind, stream: StreamId) -> Option<BlockSnapshot> {
        let segments = self.segments();
        let usable = segments.into_iter().filter(|segment| {
            segment.pool == pool && segment.stream == stream && segment.pool_id == self.pool_id
        });
        usable
            .flat_map(|segment| segment.blocks)
            .filter(|block| block.state == BlockState::Inactive && block.size >= size)
            .min_by_key(|block| (block.size, block.addr))
    }

    fn reserve(&mut self, size: Bytes, pool: PoolKind, stream: StreamId) -> bool {
        let breakdown = self.state().breakdown();
        let is_beyond = self.state().limit().is_some_and(|limit| breakdown.reserved() + size > limit);
        if is_beyond || size > breakdown.free {
            let cause = if is_beyond { FailureCause::Fraction } else { FailureCause::Device };
            self.event(Event::SegmentFailed { size, cause });
            return false;
        }
        let (segment, block) = (SegmentId::new(self.segments), self.new_block());
        self.segments += 1;
        let addr = DeviceAddr::new(self.next_addr);
        self.next_addr += size.get();
        self.event(Event::SegmentAllocated {
            segment,
            block,
            addr,
            size,
            stream,
            pool_id: self.pool_id,
            pool,
            is_oversize: false,
        });
        true
    }

    /// An expandable segment of 1 GiB of addresses, with memory in the first `mapped` of them.
    pub(crate) fn map(&mut self, mapped: Bytes) -> &mut Self {
        let (segment, block, remainder) = (SegmentId::new(self.segments), self.new_block(), self.new_block());
        self.segments += 1;
        let (addr, stream, pool_id) = (DeviceAddr::new(self.next_addr), StreamId::DEFAULT, self.pool_id);
        let (size, pool) = (Bytes::gib(1), PoolKind::Large);
        self.next_addr += size.get();
        self.event(Event::RangeReserved { segment, block, addr, size, stream, pool_id, pool });
        self.event(Event::Mapped { block, size: mapped, remainder: Some(remainder) })
    }

    fn new_block(&mut self) -> BlockId {
        self.blocks += 1;
        BlockId::new(self.blocks - 1)
    }

    fn cut(&mut self, block: &BlockSnapshot, size: Bytes, pool: PoolKind) -> BlockId {
        let least = if pool == PoolKind::Small { Bytes::new(512) } else { Bytes::new((1 << 20) + 1) };
        if block.size - size < least {
            return block.id;
        }
        let front = self.new_block();
        self.event(Event::Split { block: block.id, front, size });
        front
    }

    fn complete(&mut self, block: BlockId) {
        self.event(Event::FreeCompleted { block });
        loop {
            let segment =
                self.state().segment_of(block).and_then(|id| self.state().segment(id)).expect("it exists");
            let at = segment.blocks.iter().position(|other| other.id == block).expect("it is part of it");
            let before = at.checked_sub(1).and_then(|index| segment.blocks.get(index));
            let neighbors = before.into_iter().chain(segment.blocks.get(at + 1));
            let Some(absorbed) =
                neighbors.filter(|other| other.state == BlockState::Inactive).map(|b| b.id).next()
            else {
                return;
            };
            self.event(Event::Merged { block, absorbed });
        }
    }

    fn complete_pending(&mut self) {
        let segments = self.segments();
        let blocks = segments.iter().flat_map(|segment| &segment.blocks);
        let pending: Vec<_> =
            blocks.filter(|block| block.state == BlockState::PendingFree).map(|b| b.id).collect();
        for block in pending {
            self.complete(block);
        }
    }

    fn release_cached(&mut self) {
        for segment in self.segments() {
            if segment.active().is_zero() {
                self.event(Event::SegmentReleased { segment: segment.id, is_oversize: false });
            }
        }
    }
}

fn segment_size(rounded: Bytes) -> Bytes {
    if rounded <= Bytes::mib(1) {
        Bytes::mib(2)
    } else if rounded < Bytes::mib(10) {
        Bytes::mib(20)
    } else {
        Bytes::new(rounded.get().div_ceil(2 << 20) * (2 << 20))
    }
}

/// A program with an event of every kind.
pub(crate) fn story() -> Program {
    let mut program = Program::new(Bytes::mib(96));
    program
        .label("load")
        .alloc("weights", Bytes::mib(12))
        .alloc("bias", Bytes::new(4000))
        .label("forward")
        .alloc("x", Bytes::new(3_000_000))
        .alloc("hidden", Bytes::mib(5))
        .alloc_on("copy", Bytes::mib(3), SIDE)
        .record_stream("hidden", SIDE)
        .free("x")
        .free("hidden")
        .advance()
        .label("backward")
        .alloc("grad", Bytes::mib(12))
        .alloc("mask", Bytes::kib(600))
        .free("grad")
        .alloc("big", Bytes::mib(60))
        .free("copy")
        .empty_cache()
        .reset_peak();
    program
}

/// One step of a random program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Alloc { size: u64, is_side: bool },
    Free(usize),
    RecordStream(usize),
    Advance,
    EmptyCache,
    Limit(u64),
    ResetPeak,
}

/// Random programs, with sizes of every order from a byte to beyond the device.
pub(crate) fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let size = prop_oneof![1_u64..2000, 1_u64..2_000_000, 1_u64..12_000_000, 1_u64..70_000_000];
    let op = prop_oneof![
        12 => (size, prop::bool::weighted(0.2)).prop_map(|(size, is_side)| Op::Alloc { size, is_side }),
        8 => any::<usize>().prop_map(Op::Free),
        2 => any::<usize>().prop_map(Op::RecordStream),
        1 => Just(Op::Advance),
        1 => Just(Op::EmptyCache),
        1 => (1_u64..100_000_000).prop_map(Op::Limit),
        1 => Just(Op::ResetPeak),
    ];
    prop::collection::vec(op, 0..most)
}

/// The program of `ops` on a device of 64 MiB; steps that make no sense are steps without events.
pub(crate) fn random(ops: &[Op]) -> Program {
    let mut program = Program::new(Bytes::mib(64));
    for (index, op) in ops.iter().enumerate() {
        let live = program.named.len();
        let name = |at: usize| program.named.get(at % live.max(1)).map(|(name, _)| name.clone());
        match *op {
            Op::Alloc { size, is_side } => {
                let stream = if is_side { SIDE } else { StreamId::DEFAULT };
                program.alloc_on(&format!("t{index}"), Bytes::new(size), stream)
            }
            Op::Free(at) => match name(at) {
                Some(name) => program.free(&name),
                None => program.refused("nothing to free"),
            },
            Op::RecordStream(at) => match name(at) {
                Some(name) => program.record_stream(&name, SIDE),
                None => program.refused("nothing to use"),
            },
            Op::Advance => program.advance(),
            Op::EmptyCache => program.empty_cache(),
            Op::Limit(limit) => program.set_limit(Bytes::new(limit)),
            Op::ResetPeak => program.reset_peak(),
        };
        if index % 10 == 0 {
            program.label(&format!("part {}", index / 10));
        }
    }
    program
}
