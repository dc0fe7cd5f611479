//! Other allocators than PyTorch's, so that the same requests can be run through all of them.
//!
//! Each is the policy of a known allocator, written for this module, without the parts that do not decide the
//! places of blocks: [`Bfc`] as in TensorFlow, [`Tlsf`] as in Vulkan's memory allocator, [`Buddy`], [`Arena`]
//! as in RMM, [`Stitching`] after `GMLake`, and [`NoCache`]. All of them round requests up to 512 bytes, as
//! PyTorch does, so that a comparison shows the policies and not the alignments. Memory that was freed on a
//! stream serves the same stream, as in PyTorch; only [`Arena`] gives whole empty superblocks to other
//! streams.
//!
//! Accounting, in bytes at every moment: requested ≤ allocated ≤ reserved ≤ capacity.
//!
//! This module knows no requests, no work on streams and no clock: the caller frees a block when no stream
//! uses the block any more. Parts: a module for each allocator; `carver` (regions that are cut into blocks),
//! `per_stream` (a policy for each stream), `device` (the bytes and addresses below).
//!
//! # Example
//!
//! ```
//! use blockyard_record::{Bytes, StreamId};
//! use blockyard_replay::rivals::{Arena, RivalAllocator};
//!
//! let mut arena = Arena::new(Bytes::gib(1));
//! let allocation = arena.allocate(Bytes::mib(3), StreamId::DEFAULT)?;
//! assert_eq!(arena.usage().requested, Bytes::mib(3));
//! assert!(arena.usage().reserved >= arena.usage().allocated);
//! arena.free(allocation);
//! assert_eq!(arena.usage().requested, Bytes::ZERO);
//! # Ok::<(), blockyard_replay::rivals::RivalOutOfMemory>(())
//! ```

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "sizes are at most those of the device, which the constructors check"
    )
)]

mod arena;
mod bfc;
mod buddy;
mod carver;
mod device;
mod no_cache;
mod per_stream;
mod stitching;
mod tlsf;

pub use arena::Arena;
pub use bfc::Bfc;
pub use buddy::Buddy;
pub use no_cache::NoCache;
pub use per_stream::PerStream;
pub use stitching::Stitching;
pub use tlsf::Tlsf;

use blockyard_record::{Bytes, StreamId};

/// Every request is rounded up to a multiple of this.
pub const ALIGNMENT: u64 = 512;

/// An allocator over a device.
pub trait RivalAllocator {
    /// Allocates `size` bytes, at least one, for use on `stream`.
    ///
    /// # Errors
    ///
    /// [`RivalOutOfMemory`] when no cached memory fits and the device has too little left.
    fn allocate(&mut self, size: Bytes, stream: StreamId) -> Result<RivalAllocation, RivalOutOfMemory>;

    /// Frees a block.
    fn free(&mut self, allocation: RivalAllocation);

    /// Releases every region without an allocated block to the device.
    fn empty_cache(&mut self);

    /// The bytes that the allocator uses now.
    fn usage(&self) -> Usage;
}

/// An allocated block.
#[derive(Debug, PartialEq, Eq, Hash)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct RivalAllocation {
    /// The address of the first byte.
    pub addr: u64,
    /// The bytes of its block, at least the requested size.
    pub size: Bytes,
    /// The requested size.
    pub requested: Bytes,
    /// The stream that the block is used on.
    pub stream: StreamId,
}

/// The bytes that an allocator uses at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The requested bytes of allocated blocks.
    pub requested: Bytes,
    /// The bytes of allocated blocks.
    pub allocated: Bytes,
    /// Bytes taken from the device.
    pub reserved: Bytes,
    /// The most bytes ever taken from the device at a time.
    pub peak_reserved: Bytes,
    /// Calls that took memory from the device.
    pub device_allocs: u64,
    /// Calls that released memory to the device.
    pub device_frees: u64,
}

/// A request that found no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {requested} asked for")]
pub struct RivalOutOfMemory {
    /// The requested size.
    pub requested: Bytes,
}

/// A size rounded up to a multiple of [`ALIGNMENT`], as every allocator here does; `None` if the result does
/// not fit in 64 bits.
pub fn rounded(size: Bytes) -> Option<u64> {
    size.get().max(1).checked_next_multiple_of(ALIGNMENT).filter(|size| *size <= 1 << 60)
}

#[cfg(test)]
mod tests;
