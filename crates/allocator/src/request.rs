//! A request on its way to its block: found in the cache or made, cut where it is too large, handed out.

use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_record::{
    AllocationId, BlockId, BlockState, Bytes, Event, EventSink, PoolKind, Refusal, StreamId,
};

use crate::block::{Block, BlockIndex};
use crate::pool::FreeSetIndex;
use crate::private_pool::{DEFAULT_POOL, PoolIndex};
use crate::{AllocError, CachingAllocator, OutOfMemory, size};

/// A request on its way through [`CachingAllocator::allocate`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) requested: Bytes,
    pub(crate) rounded: Bytes,
    pub(crate) stream: StreamId,
    /// The memory pool that serves it.
    pub(crate) owner: PoolIndex,
    pub(crate) pool: PoolKind,
    /// Where free blocks for it wait.
    pub(crate) set: FreeSetIndex,
    /// Whether new memory comes page by page, and blocks are cut as finely as those of such segments.
    pub(crate) expands: bool,
}

/// The block that a request gets.
#[derive(Clone, Copy, Debug)]
struct Found {
    index: BlockIndex,
    /// The request after rounding.
    rounded: Bytes,
    /// Where the block waited.
    set: FreeSetIndex,
    pool: PoolKind,
    /// Whether the request gets only the front of the block.
    splits: bool,
}

/// What a request got.
struct Taken {
    index: BlockIndex,
    id: BlockId,
    size: Bytes,
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// As [`CachingAllocator::allocate`], for more than zero bytes.
    #[inline]
    pub(crate) fn allocate_block(
        &mut self,
        requested: Bytes,
        stream: StreamId,
    ) -> Result<BlockIndex, AllocError> {
        match self.allocate_plain(requested, stream) {
            Some(index) => Ok(index),
            None => self.allocate_with_care(requested, stream),
        }
    }

