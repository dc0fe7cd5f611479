//! The errors of the allocator: one variant for each case in which a caller acts differently.

use std::fmt;

use blockyard_device::{DeviceError, ProcessMemory};
use blockyard_record::{Bytes, DeviceAddr, PoolId, SegmentId, StreamId};
use blockyard_rules::Release;

/// Why a call of the allocator failed. The allocator stays usable after each error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// The request ran out of memory, although the allocator had released all cached memory that it may
    /// release.
    #[error(transparent)]
    OutOfMemory(Box<OutOfMemory>),
    /// The request ran out of memory under `backend:cudaMallocAsync`.
    #[error(transparent)]
    MallocAsyncOutOfMemory(Box<MallocAsyncOutOfMemory>),
    /// The device ran out of memory for a request without caching.
    #[error("CUDA error: out of memory")]
    UncachedOutOfMemory {
        /// The requested bytes.
        requested: Bytes,
    },
    /// A request of 2^60 bytes or more. Nothing was counted or recorded.
    #[error("CUDA out of memory. Tried to allocate more than 1EB memory.")]
    TooLarge {
        /// The requested bytes.
        requested: Bytes,
    },
    /// The allocation is not a live one of this allocator. Nothing changed.
    #[error("invalid device pointer: {0}")]
    InvalidPointer(DeviceAddr),
    /// A memory fraction below 0 or above 1. Nothing changed.
    #[error("invalid fraction:{0}. Please set within [0, 1].")]
    InvalidFraction(f64),
    /// Expandable segments are switched on, but the device has no virtual memory. Nothing changed.
    #[error("expandable_segments:True needs a device with virtual memory")]
    NoVirtualMemory,
    /// `backend:cudaMallocAsync` is set, but the device has no virtual memory. Nothing changed.
    #[error("backend:cudaMallocAsync needs a device with virtual memory")]
    MallocAsyncNeedsVirtualMemory,
    /// This backend does not support the call, in PyTorch's words. Nothing changed.
    #[error(
        "cudaMallocAsync does not yet support {0}. If you need it, please file an issue describing your use case."
    )]
    NotSupported(&'static str),
    /// A snapshot under `backend:cudaMallocAsync`; nothing changed.
    #[error(
        "Calling snapshot with backend:cudaMallocAsync is not meaningful. (For backend:native, snapshot returns a detailed \
         summary of all blocks tracked by the allocator, but the cudaMallocAsync backend does not track individual blocks.)"
    )]
    NoSnapshot,
    /// A scope on the pool is open already, or the pool is the default pool. Nothing changed.
    #[error("beginAllocateToPool: already recording to mempool_id {0}")]
    AlreadyInPool(PoolId),
    /// Release 2.7 has no expandable segments while a scope of the program is open. Garbage may have been
    /// collected.
    #[error("torch.cuda.MemPool doesn't currently support expandable_segments.")]
    NoExpandablePool,
    /// No scope on the pool is open; nothing changed.
    #[error("endAllocatePool: not currently recording to mempool_id {0}")]
    NotInPool(PoolId),
    /// No pool with this number is in use. Nothing changed.
    #[error("no memory pool {0} is in use")]
    UnknownPool(PoolId),
    /// The snapshot to begin with is not one of a valid allocator.
    #[error("the snapshot to begin with contradicts itself: no allocator can be in its state")]
    Beginning(#[source] Corruption),
    /// The device failed for another reason than a lack of memory.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A request that ran out of memory. The text is PyTorch's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The memory pool of the request.
    pub pool_id: PoolId,
    /// The bytes that the caller asked for.
    pub requested: Bytes,
    /// The request after rounding.
    pub rounded: Bytes,
    /// The size of the segment that was needed, which PyTorch's text calls the size that it tried to
    /// allocate.
    pub segment_size: Bytes,
    /// The stream of the request.
    pub stream: StreamId,
    /// The device's number.
    pub device: u32,
    /// How many bytes were free on the device, as the device reported.
    pub device_free: Bytes,
    /// All bytes of the device.
    pub device_total: Bytes,
    /// How much each process used on the device, if the device reports it.
    pub processes: Vec<ProcessMemory>,
    /// The most that may be reserved, if a memory fraction is set.
    pub limit: Option<Bytes>,
    /// Bytes of allocated blocks.
    pub allocated: Bytes,
    /// Bytes of all segments.
    pub reserved: Bytes,
    /// Cached bytes in pools other than the default one, which PyTorch's text counts as allocated.
    pub private_cached: Bytes,
    /// Whether the request was rejected before the device was asked (`throw_on_cudamalloc_oom`), about which
    /// PyTorch's text is short.
    pub is_rejected: bool,
    /// The advice at the end of the text.
    pub advice: OomAdvice,
}

