//! Lifetimes of allocations as a grid of cells, one for each pixel: stacked, or at their addresses.
//!
//! A grid costs pixels, not allocations. Each column shows one true moment, the one with the most active
//! bytes among those that the column covers, so that peaks are never lost. An index finds the allocations of
//! that moment that are large enough to be seen; the others are counted. The cell under the pointer says at
//! once which allocation it shows.

mod address;
mod draw;
mod names;
mod paint;

pub use self::address::AddressMap;
pub use self::draw::{GridCursor, SMALL_FILL, grid_bounds, grid_cursor, grid_plot, grid_scene};
pub use self::paint::{DIMMED_PERCENT, GridPaint, RESERVED_PERCENT, blended};

use std::sync::Arc;

use blockyard_record::Bytes;

use crate::allocations::{Allocations, NEVER, size_class};
use crate::coloring::Groups;
use crate::conversions::{bytes_f64, count_f64, floor_count, round_bytes, step_u32};
use crate::rects::RECT_UNIT;
use crate::timeline::{Clock, TimelineView};

/// The meaning of the vertical axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GridKind {
    /// Each allocation at its true address; addresses that are never reserved are left out.
    Address,
    /// Allocations on top of each other, the oldest at the bottom, so that the top is the active bytes. A
    /// grid [`Grid::by_groups`] has the groups on top of each other.
    #[default]
    Stacked,
}

/// Which part of a figure a grid shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridView {
    /// The steps from the left edge to the right edge.
    pub steps: TimelineView,
    /// The byte at the bottom.
    pub low: f64,
    /// The byte at the top.
    pub high: f64,
}

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Nothing: memory that is not reserved, or above the stack.
    Nothing,
    /// Reserved memory that no allocation drawn here holds.
    Reserved,
    /// Allocations that are too small to be drawn one by one.
    Small,
    /// The allocation of this row.
    Row(usize),
}

/// Allocations that a column does not show one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiddenAllocations {
    /// The number of hidden allocations.
    pub count: usize,
    /// The sizes of the hidden allocations, added up.
    pub bytes: Bytes,
}

/// A drawn figure: which allocation each pixel shows.
#[derive(Clone, Debug)]
pub struct Grid {
    kind: GridKind,
    view: GridView,
    width: usize,
    height: usize,
    /// Column by column, each from the bottom to the top.
    cells: Vec<u32>,
    /// The moment that each column shows.
    moments: Vec<u32>,
    hidden: Vec<HiddenAllocations>,
    /// Columns are drawn in the order of a coarse grid first; this is the place of the next column in that
    /// order.
    next: usize,
    smallest_class: usize,
    rows: Vec<u32>,
    /// The place of each row in a stack; rows with the same place keep the order of their numbers.
    places: Arc<[u8]>,
}

const NOTHING: u32 = u32::MAX;
const RESERVED: u32 = u32::MAX - 1;
const SMALL: u32 = u32::MAX - 2;

/// The first columns that are drawn are this many columns apart; those between repeat them until their turn
/// comes.
const COARSEST: usize = 8;

/// The most visits to allocations for a whole grid, which bounds the cost of a frame where allocations are
/// smaller than a pixel.
const MAX_VISITS: usize = 400_000;

impl Grid {
    /// A grid of `width` by `height` cells, of which none is drawn yet.
    #[must_use]
    pub fn new(
        allocations: &Allocations,
        kind: GridKind,
        view: GridView,
        width: usize,
        height: usize,
    ) -> Self {
        Self::on_axis(allocations, kind, view, None, (width, height))
    }

    /// The same grid on an axis of time, if `clock` is known.
    #[must_use]
    pub fn on_axis(
        allocations: &Allocations,
        kind: GridKind,
        view: GridView,
        clock: Option<&Clock>,
        (width, height): (usize, usize),
    ) -> Self {
        let (width, height) = (width.clamp(1, 16_384), height.clamp(1, 16_384));
        let mut grid = Self {
            kind,
            view,
            width,
            height,
            cells: vec![NOTHING; width * height],
            moments: Vec::new(),
            hidden: vec![HiddenAllocations::default(); width],
            next: 0,
            smallest_class: 0,
            rows: Vec::new(),
            places: Arc::default(),
        };
        grid.moments =
            (0..width).map(|column| step_u32(grid.moment_of(allocations, clock, column))).collect();
        grid.smallest_class = grid.smallest_class_of(allocations);
        grid
    }

    /// The grid with stacks ordered by the groups of allocations, so that each group is one area.
    #[must_use]
    pub fn by_groups(mut self, groups: &Groups) -> Self {
        self.places = groups.places();
        self
    }

