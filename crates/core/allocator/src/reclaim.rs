//! What the allocator tries for a request that no cached block fits, from a new segment to a release of the
//! whole cache.

use blockyard_device::DeviceMemory;
use blockyard_record::{Bytes, Event, EventSink, PoolKind};
use blockyard_rules::size;

use crate::block::BlockIndex;
use crate::memory_pool::{DEFAULT_POOL, MemoryPoolIndex};
use crate::request::AllocParams;
use crate::{AllocError, CachingAllocator};

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Garbage collection, a new segment, a new segment after releasing enough oversize blocks, a new segment
    /// after releasing the whole cache; `None` when all of that fails (`malloc`, after `get_free_block`).
    pub(crate) fn find_new_block(&mut self, params: &AllocParams) -> Result<Option<BlockIndex>, AllocError> {
        if self.can_collect_garbage() {
            self.collect_garbage()?;
        }
        if let Some(block) = self.allocate_segment(params, false)? {
            return Ok(Some(block));
        }
        let lends_first = self.config.release().lends_before_releases();
        if lends_first && let Some(block) = self.find_lent_block(params) {
            return Ok(Some(block));
        }
        if self.release_available_cached_blocks(params)?
            && let Some(block) = self.allocate_segment(params, false)?
        {
            return Ok(Some(block));
        }
        if !self.is_capturing() {
            self.release_cached_blocks()?;
            if let Some(block) = self.allocate_segment(params, true)? {
                return Ok(Some(block));
            }
        }
        Ok(if lends_first { None } else { self.find_lent_block(params) })
    }

    /// A cached block of a memory pool that lends its memory to the default pool (`use_on_oom`).
    fn find_lent_block(&mut self, params: &AllocParams) -> Option<BlockIndex> {
        if params.memory_pool != DEFAULT_POOL {
            return None;
        }
        let expands = params.expands && self.config.release().lends_expandable_blocks();
        self.memory_pools_on_oom().into_iter().find_map(|pool| {
            // Only cached blocks of these pools are used: no segment grows, and from 2.10 on blocks of
            // expandable segments are skipped.
            let list = self.free_list(pool, params.pool, params.stream);
            self.find_free_block(&AllocParams { memory_pool: pool, list, expands, ..*params })
        })
    }

    /// Garbage collection needs both a memory limit and a threshold; PyTorch ignores the threshold alone.
    pub(crate) fn can_collect_garbage(&self) -> bool {
        self.limit.is_some() && self.config.garbage_collection_threshold() > 0.0
    }

    /// Releases unsplit large blocks, older than average first, until reserved memory is under the threshold
    /// (`garbage_collect_cached_blocks`).
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "PyTorch computes the threshold and the mean age in doubles"
    )]
    fn collect_garbage(&mut self) -> Result<(), AllocError> {
        let limit = self.limit.map_or(0, Bytes::get) as f64;
        let threshold = Bytes::new((self.config.garbage_collection_threshold() * limit) as u64);
        if self.reserved <= threshold {
            return Ok(());
        }
        let target = self.reserved - threshold;
        let age = |allocator: &Self, index: BlockIndex| {
            let block = &allocator.blocks[index];
            allocator.memory_pools[DEFAULT_POOL]
                .block_pool(PoolKind::Large)
                .calls()
                .saturating_sub(block.calls_when_freed)
        };
        let mut unsplit = self.cached_blocks(DEFAULT_POOL, PoolKind::Large);
        unsplit.retain(|index| !self.blocks[*index].is_split());
        // An expandable segment that is one block, mapped as a whole, counts in the mean; only other segments
        // are released.
        let mut total_age: f64 = unsplit.iter().map(|index| age(self, *index) as f64).sum();
        let mut count = unsplit.len();
        let mut candidates = unsplit;
        candidates.retain(|index| !self.blocks[*index].is_expandable);
        let mut reclaimed = Bytes::ZERO;
        let mut released_any = true;
        while reclaimed < target && released_any && count > 0 {
            let mean = total_age / count as f64;
            released_any = false;
            let mut kept = Vec::new();
            for index in candidates {
                let age = age(self, index) as f64;
                if age < mean {
                    kept.push(index);
                    continue;
                }
                total_age -= age;
                count -= 1;
                reclaimed += self.blocks[index].size;
                released_any = true;
                self.release_segment(index)?;
            }
            candidates = kept;
        }
        Ok(())
    }

    /// Releases just enough cached oversize blocks for the request (`release_available_cached_blocks`).
    /// Returns whether enough could be released.
    fn release_available_cached_blocks(&mut self, params: &AllocParams) -> Result<bool, AllocError> {
        let max_split_size = self.config.max_split_size();
        if max_split_size == size::UNLIMITED {
            return Ok(false);
        }
        let wanted = params.rounded.max(max_split_size);
        self.free_lists[params.list].cached.put_latest_in_bin(&self.blocks);
        let mut fitting = Vec::new();
        let list = &self.free_lists[params.list];
        if let Some(first) = list.cached.first_fitting(wanted, &self.blocks) {
            let size = self.blocks[first].size;
            fitting.extend(
                list.fitting(wanted, &self.blocks).take_while(|index| self.blocks[*index].size == size),
            );
        }
        self.put_oldest_first(&mut fitting);
        if let Some(index) = fitting.first().copied().filter(|index| self.blocks[*index].is_releasable()) {
            self.release_segment(index)?;
            return Ok(true);
        }
        let mut released = Bytes::ZERO;
        let mut smaller = self.free_lists[params.list].smaller_than(wanted, &self.blocks);
        self.put_oldest_first(&mut smaller);
        // From the largest down, as PyTorch walks through its set backwards.
        for index in smaller.into_iter().rev() {
            let size = self.blocks[index].size;
            if released >= wanted || size < max_split_size {
                break;
            }
            if self.blocks[index].is_releasable() {
                released += size;
                self.release_segment(index)?;
            }
        }
        Ok(released >= wanted)
    }

    /// Waits for all pending frees, then releases every cached segment: large ones before small ones, each by
    /// ascending stream, size and address. Whole pages of cached blocks in expandable segments are unmapped
    /// last (`release_cached_blocks`).
    ///
    /// During a graph capture the default pool is left out, as in PyTorch. Pools out of use come last.
    pub(crate) fn release_cached_blocks(&mut self) -> Result<(), AllocError> {
        if !self.is_capturing() {
            self.synchronize_streams(None)?;
            for kind in [PoolKind::Large, PoolKind::Small] {
                self.release_blocks(DEFAULT_POOL, kind)?;
            }
        }
        self.release_unused_pools(None)
    }

    /// Releases the cached segments of one block pool (`release_blocks`).
    pub(crate) fn release_blocks(
        &mut self,
        memory_pool: MemoryPoolIndex,
        pool: PoolKind,
    ) -> Result<(), AllocError> {
        let (expandable, whole): (Vec<_>, Vec<_>) = self
            .cached_blocks(memory_pool, pool)
            .into_iter()
            .partition(|index| self.blocks[*index].is_expandable);
        for index in whole {
            if !self.blocks[index].is_split() {
                self.release_segment(index)?;
            }
        }
        for index in expandable {
            self.unmap(index)?;
        }
        Ok(())
    }

    /// The cached blocks of one block pool, by ascending stream, size and address.
    fn cached_blocks(&mut self, memory_pool: MemoryPoolIndex, pool: PoolKind) -> Vec<BlockIndex> {
        let mut cached = Vec::new();
        for list in self.memory_pools[memory_pool].block_pool(pool).lists() {
            let list = &mut self.free_lists[list].cached;
            list.put_latest_in_bin(&self.blocks);
            cached.extend(list.iter(&self.blocks));
        }
        self.put_oldest_first(&mut cached);
        cached
    }

    /// Releases a segment that is one cached block to the device (`release_block`).
    fn release_segment(&mut self, index: BlockIndex) -> Result<(), AllocError> {
        let block = &self.blocks[index];
        let (segment, addr, size, pool, memory_pool) =
            (block.segment, block.addr, block.size, block.pool, self.free_lists[block.list].memory_pool);
        self.device.release_segment(addr)?;
        let is_oversize = self.is_oversize(size);
        self.take_from_pool(index);
        self.blocks.remove(index);
        self.reserved -= size;
        self.memory_pools[memory_pool].device_allocations -= 1;
        self.counters.infrequent.segment_released(pool, size, is_oversize);
        self.note_private_reserved(memory_pool, pool, size.signed().wrapping_neg());
        self.sink.record(Event::SegmentReleased { segment, is_oversize });
        Ok(())
    }
}
