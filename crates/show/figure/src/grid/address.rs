//! The axis of addresses: all addresses that were ever reserved, without the gaps between them.

use blockyard_record::{Bytes, DeviceAddr};

use super::RESERVED;
use crate::allocations::Allocations;
use crate::conversions::{bytes_f64, floor_count, round_bytes};

/// The axis of all addresses that were ever reserved, without gaps; converts between addresses and places on
/// the axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressMap {
    /// The ranges of reserved addresses, ascending: the first address, the size, and the place on the axis.
    bands: Vec<(u64, u64, u64)>,
    total: u64,
}

impl AddressMap {
    /// The map of a recording's reserved memory.
    #[must_use]
    pub fn new(allocations: &Allocations) -> Self {
        let mut ranges: Vec<(u64, u64)> =
            allocations.reserved().iter().map(|reserved| (reserved.addr, reserved.size)).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (addr, size) in ranges {
            let end = addr.saturating_add(size);
            match joined.last_mut() {
                Some((_, last)) if *last >= addr => *last = end.max(*last),
                _ => joined.push((addr, end)),
            }
        }
        let mut total: u64 = 0;
        let bands = joined
            .into_iter()
            .map(|(addr, end)| {
                let begin = total;
                let size = end.saturating_sub(addr);
                total = total.saturating_add(size);
                (addr, size, begin)
            })
            .collect();
        Self { bands, total }
    }

    /// The length of the axis: all bytes that were ever reserved.
    pub fn total(&self) -> Bytes {
        Bytes::new(self.total)
    }

    /// The place of an address on the axis; `None` for an address that was never reserved.
    pub fn offset(&self, addr: u64) -> Option<u64> {
        let after = self.bands.partition_point(|(base, ..)| *base <= addr);
        let (base, size, begin) = self.bands.get(after.checked_sub(1)?)?;
        let distance = addr.checked_sub(*base)?;
        (distance <= *size).then(|| begin.saturating_add(distance))
    }

    /// The address at a place of the axis.
    pub fn addr(&self, offset: f64) -> Option<DeviceAddr> {
        let offset = round_bytes(offset.max(0.0)).get();
        let after = self.bands.partition_point(|(_, _, begin)| *begin <= offset);
        let (base, size, begin) = self.bands.get(after.checked_sub(1)?)?;
        let behind = offset.checked_sub(*begin)?;
        (behind < *size).then(|| DeviceAddr::new(base.saturating_add(behind)))
    }

    /// The places on the axis at which addresses are left out.
    pub(super) fn gaps(&self) -> impl Iterator<Item = u64> + '_ {
        self.bands.iter().skip(1).map(|(_, _, begin)| *begin)
    }
}

/// Draws the reserved memory, then the allocations on it; an allocation lower than a cell covers no cell that
/// is drawn already.
pub(super) fn fill(
    cells: &mut [u32],
    allocations: &Allocations,
    map: &AddressMap,
    moment: u32,
    rows: &[u32],
    (low, per_cell): (f64, f64),
) {
    let place = |offset: u64| (bytes_f64(Bytes::new(offset)) - low) / per_cell;
    allocations.reserved_at(moment, |reserved| {
        let Some(offset) = map.offset(reserved.addr) else { return };
        let (from, to) = (place(offset), place(offset.saturating_add(reserved.size)));
        let (from, to) = (floor_count(from.round().max(0.0)), floor_count(to.round().max(0.0)));
        let length = cells.len();
        if let Some(cells) = cells.get_mut(from.min(length)..to.min(length)) {
            cells.fill(RESERVED);
        }
    });
    for row in rows {
        let (Some(addr), Some(size)) =
            (allocations.addrs().get(*row as usize), allocations.sizes().get(*row as usize))
        else {
            continue;
        };
        let Some(offset) = map.offset(*addr) else { continue };
        let (from, to) = (place(offset), place(offset.saturating_add(*size)));
        if to <= 0.0 || from >= crate::conversions::count_f64(cells.len()) {
            continue;
        }
        let first = floor_count(from.round().max(0.0));
        let last = floor_count(to.round().max(0.0)).min(cells.len());
        if last > first {
            if let Some(cells) = cells.get_mut(first..last) {
                cells.fill(*row);
            }
        } else if let Some(cell) = cells.get_mut(floor_count(from.max(0.0)))
            && *cell >= RESERVED
        {
            *cell = *row;
        }
    }
}