/// The advice at the end of PyTorch's out-of-memory text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OomAdvice {
    /// To try expandable segments: up to release 2.13 always, later where they are off.
    TryExpandableSegments {
        /// The release whose words these are.
        release: Release,
    },
    /// No advice: release 2.14 with expandable segments.
    None,
    /// To reserve fewer addresses: from release 2.15 on with expandable segments.
    LowerReserve,
    /// To reserve more addresses, since the request does not fit into those that an expandable segment
    /// reserves.
    RaiseReserve {
        /// Bytes of addresses that the settings let a segment reserve.
        reserve: Bytes,
    },
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_rejected {
            return write!(
                f,
                "CUDA out of memory. Allocation was preemptively rejected because it would exceed \
                 per_process_memory_fraction limit. Requested size: {}",
                PyTorchSize(self.requested)
            );
        }
        write!(f, "CUDA out of memory. Tried to allocate {}. ", PyTorchSize(self.segment_size))?;
        write!(
            f,
            "GPU {} has a total capacity of {} of which {} is free. ",
            self.device,
            PyTorchSize(self.device_total),
            PyTorchSize(self.device_free)
        )?;
        for process in &self.processes {
            let used = PyTorchSize(process.used);
            match process.process {
                None => write!(f, "Including non-PyTorch memory, this process has {used} memory in use. ")?,
                Some(id) => write!(f, "Process {id} has {used} memory in use. ")?,
            }
        }
        if let Some(limit) = self.limit {
            write!(f, "{} allowed; ", PyTorchSize(limit))?;
        }
        let allocated = self.allocated.saturating_add(self.private_cached);
        write!(f, "Of the allocated memory {} is allocated by PyTorch, ", PyTorchSize(allocated))?;
        if !self.private_cached.is_zero() {
            let private = PyTorchSize(self.private_cached);
            write!(f, "with {private} allocated in private pools (e.g., CUDA Graphs), ")?;
        }
        let unallocated = PyTorchSize(self.reserved.saturating_sub(allocated));
        write!(f, "and {unallocated} is reserved by PyTorch but unallocated.")?;
        self.fmt_advice(f)
    }
}

