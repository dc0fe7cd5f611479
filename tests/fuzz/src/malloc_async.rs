//! Operations on the allocator of `backend:cudaMallocAsync`.

use blockyard_allocator::{AllocError, MallocAsyncAllocation, MallocAsyncAllocator};
use blockyard_device::DeviceMemory as _;
use blockyard_record::{BlockState, Bytes, DeviceAddr, Snapshot, Stats};
use blockyard_rules::{AllocatorConfig, Release};

use crate::failing::FailingDevice;
use crate::follower::Follower;
use crate::input::Input;

/// The most operations of an input, since more would only be slow.
const MAX_OPERATIONS: usize = 400;

/// The largest block that is held, since the model counts every 2 MiB of held memory: sizes up to
/// [`MAX_RANGE`] would take a second for some inputs.
const MAX_HELD: Bytes = Bytes::gib(2);
/// The largest size that a device may serve: every device refuses larger requests.
const MAX_RANGE: Bytes = Bytes::gib(16 << 10);

/// Reads operations from the bytes and does them; after each operation the allocator, its events, its device
/// and the allocations of callers agree, and a refused operation changed nothing.
pub fn malloc_async(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(&mut input);
    let mut before = world.check();
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        let failed = world.allocator.device_mut().failures.count();
        let outcome = world.act(&mut input);
        let device_failed = world.allocator.device_mut().failures.count() > failed;
        let after = world.check();
        match outcome {
            Err(AllocError::Device(_)) => assert!(device_failed, "the device did not fail"),
            Ok(()) | Err(AllocError::MallocAsyncOutOfMemory(_)) => {}
            Err(refused) => assert_eq!(after, before, "{refused}"),
        }
        before = after;
    }
    world.drain();
}

struct World {
    allocator: MallocAsyncAllocator<FailingDevice, Follower>,
    other: MallocAsyncAllocator<FailingDevice, Follower>,
    held: Vec<(MallocAsyncAllocation, Bytes)>,
    foreign: Vec<MallocAsyncAllocation>,
    capacity: Bytes,
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let capacity = input.capacity();
        let has_pages = input.byte() != 0;
        let config = AllocatorConfig::parse("backend:cudaMallocAsync", Release::default()).unwrap();
        let allocator = |has_pages| {
            let sink = Follower::new(capacity, &config);
            MallocAsyncAllocator::new(FailingDevice::new(capacity, has_pages), config.clone(), sink)
        };
        let (allocator, other) = (allocator(has_pages), allocator(true));
        Self { allocator, other, held: Vec::new(), foreign: Vec::new(), capacity }
    }

    fn act(&mut self, input: &mut Input<'_>) -> Result<(), AllocError> {
        match input.byte() % 16 {
            0..=5 => {
                let (size, stream) = (size(input), input.stream());
                let allocation = self.allocator.allocate(size, stream)?;
                assert!(size < Bytes::new(1 << 60));
                assert_eq!(allocation.id().is_none(), size.is_zero());
                self.held.push((allocation, size));
            }
            6..=9 => {
                if let Some(index) = usize::from(input.byte()).checked_rem(self.held.len()) {
                    let (allocation, _) = self.held.swap_remove(index);
                    self.allocator.free(allocation).unwrap();
                }
            }
            10 => {
                if let Some(index) = usize::from(input.byte()).checked_rem(self.held.len()) {
                    self.allocator.record_stream(&self.held[index].0, input.stream()).unwrap();
                }
            }
            11 => self.allocator.empty_cache()?,
            12 => {
                let fraction = input.of(&[1.0, 0.5, 0.3, 0.0, 1e-300, -0.1, 1.5, f64::NAN]);
                self.allocator.set_memory_fraction(fraction)?;
            }
            13 => self.allocator.reset_peak_stats(),
            14 => self.allocator.device_mut().failures.arm_by(input),
            _ => return self.mix_up(input),
        }
        Ok(())
    }

    /// Mixes up two allocators whose devices give the same addresses.
    fn mix_up(&mut self, input: &mut Input<'_>) -> Result<(), AllocError> {
        let Some(foreign) = self.foreign.pop() else {
            let (size, stream) = (size(input).max(Bytes::new(1)), input.stream());
            self.foreign.extend(self.other.allocate(size, stream));
            return Ok(());
        };
        let refused = self.allocator.record_stream(&foreign, input.stream());
        assert!(matches!(refused, Err(AllocError::InvalidPointer(_))), "{refused:?}");
        let refused = self.allocator.free(foreign);
        assert!(matches!(refused, Err(AllocError::InvalidPointer(_))), "{refused:?}");
        refused
    }

    fn check(&mut self) -> (Snapshot, Stats, usize) {
        self.allocator.check().unwrap();
        let (snapshot, stats) = (self.allocator.snapshot(), self.allocator.counted_stats());
        let followed = self.allocator.sink().state();
        assert_eq!(followed.snapshot(), snapshot, "events give the snapshot");
        assert_eq!(*followed.stats(), stats, "events give the statistics");
        let events = self.allocator.sink().events();
        assert_eq!(allocated(&snapshot), self.allocations(), "what callers hold is what is allocated");
        let free = self.allocator.device_mut().inner.memory_info().unwrap().free;
        assert_eq!((self.capacity - free).signed(), stats.reserved_bytes.all.current);
        (snapshot, stats, events)
    }

    fn allocations(&self) -> Vec<(DeviceAddr, Bytes)> {
        let held = self.held.iter().filter(|(_, size)| !size.is_zero());
        let mut held: Vec<_> = held.map(|(allocation, size)| (allocation.addr(), *size)).collect();
        held.sort();
        held
    }

    fn drain(mut self) {
        self.allocator.device_mut().failures.arm(None);
        for (allocation, _) in std::mem::take(&mut self.held) {
            self.allocator.free(allocation).unwrap();
        }
        self.check();
        self.allocator.empty_cache().unwrap();
        let (_, stats, _) = self.check();
        assert_eq!(stats.reserved_bytes.all.current, 0);
        assert_eq!(stats.active.all.current, 0);
    }
}

fn size(input: &mut Input<'_>) -> Bytes {
    let size = input.size();
    if size > MAX_RANGE { size } else { size.min(MAX_HELD) }
}

fn allocated(snapshot: &Snapshot) -> Vec<(DeviceAddr, Bytes)> {
    let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
    let allocated = blocks.filter(|block| block.state == BlockState::Allocated);
    allocated.map(|block| (block.addr, block.requested)).collect()
}
