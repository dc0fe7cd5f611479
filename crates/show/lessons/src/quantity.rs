//! The quantities that a lesson can ask the allocator for.

use std::fmt;

use blockyard_figure::Term;
use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, size};

/// A quantity that a lesson asks the allocator for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// Bytes that tensors asked for.
    Requested,
    /// Allocated minus requested bytes.
    Rounding,
    /// Bytes of blocks in use.
    Allocated,
    /// Bytes of blocks whose free waits for a stream.
    Pending,
    /// Allocated and pending bytes.
    Active,
    /// Reserved bytes that are not active.
    Cached,
    /// Bytes of all segments.
    Reserved,
    /// Bytes of the device that are in no segment.
    Free,
    /// All bytes of the device.
    Capacity,
    /// The most allocated bytes since the last reset.
    PeakAllocated,
    /// The most reserved bytes since the last reset.
    PeakReserved,
    /// The most allocated bytes of the whole run, whatever was reset.
    MostAllocated,
    /// The most reserved bytes of the whole run, whatever was reset.
    MostReserved,
    /// The size of the largest cached block.
    LargestCached,
    /// The number of segments.
    Segments,
    /// The number of cached blocks.
    CachedBlocks,
    /// How many tensors have a block.
    Tensors,
    /// How many tensors have been given a block, in the whole run.
    Allocations,
    /// How often a segment (or memory for one) was taken from the device, in the whole run.
    DeviceAllocs,
    /// How often a segment (or memory of one) was given back to the device, in the whole run.
    DeviceFrees,
    /// Calls of the device: segments taken and given back, in the whole run.
    DeviceCalls,
    /// How often the whole cache was released to try once more.
    Retries,
    /// How many requests ran out of memory.
    OutOfMemory,
    /// The size of the block that a tensor has.
    BlockSize,
    /// The bytes that a tensor asked for.
    RequestedSize,
    /// The smallest block, of which every block is a multiple: a constant of PyTorch, as are the following.
    SmallestBlock,
    /// The largest request of the small pool, which is also the largest remainder that the large pool does
    /// not cut off.
    SmallLimit,
    /// The size of segments of the small pool.
    SmallSegment,
    /// The size of segments that requests of the large pool share.
    LargeSegment,
    /// The smallest request that gets a segment of its own size.
    OwnSegment,
    /// The number of which segments of a request's own size are multiples.
    SegmentStep,
    /// A number of bytes that the lesson's front matter has from a measurement, since no run of the allocator
    /// can give the number.
    Measured,
    /// PyTorch's text of the last out-of-memory error, or a sentence of it.
    Message,
}

/// The kind of answer of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityKind {
    /// A number of bytes.
    Bytes,
    /// A plain number.
    Count,
    /// Words.
    Text,
}

/// Quantity, its name in lesson files, its name in sentences, and the PyTorch function that returns it.
const TABLE: [(Quantity, &str, &str, &str); 33] = [
    (
        Quantity::Requested,
        "requested",
        "requested",
        "torch.cuda.memory_stats()[\"requested_bytes.all.current\"]",
    ),
    (Quantity::Rounding, "rounding", "rounding", "memory_allocated() - requested_bytes"),
    (Quantity::Allocated, "allocated", "allocated", "torch.cuda.memory_allocated()"),
    (Quantity::Pending, "pending", "pending", "active_bytes - allocated_bytes"),
    (Quantity::Active, "active", "active", "torch.cuda.memory_stats()[\"active_bytes.all.current\"]"),
    (Quantity::Cached, "cached", "cached", "memory_reserved() - active_bytes"),
    (Quantity::Reserved, "reserved", "reserved", "torch.cuda.memory_reserved()"),
    (Quantity::Free, "free", "free on the device", "torch.cuda.mem_get_info()[0]"),
    (Quantity::Capacity, "capacity", "the capacity", "torch.cuda.mem_get_info()[1]"),
    (Quantity::PeakAllocated, "peak_allocated", "peak allocated", "torch.cuda.max_memory_allocated()"),
    (Quantity::PeakReserved, "peak_reserved", "peak reserved", "torch.cuda.max_memory_reserved()"),
    (Quantity::MostAllocated, "most_allocated", "the most allocated", ""),
    (Quantity::MostReserved, "most_reserved", "the most reserved", ""),
    (Quantity::LargestCached, "largest_cached", "the largest cached block", ""),
    (
        Quantity::Segments,
        "segments",
        "the number of segments",
        "torch.cuda.memory_stats()[\"segment.all.current\"]",
    ),
    (Quantity::CachedBlocks, "cached_blocks", "the number of cached blocks", ""),
    (
        Quantity::Tensors,
        "tensors",
        "the number of tensors",
        "torch.cuda.memory_stats()[\"allocation.all.current\"]",
    ),
    (
        Quantity::Allocations,
        "allocations",
        "the number of allocations",
        "torch.cuda.memory_stats()[\"allocation.all.allocated\"]",
    ),
    (
        Quantity::DeviceAllocs,
        "device_allocs",
        "the number of cudaMalloc calls",
        "torch.cuda.memory_stats()[\"num_device_alloc\"]",
    ),
    (
        Quantity::DeviceFrees,
        "device_frees",
        "the number of cudaFree calls",
        "torch.cuda.memory_stats()[\"num_device_free\"]",
    ),
    (Quantity::DeviceCalls, "device_calls", "the number of device calls", ""),
    (
        Quantity::Retries,
        "retries",
        "the number of retries",
        "torch.cuda.memory_stats()[\"num_alloc_retries\"]",
    ),
    (
        Quantity::OutOfMemory,
        "oom",
        "the number of out-of-memory errors",
        "torch.cuda.memory_stats()[\"num_ooms\"]",
    ),
    (Quantity::BlockSize, "block", "the size of the block", ""),
    (Quantity::RequestedSize, "size", "the size of the request", ""),
    (Quantity::SmallestBlock, "smallest_block", "the smallest block", ""),
    (Quantity::SmallLimit, "small_limit", "the largest request of the small pool", ""),
    (Quantity::SmallSegment, "small_segment", "the size of a segment of the small pool", ""),
    (Quantity::LargeSegment, "large_segment", "the size of a segment that large requests share", ""),
    (Quantity::OwnSegment, "own_segment", "the smallest request that gets its own segment", ""),
    (Quantity::SegmentStep, "segment_step", "the step of the sizes of such segments", ""),
    (Quantity::Measured, "measured", "the measured size", ""),
    (Quantity::Message, "message", "the message", "torch.OutOfMemoryError"),
];

