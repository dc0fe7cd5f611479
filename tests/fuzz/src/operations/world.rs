//! An allocator with its callers, and the checks after every operation.

use std::collections::BTreeMap;

use blockyard_allocator::{Allocation, CachingAllocator, SharedAllocator};
use blockyard_device::{DeviceMemory, VirtualDevice};
use blockyard_record::{BlockState, Bytes, DeviceAddr, PoolId, Snapshot, Stats, StreamId};
use blockyard_rules::AllocatorConfig;

use crate::failing::FailingDevice;
use crate::follower::Follower;
use crate::input::Input;

/// The visible state of an allocator at one moment: its snapshot, its statistics, the number of its events.
pub(super) type Observation = (Snapshot, Stats, usize);

pub(super) type TestedAllocator = SharedAllocator<FailingDevice, Follower>;

/// An allocation that is not freed yet.
#[derive(Debug)]
pub(super) struct LiveAllocation {
    pub(super) handle: Allocation,
    pub(super) size: Bytes,
    pub(super) stream: StreamId,
}

pub(super) struct World {
    pub(super) shared: TestedAllocator,
    /// A second allocator, whose device gives the same addresses.
    pub(super) other: CachingAllocator<VirtualDevice>,
    /// The live blocks of callers of the shared handle, by address: requested size and stream.
    pub(super) addresses: BTreeMap<DeviceAddr, (Bytes, StreamId)>,
    /// The live allocations of callers.
    pub(super) handles: Vec<LiveAllocation>,
    /// The blocks whose allocation was dropped while a failure of the device kept the block from being freed.
    pub(super) lost: Vec<(DeviceAddr, Bytes, StreamId)>,
    /// The last addresses that were given back.
    pub(super) gone: Vec<DeviceAddr>,
    /// How many uses of each memory pool are still to be given up.
    pub(super) uses: BTreeMap<PoolId, u32>,
    /// Pools with an open scope.
    pub(super) scopes: Vec<PoolId>,
    /// Live allocations of the second allocator.
    pub(super) foreign: Vec<Allocation>,
    pub(super) has_pages: bool,
    capacity: Bytes,
}

impl World {
    pub(super) fn new(input: &mut Input<'_>) -> Self {
        let capacity = input.capacity();
        let has_pages = input.byte() != 0;
        let mut config = AllocatorConfig::default();
        // Settings with an error stay applied as far as they were read.
        let _ = config.apply(&input.settings());
        let sink = Follower::new(capacity, &config);
        let allocator = CachingAllocator::new(FailingDevice::new(capacity, has_pages), config, sink);
        let other = CachingAllocator::new(
            VirtualDevice::new(capacity),
            AllocatorConfig::default(),
            blockyard_record::NullSink,
        );
        Self {
            shared: SharedAllocator::new(allocator),
            other,
            addresses: BTreeMap::new(),
            handles: Vec::new(),
            lost: Vec::new(),
            gone: Vec::new(),
            uses: BTreeMap::new(),
            scopes: Vec::new(),
            foreign: Vec::new(),
            has_pages,
            capacity,
        }
    }

    pub(super) fn note_gone(&mut self, addr: DeviceAddr) {
        if self.gone.len() == 16 {
            self.gone.remove(0);
        }
        self.gone.push(addr);
    }

    /// How often the device has failed.
    pub(super) fn failed(&self) -> u32 {
        self.shared.with(|allocator| allocator.device().failures.count())
    }

    /// Checks that the allocator is valid, and that its events, its device and its callers agree with it.
    /// Returns its visible state.
    pub(super) fn check(&self) -> Observation {
        self.other.check().unwrap();
        self.shared.with(|allocator| {
            allocator.check().unwrap();
            let snapshot = allocator.snapshot();
            let stats = allocator.stats();
            let followed = allocator.sink().state();
            assert_eq!(followed.snapshot(), snapshot, "events give the snapshot");
            assert_eq!(*followed.stats(), stats, "events give the statistics");
            assert_eq!(followed.breakdown().capacity(), self.capacity, "every byte is in one class");
            // The inner device is asked, since the failing device may be about to fail.
            let free = allocator.device_mut().inner.memory_info().unwrap().free;
            let reserved = (self.capacity - free).signed();
            assert_eq!(reserved, stats.reserved_bytes.all.current, "the device gave what is reserved");
            assert_eq!(allocated(&snapshot), self.held(), "what callers hold is what is allocated");
            let events = allocator.sink().events();
            (snapshot, stats, events)
        })
    }

    fn held(&self) -> Vec<(DeviceAddr, Bytes, StreamId)> {
        let by_addr = self.addresses.iter().map(|(addr, (size, stream))| (*addr, *size, *stream));
        let by_handle = self.handles.iter().map(|held| (held.handle.addr(), held.size, held.stream));
        let mut held: Vec<_> = by_addr.chain(by_handle).chain(self.lost.iter().copied()).collect();
        held.retain(|(addr, ..)| *addr != DeviceAddr::default());
        held.sort();
        held
    }

    /// Checks that another allocator can take over the memory of this one, and is valid then.
    pub(super) fn take_over(&self, snapshot: &Snapshot) {
        let (device, config) =
            self.shared.with(|allocator| (allocator.device().clone(), allocator.config().clone()));
        device.failures.arm(None);
        let silent = blockyard_record::NullSink;
        let (mut next, live) = CachingAllocator::beginning_with(device, config, silent, snapshot).unwrap();
        next.check().unwrap();
        assert_eq!(next.snapshot(), *snapshot);
        for allocation in live {
            next.free(allocation).unwrap();
            next.check().unwrap();
        }
        next.empty_cache().unwrap();
        next.check().unwrap();
        assert_eq!(next.stats().active.all.current, 0);
    }

    /// Gives everything back, and checks that nothing stays reserved unless an allocation was lost.
    pub(super) fn drain(mut self) {
        self.shared.with(|allocator| {
            allocator.device().failures.arm(None);
            allocator.set_memory_fraction(1.0).unwrap();
            for (pool, uses) in &self.uses {
                while allocator.end_allocate_to_pool(*pool).is_ok() {}
                for _ in 0..*uses {
                    allocator.release_pool(*pool).unwrap();
                }
            }
        });
        for addr in std::mem::take(&mut self.addresses).into_keys() {
            self.shared.free(addr).unwrap();
        }
        for LiveAllocation { handle, .. } in std::mem::take(&mut self.handles) {
            self.shared.with(|allocator| allocator.free(handle)).unwrap();
        }
        self.check();
        self.shared.with(CachingAllocator::empty_cache).unwrap();
        let (snapshot, stats, _) = self.check();
        if self.lost.is_empty() {
            assert_eq!(stats.reserved_bytes.all.current, 0, "{snapshot:#?}");
            assert_eq!(stats.active.all.current, 0);
        }
    }
}

fn allocated(snapshot: &Snapshot) -> Vec<(DeviceAddr, Bytes, StreamId)> {
    let blocks = snapshot.segments.iter().flat_map(|segment| {
        let allocated = segment.blocks.iter().filter(|block| block.state == BlockState::Allocated);
        allocated.map(move |block| (block.addr, block.requested, segment.stream))
    });
    blocks.collect()
}
