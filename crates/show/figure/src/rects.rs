//! Allocations at their addresses as columns of rectangles, for a renderer on a GPU.
//!
//! The rectangles are made once for a recording; a frame only says which part is shown. Rectangles are
//! ordered by size, the largest first, so that the rectangles that are high enough to be seen at a zoom are a
//! prefix.

use std::ops::Range;

use blockyard_record::Bytes;
use blockyard_rules::size::MIN_BLOCK_SIZE;

use crate::allocations::{Allocations, NEVER, size_class};
use crate::coloring::Groups;
use crate::conversions::{bytes_f64, floor_count, step_u32};
use crate::grid::AddressMap;

/// How many bytes one unit of a rectangle's height is: the smallest block of PyTorch's allocator.
pub const RECT_UNIT: u64 = MIN_BLOCK_SIZE.get();

/// How many words the geometry of one rectangle has: the moments at which it begins and ends, its lower and
/// its upper edge in units of [`RECT_UNIT`].
pub const RECT_WORDS: usize = 4;

/// This many rectangles are drawn although some of them are lower than half a pixel.
const MAX_RECTS: usize = 1_000_000;

/// The color of reserved memory.
pub const RESERVED_COLOR: u32 = 30;

/// The bit of a color that says that the allocation is chosen.
pub const PICKED_BIT: u32 = 1 << 8;

/// The end of a rectangle whose allocation is not freed before the recording ends.
pub const RECT_OPEN_END: u32 = NEVER;

/// All rectangles of a recording, without their colors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rects {
    geometry: Vec<u32>,
    /// The row of each rectangle after those of reserved memory.
    rows: Vec<u32>,
    /// The rectangles of reserved memory, which come first.
    reserved: usize,
    /// For each size class, the largest first: the class, and how many rectangles there are up to its end.
    class_ends: Vec<(usize, usize)>,
}

impl Rects {
    /// The reserved memory and the allocations of a recording.
    #[must_use]
    pub fn new(allocations: &Allocations, map: &AddressMap) -> Self {
        let mut rects = Self::default();
        for reserved in allocations.reserved() {
            rects.push(map, [reserved.start, reserved.end], reserved.addr, reserved.size);
        }
        rects.reserved = rects.geometry.len() / RECT_WORDS;
        let mut rows: Vec<u32> = (0..step_u32(allocations.len())).collect();
        let class = |row: &u32| allocations.sizes().get(*row as usize).map_or(0, |size| size_class(*size));
        rows.sort_by_key(|row| std::cmp::Reverse(class(row)));
        for of_class in rows.chunk_by(|one, other| class(one) == class(other)) {
            for row in of_class {
                let place = *row as usize;
                let of = |column: &[u32]| column.get(place).copied().unwrap_or(NEVER);
                let moments = [of(allocations.starts()), of(allocations.ends())];
                let addr = allocations.addrs().get(place).copied().unwrap_or_default();
                let size = allocations.sizes().get(place).copied().unwrap_or_default();
                if rects.push(map, moments, addr, size) {
                    rects.rows.push(*row);
                }
            }
            let end = rects.len();
            rects.class_ends.extend(of_class.first().map(|row| (class(row), end)));
        }
        rects
    }

    /// Adds a rectangle, unless its address is on no axis.
    fn push(&mut self, map: &AddressMap, moments: [u32; 2], addr: u64, size: u64) -> bool {
        let Some(offset) = map.offset(addr) else { return false };
        let unit = |bytes: u64| u32::try_from(bytes / RECT_UNIT).unwrap_or(u32::MAX);
        let end = offset.saturating_add(size);
        self.geometry.extend(moments);
        self.geometry.extend([unit(offset), unit(end)]);
        true
    }

    /// How many rectangles there are.
    pub fn len(&self) -> usize {
        self.geometry.len() / RECT_WORDS
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.geometry.is_empty()
    }

    /// [`RECT_WORDS`] words for each rectangle.
    pub fn geometry(&self) -> &[u32] {
        &self.geometry
    }

    /// A word for each rectangle: the place of its color in the legend, and [`PICKED_BIT`].
    pub fn colors(&self, groups: &Groups, is_picked: impl Fn(usize) -> bool) -> Vec<u32> {
        let of_row = |row: &u32| {
            let row = *row as usize;
            step_u32(groups.place(row)) | if is_picked(row) { PICKED_BIT } else { 0 }
        };
        let reserved = std::iter::repeat_n(RESERVED_COLOR, self.reserved);
        reserved.chain(self.rows.iter().map(of_row)).collect()
    }

    /// The rectangles that are drawn where a pixel is this many bytes, one range over the other: reserved
    /// memory, allocations lower than half a pixel while all together are at most a million, and the
    /// allocations that can be seen.
    pub fn ranges(&self, bytes_per_px: f64) -> [Range<usize>; 3] {
        let visible = self.visible(bytes_per_px);
        let ends = self.class_ends.iter().map(|(_, end)| *end);
        let drawn = ends.take_while(|end| *end <= MAX_RECTS).last().unwrap_or(0).max(visible);
        [0..self.reserved, visible..drawn, self.reserved..visible]
    }

    /// How many of the rectangles, from the first, are at least half a pixel high where a pixel is this many
    /// bytes.
    fn visible(&self, bytes_per_px: f64) -> usize {
        let half = Bytes::new(floor_count((bytes_per_px / 2.0).max(0.0)) as u64);
        let least = size_class(half.get());
        let is_visible = |(class, _): &(usize, usize)| *class >= least || bytes_f64(half) < 1.0;
        let classes = self.class_ends.partition_point(is_visible);
        match classes.checked_sub(1).and_then(|last| self.class_ends.get(last)) {
            Some((_, end)) => *end,
            None => self.reserved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_low_to_be_seen_is_not_among_the_visible() {
        let rects = Rects {
            geometry: vec![0; 6 * RECT_WORDS],
            rows: vec![0, 1, 2, 3],
            reserved: 2,
            class_ends: vec![(21, 3), (10, 5), (9, 6)],
        };
        assert_eq!(rects.visible(1.0), 6);
        assert_eq!(rects.visible(1024.0), 6);
        assert_eq!(rects.visible(2048.0), 5);
        assert_eq!(rects.visible(4e6), 3);
        assert_eq!(rects.visible(9e6), 2);
        assert_eq!(rects.ranges(4e6), [0..2, 3..6, 2..3]);
        assert_eq!(rects.ranges(1.0), [0..2, 6..6, 2..6]);
    }

    #[test]
    fn reserved_memory_has_a_color_of_its_own() {
        let rects = Rects {
            geometry: vec![0; 3 * RECT_WORDS],
            rows: vec![7, 9],
            reserved: 1,
            class_ends: vec![(9, 3)],
        };
        assert_eq!(rects.colors(&Groups::default(), |row| row == 9), [RESERVED_COLOR, 0, PICKED_BIT]);
    }
}