    /// Draws up to `columns` more columns. Returns whether there are more.
    pub fn draw(&mut self, allocations: &Allocations, map: &AddressMap, columns: usize) -> bool {
        for _ in 0..columns {
            let Some((column, repeat)) = self.turn(self.next) else { return false };
            self.next += 1;
            // The nearest drawn column on the left: `repeat` columns away.
            let left = column.checked_sub(repeat).filter(|left| self.moments[*left] == self.moments[column]);
            match left {
                Some(left) => self.repeat(left, column),
                None => self.draw_column(allocations, map, column),
            }
            for other in column + 1..(column + repeat).min(self.width) {
                self.repeat(column, other);
            }
        }
        self.turn(self.next).is_some()
    }

    /// Gives the column `to` the cells of the column `from`.
    fn repeat(&mut self, from: usize, to: usize) {
        let cells = from * self.height;
        self.cells.copy_within(cells..cells + self.height, to * self.height);
        self.hidden[to] = self.hidden[from];
    }

    /// The grid with every column drawn.
    #[must_use]
    pub fn drawn(mut self, allocations: &Allocations, map: &AddressMap) -> Self {
        while self.draw(allocations, map, usize::MAX) {}
        self
    }

    /// Whether every column shows its own moment.
    pub fn is_done(&self) -> bool {
        self.turn(self.next).is_none()
    }

    /// Whether every column shows at least the cells of a column near it.
    pub fn is_covered(&self) -> bool {
        self.next >= self.width.div_ceil(COARSEST)
    }

    /// The column with this index in the order of drawing, and how many columns show its cells until their
    /// own turn. `None` after the last column.
    fn turn(&self, index: usize) -> Option<(usize, usize)> {
        let coarse = self.width.div_ceil(COARSEST);
        if index < coarse {
            return Some((index * COARSEST, COARSEST));
        }
        // After the coarse columns, the columns in the middle between two drawn ones have their turns.
        let mut before = coarse;
        let mut apart = COARSEST;
        while apart > 1 {
            let half = apart / 2;
            let count = self.width.saturating_sub(half).div_ceil(apart);
            if index < before + count {
                return Some((half + (index - before) * apart, half));
            }
            before += count;
            apart = half;
        }
        None
    }

    /// The meaning of the vertical axis of this grid.
    pub fn kind(&self) -> GridKind {
        self.kind
    }

    /// The part that is shown.
    pub fn view(&self) -> &GridView {
        &self.view
    }

    /// The number of cells from left to right, and from bottom to top.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// The content of a cell; `row` counts from the bottom. [`Cell::Nothing`] outside of the grid.
    pub fn cell(&self, column: usize, row: usize) -> Cell {
        if column >= self.width || row >= self.height {
            return Cell::Nothing;
        }
        match self.cells.get(column * self.height + row) {
            Some(&RESERVED) => Cell::Reserved,
            Some(&SMALL) => Cell::Small,
            None | Some(&NOTHING) => Cell::Nothing,
            Some(row) => Cell::Row(*row as usize),
        }
    }

    /// The moment that the column shows, as a number of complete steps.
    pub fn moment(&self, column: usize) -> Option<usize> {
        self.moments.get(column).map(|moment| *moment as usize)
    }

    /// The allocations that the column does not show one by one.
    pub fn hidden(&self, column: usize) -> HiddenAllocations {
        self.hidden.get(column).copied().unwrap_or_default()
    }

    /// The rows of the allocations that the column does not show one by one, ascending.
    pub fn hidden_rows(&self, allocations: &Allocations, column: usize) -> Vec<usize> {
        let Some(moment) = self.moments.get(column) else { return Vec::new() };
        let mut active = Vec::new();
        allocations.active_at(*moment, 0, &mut active);
        let is_hidden = |row: &usize| {
            allocations.sizes().get(*row).is_some_and(|size| size_class(*size) < self.smallest_class)
        };
        let mut rows: Vec<usize> = active.into_iter().map(|row| row as usize).filter(is_hidden).collect();
        rows.sort_unstable();
        rows
    }

    /// The hidden allocations of the column that hides the most bytes.
    pub fn most_hidden(&self) -> HiddenAllocations {
        self.hidden.iter().copied().max_by_key(|hidden| hidden.bytes).unwrap_or_default()
    }

    /// How many bytes a cell is high.
    fn bytes_per_cell(&self) -> f64 {
        ((self.view.high - self.view.low) / count_f64(self.height)).max(f64::MIN_POSITIVE)
    }

