//! The device below a rival: bytes, and addresses that are never given twice.

use blockyard_record::Bytes;

use crate::rivals::Usage;

/// Regions start at multiples of this.
const GRANULARITY: u64 = 2 << 20;
const FIRST_ADDR: u64 = 0x7f00_0000_0000;

/// The device below an allocator: a number of bytes, and addresses that are never given twice.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    capacity: u64,
    next: u64,
    pub(crate) usage: Usage,
}

impl Device {
    pub(crate) fn new(capacity: Bytes) -> Self {
        Self { capacity: capacity.get(), next: FIRST_ADDR, usage: Usage::default() }
    }

    /// Allocates a region of this many bytes, and returns the first address; `None` when the device has too
    /// little memory.
    pub(crate) fn take(&mut self, size: u64) -> Option<u64> {
        let reserved = self.usage.reserved.get().checked_add(size).filter(|used| *used <= self.capacity)?;
        let base = self.addresses(size)?;
        self.usage.reserved = Bytes::new(reserved);
        self.usage.peak_reserved = self.usage.peak_reserved.max(self.usage.reserved);
        self.usage.device_allocs += 1;
        Some(base)
    }

    /// The first of `size` bytes of new addresses, which get no memory.
    pub(crate) fn addresses(&mut self, size: u64) -> Option<u64> {
        let next = self.next.checked_add(size)?.checked_next_multiple_of(GRANULARITY)?;
        Some(std::mem::replace(&mut self.next, next))
    }

    /// Releases a region of `size` bytes.
    pub(crate) fn give_back(&mut self, size: u64) {
        self.usage.reserved = self.usage.reserved.saturating_sub(Bytes::new(size));
        self.usage.device_frees += 1;
    }

    /// A block of `size` bytes was allocated for `requested` bytes.
    pub(crate) fn allocated(&mut self, requested: Bytes, size: Bytes) {
        self.usage.requested = self.usage.requested.saturating_add(requested);
        self.usage.allocated = self.usage.allocated.saturating_add(size);
    }

    /// A block of `size` bytes was freed.
    pub(crate) fn came_back(&mut self, requested: Bytes, size: Bytes) {
        self.usage.requested = self.usage.requested.saturating_sub(requested);
        self.usage.allocated = self.usage.allocated.saturating_sub(size);
    }
}