impl OutOfMemory {
    fn fmt_advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.advice {
            OomAdvice::None => Ok(()),
            OomAdvice::TryExpandableSegments { release } => {
                let (variable, page) = release.advised_variable_and_page();
                write!(
                    f,
                    " If reserved but unallocated memory is large try setting {variable}=expandable_segments:True to \
                     avoid fragmentation.  See documentation for Memory Management  ({page})"
                )
            }
            OomAdvice::LowerReserve => f.write_str(
                " expandable_segments is enabled. If instead the process is running out of virtual address space \
                 (VSZ), expandable segments may be over-reserving VA (each segment reserves ~9/8 of device memory, \
                 times the number of streams); reduce it via PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / \
                 expandable_segments_reserve_by_class.",
            ),
            OomAdvice::RaiseReserve { reserve } => write!(
                f,
                " This allocation exceeds the expandable-segment reserve of {} for this stream, and a single \
                 allocation cannot span expandable segments. Raise PYTORCH_CUDA_ALLOC_CONF \
                 expandable_segments_reserve or expandable_segments_reserve_by_class (or unset it) so that a segment \
                 is at least {}.",
                PyTorchSize(reserve),
                PyTorchSize(self.segment_size),
            ),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// A request that ran out of memory under `backend:cudaMallocAsync`. The text is PyTorch's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MallocAsyncOutOfMemory {
    /// Requested bytes in use.
    pub allocated: Bytes,
    /// The bytes that the caller asked for.
    pub requested: Bytes,
    /// The device's number.
    pub device: u32,
    /// All bytes of the device.
    pub device_total: Bytes,
    /// How many bytes were free on the device, as the device reported.
    pub device_free: Bytes,
    /// The most that may be in use, if a memory fraction was set.
    pub limit: Option<Bytes>,
}

impl fmt::Display for MallocAsyncOutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without a limit PyTorch prints the largest number it has.
        let limit = self.limit.unwrap_or(Bytes::new(u64::MAX));
        write!(
            f,
            "Allocation on device {} would exceed allowed memory. (out of memory)\n\
             Currently allocated     : {}\n\
             Requested               : {}\n\
             Device limit            : {}\n\
             Free (according to CUDA): {}\n\
             PyTorch limit (set by user-supplied memory fraction)\n\
             \x20                       : {}",
            self.device,
            PyTorchSize(self.allocated),
            PyTorchSize(self.requested),
            PyTorchSize(self.device_total),
            PyTorchSize(self.device_free),
            PyTorchSize(limit),
        )
    }
}

impl std::error::Error for MallocAsyncOutOfMemory {}

/// A size as PyTorch's C++ code writes it (`format_size`): with two decimals, and exactly 1024 of a unit in
/// that unit.
struct PyTorchSize(Bytes);

impl fmt::Display for PyTorchSize {
    #[expect(clippy::cast_precision_loss, reason = "PyTorch divides doubles as well")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.get();
        let value = count as f64;
        if count <= 1024 {
            write!(f, "{count} bytes")
        } else if count <= 1 << 20 {
            write!(f, "{:.2} KiB", value / 1024.0)
        } else if count <= 1 << 30 {
            write!(f, "{:.2} MiB", value / f64::from(1_u32 << 20))
        } else {
            write!(f, "{:.2} GiB", value / f64::from(1_u32 << 30))
        }
    }
}

/// An invariant is broken: of the allocator, which is a defect of this crate, or of a snapshot that an
/// allocator should begin with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Corruption {
    /// Blocks of a segment leave a gap, overlap, or do not add up to the segment.
    #[error("the blocks of segment {0} do not cover it exactly")]
    Coverage(SegmentId),
    /// Two neighbors that the allocator always merges are not merged.
    #[error("two inactive neighbors are not merged in segment {0}")]
    Unmerged(SegmentId),
    /// An inactive block is missing from its free list, or an active block is in one.
    #[error("the free blocks of segment {0} do not match its pool")]
    Pool(SegmentId),
    /// A free block still has streams that used it.
    #[error("the free block at {0} still has streams that used it")]
    StreamUses(DeviceAddr),
    /// A block has an invalid size.
    #[error("a block at {0} has a size that no block can have")]
    Size(DeviceAddr),
    /// An allocated block has no allocation that it serves.
    #[error("the allocated block at {0} serves no allocation")]
    NoAllocation(DeviceAddr),
    /// A pending block has no stream that it waits for, so that its free would never complete.
    #[error("the pending block at {0} waits for no stream")]
    NoStreams(DeviceAddr),
    /// The segments up to this one have more bytes than the statistics can count.
    #[error("the segments up to segment {0} have more than 2^63-1 bytes")]
    TooLarge(SegmentId),
    /// A counter differs from what the blocks add up to.
    #[error("the statistic {0} differs from the blocks")]
    Statistic(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_messages_are_pytorchs() {
        let cases = [
            (1024, "1024 bytes"),
            (1 << 20, "1024.00 KiB"),
            (1 << 30, "1024.00 MiB"),
            ((1 << 60) - 1, "1073741824.00 GiB"),
            (20_971_520, "20.00 MiB"),
        ];
        for (size, text) in cases {
            assert_eq!(PyTorchSize(Bytes::new(size)).to_string(), text);
        }
    }
}
