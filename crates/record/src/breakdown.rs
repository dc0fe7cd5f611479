use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Where every byte of the device is at one moment: each byte is in exactly one class.
///
/// `requested + rounding + pending + cached + free = capacity`. PyTorch's terms are sums of classes: allocated =
/// requested + rounding, active = allocated + pending, reserved = active + cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakdown {
    /// In callers' hands and asked for.
    pub requested: Bytes,
    /// In callers' hands beyond what was asked for.
    pub rounding: Bytes,
    /// Given back, but waiting for another stream's work.
    pub pending: Bytes,
    /// Held by the allocator, in nobody's hands.
    pub cached: Bytes,
    /// Not held by the allocator.
    pub free: Bytes,
}

impl Breakdown {
    /// Bytes in callers' hands: `memory_allocated()`.
    #[must_use]
    pub fn allocated(&self) -> Bytes {
        self.requested.saturating_add(self.rounding)
    }

    /// Bytes in callers' hands or waiting for a stream.
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
