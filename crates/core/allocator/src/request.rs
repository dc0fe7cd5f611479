//! The stages of an allocation: find a cached block or allocate a segment, split the block if it is too
//! large, allocate it.

use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_record::{
    AllocationId, BlockId, BlockState, Bytes, Event, EventSink, FailureCause, PoolKind, StreamId,
};
use blockyard_rules::{ExpandableAdvice, size};

use crate::block::{Block, BlockIndex};
use crate::free_list::FreeListIndex;
use crate::memory_pool::{DEFAULT_POOL, MemoryPoolIndex};
use crate::{AllocError, CachingAllocator, OomAdvice, OutOfMemory};

/// A request in [`CachingAllocator::allocate`] (`AllocParams`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocParams {
    pub(crate) requested: Bytes,
    pub(crate) rounded: Bytes,
    pub(crate) stream: StreamId,
    /// The memory pool that serves the request.
    pub(crate) memory_pool: MemoryPoolIndex,
    /// Which of the two block pools of the memory pool.
    pub(crate) pool: PoolKind,
    /// The free list that is searched: the one of the stream in the block pool.
    pub(crate) list: FreeListIndex,
    /// Whether expandable segments are used: new memory is mapped page by page, and blocks are split as in
    /// expandable segments.
    pub(crate) expands: bool,
}

/// The block that a request gets.
#[derive(Clone, Copy, Debug)]
struct ChosenBlock {
    index: BlockIndex,
    /// The request after rounding.
    rounded: Bytes,
    /// The free list of the block.
    list: FreeListIndex,
    pool: PoolKind,
    /// Whether the request gets only the front of the block.
    splits: bool,
}