    fn moment_of(&self, allocations: &Allocations, clock: Option<&Clock>, column: usize) -> usize {
        let steps = &self.view.steps;
        let edge = |column: usize| {
            let share = count_f64(column) / count_f64(self.width);
            match clock {
                Some(clock) => clock.position_at(steps, share),
                None => steps.first_step + (steps.last_step - steps.first_step) * share,
            }
        };
        let last = allocations.moments().saturating_sub(1);
        let from = floor_count(edge(column).max(0.0)).min(last);
        let to = floor_count(edge(column + 1).max(0.0)).max(from + 1);
        allocations.busiest(from, to)
    }

    /// The smallest size class that columns look through: all classes at least as high as half a cell, and
    /// smaller classes while they have few allocations.
    fn smallest_class_of(&self, allocations: &Allocations) -> usize {
        let needed = size_class(round_bytes(self.bytes_per_cell() / 2.0).get());
        let mut class = needed.min(allocations.class_count());
        // Columns of one moment are drawn once.
        let mut moments = self.moments.clone();
        moments.dedup();
        let columns = moments.len();
        let sampled: Vec<u32> = moments.into_iter().step_by((columns / 12).max(1)).collect();
        let mut visits = 0;
        while class > 0 {
            let most = sampled.iter().map(|moment| allocations.active_count(*moment, class - 1)).max();
            visits += most.unwrap_or(0) * columns;
            if visits > MAX_VISITS {
                break;
            }
            class -= 1;
        }
        class
    }

    fn draw_column(&mut self, allocations: &Allocations, map: &AddressMap, column: usize) {
        let Some(moment) = self.moments.get(column).copied() else { return };
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        allocations.active_at(moment, self.smallest_class, &mut rows);
        let mut drawn: u64 = 0;
        for row in &rows {
            drawn = drawn.saturating_add(allocations.sizes().get(*row as usize).copied().unwrap_or(0));
        }
        let smaller = 0..self.smallest_class;
        let count = smaller.map(|class| allocations.active_count(moment, class)).sum();
        let from = column * self.height;
        let view = (self.view.low, self.bytes_per_cell());
        let Some(cells) = self.cells.get_mut(from..from + self.height) else { return };
        cells.fill(NOTHING);
        let active = allocations.active_bytes(moment as usize).get();
        let left = active.saturating_sub(drawn);
        match self.kind {
            GridKind::Stacked => {
                let places = &self.places;
                rows.sort_unstable_by_key(|row| (places.get(*row as usize).copied().unwrap_or(0), *row));
                stack(cells, allocations, &rows, left, view);
            }
            GridKind::Address => address::fill(cells, allocations, map, moment, &rows, view),
        }
        if let Some(hidden) = self.hidden.get_mut(column) {
            *hidden = HiddenAllocations { count, bytes: Bytes::new(if count == 0 { 0 } else { left }) };
        }
        self.rows = rows;
    }
}

/// Puts the rows on top of each other, and above them the `small` bytes of smaller allocations.
fn stack(
    cells: &mut [u32],
    allocations: &Allocations,
    rows: &[u32],
    small: u64,
    (low, per_cell): (f64, f64),
) {
    // A cell shows the allocation in its middle.
    let edge = |bytes: u64| floor_count(((bytes_f64(Bytes::new(bytes)) - low) / per_cell + 0.5).max(0.0));
    let mut height: u64 = 0;
    let parts = rows.iter().map(|row| (*row, allocations.sizes().get(*row as usize).copied().unwrap_or(0)));
    for (value, size) in parts.chain(std::iter::once((SMALL, small))) {
        let from = edge(height).min(cells.len());
        height = height.saturating_add(size);
        let to = edge(height).min(cells.len());
        if let Some(cells) = cells.get_mut(from..to) {
            cells.fill(value);
        }
        if from >= cells.len() {
            return;
        }
    }
}

impl Allocations {
    /// The active bytes at a moment; sums above 2 TiB are cut off.
    pub fn active_bytes(&self, moment: usize) -> Bytes {
        Bytes::new(self.active.get(moment).map_or(0, |units| u64::from(*units) * RECT_UNIT))
    }

    /// The most active bytes at any moment of a range of steps.
    pub fn most_active(&self, steps: &TimelineView) -> Bytes {
        let from = floor_count(steps.first_step.max(0.0));
        let to = floor_count(steps.last_step.ceil().max(0.0)).max(from + 1);
        Bytes::new(u64::from(self.most_units(from, to)) * RECT_UNIT)
    }

    /// Whether the allocation is active at the moment.
    pub fn is_active(&self, row: usize, moment: usize) -> bool {
        let moment = step_u32(moment);
        let start = self.starts().get(row).copied().unwrap_or(NEVER);
        start <= moment && self.ends().get(row).copied().unwrap_or(0) > moment
    }
}
