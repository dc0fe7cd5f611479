use super::{Cell, Grid};

/// The colors of a grid's cells, as red, green, blue and opacity.
pub struct GridPaint<'a> {
    /// Of reserved memory that nothing drawn holds.
    pub reserved: [u8; 4],
    /// Of allocations that are too small to be drawn one by one.
    pub small: [u8; 4],
    /// Of the figure's ground, which shows between neighbors.
    pub ground: [u8; 4],
    /// Of an allocation, by its row.
    pub of_row: &'a dyn Fn(usize) -> [u8; 4],
}

impl std::fmt::Debug for GridPaint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GridPaint").field("reserved", &self.reserved).finish_non_exhaustive()
    }
}

/// Neighbors are divided by a line where an allocation is at least so many cells high or wide.
const DIVIDED: usize = 5;

impl Grid {
    /// The cells as an image: four bytes a pixel, line by line from the top.
    #[must_use]
    pub fn pixels(&self, paint: &GridPaint<'_>) -> Vec<u8> {
        let (width, height) = self.size();
        let mut image = vec![0; width * height * 4];
        let mut put = |column: usize, row: usize, color: [u8; 4]| {
            let at = ((height - 1 - row) * width + column) * 4;
            if let Some(place) = image.get_mut(at..at + 4) {
                place.copy_from_slice(&color);
            }
        };
        for column in 0..width {
            let cells = self.column(column);
            let before = column.checked_sub(1).map_or(cells, |before| self.column(before));
            let behind = self.column((column + DIVIDED).min(width - 1));
            let mut row = 0;
            for run in cells.chunk_by(|one, other| one == other) {
                let cell = run.first().map_or(Cell::Nothing, |value| Cell::of(*value));
                let color = match cell {
                    Cell::Nothing => None,
                    Cell::Reserved => Some(paint.reserved),
                    Cell::Small => Some(paint.small),
                    Cell::Row(found) => Some((paint.of_row)(found)),
                };
                let is_row = matches!(cell, Cell::Row(_));
                if let Some(color) = color {
                    let edge = halfway(color, paint.ground);
                    for (place, value) in run.iter().enumerate() {
                        let at = row + place;
                        let is_lowest = is_row && place == 0 && run.len() >= DIVIDED;
                        let is_first =
                            is_row && before.get(at) != Some(value) && behind.get(at) == Some(value);
                        put(column, at, if is_lowest || is_first { edge } else { color });
                    }
                }
                row += run.len();
            }
        }
        image
    }

    fn column(&self, column: usize) -> &[u32] {
        let from = column * self.height;
        self.cells.get(from..from + self.height).unwrap_or_default()
    }
}

/// The color between two colors, nearer to the first.
fn halfway(color: [u8; 4], other: [u8; 4]) -> [u8; 4] {
    let mut mixed = color;
    for (part, other) in mixed.iter_mut().zip(other) {
        let sum = u16::from(*part) * 3 + u16::from(other) * 2;
        *part = u8::try_from(sum / 5).unwrap_or(u8::MAX);
    }
    mixed
}
