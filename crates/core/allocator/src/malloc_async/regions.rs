//! Free addresses, and which of them the driver uses next.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_record::{Bytes, DeviceAddr, StreamId};

/// Free addresses that the same requests may use. Adjacent regions are joined.
#[derive(Clone, Debug, Default)]
struct Regions {
    /// Size and age of each region. An older region has a smaller age number.
    by_addr: BTreeMap<DeviceAddr, (Bytes, u64)>,
    by_size: BTreeSet<(Bytes, u64, DeviceAddr)>,
}

impl Regions {
    fn add(&mut self, addr: DeviceAddr, size: Bytes, age: u64) {
        self.by_addr.insert(addr, (size, age));
        self.by_size.insert((size, age, addr));
    }

    fn remove(&mut self, addr: DeviceAddr) -> Option<Bytes> {
        let (size, age) = self.by_addr.remove(&addr)?;
        self.by_size.remove(&(size, age, addr));
        Some(size)
    }

    /// Adds a region and joins it with its neighbors, but not across a border.
    fn insert(&mut self, addr: DeviceAddr, size: Bytes, age: u64, borders: &BTreeSet<DeviceAddr>) {
        let (mut start, mut size) = (addr, size);
        let end = addr.offset(size);
        if !borders.contains(&end)
            && let Some(above) = self.remove(end)
        {
            size += above;
        }
        let below = self.by_addr.range(..addr).next_back().map(|(below, (length, _))| (*below, *length));
        if let Some((below, length)) = below
            && below.offset(length) == addr
            && !borders.contains(&addr)
        {
            self.remove(below);
            start = below;
            size += length;
        }
        self.add(start, size, age);
    }

    /// The smallest region that is large enough. Ties go to the oldest, then to the lowest address.
    fn best(&self, size: Bytes) -> Option<DeviceAddr> {
        self.by_size.range((size, 0, DeviceAddr::default())..).next().map(|(_, _, addr)| *addr)
    }

    /// Removes the addresses, if all of them are in one region.
    fn take(&mut self, addr: DeviceAddr, size: Bytes, age: u64) -> bool {
        let Some((start, (length, start_age))) =
            self.by_addr.range(..=addr).next_back().map(|(start, region)| (*start, *region))
        else {
            return false;
        };
        let (end, wanted_end) = (start.offset(length), addr.offset(size));
        if wanted_end > end {
            return false;
        }
        self.remove(start);
        if start < addr {
            self.add(start, addr.offset_from(start), start_age);
        }
        if wanted_end < end {
            self.add(wanted_end, end.offset_from(wanted_end), age);
        }
        true
    }
}

/// All free addresses of the pool: those that a stream freed and no stream used since, and those that all
/// streams may use.
///
/// A request first uses addresses that its own stream has freed, which need no wait. Only if none of them is
/// large enough, the driver joins all freed addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeAddresses {
    of_streams: BTreeMap<StreamId, Regions>,
    of_all: Regions,
    /// The starts of reserved ranges. Two ranges may be adjacent, but no block crosses from one to the other.
    borders: BTreeSet<DeviceAddr>,
    /// How many changes there were; the age of a region is the number of the change that made it.
    clock: u64,
}

// Regions that all streams may use have the same age, so that ties go to the lowest address.
const NO_AGE: u64 = 0;

impl FreeAddresses {
    pub(super) fn add_range(&mut self, base: DeviceAddr, size: Bytes) {
        self.borders.insert(base);
        self.borders.insert(base.offset(size));
        self.of_all.insert(base, size, NO_AGE, &self.borders);
    }

    pub(super) fn free(&mut self, addr: DeviceAddr, size: Bytes, stream: StreamId) {
        let age = self.tick();
        self.of_streams.entry(stream).or_default().insert(addr, size, age, &self.borders);
    }

