//! The colors of a grid's cells as pixels.

use std::ops::Range;

use super::{Cell, Grid};
use crate::conversions::count_px;
use crate::fill::Pattern;

/// The colors of a grid's cells, as red, green, blue and opacity.
pub struct GridPaint<'a> {
    /// The color of reserved memory that no drawn allocation holds, which is cached.
    pub reserved: [u8; 4],
    /// The color of the dots on cached memory, which every figure has.
    pub dots: [u8; 4],
    /// How many cells are as wide as a pixel of the page; 0 leaves the dots out.
    pub cells_per_px: f32,
    /// The color of the lines of [`SMALL_FILL`](super::SMALL_FILL), on the figure's ground.
    pub small: [u8; 4],
    /// The color of the figure's ground, which shows between neighbors.
    pub ground: [u8; 4],
    /// The color of the allocation of a row.
    pub of_row: &'a dyn Fn(usize) -> [u8; 4],
}

impl std::fmt::Debug for GridPaint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GridPaint").field("reserved", &self.reserved).finish_non_exhaustive()
    }
}

/// The part of the color of cached bytes in the color of reserved memory, which is the ground of allocations,
/// in percent.
pub const RESERVED_PERCENT: u32 = 22;

/// The part of its own color that an allocation keeps while others are chosen, in percent: a line stays the
/// same line.
pub const DIMMED_PERCENT: u32 = 35;

/// `percent` of the color, and the rest of the ground.
pub fn blended(color: [u8; 3], ground: [u8; 3], percent: u32) -> [u8; 3] {
    let percent = percent.min(100);
    let mut mixed = color;
    for (part, ground) in mixed.iter_mut().zip(ground) {
        let own = u32::from(*part).saturating_mul(percent);
        let sum = u32::from(ground).saturating_mul(100_u32.saturating_sub(percent)).saturating_add(own);
        *part = u8::try_from(sum / 100).unwrap_or(u8::MAX);
    }
    mixed
}

/// Neighbors are divided by a line where an allocation is at least this many cells high or wide.
const DIVIDED: usize = 5;

/// An allocation over another color is divided from it by a line where it is at least this many cells high.
const BORDERED: usize = 3;

/// How many cells lie between the beginnings of two lines of a hatch.
const HATCH: usize = 4;

/// This many columns are turned into lines of the image at a time.
const BAND: usize = 16;

impl Grid {
    /// The cells of some columns as an image: four bytes a pixel, line by line from the top.
    pub fn pixels(&self, paint: &GridPaint<'_>, columns: Range<usize>) -> Vec<u8> {
        let height = self.size().1;
        let (first, width) = (columns.start, columns.len());
        let mut image = vec![0; width * height * 4];
        // Some columns are painted at a time, since the pixels of one column of a wide image are far apart in
        // memory.
        let mut colors: Vec<[u8; 4]> = Vec::with_capacity(BAND * height);
        let dots = DottedColors {
            ground: paint.reserved,
            dot: paint.dots,
            cells_per_px: paint.cells_per_px,
            height,
        };
        for from in (0..width).step_by(BAND) {
            let band = from..(from + BAND).min(width);
            let count = band.len();
            colors.clear();
            for column in band {
                self.color_column(first + column, paint, &dots, &mut colors);
            }
            for (line, row) in image.chunks_exact_mut(width * 4).zip((0..height).rev()) {
                let Some(line) = line.get_mut(from * 4..(from + count) * 4) else { continue };
                for (index, pixel) in line.chunks_exact_mut(4).enumerate() {
                    if let Some(color) = colors.get(index * height + row) {
                        pixel.copy_from_slice(color);
                    }
                }
            }
        }
        image
    }

    /// Adds the colors of a column's cells, from the bottom to the top.
    fn color_column(
        &self,
        column: usize,
        paint: &GridPaint<'_>,
        dots: &DottedColors,
        colors: &mut Vec<[u8; 4]>,
    ) {
        let cells = self.column(column);
        let before = column.checked_sub(1).map_or(cells, |before| self.column(before));
        // The last columns have no column after them.
        let next = self.column(column + DIVIDED);
        let begun = colors.len();
        let mut below = None;
        for run in cells.chunk_by(|one, other| one == other) {
            let from = colors.len() - begun;
            let cell = run.first().map_or(Cell::Nothing, |value| Cell::of(*value));
            let color = match cell {
                Cell::Nothing => [0; 4],
                Cell::Reserved => paint.reserved,
                Cell::Small => paint.small,
                Cell::Row(found) => (paint.of_row)(found),
            };
            if cell == Cell::Reserved && dots.cells_per_px > 0.0 {
                colors.extend((from..from + run.len()).map(|row| dots.color(column, row)));
            } else if cell == Cell::Small {
                let is_line = |row: usize| (column + row) % HATCH < HATCH / 2;
                let line = |row| if is_line(row) { paint.small } else { paint.ground };
                colors.extend((from..from + run.len()).map(line));
            } else {
                colors.resize(colors.len() + run.len(), color);
            }
            // A line in the color of the ground divides two colors, and a pale line divides two allocations
            // of one color.
            let is_border = below.replace(color).is_some_and(|below| below != color) && run.len() >= BORDERED;
            if !matches!(cell, Cell::Row(_)) {
                continue;
            }
            let edge = halfway(color, paint.ground);
            let Some(added) = colors.get_mut(begun + from..) else { continue };
            for (index, (color, value)) in added.iter_mut().zip(run).enumerate() {
                let at = from + index;
                if index == 0 && is_border {
                    *color = paint.ground;
                    continue;
                }
                let is_lowest = index == 0 && run.len() >= DIVIDED;
                let is_first = before.get(at) != Some(value) && next.get(at) == Some(value);
                if is_lowest || is_first {
                    *color = edge;
                }
            }
        }
    }

