//! The bytes of each class in each column of pixels of a strip: shares of bytes are drawn, and not blocks.
//!
//! Where blocks are narrower than a pixel, a mark for each would make stripes that come from the pixels and
//! not from the memory. Several columns together then show their mean.

use blockyard_record::{BlockSnapshot, BlockState, Bytes};

use crate::conversions::{bytes_f64, count_f64, count_px, floor_count};
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::role::BreakdownClass;
use crate::scene::Scene;

/// This many neighboring columns show their mean if more blocks begin in them than there are columns.
const MEAN_OF: usize = 8;

/// The columns of a strip.
pub(super) struct Coverage {
    columns: Vec<Column>,
    column_bytes: f64,
}

/// The bytes of one column of pixels, by class, and how many blocks begin in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    allocated: f64,
    pending: f64,
    cached: f64,
    blocks: usize,
}

impl Coverage {
    /// A strip of this number of columns, of `column_bytes` each.
    pub(super) fn new(columns: usize, column_bytes: f64) -> Self {
        Self { columns: vec![Column::default(); columns], column_bytes: column_bytes.max(1.0) }
    }

    /// Adds a block that begins after this many bytes of the strip.
    pub(super) fn add(&mut self, block: &BlockSnapshot, from: Bytes) {
        let (start, end) = (bytes_f64(from), bytes_f64(from.saturating_add(block.size)));
        let first = floor_count(start / self.column_bytes);
        if let Some(column) = self.columns.get_mut(first) {
            column.blocks += 1;
        }
        for (index, column) in self.columns.iter_mut().enumerate().skip(first) {
            let left = count_f64(index) * self.column_bytes;
            let bytes = end.min(left + self.column_bytes) - start.max(left);
            if bytes <= 0.0 {
                break;
            }
            match block.state {
                BlockState::Allocated => column.allocated += bytes,
                BlockState::PendingFree => column.pending += bytes,
                BlockState::Inactive => column.cached += bytes,
                BlockState::Unmapped => {}
            }
        }
    }

    /// Draws the strip, `height_px` high, from its upper left corner on.
    pub(super) fn draw(self, scene: &mut Scene, corner: Point, height_px: f32) {
        let columns: Vec<[usize; 3]> =
            self.means().iter().map(|column| column.heights_px(height_px)).collect();
        let mut left = 0;
        for run in columns.chunk_by(|one, other| one == other) {
            let mut bottom = corner.y_px + height_px;
            let classes = [BreakdownClass::Requested, BreakdownClass::Pending, BreakdownClass::Cached];
            let heights = run.first().copied().unwrap_or_default();
            for (class, height) in classes.into_iter().zip(heights).filter(|(_, height)| *height > 0) {
                let height = count_px(height);
                bottom -= height;
                let rect = Rect::new(corner.x_px + count_px(left), bottom, count_px(run.len()), height);
                scene.add_rect(rect, Fill::of(class), None);
            }
            left += run.len();
        }
    }

    /// The columns; where many blocks begin, each of several columns is their mean.
    fn means(self) -> Vec<Column> {
        let mut columns = self.columns;
        for several in columns.chunks_mut(MEAN_OF) {
            let blocks: usize = several.iter().map(|column| column.blocks).sum();
            if blocks <= several.len() {
                continue;
            }
            let sum = |of: fn(&Column) -> f64| several.iter().map(of).sum::<f64>();
            let mean = Column {
                allocated: sum(|column| column.allocated),
                pending: sum(|column| column.pending),
                cached: sum(|column| column.cached),
                blocks,
            };
            several.fill(mean);
        }
        columns
    }
}

impl Column {
    /// The heights of allocated, pending and cached bytes, in pixels that add up to the strip's height.
    fn heights_px(&self, height_px: f32) -> [usize; 3] {
        let whole = floor_count(f64::from(height_px));
        let sum = (self.allocated + self.pending + self.cached).max(1.0);
        // Each class with any bytes gets at least one pixel.
        let least = |bytes: f64| usize::from(bytes > 0.0);
        let height = |bytes: f64, most: usize| {
            floor_count((bytes / sum * f64::from(height_px)).round()).clamp(least(bytes), most)
        };
        let allocated = height(self.allocated, whole - least(self.pending) - least(self.cached));
        let pending = height(self.pending, whole - allocated - least(self.cached));
        let cached = if self.cached > 0.0 { whole - allocated - pending } else { 0 };
        [allocated, pending, cached]
    }
}

#[cfg(test)]
mod tests {
    use blockyard_record::{BlockId, DeviceAddr};

    use super::*;
    use crate::role::Role;
    use crate::scene::Mark;

    /// Blocks of `size` bytes, every second one in use, over a strip of 64 columns.
    fn drawn(size: u64) -> Vec<(Role, f32, f32)> {
        let mut coverage = Coverage::new(64, 1024.0);
        for index in 0..64 * 1024 / size {
            let state = if index % 2 == 0 { BlockState::Allocated } else { BlockState::Inactive };
            let block = BlockSnapshot {
                id: BlockId::new(u32::try_from(index).unwrap()),
                addr: DeviceAddr::new(index * size),
                size: Bytes::new(size),
                requested: Bytes::new(size),
                state,
                allocation: None,
                streams: Vec::new(),
            };
            coverage.add(&block, Bytes::new(index * size));
        }
        let mut scene = Scene::new(64.0, 10.0);
        coverage.draw(&mut scene, Point::new(0.0, 0.0), 10.0);
        let rect = |mark: &Mark| match mark {
            Mark::Rect { rect, fill, .. } => Some((fill.role, rect.width_px, rect.height_px)),
            _ => None,
        };
        scene.marks.iter().filter_map(rect).collect()
    }

    #[test]
    fn narrow_blocks_are_a_share_of_the_height_and_no_stripes() {
        // A third, and two thirds of a pixel: the shares of single columns beat with the pixels.
        for size in [341, 683, 512] {
            let marks = drawn(size);
            assert!(marks.iter().all(|(_, width, _)| *width >= 8.0), "{size}: {marks:?}");
            assert!(marks.iter().all(|(.., height)| (4.0..=6.0).contains(height)), "{size}: {marks:?}");
        }
    }

    #[test]
    fn wide_blocks_are_seen_one_by_one() {
        let marks = drawn(4096);
        assert_eq!(marks.len(), 16);
        let is_whole = |(_, width, height): &(Role, f32, f32)| (width * height - 40.0).abs() < 0.1;
        assert!(marks.iter().all(is_whole), "{marks:?}");
    }
}