    /// Hands out a cached block where nothing but the rules for default settings has a say; `None` says nothing about the others.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        expect(
            clippy::inline_always,
            reason = "nearly every request goes this way; engines for WebAssembly like it apart"
        )
    )]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn allocate_plain(&mut self, requested: Bytes, stream: StreamId) -> Option<BlockIndex> {
        if self.needs_care() || requested >= size::LARGEST_REQUEST {
            return None;
        }
        let rounded = size::round_up(requested, size::MIN_BLOCK_SIZE);
        // A branch, not a choice between two free sets: a processor that foresees it need not wait for the size to go on.
        match size::pool_kind(rounded) {
            PoolKind::Small => self.allocate_in_half(requested, rounded, stream, PoolKind::Small),
            PoolKind::Large => self.allocate_in_half(requested, rounded, stream, PoolKind::Large),
        }
    }

    /// As [`CachingAllocator::allocate_plain`], given the half of the pool.
    #[expect(clippy::inline_always, reason = "what is known of either half leaves much of it out")]
    #[inline(always)]
    fn allocate_in_half(
        &mut self,
        requested: Bytes,
        rounded: Bytes,
        stream: StreamId,
        pool: PoolKind,
    ) -> Option<BlockIndex> {
        let found = self.find_plain(rounded, stream, pool)?;
        Some(if self.sink.is_closed() {
            self.hand_out::<true, false>(requested, &found)
        } else {
            self.hand_out::<true, true>(requested, &found)
        })
    }

    /// Whether settings, open scopes or pending frees have a say in which block a request gets.
    #[inline]
    fn needs_care(&self) -> bool {
        // Not `||`: one question to all of them.
        !self.is_plain | !self.scopes.is_empty() | self.has_pending_frees()
    }

    /// Takes a cached block of the default pool by the rules for default settings.
    #[expect(clippy::inline_always, reason = "as its callers")]
    #[inline(always)]
    fn find_plain(&mut self, rounded: Bytes, stream: StreamId, pool: PoolKind) -> Option<Found> {
        let set = self.default_set(pool, stream);
        let (index, size) = self.free_sets[set].cached.take_first_fitting(pool, rounded, &self.blocks)?;
        let splits = size::should_split_plain(size, rounded, pool);
        Some(Found { index, rounded, set, pool, splits })
    }

    #[inline(never)]
    fn allocate_with_care(&mut self, requested: Bytes, stream: StreamId) -> Result<BlockIndex, AllocError> {
        if requested >= size::LARGEST_REQUEST {
            return Err(AllocError::TooLarge { requested });
        }
        let found = self.find_with_care(requested, stream)?;
        Ok(self.hand_out::<false, true>(requested, &found))
    }

    /// Finds a block as PyTorch does it step by step, with pending frees, scopes and settings (`malloc`).
    fn find_with_care(&mut self, requested: Bytes, stream: StreamId) -> Result<Found, AllocError> {
        // Before anything is collected or released for a segment that could not be made.
        if self.config.expandable_segments() && self.device.virtual_memory().is_none() {
            return Err(AllocError::NoVirtualMemory);
        }
        let is_in_scope = !self.scopes.is_empty();
        if !is_in_scope && self.has_pending_frees() {
            self.process_events()?;
        }
        // Only frees were pending: all else is as where nothing needs care.
        if self.is_plain && !is_in_scope {
            let rounded = size::round_up(requested, size::MIN_BLOCK_SIZE);
            if let Some(found) = self.find_plain(rounded, stream, size::pool_kind(rounded)) {
                return Ok(found);
            }
        }
        let rounded = size::rounded(requested, &self.config);
        let pool = size::pool_kind(rounded);
        let owner = if is_in_scope { self.pool_for(stream) } else { DEFAULT_POOL };
        let search = Search {
            requested,
            rounded,
            stream,
            owner,
            pool,
            set: self.free_set(owner, pool, stream),
            expands: self.config.expandable_segments(),
        };
        let found = match self.find_free_block(&search) {
            Some(index) => Some(index),
            None => self.find_new_block(&search)?,
        };
        let Some(index) = found else {
            return Err(self.out_of_memory(&search));
        };
        let block = &self.blocks[index];
        // A block that another pool lends is split as if segments did not expand, which is how it was found.
        let expands = search.expands && block.set == search.set;
        let splits = size::should_split(block.size, rounded, block.pool, expands, &self.config)
            && !self.free_sets[block.set].never_splits;
        Ok(Found { index, rounded, set: block.set, pool: block.pool, splits })
    }

    /// Where free blocks of the stream wait in this half of the pool.
    #[inline]
    pub(crate) fn free_set(&mut self, owner: PoolIndex, pool: PoolKind, stream: StreamId) -> FreeSetIndex {
        let half = self.pools[owner].half_mut(pool);
        match half.set_of(stream) {
            Some(set) => set,
            None => self.free_sets.add(half, (stream, owner, pool)),
        }
    }

    /// The same for the default pool, which most requests go to with the stream of the request before.
    #[inline]
    fn default_set(&mut self, pool: PoolKind, stream: StreamId) -> FreeSetIndex {
        if let Some((of, set)) = self.default_sets[pool as usize]
            && of == stream
        {
            return set;
        }
        let set = self.free_set(DEFAULT_POOL, pool, stream);
        self.default_sets[pool as usize] = Some((stream, set));
        set
    }

    /// The segment that would be made for the request.
    pub(crate) fn segment_size(&self, search: &Search) -> Bytes {
        size::segment_size(search.rounded, &self.config)
    }

    /// Best fit among cached blocks of the stream (`get_free_block`).
    pub(crate) fn find_free_block(&mut self, search: &Search) -> Option<BlockIndex> {
        if self.can_collect_garbage() {
            self.free_sets.count_call(self.pools[search.owner].half_mut(search.pool));
        }
        let (limit, rounding) = (self.config.max_split_size(), self.config.max_non_split_rounding());
        let index = self.best_fit(search)?;
        let size = self.blocks[index].size;
        // Only the best candidate is looked at: PyTorch does not search on behind a refused one.
        if search.rounded < limit && size >= limit {
            return None;
        }
        if search.rounded >= limit && size >= search.rounded.saturating_add(rounding) {
            return None;
        }
        self.take_from_pool(index);
        Some(index)
    }

    /// Takes a new segment from the device (`alloc_block`); `None` when the limit or the device refuses.
    pub(crate) fn allocate_segment(
        &mut self,
        search: &Search,
        is_retry: bool,
    ) -> Result<Option<BlockIndex>, AllocError> {
        if is_retry {
            self.counters.seldom.num_alloc_retries += 1;
            self.sink.record(Event::RetryStarted);
        }
        let size = self.segment_size(search);
        // The limit is held against a whole segment even where a few pages would do, as in PyTorch.
        if self.limit.is_some_and(|limit| self.reserved.saturating_add(size) > limit) {
            self.sink.record(Event::SegmentRefused { size, refusal: Refusal::Fraction });
            return Ok(None);
        }
        if search.expands {
            return self.expand(search);
        }
        let addr = match self.device.allocate_segment(size) {
            Ok(addr) => addr,
            Err(DeviceError::OutOfMemory { .. }) => {
                self.sink.record(Event::SegmentRefused { size, refusal: Refusal::Device });
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let segment = self.mint_segment();
        let (stream, owner, pool, is_oversize) =
            (search.stream, search.owner, search.pool, self.is_oversize(size));
        let pool_id = self.pools[owner].id;
        self.pools[owner].device_allocations += 1;
        let id = self.blocks.mint();
        let index =
            self.blocks.insert(Block::of_segment(id, segment, (addr, size), (search.set, pool), false));
        self.reserved += size;
        self.counters.seldom.segment_allocated(pool, size, is_oversize);
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

    /// Makes the block the caller's, or the front of it (`alloc_found_block`).
    ///
    /// `IS_TOLD` says whether the sink hears of it. Where only the rules for default settings have a say (`IS_PLAIN`), no block is
    /// oversize, or of a segment that expands, and no free is pending.
    #[expect(clippy::inline_always, reason = "as its callers")]
    #[inline(always)]
    fn hand_out<const IS_PLAIN: bool, const IS_TOLD: bool>(
        &mut self,
        requested: Bytes,
        found: &Found,
    ) -> BlockIndex {
        let allocation = AllocationId::new(self.allocations);
        self.allocations = self.allocations.wrapping_add(1);
        let Taken { index, id, size } = if found.splits {
            self.take_front::<IS_PLAIN, IS_TOLD>(requested, found, allocation)
        } else {
            self.take_whole::<IS_PLAIN>(requested, found, allocation)
        };
        self.counters.allocated(found.pool, size, requested);
        if !IS_PLAIN {
            self.counters.note_pending();
        }
        let is_oversize = !IS_PLAIN && self.is_oversize(size);
        if is_oversize {
            self.counters.seldom.oversize_allocations.increase(1);
        }
        if IS_TOLD {
            self.sink.record(Event::Allocated { block: id, allocation, requested, is_oversize });
        }
        index
    }

    #[expect(clippy::inline_always, reason = "as its caller")]
    #[inline(always)]
    fn take_whole<const IS_PLAIN: bool>(
        &mut self,
        requested: Bytes,
        found: &Found,
        allocation: AllocationId,
    ) -> Taken {
        let Found { index, pool, .. } = *found;
        let block = &mut self.blocks[index];
        block.state = BlockState::Allocated;
        block.requested = requested;
        block.allocation = allocation;
        let Block { id, size, .. } = *block;
        let was_rest = block.is_split() && (IS_PLAIN || !block.is_expandable);
        if was_rest {
            self.counters.rests_fell(pool, 1, size);
        }
        Taken { index, id, size }
    }

    #[expect(clippy::inline_always, reason = "as its caller")]
    #[inline(always)]
    fn take_front<const IS_PLAIN: bool, const IS_TOLD: bool>(
        &mut self,
        requested: Bytes,
        found: &Found,
        allocation: AllocationId,
    ) -> Taken {
        let Found { index: rest_index, rounded, set, pool, .. } = *found;
        let index = self.blocks.claim();
        let id = self.blocks.mint();
        let (places, _) = self.blocks.places();
        let rest = &mut places[rest_index.place()];
        let was_split = rest.is_split();
        let Block { id: rest_id, segment, previous, addr, .. } = *rest;
        let is_expandable = !IS_PLAIN && rest.is_expandable;
        let (rest_addr, rest_size) = (addr.offset(rounded), rest.size - rounded);
        let free_set = &mut self.free_sets[set];
        rest.addr = rest_addr;
        rest.size = rest_size;
        rest.previous = Some(index);
        rest.calls_when_freed = free_set.calls;
        places[BlockIndex::place_of(previous)].next = Some(index);
        // Not as a copy with changes, which would be read in pieces that do not fit what was written.
        places[index.place()] = Block {
            addr,
            size: rounded,
            requested,
            calls_when_freed: 0,
            previous,
            next: Some(rest_index),
            id,
            segment,
            set,
            allocation,
            uses: None,
            pool,
            state: BlockState::Allocated,
            is_expandable,
        };
        free_set.cached.insert(rest_index, rest_size, rest_addr, &self.blocks);
        if IS_TOLD {
            self.sink.record(Event::Split { block: rest_id, front: id, size: rounded });
        }
        // What was cut off a rest, or a rest that was not one before.
        if was_split && !is_expandable {
            self.counters.rests_fell(pool, 0, rounded);
        } else if !is_expandable {
            self.counters.rests_changed(pool, 1, rest_size.signed());
        }
        Taken { index, id, size: rounded }
    }

    #[cold]
    fn out_of_memory(&mut self, search: &Search) -> AllocError {
        let info = match self.device.memory_info() {
            Ok(info) => info,
            Err(error) => return error.into(),
        };
        self.counters.seldom.num_ooms += 1;
        self.sink.record(Event::OutOfMemory {
            requested: search.requested,
            rounded: search.rounded,
            segment_size: self.segment_size(search),
            stream: search.stream,
            device_free: info.free,
        });
        let current = |bytes: i64| Bytes::new(u64::try_from(bytes).unwrap_or(0));
        AllocError::OutOfMemory(Box::new(OutOfMemory {
            requested: search.requested,
            rounded: search.rounded,
            segment_size: self.segment_size(search),
            stream: search.stream,
            device: info.index,
            device_free: info.free,
            device_total: info.total,
            processes: info.processes,
            limit: self.limit,
            allocated: current(self.counters.allocated_bytes()),
            reserved: self.reserved,
            private_cached: self.private_cached(),
        }))
    }
}