    fn column(&self, column: usize) -> &[u32] {
        let from = column * self.height;
        self.cells.get(from..from + self.height).unwrap_or_default()
    }
}

/// The colors of cached memory with its dots, which are at the same pixels as in a picture of the same size
/// that a GPU draws.
struct DottedColors {
    ground: [u8; 4],
    dot: [u8; 4],
    cells_per_px: f32,
    /// How many cells a column has.
    height: usize,
}

impl DottedColors {
    fn color(&self, column: usize, row: usize) -> [u8; 4] {
        let px = |cell: usize| (count_px(cell) + 0.5) / self.cells_per_px;
        // Rows are counted from the bottom, and dots from the top.
        let from_top = self.height.saturating_sub(row + 1);
        let cover = Pattern::Dots.tile().dots_cover(px(column), px(from_top), 1.0 / self.cells_per_px);
        let mut mixed = self.ground;
        for (part, dot) in mixed.iter_mut().zip(self.dot) {
            let value = f32::from(*part) + (f32::from(dot) - f32::from(*part)) * cover;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
            let value = value.round() as u8;
            *part = value;
        }
        mixed
    }
}

/// The color between two colors, nearer to the first.
fn halfway(color: [u8; 4], other: [u8; 4]) -> [u8; 4] {
    let mut mixed = color;
    for (part, other) in mixed.iter_mut().zip(other) {
        let mean = (usize::from(*part) * 3 + usize::from(other) * 2) / 5;
        // The mean of bytes is a byte.
        *part = u8::try_from(mean).unwrap_or(u8::MAX);
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::super::{GridKind, GridView, NOTHING, RESERVED, SMALL};
    use super::*;
    use crate::allocations::Allocations;
    use crate::timeline::TimelineView;

    fn painted_with(of_row: &dyn Fn(usize) -> [u8; 4]) -> GridPaint<'_> {
        GridPaint {
            reserved: [1; 4],
            dots: [9; 4],
            cells_per_px: 0.0,
            small: [2; 4],
            ground: [255; 4],
            of_row,
        }
    }

    #[test]
    fn cached_memory_has_the_dots_that_it_has_in_every_figure() {
        let view = GridView { steps: TimelineView::fit(1), low: 0.0, high: 1.0 };
        let mut grid = Grid::new(&Allocations::default(), GridKind::Address, view, 24, 24);
        grid.cells = vec![RESERVED; 24 * 24];
        let of_row = |_: usize| [0; 4];
        for (cells_per_px, dot, between) in [(1.0, (1, 1), (4, 1)), (2.0, (2, 2), (8, 2))] {
            let image = grid.pixels(&GridPaint { cells_per_px, ..painted_with(&of_row) }, 0..24);
            let pixel = |(x, y): (usize, usize)| image[(y * 24 + x) * 4];
            assert_eq!((pixel(dot), pixel(between)), (9, 1), "{cells_per_px}");
        }
    }

    #[test]
    fn a_line_divides_two_colors() {
        let view = GridView { steps: TimelineView::fit(1), low: 0.0, high: 1.0 };
        let (width, height) = (4, 12);
        let mut grid = Grid::new(&Allocations::default(), GridKind::Stacked, view, width, height);
        let row = |at: usize| u32::from(at >= 4);
        grid.cells = (0..width).flat_map(|_| (0..height).map(row)).collect();
        let of_row = |row: usize| [if row == 0 { 10 } else { 200 }, 0, 0, 255];
        let paint = painted_with(&of_row);
        let image = grid.pixels(&paint, 0..width);
        let pixel = |at: usize| image[((height - 1 - at) * width + 1) * 4];
        assert_eq!([3, 4, 6].map(pixel), [10, 255, 200]);
    }

    #[test]
    fn allocations_that_are_too_small_are_hatched() {
        let view = GridView { steps: TimelineView::fit(1), low: 0.0, high: 1.0 };
        let mut grid = Grid::new(&Allocations::default(), GridKind::Stacked, view, 8, 8);
        grid.cells = vec![SMALL; 8 * 8];
        let of_row = |_: usize| [0; 4];
        let image = grid.pixels(&painted_with(&of_row), 0..8);
        let lines = image.chunks_exact(4).filter(|pixel| pixel[0] == 2).count();
        assert_eq!(lines, 32);
        assert_ne!(image[..8 * 4], image[8 * 4..2 * 8 * 4], "no line is level");
    }

    #[test]
    fn the_image_is_the_cells_from_the_top() {
        let view = GridView { steps: TimelineView::fit(1), low: 0.0, high: 1.0 };
        let (width, height) = (37, 3);
        let mut grid = Grid::new(&Allocations::default(), GridKind::Address, view, width, height);
        grid.cells =
            (0..width).flat_map(|column| [u32::try_from(column).unwrap(), RESERVED, NOTHING]).collect();
        let of_row = |row: usize| [u8::try_from(row).unwrap(), 0, 0, 255];
        let paint = painted_with(&of_row);
        let image = grid.pixels(&paint, 0..width);
        assert_eq!(grid.pixels(&paint, 20..22)[..8], image[80..88]);
        let pixel = |column: usize, line: usize| &image[(line * width + column) * 4..][..4];
        for column in 0..width {
            assert_eq!(pixel(column, 0), [0; 4]);
            assert_eq!(pixel(column, 1), [1; 4]);
            assert_eq!(pixel(column, 2), of_row(column));
        }
    }
}
