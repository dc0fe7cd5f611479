//! Best fit with coalescing, as TensorFlow has it.

use std::collections::BTreeSet;

use crate::rivals::carver::{Carver, FreeIndex};
use crate::rivals::per_stream::{PerStream, Policy, RivalDevice};

/// TensorFlow's allocator with `allow_growth`: best fit with coalescing in regions that double in size.
///
/// A block of less than twice the request is allocated whole, unless the remainder is 128 MiB or more.
/// Regions stay until the cache is emptied.
pub type Bfc = PerStream<BfcPolicy>;

/// The policy of [`Bfc`].
#[derive(Clone, Debug)]
pub struct BfcPolicy {
    carver: Carver<BestFit>,
    next_region: u64,
}

const FIRST_REGION: u64 = 2 << 20;
const MAX_REMAINDER: u64 = 128 << 20;

impl Default for BfcPolicy {
    fn default() -> Self {
        Self { carver: Carver::default(), next_region: FIRST_REGION }
    }
}

/// Free blocks by size, those of one size by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct BestFit(BTreeSet<(u64, u64)>);

impl FreeIndex for BestFit {
    fn insert(&mut self, addr: u64, size: u64) {
        self.0.insert((size, addr));
    }

    fn remove(&mut self, addr: u64, size: u64) {
        self.0.remove(&(size, addr));
    }

    fn find(&self, size: u64) -> Option<(u64, u64)> {
        self.0.range((size, 0)..).next().map(|(size, addr)| (*addr, *size))
    }
}

impl Policy for BfcPolicy {
    fn allocate(&mut self, device: &mut RivalDevice, size: u64) -> Option<(u64, u64)> {
        let should_split = |found: u64| found >= size.saturating_mul(2) || found - size >= MAX_REMAINDER;
        if let Some(found) = self.carver.allocate(size, should_split) {
            return Some(found);
        }
        // Doubling happens only when the request alone did not ask for more.
        let mut region = self.next_region;
        let mut has_grown = false;
        while region < size {
            region = region.checked_mul(2)?;
            has_grown = true;
        }
        let (base, taken) = match device.0.take(region) {
            Some(base) => (base, region),
            None => smaller(device, region, size)?,
        };
        if has_grown {
            self.next_region = region;
        } else {
            self.next_region = region.saturating_mul(2);
        }
        self.carver.add_region(base, taken);
        self.carver.allocate(size, should_split)
    }

    fn free(&mut self, _device: &mut RivalDevice, addr: u64, _size: u64) {
        self.carver.free(addr);
    }

    fn empty_cache(&mut self, device: &mut RivalDevice) {
        for size in self.carver.take_whole_regions() {
            device.0.give_back(size);
        }
    }
}

/// The free bytes of the device, less a tenth at each attempt, as TensorFlow requests them.
fn smaller(device: &mut RivalDevice, region: u64, size: u64) -> Option<(u64, u64)> {
    let mut region = region;
    loop {
        region = (region / 10).checked_mul(9)? / crate::rivals::ALIGNMENT * crate::rivals::ALIGNMENT;
        if region < size {
            return None;
        }
        if let Some(base) = device.0.take(region) {
            return Some((base, region));
        }
    }
}
