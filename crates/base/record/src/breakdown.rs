//! The breakdown: each byte of the device in exactly one class.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Where every byte of the device is at one moment: each byte is in exactly one class.
///
/// `requested + rounding + pending + cached + free = capacity`. PyTorch's terms are sums of classes:
/// allocated = requested + rounding, active = allocated + pending, reserved = active + cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Requested bytes of allocated blocks: what callers asked for.
    pub requested: Bytes,
    /// The bytes of allocated blocks that nobody requested: rounding makes a block larger than its request.
    pub rounding: Bytes,
    /// Bytes of blocks whose free was requested and waits for the work of another stream.
    pub pending: Bytes,
    /// Bytes that the allocator has reserved, outside of active blocks.
    pub cached: Bytes,
    /// Bytes of the device that the allocator has not reserved.
    pub free: Bytes,
}

impl Breakdown {
    /// Bytes of allocated blocks: `memory_allocated()`.
    #[must_use]
    pub fn allocated(&self) -> Bytes {
        self.requested.saturating_add(self.rounding)
    }

    /// Bytes of allocated blocks and of blocks whose free is pending.
    #[must_use]
    pub fn active(&self) -> Bytes {
        self.allocated().saturating_add(self.pending)
    }

    /// Bytes taken from the device: `memory_reserved()`.
    #[must_use]
    pub fn reserved(&self) -> Bytes {
        self.active().saturating_add(self.cached)
    }

    /// All bytes of the device.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        self.reserved().saturating_add(self.free)
    }
}
