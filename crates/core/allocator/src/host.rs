//! Pinned host memory (`at::CachingHostAllocator`, releases 2.11 to 2.15): blocks of powers of two, cached
//! and never split.
//!
//! A request takes the block of its size that was freed last, or pins new memory. Two settings, which PyTorch
//! has from 2.13 on, change the sizes: a request above `pinned_max_round_threshold_mb` or
//! `pinned_max_cached_size_mb` gets a block of just its size, and a block above the second goes back to the
//! host when its free completes. A block that streams have used can be reused once their work is done; the
//! allocator checks that on each request. Pinning is slow and locks the whole driver, so pinned blocks are
//! cached.
//!
//! Not modeled: the private pools of captures.

mod stats;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use blockyard_device::{DeviceError, HostMemory, Pinning};
use blockyard_record::{Bytes, HostAddr, HostStats, StreamId};

use blockyard_rules::{PinnedConfig, size};
use stats::HostCounters;

/// One list of cached blocks for each power of two: the blocks that are not larger, and larger than half of
/// that.
const LISTS: usize = 64;
/// Blocks from the reserve are multiples of this.
const PAGE: Bytes = Bytes::kib(4);

/// PyTorch's allocator of pinned host memory over the host `H`.
#[derive(Debug)]
pub struct HostAllocator<H: HostMemory> {
    memory: H,
    config: PinnedConfig,
    blocks: BTreeMap<HostAddr, Block>,
    /// Cached blocks by the exponent of their list, in the order in which they were freed.
    cached: [Vec<HostAddr>; LISTS],
    /// The events that freed blocks wait for, the newest in front.
    pending: VecDeque<(H::Event, HostAddr)>,
    reserve: Reserve,
    counters: HostCounters,
    /// How many allocations there were.
    allocations: u64,
    /// Distinguishes allocations of this allocator from those of other allocators, which may have equal
    /// addresses.
    identity: u64,
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Block {
    /// The number of the allocation that the block serves or served last.
    number: u64,
    size: Bytes,
    /// `None` for a block of the reserve, which is never released.
    pinning: Option<Pinning>,
    is_allocated: bool,
    /// The streams that used the block since it was allocated.
    streams: BTreeSet<StreamId>,
    /// How many events the free of the block still waits for.
    outstanding: usize,
}

impl Block {
    /// The list in which the block is cached.
    fn exponent(&self) -> usize {
        list_of(self.size)
    }
}

/// The exponent of the smallest power of two that is not below a size.
fn list_of(size: Bytes) -> usize {
    size.get().checked_next_power_of_two().map_or(LISTS - 1, |power| power.ilog2() as usize)
}

/// Memory that was pinned at once, from which blocks are taken one after the other.
#[derive(Debug)]
enum Reserve {
    /// No new memory was needed yet.
    Undecided,
    /// The settings had no reserve when new memory was first needed.
    Without,
    /// The reserve is pinned; the addresses from `next` to `end` are not used yet.
    Pinned { next: HostAddr, end: HostAddr },
}

/// An allocated block of pinned memory.
///
/// An allocation of zero bytes has no block; its address is 0, like PyTorch's null pointer.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an allocation that is dropped stays allocated"]
pub struct HostAllocation {
    addr: HostAddr,
    number: Option<u64>,
    allocator: u64,
}

impl HostAllocation {
    /// The address of the first byte; 0 for an allocation of zero bytes.
    #[must_use]
    pub fn addr(&self) -> HostAddr {
        self.addr
    }
}

/// Why a call of [`HostAllocator`] failed. The allocator stays usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A request above 2^63 bytes, which cannot be rounded up to a power of two in 64 bits. Nothing changed.
    #[error("{requested} cannot be rounded up to a power of two")]
    TooLarge {
        /// The bytes that were requested.
        requested: Bytes,
    },
    /// The allocation is not a live one of this allocator. Nothing changed.
    #[error("invalid host pointer: {0}")]
    InvalidPointer(HostAddr),
    /// The host cannot pin more memory, or the driver failed.
    #[error(transparent)]
    Memory(#[from] DeviceError),
}

impl<H: HostMemory> HostAllocator<H> {
    /// An allocator without memory, with the settings of
    /// [`AllocatorConfig::pinned`](blockyard_rules::AllocatorConfig::pinned).
    pub fn new(memory: H, config: PinnedConfig) -> Self {
        Self {
            memory,
            config,
            blocks: BTreeMap::new(),
            cached: [const { Vec::new() }; LISTS],
            pending: VecDeque::new(),
            reserve: Reserve::Undecided,
            counters: HostCounters::default(),
            allocations: 0,
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Allocates a block of at least `requested` bytes: the next power of two, or the bytes themselves where
    /// a setting says so.
    ///
    /// # Errors
    ///
    /// [`HostError::Memory`] when the host cannot pin enough memory, [`HostError::TooLarge`] above 2^63
    /// bytes.
    pub fn allocate(&mut self, requested: Bytes) -> Result<HostAllocation, HostError> {
        if requested.is_zero() {
            return Ok(HostAllocation { addr: HostAddr::default(), number: None, allocator: self.identity });
        }
        let size = self.block_size(requested).ok_or(HostError::TooLarge { requested })?;
        if !self.config.use_background_threads {
            self.process_events()?;
        }
        if let Some(addr) = self.take_cached(size) {
            return Ok(self.allocate_found_block(addr));
        }
        if self.config.use_background_threads {
            self.process_events_of(size)?;
            if let Some(addr) = self.take_cached(size) {
                return Ok(self.allocate_found_block(addr));
            }
        }
        let (addr, pinning) = match self.take_from_reserve(size)? {
            Some(addr) => (addr, None),
            None => self.pin(size).map(|(addr, pinning)| (addr, Some(pinning)))?,
        };
        let block =
            Block { number: 0, size, pinning, is_allocated: false, streams: BTreeSet::new(), outstanding: 0 };
        self.blocks.insert(addr, block);
        self.counters.block_made(size);
        Ok(self.allocate_found_block(addr))
    }

    /// The size of a new block for a request; `None` above 2^63 bytes.
    fn block_size(&self, requested: Bytes) -> Option<Bytes> {
        let rounded = requested.get().checked_next_power_of_two().map(Bytes::new)?;
        let is_rounded =
            requested <= self.config.max_round_threshold && requested <= self.config.max_cached_size;
        Some(if is_rounded { rounded } else { requested })
    }

    /// Frees a block. If streams used the block, it can be reused once the work that they have so far is
    /// done.
    ///
    /// # Errors
    ///
    /// [`HostError::InvalidPointer`] when the allocation is not a live one of this allocator,
    /// [`HostError::Memory`] when an event cannot be recorded: in both cases nothing changes.
    /// [`HostError::Memory`] too when a block that is too large for the cache cannot be released: the block
    /// is free and stays cached then.
    #[expect(clippy::needless_pass_by_value, reason = "what was freed cannot be freed or used again")]
    pub fn free(&mut self, allocation: HostAllocation) -> Result<(), HostError> {
        let Some(addr) = self.live_block(&allocation)? else {
            return Ok(());
        };
        let streams: Vec<StreamId> =
            self.blocks.get(&addr).map(|block| block.streams.iter().copied().collect()).unwrap_or_default();
        let memory = &mut self.memory;
        let events: Result<Vec<_>, _> = streams.iter().map(|stream| memory.record_event(*stream)).collect();
        let events = events?;
        if let Some(block) = self.blocks.get_mut(&addr) {
            block.is_allocated = false;
            block.streams.clear();
            block.outstanding = events.len();
        }
        if events.is_empty() {
            self.complete_free(addr)?;
        }
        for event in events {
            self.pending.push_front((event, addr));
        }
        Ok(())
    }

    /// Records that `stream` uses the block, for example in an asynchronous copy (`record_event`).
    ///
    /// # Errors
    ///
    /// [`HostError::InvalidPointer`] when the allocation is not a live one of this allocator.
    pub fn record_stream(&mut self, allocation: &HostAllocation, stream: StreamId) -> Result<(), HostError> {
        if let Some(addr) = self.live_block(allocation)?
            && let Some(block) = self.blocks.get_mut(&addr)
        {
            block.streams.insert(stream);
        }
        Ok(())
    }

    /// Records that `stream` uses the block that starts at the address. Returns whether an allocated block
    /// starts there.
    pub fn record_stream_at(&mut self, addr: HostAddr, stream: StreamId) -> bool {
        match self.blocks.get_mut(&addr) {
            Some(block) if block.is_allocated => {
                block.streams.insert(stream);
                true
            }
            _ => false,
        }
    }

    /// Completes the frees of blocks whose streams are done: from the oldest event on, up to the first event
    /// that is not complete.
    ///
    /// Each allocation does so first, unless background threads are switched on: then a thread of PyTorch
    /// does so every 100 microseconds.
    ///
    /// # Errors
    ///
    /// [`HostError::Memory`] when the driver fails.
    pub fn process_events(&mut self) -> Result<(), HostError> {
        while let Some((event, _)) = self.pending.back() {
            if !self.memory.is_complete(event)? {
                break;
            }
            if let Some((_, addr)) = self.pending.pop_back() {
                self.event_done(addr)?;
            }
        }
        Ok(())
    }

    /// Looks for one pending block of the size whose streams are done. Events that are not complete move to
    /// the front.
    fn process_events_of(&mut self, size: Bytes) -> Result<(), HostError> {
        // One round and two more events, as in PyTorch.
        for _ in 0..self.pending.len() + 2 {
            let Some((event, addr)) = self.pending.pop_back() else {
                break;
            };
            let is_of_size = self.blocks.get(&addr).is_some_and(|block| block.size == size);
            let is_complete = if is_of_size { self.memory.is_complete(&event) } else { Ok(false) };
            if !matches!(is_complete, Ok(true)) {
                self.pending.push_front((event, addr));
                is_complete?;
                continue;
            }
            if self.event_done(addr)? {
                break;
            }
        }
        Ok(())
    }

    /// Releases every cached block to the host, except blocks of the reserve, which are never released.
    ///
    /// # Errors
    ///
    /// [`HostError::Memory`] when the driver fails. Blocks that were released before stay released.
    pub fn empty_cache(&mut self) -> Result<(), HostError> {
        self.process_events()?;
        for exponent in 0..LISTS {
            let mut cached = std::mem::take(&mut self.cached[exponent]).into_iter();
            while let Some(addr) = cached.next() {
                let Some(block) = self.blocks.get(&addr) else {
                    continue;
                };
                let size = block.size;
                if let Some(pinning) = block.pinning
                    && let Err(error) = self.unpin(addr, pinning)
                {
                    // This block is still pinned, so it stays cached, and so do the blocks after it.
                    self.cached[exponent] = std::iter::once(addr).chain(cached).collect();
                    return Err(error);
                }
                self.blocks.remove(&addr);
                self.counters.block_released(size);
            }
        }
        Ok(())
    }

    /// Changes the settings. The reserve stays as it was when new memory was first needed.
    pub fn set_config(&mut self, config: PinnedConfig) {
        self.config = config;
    }

    /// The counters, as `torch.cuda.host_memory_stats()` shows them.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        self.counters.stats()
    }

    /// Sets every peak to its current value, and the longest and the shortest call to zero.
    pub fn reset_peak_stats(&mut self) {
        self.counters.reset_peak();
    }

    /// Sets accumulated counts, and with them `num_host_alloc` and `num_host_free`, to zero.
    pub fn reset_accumulated_stats(&mut self) {
        self.counters.reset_accumulated();
    }

    /// The host, to advance its streams.
    pub fn memory_mut(&mut self) -> &mut H {
        &mut self.memory
    }

    /// The cached block that was freed last of those in the list of a size that are large enough. In 2.13 a
    /// block may be too small for the request, which PyTorch mends in 2.14: here every release looks for one
    /// that is large enough.
    fn take_cached(&mut self, size: Bytes) -> Option<HostAddr> {
        let blocks = &self.blocks;
        let list = self.cached.get_mut(list_of(size))?;
        let is_fitting = |addr: &HostAddr| blocks.get(addr).is_some_and(|block| block.size >= size);
        list.iter().rposition(is_fitting).map(|place| list.remove(place))
    }

    fn allocate_found_block(&mut self, addr: HostAddr) -> HostAllocation {
        let number = self.allocations;
        self.allocations += 1;
        if let Some(block) = self.blocks.get_mut(&addr) {
            block.is_allocated = true;
            block.number = number;
            self.counters.block_allocated(block.exponent(), block.size);
        }
        HostAllocation { addr, number: Some(number), allocator: self.identity }
    }

    /// Caches a block that nothing uses any more, or gives a block above `pinned_max_cached_size_mb` back to
    /// the host.
    fn complete_free(&mut self, addr: HostAddr) -> Result<(), HostError> {
        let Some(block) = self.blocks.get(&addr) else {
            return Ok(());
        };
        let (size, exponent, pinning) = (block.size, block.exponent(), block.pinning);
        self.counters.free_completed(exponent, size);
        // Bytes of the reserve are never released, and not used again without a block.
        let released = match pinning {
            _ if size <= self.config.max_cached_size => None,
            Some(pinning) => Some(self.unpin(addr, pinning)),
            None => Some(Ok(())),
        };
        if let Some(Ok(())) = released {
            self.blocks.remove(&addr);
            self.counters.block_released(size);
        } else if let Some(list) = self.cached.get_mut(exponent) {
            list.push(addr);
        }
        released.unwrap_or(Ok(()))
    }

    /// Counts one event of the block as done. Returns whether the block waited for no other event.
    fn event_done(&mut self, addr: HostAddr) -> Result<bool, HostError> {
        let Some(block) = self.blocks.get_mut(&addr) else {
            return Ok(false);
        };
        debug_assert!(block.outstanding > 0, "each event in the queue is counted here once");
        block.outstanding = block.outstanding.saturating_sub(1);
        let is_last = block.outstanding == 0;
        if is_last {
            self.complete_free(addr)?;
        }
        Ok(is_last)
    }

    fn unpin(&mut self, addr: HostAddr, pinning: Pinning) -> Result<(), HostError> {
        let micros = self.memory.release(addr, pinning)?;
        self.counters.host_free_time.add(micros);
        Ok(())
    }

    /// The next bytes of the reserve; `None` without a reserve or if not enough is left.
    fn take_from_reserve(&mut self, size: Bytes) -> Result<Option<HostAddr>, HostError> {
        if let Reserve::Undecided = self.reserve {
            let reserved = self.config.reserve_segment_size;
            self.reserve = if reserved.is_zero() {
                Reserve::Without
            } else {
                let (next, _) = self.pin(reserved)?;
                Reserve::Pinned { next, end: next.offset(reserved) }
            };
        }
        let Reserve::Pinned { next, end } = &mut self.reserve else {
            return Ok(None);
        };
        let after = next.get().checked_add(size::round_up(size, PAGE).get()).map(HostAddr::new);
        Ok(after.filter(|after| after <= end).map(|after| std::mem::replace(next, after)))
    }

    fn pin(&mut self, size: Bytes) -> Result<(HostAddr, Pinning), HostError> {
        let pinning = if self.config.use_host_register {
            // If there are fewer pages than threads, one thread touches all of them.
            let threads = self.config.register_threads;
            let has_enough = size.get() >= PAGE.get().saturating_mul(threads);
            Pinning::Registered { threads: if has_enough { threads.max(1) } else { 1 } }
        } else {
            Pinning::Allocated
        };
        let taken = self.memory.allocate(size, pinning)?;
        self.counters.host_alloc_time.add(taken.micros);
        Ok((taken.addr, pinning))
    }

    /// The address of the allocation's block; `None` for an allocation of zero bytes.
    fn live_block(&self, allocation: &HostAllocation) -> Result<Option<HostAddr>, HostError> {
        let Some(number) = allocation.number else {
            return Ok(None);
        };
        let block = self.blocks.get(&allocation.addr);
        let is_live = block.is_some_and(|block| {
            allocation.allocator == self.identity && block.is_allocated && block.number == number
        });
        if is_live { Ok(Some(allocation.addr)) } else { Err(HostError::InvalidPointer(allocation.addr)) }
    }
}

#[cfg(test)]
mod tests;
