//! Operations on the allocator of pinned host memory.

use blockyard_allocator::{HostAllocation, HostAllocator, HostError};
use blockyard_device::VirtualHostMemory;
use blockyard_record::{Bytes, HostStats, StreamId};
use blockyard_rules::PinnedConfig;

use crate::failing::{FailingHost, FailureInjector};
use crate::input::Input;

/// The most operations of an input, since more would only be slow.
const MAX_OPERATIONS: usize = 400;

/// Reads operations from the bytes and does them; after each operation the statistics agree with the host and
/// with the allocations of callers, no two blocks overlap, and a refused operation changed nothing.
pub fn host(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(&mut input);
    let mut before = world.check();
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        let outcome = world.act(&mut input);
        let after = world.check();
        match outcome {
            Ok(()) | Err(HostError::Memory(_)) => {}
            Err(refused) => assert_eq!(after, before, "{refused}"),
        }
        before = after;
    }
    world.drain();
}

struct World {
    allocator: HostAllocator<FailingHost>,
    other: HostAllocator<VirtualHostMemory>,
    held: Vec<(HostAllocation, Bytes)>,
    /// The number of blocks whose allocation was dropped while a failure kept the block from being freed.
    lost: u64,
    /// Whether a part of the pinned memory may be a reserve.
    has_reserve: bool,
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let memory = FailingHost {
            inner: VirtualHostMemory::new(input.capacity()),
            failures: FailureInjector::default(),
        };
        let config = config(input);
        let other = HostAllocator::new(VirtualHostMemory::new(Bytes::gib(1)), PinnedConfig::default());
        let has_reserve = !config.reserve_segment_size.is_zero();
        Self { allocator: HostAllocator::new(memory, config), other, held: Vec::new(), lost: 0, has_reserve }
    }

    fn act(&mut self, input: &mut Input<'_>) -> Result<(), HostError> {
        let index = |held: &[_], byte: u8| usize::from(byte).checked_rem(held.len());
        match input.byte() % 16 {
            0..=4 => {
                let size = input.size();
                let allocation = self.allocator.allocate(size)?;
                assert_eq!(allocation.addr().get() == 0, size.is_zero());
                self.held.push((allocation, size));
            }
            5..=8 => {
                if let Some(index) = index(&self.held, input.byte()) {
                    let (allocation, size) = self.held.swap_remove(index);
                    let addr = allocation.addr();
                    let freed = self.allocator.free(allocation);
                    assert!(matches!(freed, Ok(()) | Err(HostError::Memory(_))), "{freed:?}");
                    // The block is still allocated where no event could be recorded, and free where it could
                    // not be released.
                    let is_live = freed.is_err()
                        && !size.is_zero()
                        && self.allocator.record_stream_at(addr, StreamId::DEFAULT);
                    self.lost += u64::from(is_live);
                    freed?;
                }
            }
            9..=10 => {
                if let Some(index) = index(&self.held, input.byte()) {
                    let (allocation, size) = &self.held[index];
                    self.allocator.record_stream(allocation, input.stream()).unwrap();
                    assert_eq!(
                        self.allocator.record_stream_at(allocation.addr(), input.stream()),
                        !size.is_zero()
                    );
                }
            }
            11 if input.flag() => self.allocator.memory_mut().inner.advance_all(),
            11 => self.allocator.memory_mut().inner.advance(input.stream()),
            12 if input.flag() => self.allocator.process_events()?,
            12 => self.allocator.empty_cache()?,
            13 => {
                let config = config(input);
                self.has_reserve |= !config.reserve_segment_size.is_zero();
                self.allocator.set_config(config);
            }
            14 => self.allocator.memory_mut().failures.arm_by(input),
            _ => match input.byte() % 3 {
                0 => self.allocator.reset_peak_stats(),
                1 => self.allocator.reset_accumulated_stats(),
                _ => {
                    let foreign = self.other.allocate(Bytes::new(1000)).unwrap();
                    let refused = self.allocator.free(foreign);
                    assert!(matches!(refused, Err(HostError::InvalidPointer(_))), "{refused:?}");
                    refused?;
                }
            },
        }
        Ok(())
    }

    fn check(&mut self) -> HostStats {
        let stats = self.allocator.stats();
        let pinned = self.allocator.memory_mut().inner.used().signed();
        if self.has_reserve {
            assert!(pinned >= 0);
        } else {
            assert_eq!(stats.allocated_bytes.current, pinned, "what is pinned is what blocks have");
        }
        assert!(stats.active_bytes.current <= stats.allocated_bytes.current);
        assert!(stats.active_requests.current <= stats.allocations.current);
        let live = self.held.iter().filter(|(_, size)| !size.is_zero()).count() as u64 + self.lost;
        assert!(stats.active_requests.current.cast_unsigned() >= live);
        let mut ranges: Vec<_> = self
            .held
            .iter()
            .filter(|(_, size)| !size.is_zero())
            .map(|(allocation, size)| (allocation.addr().get(), size.get()))
            .collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "two blocks overlap");
        }
        stats
    }

    fn drain(mut self) {
        self.allocator.memory_mut().failures.arm(None);
        for (allocation, _) in std::mem::take(&mut self.held) {
            self.allocator.free(allocation).unwrap();
        }
        self.check();
        self.allocator.memory_mut().inner.advance_all();
        self.allocator.empty_cache().unwrap();
        let stats = self.check();
        if self.lost == 0 {
            assert_eq!(stats.active_requests.current, 0);
            assert_eq!(stats.active_bytes.current, 0);
            assert!(self.has_reserve || stats.allocations.current == 0);
        }
    }
}

fn config(input: &mut Input<'_>) -> PinnedConfig {
    let flags = input.byte();
    PinnedConfig {
        use_host_register: flags & 1 == 1,
        register_threads: 1 << (flags >> 2 & 7),
        use_background_threads: flags & 2 == 2,
        reserve_segment_size: if flags & 0x60 == 0x60 {
            Bytes::mib(u64::from(input.byte()))
        } else {
            Bytes::ZERO
        },
        // Settings of 2.13 and later.
        max_round_threshold: threshold(input),
        max_cached_size: threshold(input),
        ..PinnedConfig::default()
    }
}

/// No threshold, or a threshold of some KiB.
fn threshold(input: &mut Input<'_>) -> Bytes {
    if input.flag() { PinnedConfig::default().max_cached_size } else { Bytes::kib(u64::from(input.byte())) }
}
