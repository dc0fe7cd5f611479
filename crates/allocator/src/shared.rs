//! A handle that several threads share, and that knows blocks by their addresses, as PyTorch's callers do.

use blockyard_device::DeviceMemory;
use blockyard_lock::BiasedMutex;
use blockyard_record::{Bytes, DeviceAddr, EventSink, NullSink, StreamId};

use crate::addr_table::AddrTable;
use crate::block::BlockIndex;
use crate::{AllocError, CachingAllocator};

/// A [`CachingAllocator`] behind a lock, with memory given back by its address (`raw_alloc`, `raw_delete`).
///
/// One lock for all streams, like PyTorch's: requests of different threads come one after the other. It is held for some
/// tens of nanoseconds, or for a call of the device; threads that wait sleep.
#[derive(Debug)]
pub struct SharedAllocator<D: DeviceMemory, S: EventSink = NullSink> {
    inner: BiasedMutex<Inner<D, S>>,
}

#[derive(Debug)]
struct Inner<D: DeviceMemory, S: EventSink> {
    allocator: CachingAllocator<D, S>,
    live: AddrTable,
}

impl<D: DeviceMemory, S: EventSink> SharedAllocator<D, S> {
    /// Shares an allocator. What was handed out before can be given back only through [`SharedAllocator::with`].
    pub fn new(allocator: CachingAllocator<D, S>) -> Self {
        Self { inner: BiasedMutex::new(Inner { allocator, live: AddrTable::default() }) }
    }

    /// Hands out `requested` bytes for use on `stream`; address 0 for a request of zero bytes.
    ///
    /// # Errors
    ///
    /// As [`CachingAllocator::allocate`].
    #[inline]
    pub fn allocate(&self, requested: Bytes, stream: StreamId) -> Result<DeviceAddr, AllocError> {
        if requested.is_zero() {
            return Ok(DeviceAddr::default());
        }
        // Apart from the rest, since an answer without an error comes in registers.
        match self.inner.with_as_owner(|inner| inner.allocate_fast_path(requested, stream)) {
            Some(Some(addr)) => Ok(addr),
            _ => self.allocate_as_anybody(requested, stream),
        }
    }

    /// For threads that do not own the lock, and for all that is not plain.
    #[cold]
    #[inline(never)]
    fn allocate_as_anybody(&self, requested: Bytes, stream: StreamId) -> Result<DeviceAddr, AllocError> {
        self.inner.with(|inner| {
            let index = inner.allocator.allocate_block(requested, stream)?;
            Ok(inner.note(index))
        })
    }

    /// Takes back what starts at `addr`; address 0 is ignored.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when nothing live starts there, [`AllocError::Device`] when the device fails to record
    /// an event; in both cases nothing changed.
    #[inline]
    pub fn free(&self, addr: DeviceAddr) -> Result<(), AllocError> {
        if addr == DeviceAddr::default() {
            return Ok(());
        }
        match self.inner.with_as_owner(|inner| inner.free_unshared(addr)) {
            Some(true) => Ok(()),
            _ => self.free_as_anybody(addr),
        }
    }

    /// As [`SharedAllocator::allocate_as_anybody`].
    #[cold]
    #[inline(never)]
    fn free_as_anybody(&self, addr: DeviceAddr) -> Result<(), AllocError> {
        self.inner.with(|inner| {
            let (place, index) = inner.live_block(addr)?;
            inner.allocator.free_block(index)?;
            inner.live.remove(addr, place);
            Ok(())
        })
    }

    /// Notes that `stream` uses what starts at `addr` too; address 0 is ignored.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when nothing live starts there.
    pub fn record_stream(&self, addr: DeviceAddr, stream: StreamId) -> Result<(), AllocError> {
        if addr == DeviceAddr::default() {
            return Ok(());
        }
        self.inner.with(|inner| {
            let (_, index) = inner.live_block(addr)?;
            inner.allocator.record_stream_of_block(index, stream);
            Ok(())
        })
    }

    /// Does anything else with the allocator, while other threads wait.
    pub fn with<R>(&self, act: impl FnOnce(&mut CachingAllocator<D, S>) -> R) -> R {
        self.inner.with(|inner| act(&mut inner.allocator))
    }
}

impl<D: DeviceMemory, S: EventSink> Inner<D, S> {
    #[inline]
    fn allocate_fast_path(&mut self, requested: Bytes, stream: StreamId) -> Option<DeviceAddr> {
        let index = self.allocator.allocate_fast_path(requested, stream)?;
        Some(self.note(index))
    }

    /// Lets the block be found by its address, which it returns.
    #[inline]
    fn note(&mut self, index: BlockIndex) -> DeviceAddr {
        let addr = self.allocator.addr_of(index);
        self.live.insert(addr, index, |index| self.allocator.addr_of(index));
        addr
    }

    #[inline]
    fn free_unshared(&mut self, addr: DeviceAddr) -> bool {
        let Some((place, index)) = self.find(addr) else {
            return false;
        };
        let is_free = self.allocator.free_unshared(index);
        if is_free {
            self.live.remove(addr, place);
        }
        is_free
    }

    #[inline]
    fn find(&self, addr: DeviceAddr) -> Option<(usize, BlockIndex)> {
        self.live.find(addr, |index| self.allocator.is_live_at(index, addr))
    }

    fn live_block(&self, addr: DeviceAddr) -> Result<(usize, BlockIndex), AllocError> {
        self.find(addr).ok_or(AllocError::InvalidPointer(addr))
    }
}

#[cfg(test)]
mod tests {
    use blockyard_device::VirtualDevice;

    use super::*;
    use crate::AllocatorConfig;

    #[test]
    fn threads_do_not_get_in_each_others_way() {
        let rounds = if cfg!(miri) { 8 } else { 2000 };
        let device = VirtualDevice::new(Bytes::gib(1));
        let shared =
            SharedAllocator::new(CachingAllocator::new(device, AllocatorConfig::default(), NullSink));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let shared = &shared;
                scope.spawn(move || {
                    let (own, other) = (StreamId::new(thread), StreamId::new((thread + 1) % 3));
                    let mut held = Vec::new();
                    for round in 0..rounds {
                        held.push(shared.allocate(Bytes::new(512 * (round % 7 + 1)), own).unwrap());
                        shared.record_stream(held[0], other).unwrap();
                        if round % 3 == 2 {
                            for addr in held.drain(..) {
                                shared.free(addr).unwrap();
                            }
                        }
                    }
                    for addr in held {
                        shared.free(addr).unwrap();
                    }
                });
            }
        });
        shared.with(|allocator| {
            allocator.empty_cache().unwrap();
            allocator.check().unwrap();
            let stats = allocator.stats();
            assert_eq!(stats.allocation.all.allocated, 3 * i64::try_from(rounds).unwrap());
            assert_eq!(stats.reserved_bytes.all.current, 0);
        });
    }
}