/// The block that was allocated.
struct AllocatedBlock {
    index: BlockIndex,
    id: BlockId,
    size: Bytes,
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Allocates a block for a request of more than zero bytes (the part of [`CachingAllocator::allocate`]
    /// that has a block).
    #[inline]
    pub(crate) fn allocate_block(
        &mut self,
        requested: Bytes,
        stream: StreamId,
    ) -> Result<BlockIndex, AllocError> {
        match self.allocate_fast_path(requested, stream) {
            Some(index) => Ok(index),
            None => self.allocate_slow_path(requested, stream),
        }
    }

    /// The fast path: allocates a cached block if the rules for default settings decide. `None` means that
    /// the slow path must decide.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        expect(
            clippy::inline_always,
            reason = "nearly every request goes this way; engines for WebAssembly like it apart"
        )
    )]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn allocate_fast_path(&mut self, requested: Bytes, stream: StreamId) -> Option<BlockIndex> {
        if self.needs_slow_path() || requested >= size::MAX_REQUEST {
            return None;
        }
        let rounded = size::round_up(requested, size::MIN_BLOCK_SIZE);
        // This is a branch and not an index into two free lists: when the processor predicts the branch, it
        // does not wait for the size.
        match PoolKind::serving(rounded) {
            PoolKind::Small => self.allocate_in_pool(requested, rounded, stream, PoolKind::Small),
            PoolKind::Large => self.allocate_in_pool(requested, rounded, stream, PoolKind::Large),
        }
    }

    /// [`CachingAllocator::allocate_fast_path`] for a request whose block pool is known.
    #[expect(
        clippy::inline_always,
        reason = "the pool is a constant here, so the compiler removes the code for the other pool"
    )]
    #[inline(always)]
    fn allocate_in_pool(
        &mut self,
        requested: Bytes,
        rounded: Bytes,
        stream: StreamId,
        pool: PoolKind,
    ) -> Option<BlockIndex> {
        let found = self.find_fast_path(rounded, stream, pool)?;
        Some(if self.sink.is_closed() {
            self.allocate_found_block::<true, false>(requested, &found)
        } else {
            self.allocate_found_block::<true, true>(requested, &found)
        })
    }

    /// Whether settings, open scopes or pending frees may decide which block a request gets.
    #[inline]
    fn needs_slow_path(&self) -> bool {
        // One test of all conditions; `||` would make three branches.
        !self.has_default_rules | !self.scopes.is_empty() | self.has_pending_frees()
    }

    /// Takes a cached block of the default pool by the rules for default settings.
    #[expect(clippy::inline_always, reason = "as its callers")]
    #[inline(always)]
    fn find_fast_path(&mut self, rounded: Bytes, stream: StreamId, pool: PoolKind) -> Option<ChosenBlock> {
        let list = self.default_list(pool, stream);
        let (index, size) = self.free_lists[list].cached.take_first_fitting(pool, rounded, &self.blocks)?;
        let splits = size::should_split_by_default(size, rounded, pool);
        Some(ChosenBlock { index, rounded, list, pool, splits })
    }

    #[inline(never)]
    fn allocate_slow_path(&mut self, requested: Bytes, stream: StreamId) -> Result<BlockIndex, AllocError> {
        if requested >= size::MAX_REQUEST {
            return Err(AllocError::TooLarge { requested });
        }
        let found = self.find_slow_path(requested, stream)?;
        Ok(self.allocate_found_block::<false, true>(requested, &found))
    }

    /// Finds a block in all stages of PyTorch's `malloc`, with pending frees, scopes and settings.
    fn find_slow_path(&mut self, requested: Bytes, stream: StreamId) -> Result<ChosenBlock, AllocError> {
        // This check comes before garbage collection and releases, which could not help.
        if self.config.expandable_segments() && self.device.virtual_memory().is_none() {
            return Err(AllocError::NoVirtualMemory);
        }
        let is_in_scope = !self.scopes.is_empty();
        if self.has_pending_frees() && !self.is_capturing() {
            self.process_events()?;
        }
        // Only pending frees led here, so the fast path's rules decide.
        if self.has_default_rules && !is_in_scope {
            let rounded = size::round_up(requested, size::MIN_BLOCK_SIZE);
            if let Some(found) = self.find_fast_path(rounded, stream, PoolKind::serving(rounded)) {
                return Ok(found);
            }
        }
        let rounded = size::rounded(requested, &self.config);
        let pool = PoolKind::serving(rounded);
        let memory_pool = if is_in_scope { self.pool_for(stream) } else { DEFAULT_POOL };
        let params = AllocParams {
            requested,
            rounded,
            stream,
            memory_pool,
            pool,
            list: self.free_list(memory_pool, pool, stream),
            expands: self.config.expandable_segments(),
        };
        let found = match self.find_free_block(&params) {
            Some(index) => Some(index),
            None => self.find_new_block(&params)?,
        };
        let Some(index) = found else {
            return Err(self.out_of_memory(&params, false));
        };
        self.align_start(index, &params);
        let block = &self.blocks[index];
        // From 2.10 on a block of another pool (`use_on_oom`) was searched for as if segments did not expand, and
        // is split so too.
        let lends_expandable = self.config.release().lends_expandable_blocks();
        let expands = params.expands && (lends_expandable || block.list == params.list);
        let splits = size::should_split(block.size, rounded, block.pool, expands, &self.config)
            && !self.free_lists[block.list].never_splits;
        Ok(ChosenBlock { index, rounded, list: block.list, pool: block.pool, splits })
    }

    /// Leaves the front of a block of an expandable segment free, up to where the dialect lets a large block
    /// begin, if the request fits after it.
    fn align_start(&mut self, index: BlockIndex, params: &AllocParams) {
        let Some(step) = self.config.release().dialect().expandable_alignment(params.rounded) else { return };
        if !params.expands {
            return;
        }
        let Block { id, addr, size, requested, .. } = self.blocks[index];
        let begin = Bytes::new(addr.get());
        let skipped = size::round_up(begin, step).saturating_sub(begin);
        if skipped.is_zero() || skipped.saturating_add(params.rounded) > size {
            return;
        }
        let front = self.cut_below(index, skipped);
        // The front is the old block, which keeps its request, and the block after it is new.
        self.blocks[front].requested = requested;
        self.blocks[index].requested = Bytes::ZERO;
        self.put_in_pool(front);
        let front = self.blocks[front].id;
        self.sink.record(Event::Split { block: id, front, size: skipped });
    }

    /// The free list of the stream in this block pool.
    #[inline]
    pub(crate) fn free_list(
        &mut self,
        memory_pool: MemoryPoolIndex,
        pool: PoolKind,
        stream: StreamId,
    ) -> FreeListIndex {
        let block_pool = self.memory_pools[memory_pool].block_pool_mut(pool);
        match block_pool.list_of(stream) {
            Some(list) => list,
            None => self.free_lists.add(block_pool, (stream, memory_pool, pool)),
        }
    }

    /// The free list of the stream in one of the default pool's block pools. Most requests have the stream of
    /// the request before, so the last list is remembered.
    #[inline]
    fn default_list(&mut self, pool: PoolKind, stream: StreamId) -> FreeListIndex {
        if let Some((of, list)) = self.default_lists[pool as usize]
            && of == stream
        {
            return list;
        }
        let list = self.free_list(DEFAULT_POOL, pool, stream);
        self.default_lists[pool as usize] = Some((stream, list));
        list
    }

    /// The size of the segment that would be allocated for the request.
    pub(crate) fn segment_size(&self, params: &AllocParams) -> Bytes {
        size::segment_size(params.rounded, &self.config)
    }

    /// Best fit among cached blocks of the stream (`get_free_block`).
    pub(crate) fn find_free_block(&mut self, params: &AllocParams) -> Option<BlockIndex> {
        if self.can_collect_garbage() {
            self.free_lists.count_call(self.memory_pools[params.memory_pool].block_pool_mut(params.pool));
        }
        let (limit, rounding) = (self.config.max_split_size(), self.config.max_non_split_rounding());
        let index = self.best_fit(params)?;
        let size = self.blocks[index].size;
        // Only the best candidate is considered: PyTorch does not search further if the limits exclude it.
        if params.rounded < limit && size >= limit {
            return None;
        }
        if params.rounded >= limit && size >= params.rounded.saturating_add(rounding) {
            return None;
        }
        self.take_from_pool(index);
        Some(index)
    }

    /// Allocates a new segment from the device (`alloc_block`); `None` when the limit or the memory of the
    /// device does not allow it.
    pub(crate) fn allocate_segment(
        &mut self,
        params: &AllocParams,
        is_retry: bool,
    ) -> Result<Option<BlockIndex>, AllocError> {
        if is_retry {
            self.counters.infrequent.num_alloc_retries += 1;
            self.sink.record(Event::RetryStarted);
        }
        let size = self.segment_size(params);
        // The limit is compared with a whole segment even if a few pages would suffice, as in PyTorch.
        if self.limit.is_some_and(|limit| self.reserved.saturating_add(size) > limit) {
            self.sink.record(Event::SegmentFailed { size, cause: FailureCause::Fraction });
            return Ok(None);
        }
        // PyTorch compares with the fraction of the settings, not with the one that the program set.
        if self.config.throw_on_cudamalloc_oom()
            && self.reserved.saturating_add(size) > self.config.memory_limit(self.device.total_memory())
        {
            return Err(self.out_of_memory(params, true));
        }
        if params.expands {
            if self.config.release().refuses_expandable_pools() && self.active_pool().is_some() {
                return Err(AllocError::NoExpandablePool);
            }
            return self.expand(params);
        }
        let addr = match self.device.allocate_segment(size) {
            Ok(addr) => addr,
            Err(DeviceError::OutOfMemory { .. }) => {
                self.sink.record(Event::SegmentFailed { size, cause: FailureCause::Device });
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let segment = self.new_segment_id();
        let (stream, memory_pool, pool, is_oversize) =
            (params.stream, params.memory_pool, params.pool, self.is_oversize(size));
        let pool_id = self.memory_pools[memory_pool].id;
        self.memory_pools[memory_pool].device_allocations += 1;
        let id = self.blocks.new_id();
        let index =
            self.blocks.insert(Block::of_segment(id, segment, (addr, size), (params.list, pool), false));
        self.reserved += size;
        self.counters.infrequent.segment_allocated(pool, size, is_oversize);
        self.note_private_reserved(memory_pool, pool, size.signed());
        self.sink.record(Event::SegmentAllocated {
            segment,
            block: id,
            addr,
            size,
            stream,
            pool_id,
            pool,
            is_oversize,
        });
        Ok(Some(index))
    }

    /// Allocates the block, or the front of the block, to the caller (`alloc_found_block`).
    ///
    /// `IS_RECORDED` says whether the sink gets the events. On the fast path (`IS_FAST_PATH`) no block is
    /// oversize or part of an expandable segment, and no free is pending.
    #[expect(clippy::inline_always, reason = "as its callers")]
    #[inline(always)]
    fn allocate_found_block<const IS_FAST_PATH: bool, const IS_RECORDED: bool>(
        &mut self,
        requested: Bytes,
        found: &ChosenBlock,
    ) -> BlockIndex {
        let allocation = AllocationId::new(self.next_allocation_id);
        self.next_allocation_id = self.next_allocation_id.wrapping_add(1);
        let AllocatedBlock { index, id, size } = if found.splits {
            self.take_front::<IS_FAST_PATH, IS_RECORDED>(requested, found, allocation)
        } else {
            self.take_whole::<IS_FAST_PATH>(requested, found, allocation)
        };
        self.counters.allocated(found.pool, size, requested);
        if !IS_FAST_PATH {
            self.counters.note_pending();
        }
        let is_oversize = !IS_FAST_PATH && self.is_oversize(size);
        if is_oversize {
            self.counters.infrequent.oversize_allocations.increase(1);
        }
        if IS_RECORDED {
            self.sink.record(Event::Allocated { block: id, allocation, requested, is_oversize });
        }
        index
    }

    #[expect(clippy::inline_always, reason = "as its caller")]
    #[inline(always)]
    fn take_whole<const IS_FAST_PATH: bool>(
        &mut self,
        requested: Bytes,
        found: &ChosenBlock,
        allocation: AllocationId,
    ) -> AllocatedBlock {
        let ChosenBlock { index, pool, .. } = *found;
        let block = &mut self.blocks[index];
        block.state = BlockState::Allocated;
        block.requested = requested;
        block.allocation = allocation;
        let Block { id, size, .. } = *block;
        let was_remainder = block.is_split() && (IS_FAST_PATH || !block.is_expandable);
        if was_remainder {
            self.counters.splits_fell(pool, 1, size);
        }
        AllocatedBlock { index, id, size }
    }

    #[expect(clippy::inline_always, reason = "as its caller")]
    #[inline(always)]
    fn take_front<const IS_FAST_PATH: bool, const IS_RECORDED: bool>(
        &mut self,
        requested: Bytes,
        found: &ChosenBlock,
        allocation: AllocationId,
    ) -> AllocatedBlock {
        let ChosenBlock { index: remainder_index, rounded, list, pool, .. } = *found;
        let index = self.blocks.claim();
        let id = self.blocks.new_id();
        let (places, _) = self.blocks.places();
        let remainder = &mut places[remainder_index.place()];
        let was_split = remainder.is_split();
        let Block { id: remainder_id, segment, previous, addr, .. } = *remainder;
        let is_expandable = !IS_FAST_PATH && remainder.is_expandable;
        let (remainder_addr, remainder_size) = (addr.offset(rounded), remainder.size - rounded);
        let free_list = &mut self.free_lists[list];
        remainder.addr = remainder_addr;
        remainder.size = remainder_size;
        remainder.previous = Some(index);
        remainder.calls_when_freed = free_list.calls;
        places[BlockIndex::place_of(previous)].next = Some(index);
        // The fields are written one by one. A copy with changes would be loaded in pieces that do not match
        // the stores before.
        places[index.place()] = Block {
            addr,
            size: rounded,
            requested,
            calls_when_freed: 0,
            previous,
            next: Some(remainder_index),
            id,
            segment,
            list,
            allocation,
            uses: None,
            pool,
            state: BlockState::Allocated,
            is_expandable,
        };
        free_list.cached.insert(remainder_index, remainder_size, remainder_addr, &self.blocks);
        if IS_RECORDED {
            self.sink.record(Event::Split { block: remainder_id, front: id, size: rounded });
        }
        // The block was part of a split segment before, or the remainder is new.
        if was_split && !is_expandable {
            self.counters.splits_fell(pool, 0, rounded);
        } else if !is_expandable {
            self.counters.splits_changed(pool, 1, remainder_size.signed());
        }
        AllocatedBlock { index, id, size: rounded }
    }

    /// Counts a failed request, and describes it. With `is_rejected`, the device was not asked.
    #[cold]
    fn out_of_memory(&mut self, params: &AllocParams, is_rejected: bool) -> AllocError {
        let info = match self.device.memory_info() {
            Ok(info) => info,
            Err(error) => return error.into(),
        };
        if is_rejected {
            self.counters.infrequent.num_oom_rejections += 1;
        } else {
            self.counters.infrequent.num_ooms += 1;
        }
        self.sink.record(Event::OutOfMemory {
            requested: params.requested,
            rounded: params.rounded,
            segment_size: self.segment_size(params),
            stream: params.stream,
            device_free: info.free,
            is_rejected,
        });
        AllocError::OutOfMemory(Box::new(OutOfMemory {
            pool_id: self.memory_pools[params.memory_pool].id,
            requested: params.requested,
            rounded: params.rounded,
            segment_size: self.segment_size(params),
            stream: params.stream,
            device: info.index,
            device_free: info.free,
            device_total: info.total,
            processes: info.processes,
            limit: self.limit,
            allocated: self.counters.allocated_bytes(),
            reserved: self.reserved,
            private_cached: self.private_cached(),
            is_rejected,
            advice: self.oom_advice(params, info.total),
        }))
    }

    /// What the release advises at the end of its text.
    fn oom_advice(&self, params: &AllocParams, total: Bytes) -> OomAdvice {
        let release = self.config.release();
        let advice = if params.expands {
            release.expandable_advice()
        } else {
            ExpandableAdvice::TryExpandableSegments
        };
        match advice {
            ExpandableAdvice::TryExpandableSegments => return OomAdvice::TryExpandableSegments { release },
            ExpandableAdvice::None => return OomAdvice::None,
            ExpandableAdvice::AddressReserve => {}
        }
        match self.config.address_reserve(total) {
            // No reserve helps a request that is larger than the device.
            Some(reserve) if self.segment_size(params) > reserve && self.segment_size(params) <= total => {
                OomAdvice::RaiseReserve { reserve }
            }
            _ => OomAdvice::LowerReserve,
        }
    }
}
