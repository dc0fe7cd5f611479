//! Buddies: blocks are powers of two.

use std::collections::{BTreeMap, BTreeSet};

use crate::rivals::ALIGNMENT;
use crate::rivals::per_stream::{PerStream, Policy, RivalDevice};

/// Buddies: every block is a power of two, halved until it fits, and merged with its other half when both are
/// free. Regions have at least 64 MiB.
pub type Buddy = PerStream<BuddyPolicy>;

/// The policy of [`Buddy`].
#[derive(Clone, Debug, Default)]
pub struct BuddyPolicy {
    /// The order of each region (a region has 2^order bytes), by the address of its first byte.
    regions: BTreeMap<u64, u32>,
    /// The free blocks of each order, by address.
    free: BTreeMap<u32, BTreeSet<u64>>,
}

const REGION_ORDER: u32 = 26;

impl BuddyPolicy {
    fn take_free(&mut self, order: u32) -> Option<u64> {
        let (found, addr) =
            self.free.range(order..).find_map(|(found, addrs)| Some((*found, *addrs.first()?)))?;
        self.remove(found, addr);
        for half in (order..found).rev() {
            self.free.entry(half).or_default().insert(addr + (1 << half));
        }
        Some(addr)
    }

    fn remove(&mut self, order: u32, addr: u64) -> bool {
        let Some(addrs) = self.free.get_mut(&order) else { return false };
        let was_there = addrs.remove(&addr);
        if addrs.is_empty() {
            self.free.remove(&order);
        }
        was_there
    }
}

impl Policy for BuddyPolicy {
    fn allocate(&mut self, device: &mut RivalDevice, size: u64) -> Option<(u64, u64)> {
        let size = size.max(ALIGNMENT).checked_next_power_of_two()?;
        let order = size.ilog2();
        if let Some(addr) = self.take_free(order) {
            return Some((addr, size));
        }
        let (base, region) = match device.0.take(1 << order.max(REGION_ORDER)) {
            Some(base) => (base, order.max(REGION_ORDER)),
            None => (device.0.take(size)?, order),
        };
        self.regions.insert(base, region);
        self.free.entry(region).or_default().insert(base);
        self.take_free(order).map(|addr| (addr, size))
    }

    fn free(&mut self, _device: &mut RivalDevice, addr: u64, size: u64) {
        let Some((base, region)) =
            self.regions.range(..=addr).next_back().map(|(base, order)| (*base, *order))
        else {
            return;
        };
        let (mut addr, mut order) = (addr, size.max(1).ilog2());
        while order < region {
            let buddy = base + ((addr - base) ^ (1 << order));
            if !self.remove(order, buddy) {
                break;
            }
            addr = addr.min(buddy);
            order += 1;
        }
        self.free.entry(order).or_default().insert(addr);
    }

    fn empty_cache(&mut self, device: &mut RivalDevice) {
        let regions: Vec<(u64, u32)> = self.regions.iter().map(|(base, order)| (*base, *order)).collect();
        for (base, order) in regions {
            if self.remove(order, base) {
                self.regions.remove(&base);
                device.0.give_back(1 << order);
            }
        }
    }
}
