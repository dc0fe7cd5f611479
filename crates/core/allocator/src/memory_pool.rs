//! Memory pools: the default pool, and the pools of programs (`MemPool`) and of graph captures.
//!
//! A pool has its own segments and free blocks. Requests go to a pool while a scope on it is open. A block
//! returns to its pool whenever it is freed.

use std::collections::BTreeMap;
use std::fmt;

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, EventSink, PoolId, PoolKind, StatArray, StreamId};

use crate::block::BlockIndex;
use crate::free_list::{BlockPool, FreeLists};
use crate::{AllocError, CachingAllocator};

/// The index of a pool; 0 is the default pool, which always exists.
pub(crate) type MemoryPoolIndex = usize;

pub(crate) const DEFAULT_POOL: MemoryPoolIndex = 0;

/// The options of a program's pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// Whether every request gets a whole segment (`no_split`).
    pub never_splits: bool,
    /// Whether a request that fails elsewhere may take cached blocks of this pool (`use_on_oom`).
    pub serves_on_oom: bool,
}

/// The free blocks of one memory pool (`PrivatePool`), and its options.
#[derive(Clone, Debug)]
pub(crate) struct MemoryPool {
    pub(crate) id: PoolId,
    small: BlockPool,
    large: BlockPool,
    pub(crate) options: PoolOptions,
    /// How many uses the pool has: its owner and open scopes. At 0 its cache may be released.
    uses: u32,
    /// Allocated segments minus released segments (`cudaMalloc_count`), counted for each call, not for each
    /// page, as in PyTorch.
    pub(crate) device_allocations: i64,
    is_deleted: bool,
}

/// A scope that directs requests to a pool.
#[derive(Debug)]
pub(crate) struct Scope {
    memory_pool: MemoryPoolIndex,
    accepts: ScopeFilter,
}

/// Which requests a scope directs.
enum ScopeFilter {
    All,
    Stream(StreamId),
    /// Requests whose stream the function accepts when the request is made.
    If(Box<dyn Fn(StreamId) -> bool + Send>),
}

impl fmt::Debug for ScopeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Stream(stream) => f.debug_tuple("Stream").field(stream).finish(),
            Self::If(_) => f.write_str("If(..)"),
        }
    }
}

impl Scope {
    fn accepts(&self, stream: StreamId) -> bool {
        match &self.accepts {
            ScopeFilter::All => true,
            ScopeFilter::Stream(only) => *only == stream,
            ScopeFilter::If(accepts) => accepts(stream),
        }
    }
}

impl MemoryPool {
    pub(crate) fn new(id: PoolId, uses: u32) -> Self {
        Self {
            id,
            small: BlockPool::default(),
            large: BlockPool::default(),
            options: PoolOptions::default(),
            uses,
            device_allocations: 0,
            is_deleted: false,
        }
    }

    pub(crate) fn block_pool(&self, kind: PoolKind) -> &BlockPool {
        match kind {
            PoolKind::Small => &self.small,
            PoolKind::Large => &self.large,
        }
    }

    pub(crate) fn block_pool_mut(&mut self, kind: PoolKind) -> &mut BlockPool {
        match kind {
            PoolKind::Small => &mut self.small,
            PoolKind::Large => &mut self.large,
        }
    }

    /// Whether no block of the pool is cached or unmapped.
    fn is_drained(&self, lists: &FreeLists) -> bool {
        self.small.lists().chain(self.large.lists()).all(|list| lists[list].is_empty())
    }
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Creates a pool for the program (`MemPool()`). Its use count is 1, for its owner.
    pub fn create_pool(&mut self, options: PoolOptions) -> PoolId {
        let taken = |user: u32| self.memory_pools.iter().any(|pool| pool.id.user == user);
        let most = self.memory_pools.iter().map(|pool| pool.id.user).max().unwrap_or(0);
        // A scope may have used the largest number.
        let next = most.checked_add(1).or_else(|| (1..most).find(|user| !taken(*user)));
        debug_assert!(next.is_some(), "2^32 pools do not fit in memory");
        let user = next.unwrap_or(most);
        let id = PoolId { capture: 0, user };
        self.create_pool_with_id(id, options);
        id
    }

    /// [`CachingAllocator::create_pool`] with the identity that the process chose, which counts the pools of
    /// all its devices (`createOrIncrefPool`). Only a pool that does not exist yet can be made.
    pub fn create_pool_with_id(&mut self, id: PoolId, options: PoolOptions) {
        debug_assert!(self.memory_pools.iter().all(|pool| pool.id != id), "each pool has an identity");
        let block_pool = BlockPool::new(options.never_splits);
        self.memory_pools.push(MemoryPool {
            options,
            small: block_pool.clone(),
            large: block_pool,
            ..MemoryPool::new(id, 1)
        });
    }

