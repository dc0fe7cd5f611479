//! The operations that both allocators run.

use blockyard_allocator::PoolOptions;
use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_rules::Release;

/// A device, settings, and operations in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The release of PyTorch whose library runs the sequence.
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
        /// The number of the new tensor.
        tensor: u32,
        /// The requested size: any number of bytes.
        size: Bytes,
        /// The stream of the request.
        stream: StreamId,
    },
    /// Frees a tensor; skipped if its allocation failed.
    Free {
        /// The number of the tensor.
        tensor: u32,
    },
    /// A further stream uses the tensor; skipped if its allocation failed.
    RecordStream {
        /// The number of the tensor.
        tensor: u32,
        /// The further stream.
        stream: StreamId,
    },
    /// All work queued on the stream, or on every stream, is done.
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
        /// The settings in the syntax of `PYTORCH_CUDA_ALLOC_CONF`.
        text: String,
    },
    /// Returns the settings in force.
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
    /// Ends the scope on the pool: the end of `use_mem_pool` for a pool of the program, the end of the
    /// capture for a pool of a capture.
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
    /// A sequence with other operations on the same device with the same settings.
    #[must_use]
    pub fn with(&self, operations: Vec<Operation>) -> Self {
        Self { release: self.release, capacity: self.capacity, conf: self.conf.clone(), operations }
    }
}