impl Quantity {
    /// The quantity with this name in lesson files; `_` and spaces are the same.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replace(' ', "_");
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// All quantities: the name in lesson files, and the name in sentences.
    pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        TABLE.iter().map(|row| (row.1, row.2))
    }

    /// All names in lesson files.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.1)
    }

    /// The kind of answer of the quantity.
    pub fn kind(self) -> QuantityKind {
        match self {
            Self::Segments
            | Self::CachedBlocks
            | Self::Tensors
            | Self::Allocations
            | Self::DeviceAllocs
            | Self::DeviceFrees
            | Self::DeviceCalls
            | Self::Retries
            | Self::OutOfMemory => QuantityKind::Count,
            Self::Message => QuantityKind::Text,
            _ => QuantityKind::Bytes,
        }
    }

    /// How a program asks PyTorch for the quantity; empty where PyTorch has no such call.
    pub fn api(self) -> &'static str {
        TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.3)
    }

    /// The term that figures have for the quantity, so that they can point at it; `None` if they have no
    /// term.
    pub fn term(self) -> Option<Term> {
        Some(match self {
            Self::Requested => Term::Requested,
            Self::Rounding => Term::Rounding,
            Self::Allocated => Term::Allocated,
            Self::Pending => Term::Pending,
            Self::Cached | Self::LargestCached => Term::Cached,
            Self::Reserved => Term::Reserved,
            Self::Free => Term::Free,
            Self::PeakAllocated | Self::MostAllocated => Term::MaxAllocated,
            Self::PeakReserved | Self::MostReserved => Term::MaxReserved,
            _ => return None,
        })
    }

    /// The value of a constant of PyTorch.
    pub(crate) fn constant(self) -> Option<Bytes> {
        Some(match self {
            Self::SmallestBlock => size::MIN_BLOCK_SIZE,
            Self::SmallLimit => size::SMALL_SIZE,
            Self::SmallSegment => size::SMALL_SEGMENT_SIZE,
            Self::LargeSegment => AllocatorConfig::default().large_segment_size(),
            Self::OwnSegment => size::MIN_LARGE_ALLOCATION,
            Self::SegmentStep => AllocatorConfig::default().large_segment_rounding(),
            _ => return None,
        })
    }

    /// Whether the quantity is the largest of several: the most of a stretch of time, the largest of the
    /// blocks.
    pub(crate) fn is_extreme(self) -> bool {
        matches!(
            self,
            Self::PeakAllocated
                | Self::PeakReserved
                | Self::MostAllocated
                | Self::MostReserved
                | Self::LargestCached
        )
    }

    /// Whether the quantity is about one tensor or one measurement, whose name must follow.
    pub(crate) fn is_of_name(self) -> bool {
        matches!(self, Self::BlockSize | Self::RequestedSize | Self::Measured)
    }
}

/// The quantity as sentences call it: `peak reserved`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TABLE.iter().find(|row| row.0 == *self).map_or("", |row| row.2))
    }
}