    /// The address of a block by the rule. Joins the freed addresses if the regions of the stream are too
    /// small.
    pub(super) fn choose(&mut self, size: Bytes, stream: StreamId) -> Option<DeviceAddr> {
        let own = self.of_streams.get(&stream).and_then(|regions| regions.best(size));
        own.or_else(|| {
            self.join();
            self.of_all.best(size)
        })
    }

    /// Removes addresses from any region. Returns whether all of them were free.
    pub(super) fn take(&mut self, addr: DeviceAddr, size: Bytes) -> bool {
        let age = self.tick();
        let mut all = self.of_streams.values_mut();
        if all.any(|regions| regions.take(addr, size, age)) || self.of_all.take(addr, size, NO_AGE) {
            return true;
        }
        self.join();
        self.of_all.take(addr, size, NO_AGE)
    }

    /// Makes all freed addresses available to all streams.
    pub(super) fn join(&mut self) {
        for (_, regions) in std::mem::take(&mut self.of_streams) {
            for (addr, (size, _)) in regions.by_addr {
                self.of_all.insert(addr, size, NO_AGE, &self.borders);
            }
        }
    }

    /// Bytes of all free addresses.
    pub(super) fn total(&self) -> Bytes {
        let regions = self.of_streams.values().chain(std::iter::once(&self.of_all));
        regions.flat_map(|regions| regions.by_addr.values()).map(|(size, _)| *size).sum()
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(addr: u64) -> DeviceAddr {
        DeviceAddr::new(addr)
    }

    fn range(size: u64) -> FreeAddresses {
        let mut free = FreeAddresses::default();
        free.add_range(addr(0x1_0000), Bytes::new(size));
        free
    }

    fn place(free: &mut FreeAddresses, size: u64, stream: u64) -> u64 {
        let addr = free.choose(Bytes::new(size), StreamId::new(stream)).unwrap();
        assert!(free.take(addr, Bytes::new(size)));
        addr.get()
    }

    #[test]
    fn what_the_stream_freed_comes_first_even_where_another_region_fits_better() {
        let mut free = range(0x8000);
        let blocks = [0x800, 0x200, 0x400, 0x200].map(|size| place(&mut free, size, 0));
        free.free(addr(blocks[2]), Bytes::new(0x400), StreamId::new(7));
        free.free(addr(blocks[0]), Bytes::new(0x800), StreamId::DEFAULT);
        assert_eq!(place(&mut free, 0x400, 0), blocks[0]);
        assert_eq!(place(&mut free, 0x400, 7), blocks[2]);
    }

    #[test]
    fn a_miss_joins_what_was_freed() {
        let mut free = range(0x8000);
        let blocks = [0x400, 0x400, 0x200].map(|size| place(&mut free, size, 0));
        free.free(addr(blocks[0]), Bytes::new(0x400), StreamId::DEFAULT);
        free.free(addr(blocks[1]), Bytes::new(0x400), StreamId::new(7));
        assert_eq!(place(&mut free, 0x800, 0), blocks[0]);
    }

    #[test]
    fn regions_do_not_grow_over_the_border_of_a_range() {
        let mut free = range(0x1000);
        free.add_range(addr(0x1_1000), Bytes::new(0x1000));
        assert_eq!(free.choose(Bytes::new(0x1800), StreamId::DEFAULT), None);
        assert_eq!(place(&mut free, 0x1000, 0), 0x1_0000);
        assert_eq!(place(&mut free, 0x1000, 0), 0x1_1000);
    }

    #[test]
    fn among_equals_of_the_stream_the_oldest_is_taken() {
        let mut free = range(0x8000);
        let blocks = [0x200, 0x200, 0x200, 0x200].map(|size| place(&mut free, size, 0));
        free.free(addr(blocks[2]), Bytes::new(0x200), StreamId::DEFAULT);
        free.free(addr(blocks[0]), Bytes::new(0x200), StreamId::DEFAULT);
        assert_eq!(place(&mut free, 0x200, 0), blocks[2]);
    }
}
