//! Stitching of virtual memory, as `GMLake` does.

use std::collections::BTreeMap;

use crate::rivals::bfc::BestFit;
use crate::rivals::carver::Carver;
use crate::rivals::per_stream::{PerStream, Policy, RivalDevice};

/// Stitching of virtual memory, the idea of `GMLake`. A request of 2 MiB or more gets pages of 2 MiB that
/// need not be adjacent: free pages are mapped side by side, and only missing pages are allocated. Smaller
/// requests are cut best fit out of segments of 2 MiB.
///
/// A device call allocates memory of any size, maps pages that were not adjacent before, or releases memory.
pub type Stitching = PerStream<StitchingPolicy>;

/// The policy of [`Stitching`].
#[derive(Clone, Debug, Default)]
pub struct StitchingPolicy {
    small: Carver<BestFit>,
    /// The number of pages of each mapping in use, by address.
    mapped: BTreeMap<u64, u64>,
    /// The addresses of free mappings, by their number of pages.
    free: BTreeMap<u64, Vec<u64>>,
}

const PAGE: u64 = 2 << 20;

impl StitchingPolicy {
    fn pop(&mut self, pages: u64) -> Option<u64> {
        let list = self.free.get_mut(&pages)?;
        let addr = list.pop();
        if list.is_empty() {
            self.free.remove(&pages);
        }
        addr
    }

    fn large(&mut self, device: &mut RivalDevice, pages: u64) -> Option<u64> {
        if let Some(addr) = self.pop(pages) {
            self.mapped.insert(addr, pages);
            return Some(addr);
        }
        // The smallest mapping that has enough pages is split, which maps nothing; otherwise the largest
        // mappings are joined.
        if let Some(larger) = self.free.range(pages..).next().map(|(larger, _)| *larger) {
            let addr = self.pop(larger)?;
            self.free.entry(larger - pages).or_default().push(addr + pages * PAGE);
            self.mapped.insert(addr, pages);
            return Some(addr);
        }
        let cached: u64 = self.free.iter().map(|(pages, list)| pages * list.len() as u64).sum();
        let missing = pages.saturating_sub(cached);
        if missing > 0 {
            device.0.take(missing.checked_mul(PAGE)?)?;
        }
        let mut wanted = pages - missing;
        let has_parts = wanted > 0;
        while wanted > 0 {
            let largest = *self.free.keys().next_back()?;
            let addr = self.pop(largest)?;
            if largest > wanted {
                self.free.entry(largest - wanted).or_default().push(addr + wanted * PAGE);
            }
            wanted = wanted.saturating_sub(largest);
        }
        if has_parts {
            device.0.usage.device_allocs += 1;
        }
        let addr = device.0.addresses(pages.checked_mul(PAGE)?)?;
        self.mapped.insert(addr, pages);
        Some(addr)
    }
}

impl Policy for StitchingPolicy {
    fn allocate(&mut self, device: &mut RivalDevice, size: u64) -> Option<(u64, u64)> {
        if size >= PAGE {
            let pages = size.div_ceil(PAGE);
            return self.large(device, pages).map(|addr| (addr, pages * PAGE));
        }
        if let Some(found) = self.small.allocate(size, |_| true) {
            return Some(found);
        }
        let base = device.0.take(PAGE)?;
        self.small.add_region(base, PAGE);
        self.small.allocate(size, |_| true)
    }

    fn free(&mut self, _device: &mut RivalDevice, addr: u64, _size: u64) {
        match self.mapped.remove(&addr) {
            Some(pages) => self.free.entry(pages).or_default().push(addr),
            None => {
                self.small.free(addr);
            }
        }
    }

    fn empty_cache(&mut self, device: &mut RivalDevice) {
        for (pages, list) in std::mem::take(&mut self.free) {
            for _ in list {
                device.0.give_back(pages * PAGE);
            }
        }
        for size in self.small.take_whole_regions() {
            device.0.give_back(size);
        }
    }
}