    /// Directs requests of `stream`, or of all streams, to the pool until
    /// [`CachingAllocator::end_allocate_to_pool`] (`beginAllocateToPool`). The newest scope is asked first. A
    /// pool that does not exist is created.
    ///
    /// Up to release 2.12 each scope counts as a capture; see [`CachingAllocator::mark_capture_begin`].
    ///
    /// # Errors
    ///
    /// [`AllocError::AlreadyInPool`] when a scope on the pool is open. Nothing changes.
    pub fn begin_allocate_to_pool(&mut self, id: PoolId, stream: Option<StreamId>) -> Result<(), AllocError> {
        self.open_scope(id, stream.map_or(ScopeFilter::All, ScopeFilter::Stream))
    }

    /// Directs requests to the pool if `accepts` returns `true` for their stream when the request is made.
    /// PyTorch checks here whether the stream is being captured, or which thread makes the request.
    ///
    /// # Errors
    ///
    /// The errors of [`CachingAllocator::begin_allocate_to_pool`].
    pub fn begin_allocate_to_pool_if(
        &mut self,
        id: PoolId,
        accepts: impl Fn(StreamId) -> bool + Send + 'static,
    ) -> Result<(), AllocError> {
        self.open_scope(id, ScopeFilter::If(Box::new(accepts)))
    }

    fn open_scope(&mut self, id: PoolId, accepts: ScopeFilter) -> Result<(), AllocError> {
        let pool =
            self.memory_pools.iter().position(|pool| pool.id == id && !pool.is_deleted).unwrap_or_else(
                || {
                    self.memory_pools.push(MemoryPool::new(id, 0));
                    self.memory_pools.len() - 1
                },
            );
        if pool == DEFAULT_POOL
            || self.scopes.iter().any(|scope| self.memory_pools[scope.memory_pool].id == id)
        {
            return Err(AllocError::AlreadyInPool(id));
        }
        self.memory_pools[pool].uses += 1;
        self.scopes.push(Scope { memory_pool: pool, accepts });
        Ok(())
    }

