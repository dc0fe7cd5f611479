//! Memory pools: the default one, and those of programs (`MemPool`) and graph captures.
//!
//! A pool keeps its own segments and free blocks. Requests go to a pool while a scope on it is open; what they got
//! returns to that pool whenever it is freed.

use std::fmt;

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, EventSink, PoolId, PoolKind, StreamId};

use crate::block::BlockIndex;
use crate::pool::{BlockPool, FreeLists};
use crate::{AllocError, CachingAllocator};

/// Where a pool stands among the allocator's; 0 is the default pool, which is always there.
pub(crate) type PoolIndex = usize;

pub(crate) const DEFAULT_POOL: PoolIndex = 0;

/// What makes a pool of a program special.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// Whether every request gets a whole segment (`no_split`).
    pub never_splits: bool,
    /// Whether a request that fails elsewhere may take cached blocks of this pool (`use_on_oom`).
    pub serves_on_oom: bool,
}

/// The segments' free blocks of one memory pool (`PrivatePool`).
#[derive(Clone, Debug)]
pub(crate) struct PrivatePool {
    pub(crate) id: PoolId,
    small: BlockPool,
    large: BlockPool,
    pub(crate) options: PoolOptions,
    /// Who still wants it: its owner and open scopes. At 0 its cache may be released.
    uses: u32,
    /// Segments that the device gave, less those released (`cudaMalloc_count`): per call, not per page, as in PyTorch.
    pub(crate) device_allocations: i64,
    is_deleted: bool,
}

/// A scope that directs requests to a pool.
#[derive(Debug)]
pub(crate) struct Scope {
    pool: PoolIndex,
    accepts: Accepts,
}

/// Which requests a scope directs.
enum Accepts {
    All,
    Stream(StreamId),
    /// Those whose stream it accepts at that moment.
    If(Box<dyn Fn(StreamId) -> bool + Send>),
}

impl fmt::Debug for Accepts {
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
            Accepts::All => true,
            Accepts::Stream(only) => *only == stream,
            Accepts::If(accepts) => accepts(stream),
        }
    }
}

impl PrivatePool {
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

    /// Whether none of its blocks is cached or unmapped.
    fn is_drained(&self, lists: &FreeLists) -> bool {
        self.small.lists().chain(self.large.lists()).all(|list| lists[list].is_empty())
    }
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Makes a pool of the program's own (`MemPool()`), used once: by its owner.
    pub fn create_pool(&mut self, options: PoolOptions) -> PoolId {
        let taken = |user: u32| self.pools.iter().any(|pool| pool.id.user == user);
        let most = self.pools.iter().map(|pool| pool.id.user).max().unwrap_or(0);
        // A scope may have named the last number there is.
        let next = most.checked_add(1).or_else(|| (1..most).find(|user| !taken(*user)));
        let user = next.unwrap_or(most);
        let id = PoolId { capture: 0, user };
        let block_pool = BlockPool::new(options.never_splits);
        self.pools.push(PrivatePool {
            options,
            small: block_pool.clone(),
            large: block_pool,
            ..PrivatePool::new(id, 1)
        });
        id
    }

    /// Directs requests of `stream`, or of all streams, to the pool until [`CachingAllocator::end_allocate_to_pool`]
    /// (`beginAllocateToPool`). The scope opened last is asked first. A pool that is not there is made.
    ///
    /// While any scope is open, completed stream work is not collected, and the default pool's cache is not released.
    ///
    /// # Errors
    ///
    /// [`AllocError::AlreadyInPool`] when a scope on the pool is open; nothing changed.
    pub fn begin_allocate_to_pool(&mut self, id: PoolId, stream: Option<StreamId>) -> Result<(), AllocError> {
        self.open_scope(id, stream.map_or(Accepts::All, Accepts::Stream))
    }

    /// As [`CachingAllocator::begin_allocate_to_pool`], for requests whose stream `accepts` takes when they are made: PyTorch asks
    /// whether the stream is being captured, or which thread it is.
    ///
    /// # Errors
    ///
    /// As [`CachingAllocator::begin_allocate_to_pool`].
    pub fn begin_allocate_to_pool_if(
        &mut self,
        id: PoolId,
        accepts: impl Fn(StreamId) -> bool + Send + 'static,
    ) -> Result<(), AllocError> {
        self.open_scope(id, Accepts::If(Box::new(accepts)))
    }

