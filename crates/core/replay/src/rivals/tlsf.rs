//! Two-level segregated fit.

use std::collections::BTreeMap;

use crate::rivals::carver::{Carver, FreeIndex};
use crate::rivals::per_stream::{PerStream, Policy, RivalDevice};

/// Two-level segregated fit. Free blocks are in lists, 32 for each octave of sizes. A request takes the block
/// that was freed last in the first list whose blocks are all large enough. Regions have at least 64 MiB.
pub type Tlsf = PerStream<TlsfPolicy>;

/// The policy of [`Tlsf`].
#[derive(Clone, Debug, Default)]
pub struct TlsfPolicy {
    carver: Carver<Lists>,
}

const REGION: u64 = 64 << 20;
const GRANULARITY: u64 = 2 << 20;
const SECOND_LEVEL_BITS: u32 = 5;

/// The list of a size: its octave, and the part of the octave.
fn list_of(size: u64) -> (u32, u64) {
    let octave = size.max(1).ilog2();
    (octave, (size >> octave.saturating_sub(SECOND_LEVEL_BITS)) & ((1 << SECOND_LEVEL_BITS) - 1))
}

#[derive(Clone, Debug, Default)]
struct Lists(BTreeMap<(u32, u64), Vec<(u64, u64)>>);

impl FreeIndex for Lists {
    fn insert(&mut self, addr: u64, size: u64) {
        self.0.entry(list_of(size)).or_default().push((addr, size));
    }

    fn remove(&mut self, addr: u64, size: u64) {
        let list = list_of(size);
        if let Some(blocks) = self.0.get_mut(&list) {
            blocks.retain(|(other, _)| *other != addr);
            if blocks.is_empty() {
                self.0.remove(&list);
            }
        }
    }

    fn find(&self, size: u64) -> Option<(u64, u64)> {
        // The size is rounded up to the first size of a list, so that any block of the list is large enough.
        let octave = size.max(1).ilog2();
        let step = 1_u64 << octave.saturating_sub(SECOND_LEVEL_BITS);
        let from = list_of(size.checked_add(step - 1)?);
        self.0.range(from..).next().and_then(|(_, blocks)| blocks.last().copied())
    }
}

impl Policy for TlsfPolicy {
    fn allocate(&mut self, device: &mut RivalDevice, size: u64) -> Option<(u64, u64)> {
        if let Some(found) = self.carver.allocate(size, |_| true) {
            return Some(found);
        }
        let octave = size.max(1).ilog2();
        let step = 1_u64 << octave.saturating_sub(SECOND_LEVEL_BITS);
        // The new region must be in the list that the request looks at.
        let needed = size.checked_next_multiple_of(step)?.checked_next_multiple_of(GRANULARITY)?;
        let region = needed.max(REGION);
        let (base, region) = match device.0.take(region) {
            Some(base) => (base, region),
            None => (device.0.take(needed)?, needed),
        };
        self.carver.add_region(base, region);
        self.carver.allocate(size, |_| true)
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