    /// Ends the scope on the pool (`endAllocateToPool`). The pool stays in use until
    /// [`CachingAllocator::release_pool`].
    ///
    /// # Errors
    ///
    /// [`AllocError::NotInPool`] when no scope on the pool is open.
    pub fn end_allocate_to_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        let pools = &self.memory_pools;
        let open = self.scopes.iter().rposition(|scope| pools[scope.memory_pool].id == id);
        self.scopes.remove(open.ok_or(AllocError::NotInPool(id))?);
        Ok(())
    }

    /// A graph capture has begun (`markCaptureBegin`). Captures may be nested.
    ///
    /// During a capture, frees that wait for streams are not completed, and `empty_cache` and failed requests
    /// do not release the default pool's cache. Garbage collection, and releases for the oversize limit,
    /// still release it.
    ///
    /// Up to release 2.12 this call does nothing, since there the allocator takes each open scope for a
    /// capture.
    pub fn mark_capture_begin(&mut self) {
        self.captures = self.captures.saturating_add(1);
    }

    /// A graph capture has ended (`markCaptureEnd`).
    pub fn mark_capture_end(&mut self) {
        self.captures = self.captures.saturating_sub(1);
    }

    /// The pool of the program's innermost open scope (`MemPoolContext`), up to release 2.7: a snapshot lists
    /// this pool alone.
    #[must_use]
    pub fn active_pool(&self) -> Option<PoolId> {
        let open = self.scopes.iter().rev().filter(|_| self.config.release().has_active_pool());
        open.map(|scope| self.memory_pools[scope.memory_pool].id).find(|id| id.capture == 0)
    }

    /// Whether a graph is being captured, as far as the allocator of the release knows.
    #[inline]
    pub(crate) fn is_capturing(&self) -> bool {
        if self.config.release().scopes_are_captures() { !self.scopes.is_empty() } else { self.captures > 0 }
    }

    /// The bytes of the segments of each private pool that ever had a segment, by the pool's identity;
    /// `memory_stats()` has them from release 2.13 on. Where a pool was released, current values are zero.
    #[must_use]
    pub fn reserved_by_private_pools(&self) -> &BTreeMap<PoolId, StatArray> {
        &self.private_reserved
    }

    /// Counts bytes of segments that a pool gained or, with a negative number, lost.
    pub(crate) fn note_private_reserved(&mut self, memory_pool: MemoryPoolIndex, pool: PoolKind, bytes: i64) {
        if memory_pool != DEFAULT_POOL {
            self.private_reserved.entry(self.memory_pools[memory_pool].id).or_default().change(pool, bytes);
        }
    }

    /// Releases one use of the pool (`releasePool`). When the use count is 0, the cache of the pool is
    /// released together with that of the default pool.
    ///
    /// # Errors
    ///
    /// [`AllocError::UnknownPool`] when no pool with this number is in use.
    pub fn release_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        let index = self.used_pool(id)?;
        self.memory_pools[index].uses -= 1;
        Ok(())
    }

    /// Destroys a pool of the program (`~MemPool`): releases the use of its owner, and the cache if that was
    /// the last use.
    ///
    /// # Errors
    ///
    /// [`AllocError::UnknownPool`] when no pool with this number is in use, [`AllocError::Device`] when the
    /// device fails.
    pub fn destroy_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        let index = self.used_pool(id)?;
        self.memory_pools[index].options.serves_on_oom = false;
        self.memory_pools[index].uses -= 1;
        // An open scope still uses the pool: PyTorch neither waits nor releases then.
        if self.memory_pools[index].uses > 0 {
            return Ok(());
        }
        self.synchronize_streams(Some(index))?;
        self.release_unused_pools(Some(index))
    }

    /// The use count of the pool: its owner and open scopes (`MemPool.use_count()`); 0 if the pool does not
    /// exist.
    pub fn pool_use_count(&self, id: PoolId) -> u32 {
        let pool = self.memory_pools.iter().find(|pool| pool.id == id && !pool.is_deleted);
        pool.map_or(0, |pool| pool.uses)
    }

    fn used_pool(&self, id: PoolId) -> Result<MemoryPoolIndex, AllocError> {
        let found = self.memory_pools.iter().skip(1).position(|pool| pool.id == id && pool.uses > 0);
        found.map(|index| index + 1).ok_or(AllocError::UnknownPool(id))
    }

    /// The pool that a request on the stream goes to.
    pub(crate) fn pool_for(&self, stream: StreamId) -> MemoryPoolIndex {
        let mut accepting = self.scopes.iter().filter(|scope| scope.accepts(stream));
        let last_counts = self.config.release().last_scope_counts();
        let scope = if last_counts { accepting.next_back() } else { accepting.next() };
        scope.map_or(DEFAULT_POOL, |scope| scope.memory_pool)
    }

    /// Pools whose cached blocks may serve a request of the default pool that would run out of memory
    /// (`use_on_oom`).
    pub(crate) fn memory_pools_on_oom(&self) -> Vec<MemoryPoolIndex> {
        let pools = self.memory_pools.iter().enumerate();
        pools
            .filter(|(_, pool)| pool.options.serves_on_oom && !pool.is_deleted)
            .map(|(index, _)| index)
            .collect()
    }

    /// Releases the caches of pools with a use count of 0, small blocks first, and removes those pools that
    /// have no segments then.
    pub(crate) fn release_unused_pools(&mut self, only: Option<MemoryPoolIndex>) -> Result<(), AllocError> {
        for index in DEFAULT_POOL + 1..self.memory_pools.len() {
            let pool = &self.memory_pools[index];
            if pool.uses > 0 || pool.is_deleted || only.is_some_and(|only| only != index) {
                continue;
            }
            self.release_blocks(index, PoolKind::Small)?;
            self.release_blocks(index, PoolKind::Large)?;
            // A pool with an open scope is not removed: requests of the scope would get memory that is never
            // released.
            let is_open = self.scopes.iter().any(|scope| scope.memory_pool == index);
            let pool = &mut self.memory_pools[index];
            pool.is_deleted = !is_open && pool.device_allocations == 0 && pool.is_drained(&self.free_lists);
        }
        Ok(())
    }

    /// Cached bytes in pools other than the default one; PyTorch's message counts them as allocated.
    pub(crate) fn private_cached(&self) -> Bytes {
        let cached = |(_, block): (BlockIndex, &crate::block::Block)| {
            let is_private = self.free_lists[block.list].memory_pool != DEFAULT_POOL
                && block.state == BlockState::Inactive;
            if is_private { block.size } else { Bytes::ZERO }
        };
        self.blocks.iter().map(cached).sum()
    }
}