    fn open_scope(&mut self, id: PoolId, accepts: Accepts) -> Result<(), AllocError> {
        let pool =
            self.pools.iter().position(|pool| pool.id == id && !pool.is_deleted).unwrap_or_else(|| {
                self.pools.push(PrivatePool::new(id, 0));
                self.pools.len() - 1
            });
        if pool == DEFAULT_POOL || self.scopes.iter().any(|scope| self.pools[scope.pool].id == id) {
            return Err(AllocError::AlreadyInPool(id));
        }
        self.pools[pool].uses += 1;
        self.scopes.push(Scope { pool, accepts });
        Ok(())
    }

    /// Ends the scope on the pool (`endAllocateToPool`). The pool stays in use until [`CachingAllocator::release_pool`].
    ///
    /// # Errors
    ///
    /// [`AllocError::NotInPool`] when no scope on the pool is open.
    pub fn end_allocate_to_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        let pools = &self.pools;
        let open = self.scopes.iter().rposition(|scope| pools[scope.pool].id == id);
        self.scopes.remove(open.ok_or(AllocError::NotInPool(id))?);
        Ok(())
    }

    /// Gives up one use of the pool (`releasePool`). Once nobody uses it, its cache is released with the default pool's.
    ///
    /// # Errors
    ///
    /// [`AllocError::UnknownPool`] when nobody uses a pool with this number.
    pub fn release_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        let index = self.used_pool(id)?;
        self.pools[index].uses -= 1;
        Ok(())
    }

    /// Ends a pool of the program's own (`~MemPool`): gives up its owner's use and releases its cache, if that was the last.
    ///
    /// # Errors
    ///
    /// [`AllocError::UnknownPool`] when nobody uses a pool with this number, [`AllocError::Device`] when the device fails.
    pub fn destroy_pool(&mut self, id: PoolId) -> Result<(), AllocError> {
        let index = self.used_pool(id)?;
        self.pools[index].options.serves_on_oom = false;
        self.pools[index].uses -= 1;
        // An open scope still uses it: PyTorch neither waits nor releases then.
        if self.pools[index].uses > 0 {
            return Ok(());
        }
        self.synchronize_streams(Some(index))?;
        self.release_unused_pools(Some(index))
    }

    /// How many want the pool: its owner and open scopes (`MemPool.use_count()`); 0 for one that is not there.
    pub fn pool_use_count(&self, id: PoolId) -> u32 {
        let pool = self.pools.iter().find(|pool| pool.id == id && !pool.is_deleted);
        pool.map_or(0, |pool| pool.uses)
    }

    fn used_pool(&self, id: PoolId) -> Result<PoolIndex, AllocError> {
        let found = self.pools.iter().skip(1).position(|pool| pool.id == id && pool.uses > 0);
        found.map(|index| index + 1).ok_or(AllocError::UnknownPool(id))
    }

    /// The pool that a request on the stream goes to.
    pub(crate) fn pool_for(&self, stream: StreamId) -> PoolIndex {
        self.scopes.iter().rev().find(|scope| scope.accepts(stream)).map_or(DEFAULT_POOL, |scope| scope.pool)
    }

    /// Pools whose cached blocks may serve a request of the default pool that failed.
    pub(crate) fn pools_on_oom(&self) -> Vec<PoolIndex> {
        let pools = self.pools.iter().enumerate();
        pools
            .filter(|(_, pool)| pool.options.serves_on_oom && !pool.is_deleted)
            .map(|(index, _)| index)
            .collect()
    }

    /// Releases the caches of pools that nobody uses, small blocks first; pools without segments are gone then.
    pub(crate) fn release_unused_pools(&mut self, only: Option<PoolIndex>) -> Result<(), AllocError> {
        for index in DEFAULT_POOL + 1..self.pools.len() {
            let pool = &self.pools[index];
            if pool.uses > 0 || pool.is_deleted || only.is_some_and(|only| only != index) {
                continue;
            }
            self.release_blocks(index, PoolKind::Small)?;
            self.release_blocks(index, PoolKind::Large)?;
            // Requests of an open scope would otherwise get memory that nothing releases.
            let is_open = self.scopes.iter().any(|scope| scope.pool == index);
            let pool = &mut self.pools[index];
            pool.is_deleted = !is_open && pool.device_allocations == 0 && pool.is_drained(&self.free_lists);
        }
        Ok(())
    }

    /// Cached bytes in pools other than the default one; PyTorch's message counts them as allocated.
    pub(crate) fn private_cached(&self) -> Bytes {
        let cached = |(_, block): (BlockIndex, &crate::block::Block)| {
            let is_private =
                self.free_lists[block.list].owner != DEFAULT_POOL && block.state == BlockState::Inactive;
            if is_private { block.size } else { Bytes::ZERO }
        };
        self.blocks.iter().map(cached).sum()
    }
}
