//! Arenas, as RMM has them.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_record::{Bytes, StreamId};

use crate::rivals::bfc::BestFit;
use crate::rivals::carver::{Carver, FreeIndex};
use crate::rivals::device::Device;
use crate::rivals::{RivalAllocation, RivalAllocator, RivalOutOfMemory, Usage, rounded};

/// Arenas as in RMM: every stream takes superblocks of at least 4 MiB from a global arena, and serves
/// requests first fit by address from them. Superblocks that are empty go back to the global arena and serve
/// any stream, which costs a wait for the stream that had them. The global arena takes 64 MiB and more at a
/// time.
#[derive(Clone, Debug)]
pub struct Arena {
    device: Device,
    global: Carver<BestFit>,
    streams: BTreeMap<StreamId, Carver<FirstFit>>,
}

const SUPERBLOCK: u64 = 4 << 20;
const GRANULARITY: u64 = 2 << 20;
const REGION: u64 = 64 << 20;

/// Free blocks by address.
#[derive(Clone, Debug, Default)]
struct FirstFit(BTreeSet<(u64, u64)>);

impl FreeIndex for FirstFit {
    fn insert(&mut self, addr: u64, size: u64) {
        self.0.insert((addr, size));
    }

    fn remove(&mut self, addr: u64, size: u64) {
        self.0.remove(&(addr, size));
    }

    fn find(&self, size: u64) -> Option<(u64, u64)> {
        self.0.iter().find(|(_, free)| *free >= size).copied()
    }
}

impl Arena {
    /// An allocator over a device of this many bytes.
    #[must_use]
    pub fn new(capacity: Bytes) -> Self {
        Self { device: Device::new(capacity), global: Carver::default(), streams: BTreeMap::new() }
    }

    fn superblock(&mut self, size: u64) -> Option<(u64, u64)> {
        let size = size.checked_next_multiple_of(GRANULARITY)?.max(SUPERBLOCK);
        if let Some(found) = self.global.allocate(size, |_| true) {
            return Some(found);
        }
        let region = size.max(REGION);
        let (base, region) = match self.device.take(region) {
            Some(base) => (base, region),
            None => (self.device.take(size)?, size),
        };
        self.global.add_region(base, region);
        self.global.allocate(size, |_| true)
    }
}

impl RivalAllocator for Arena {
    fn allocate(&mut self, requested: Bytes, stream: StreamId) -> Result<RivalAllocation, RivalOutOfMemory> {
        let none = RivalOutOfMemory { requested };
        let size = rounded(requested).ok_or(none)?;
        let found = self.streams.entry(stream).or_default().allocate(size, |_| true);
        let (addr, size) = if let Some(found) = found {
            found
        } else {
            let (base, superblock) = self.superblock(size).ok_or(none)?;
            let own = self.streams.entry(stream).or_default();
            own.add_region(base, superblock);
            own.allocate(size, |_| true).ok_or(none)?
        };
        let size = Bytes::new(size);
        self.device.allocated(requested, size);
        Ok(RivalAllocation { addr, size, requested, stream })
    }

    fn free(&mut self, allocation: RivalAllocation) {
        let Some(own) = self.streams.get_mut(&allocation.stream) else { return };
        if let Some((base, size)) = own.free(allocation.addr) {
            own.remove_region(base, size);
            self.global.free(base);
        }
        self.device.came_back(allocation.requested, allocation.size);
    }

    fn empty_cache(&mut self) {
        for size in self.global.take_whole_regions() {
            self.device.give_back(size);
        }
    }

    fn usage(&self) -> Usage {
        self.device.usage
    }
}
