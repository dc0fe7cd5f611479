//! The memory pools of a device, and the segments that a snapshot lists of them.

use blockyard_allocator::PoolOptions;
use blockyard_record::{PoolId, SegmentSnapshot};

use super::{Dependence, SimulatedGpu};
use crate::error::runtime;
use crate::{Result, session};

impl SimulatedGpu {
    /// The segments that `torch.cuda.memory_snapshot` lists of this device, for all memory pools or for one,
    /// and what of them depends on the addresses that the driver chooses.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) where the backend has no snapshot.
    pub fn listed_segments(&self, pool: PoolId) -> Result<(Vec<SegmentSnapshot>, Dependence)> {
        let Some(listed) = self.allocator.borrow().as_ref().map(|allocator| allocator.listed_segments(pool))
        else {
            return runtime("the recording of this device is finished");
        };
        let listed = listed.or_else(|error| runtime(error.to_string()))?;
        let dependence = self.others.borrow().dependence_of(&listed, pool);
        Ok((listed, dependence))
    }

    /// `torch.cuda.MemPool()`: makes a memory pool.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) where the backend has none.
    pub fn create_pool(&self, options: PoolOptions) -> Result<PoolId> {
        let id = session().next_pool();
        self.step_everywhere(|allocator| allocator.create_pool_with_id(id, options))?;
        Ok(id)
    }

    /// `torch.cuda.MemPool.use_count`.
    pub fn pool_use_count(&self, id: PoolId) -> u32 {
        self.allocator.borrow().as_ref().map_or(0, |allocator| allocator.pool_use_count(id))
    }

    /// `torch.cuda.use_mem_pool` begins: requests of the thread that runs go to the pool, and not those of its
    /// backward passes, which another thread of PyTorch makes.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) with PyTorch's reason.
    pub fn begin_allocate_to_pool(&self, pool_id: PoolId) -> Result<()> {
        let thread = session().thread();
        let accepts = move |_| session().thread() == thread;
        self.step_everywhere(|allocator| allocator.begin_allocate_to_pool_if(pool_id, accepts))
    }

    /// `torch.cuda.use_mem_pool` ends.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) with PyTorch's reason.
    pub fn end_allocate_to_pool(&self, pool_id: PoolId) -> Result<()> {
        self.step_everywhere(|allocator| {
            allocator.end_allocate_to_pool(pool_id)?;
            allocator.release_pool(pool_id)
        })
    }

    /// The last handle of a `MemPool` was dropped.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) with PyTorch's reason.
    pub fn destroy_pool(&self, pool_id: PoolId) -> Result<()> {
        // A pool that a global name holds goes after the recording was finished.
        if self.allocator.borrow().is_none() {
            return Ok(());
        }
        self.step_everywhere(|allocator| allocator.destroy_pool(pool_id))
    }
}
