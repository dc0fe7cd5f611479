//! An allocator for several threads, with frees by address, as PyTorch's callers use it.

use crate::lock::BiasedMutex;
use blockyard_device::DeviceMemory;
use blockyard_record::{Bytes, DeviceAddr, EventSink, NullSink, StreamId};

use crate::addr_table::AddrTable;
use crate::block::BlockIndex;
use crate::{AllocError, CachingAllocator};

/// A [`CachingAllocator`] behind a lock, with frees by address (`raw_alloc`, `raw_delete`).
///
/// There is one lock for all streams, as in PyTorch: requests of different threads are served one after the
/// other. A thread holds the lock for some tens of nanoseconds, or for a call of the device; threads that
/// wait sleep.
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
    /// Shares an allocator. Earlier allocations can be freed only through [`SharedAllocator::with`].
    pub fn new(allocator: CachingAllocator<D, S>) -> Self {
        Self { inner: BiasedMutex::new(Inner { allocator, live: AddrTable::default() }) }
    }

    /// Allocates `requested` bytes for use on `stream`; returns address 0 for a request of zero bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`CachingAllocator::allocate`].
    #[inline]
    pub fn allocate(&self, requested: Bytes, stream: StreamId) -> Result<DeviceAddr, AllocError> {
        if requested.is_zero() {
            return Ok(DeviceAddr::default());
        }
        // The fast path is a separate call, because a result without an error is returned in registers.
        match self.inner.with_as_owner(|inner| inner.allocate_fast_path(requested, stream)) {
            Some(Some(addr)) => Ok(addr),
            _ => self.allocate_locked(requested, stream),
        }
    }

    /// The rest of [`SharedAllocator::allocate`]: for threads that do not own the lock, and for the slow
    /// path.
    #[cold]
    #[inline(never)]
    fn allocate_locked(&self, requested: Bytes, stream: StreamId) -> Result<DeviceAddr, AllocError> {
        self.inner.with(|inner| {
            let index = inner.allocator.allocate_block(requested, stream)?;
            Ok(inner.add_live_block(index))
        })
    }

    /// Frees the block that starts at `addr`; address 0 is ignored.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when no allocated block starts at `addr`, [`AllocError::Device`] when
    /// the device fails to record an event. In both cases nothing changes.
    #[inline]
    pub fn free(&self, addr: DeviceAddr) -> Result<(), AllocError> {
        if addr == DeviceAddr::default() {
            return Ok(());
        }
        match self.inner.with_as_owner(|inner| inner.free_unshared(addr)) {
            Some(true) => Ok(()),
            _ => self.free_locked(addr),
        }
    }

    /// The rest of [`SharedAllocator::free`]: for threads that do not own the lock, and for frees that the
    /// fast path does not serve.
    #[cold]
    #[inline(never)]
    fn free_locked(&self, addr: DeviceAddr) -> Result<(), AllocError> {
        self.inner.with(|inner| {
            let (place, index) = inner.live_block(addr)?;
            inner.allocator.free_block(index)?;
            inner.live.remove(addr, place);
            Ok(())
        })
    }

    /// Records that `stream` uses the block that starts at `addr` too; address 0 is ignored.
    ///
    /// # Errors
    ///
    /// [`AllocError::InvalidPointer`] when no allocated block starts at `addr`.
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

    /// Calls `act` with the allocator, to open a sink. Segments, blocks and allocations first get new ids
    /// from 0 on, so that a recording can begin after any number of allocations. If a sink is open already,
    /// all ids stay as they are.
    ///
    /// Memory that was allocated through [`SharedAllocator::with`] cannot be freed afterwards.
    pub fn with_fresh_ids<R>(&self, act: impl FnOnce(&mut CachingAllocator<D, S>) -> R) -> R {
        self.with(|allocator| {
            if allocator.sink().is_closed() {
                allocator.renumber();
            }
            act(allocator)
        })
    }

    /// Calls `act` with the allocator, while other threads wait.
    pub fn with<R>(&self, act: impl FnOnce(&mut CachingAllocator<D, S>) -> R) -> R {
        self.inner.with(|inner| act(&mut inner.allocator))
    }
}

impl<D: DeviceMemory, S: EventSink> Inner<D, S> {
    #[inline]
    fn allocate_fast_path(&mut self, requested: Bytes, stream: StreamId) -> Option<DeviceAddr> {
        let index = self.allocator.allocate_fast_path(requested, stream)?;
        Some(self.add_live_block(index))
    }

    /// Adds the block to the table of addresses, and returns its address.
    #[inline]
    fn add_live_block(&mut self, index: BlockIndex) -> DeviceAddr {
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
    use blockyard_rules::AllocatorConfig;

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
