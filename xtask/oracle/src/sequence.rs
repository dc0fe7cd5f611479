//! The operations that both allocators run.

use blockyard_allocator::PoolOptions;
use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_rules::Release;

/// A device, settings, and operations in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The release of PyTorch that answers.
    pub release: Release,
    /// All bytes of the device.
    pub capacity: Bytes,
    /// `PYTORCH_CUDA_ALLOC_CONF` at the start.
    pub conf: String,
    /// The operations.
    pub operations: Vec<Operation>,
}

/// One operation. Tensors are numbered from 0 in order of allocation, pools by their identity.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Asks for memory; a tensor whose allocation failed has its number too.
    Allocate {
        /// The number that it gets.
        tensor: u32,
        /// Any number of bytes.
        size: Bytes,
        /// Where it lives.
        stream: StreamId,
    },
    /// Gives memory back; skipped where the allocation failed.
    Free {
        /// Whose.
        tensor: u32,
    },
    /// A further stream uses the tensor; skipped where the allocation failed.
    RecordStream {
        /// Which tensor.
        tensor: u32,
        /// The further stream.
        stream: StreamId,
    },
    /// All work queued on the stream, or on every one, is done.
    Advance {
        /// The stream, or `None` for all.
        stream: Option<StreamId>,
    },
    /// Releases the cache.
    EmptyCache,
    /// Limits reserved memory to a share of the device.
    SetFraction {
        /// The share, from 0 to 1.
        fraction: f64,
    },
    /// Sets peaks to current values.
    ResetPeak,
    /// Sets accumulated counts to zero.
    ResetAccumulated,
    /// Changes settings at run time.
    ApplySettings {
        /// In the syntax of `PYTORCH_CUDA_ALLOC_CONF`.
        text: String,
    },
    /// Asks which settings are in force.
    TellSettings,
    /// Takes a snapshot.
    Snapshot,
    /// Makes a `MemPool`.
    CreatePool {
        /// A pool of the program.
        pool_id: PoolId,
        /// The options of the pool.
        options: PoolOptions,
    },
    /// Directs the requests of a stream, or all, to the pool; a capture's pool is made if need be.
    EnterPool {
        /// The pool.
        pool_id: PoolId,
        /// The stream, or `None` for all.
        stream: Option<StreamId>,
    },
    /// Ends that. For a pool of the program as the end of `use_mem_pool`, for a capture's as the end of the capture.
    LeavePool {
        /// The pool.
        pool_id: PoolId,
    },
    /// The `MemPool` is deleted, or the captured graph is.
    DestroyPool {
        /// The pool.
        pool_id: PoolId,
    },
}

impl Sequence {
    /// The same sequence of other operations.
    #[must_use]
    pub fn with(&self, operations: Vec<Operation>) -> Self {
        Self { release: self.release, capacity: self.capacity, conf: self.conf.clone(), operations }
    }
}
