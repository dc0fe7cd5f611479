//! The scene over the cells of a grid: axes, the moment, names.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, Recording};

use super::{AddressMap, Cell, Grid, GridKind, GridView};
use crate::coloring::Groups;
use crate::conversions::{ByteUnit, bytes_f64, count_px, floor_count, px, round_bytes};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect, Size};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Scene, TextStyle};
use crate::timeline::{
    Clock, Series, TimelineView, XScale, draw_outlines, draw_x_axis, plot_sides, plot_top, tick_step,
    timeline_cursor, timeline_range,
};

/// Allocations that are too small to be drawn one by one: hatched, so that they are neither of the greys of a
/// group.
pub const SMALL_FILL: Fill =
    Fill { role: Role::Category(Role::CATEGORY_COLORS - 1), pattern: Pattern::Hatch };

/// The rectangle of the cells in a figure of this size. Its left and right edges are those of a timeline's
/// plot, so that both figures can be drawn below each other.
pub fn grid_plot(size: Size) -> Rect {
    let size = size.tame();
    let (left, width_px) = plot_sides(size);
    let top = plot_top(size);
    Rect::new(left, top, width_px, (size.height_px - top - 22.0).max(1.0))
}

/// The axes around the cells of a figure of this size.
pub fn grid_scene(
    kind: GridKind,
    view: &GridView,
    clock: Option<&Clock>,
    map: &AddressMap,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = grid_plot(size);
    draw_x_axis(&mut scene, &XScale::by(clock, view.steps, plot), &view.steps, &plot);
    let (low, high) = (view.low, view.high);
    let y = |bytes: f64| plot.bottom_px() - px((bytes - low) / (high - low).max(1.0)) * plot.height_px;
    let most = (plot.height_px / 28.0).clamp(1.0, 12.0);
    let most = u64::try_from(floor_count(f64::from(most))).unwrap_or(1);
    let step = tick_step(round_bytes(high - low), most);
    let unit = ByteUnit::of_ticks(step, round_bytes(high));
    let style = TextStyle::new(Role::TextMuted, 11.0).anchored(Anchor::End);
    let name = match kind {
        GridKind::Stacked => unit.name().to_owned(),
        GridKind::Address => format!("addresses, {}", unit.name()),
    };
    let words = TextStyle { anchor: Anchor::Start, ..style };
    scene.add_text(Point::new(2.0, plot.y_px - 8.0), name, words);
    let mut tick = Bytes::new(round_bytes(low).get().next_multiple_of(step.get()));
    while bytes_f64(tick) <= high {
        let at = y(bytes_f64(tick)).round() - 0.5;
        scene.add_hairline(Point::new(plot.x_px - 4.0, at), Point::new(plot.x_px, at), Role::TextMuted);
        scene.add_text(Point::new(plot.x_px - 7.0, at + 4.0), unit.tick(tick, step), style);
        match tick.checked_add(step) {
            Some(next) => tick = next,
            None => break,
        }
    }
    if kind == GridKind::Address {
        draw_gaps(&mut scene, map, &plot, low..high);
    }
    scene
}

/// The bounds of stacked allocations, for drawing over a grid of the same view and size: the reserved bytes, the
/// limit of the process and the capacity, the requests that failed, and both peaks.
pub fn grid_bounds(
    series: &Series,
    recording: &Recording,
    view: &GridView,
    clock: Option<&Clock>,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let bytes = (round_bytes(view.low), round_bytes(view.high));
    draw_outlines(&mut scene, (series, recording), &view.steps, clock, grid_plot(size), bytes);
    scene
}

/// The cursors and marks that are drawn over a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GridCursor {
    /// The moment of the cursor.
    pub moment: usize,
    /// The first and the last moment of the range that the reader has brushed.
    pub range: Option<(usize, usize)>,
    /// Where the pointer is, for lines across the figure.
    pub pointer: Option<Point>,
}

/// The cursors, for drawing over `base`, a grid's axes and bounds of the same view.
pub fn grid_cursor(
    recording: &Recording,
    base: &Scene,
    view: &TimelineView,
    clock: Option<&Clock>,
    cursor: &GridCursor,
) -> Scene {
    let plot = grid_plot(Size::new(base.width_px, base.height_px));
    let mut scene = timeline_cursor(Some(recording), base, &plot, view, clock, cursor.moment);
    if let Some(range) = cursor.range {
        timeline_range(&mut scene, view, clock, range, &plot);
    }
    if let Some(at) = cursor.pointer.filter(|at| plot.contains(at.x_px, at.y_px)) {
        let (x, y) = (at.x_px.floor() + 0.5, at.y_px.floor() + 0.5);
        scene.add_line(
            Point::new(x, plot.y_px),
            Point::new(x, plot.bottom_px()),
            Role::Hover,
            Dash::Dotted,
            1.0,
        );
        scene.add_line(
            Point::new(plot.x_px, y),
            Point::new(plot.right_px(), y),
            Role::Hover,
            Dash::Dotted,
            1.0,
        );
    }
    scene
}

/// A short line where addresses are left out, if there are few enough to see each.
fn draw_gaps(scene: &mut Scene, map: &AddressMap, plot: &Rect, shown: std::ops::Range<f64>) {
    let gaps = map.gaps().map(|gap| bytes_f64(Bytes::new(gap))).filter(|gap| shown.contains(gap));
    let gaps: Vec<f64> = gaps.collect();
    if count_px(gaps.len()) * 6.0 > plot.height_px {
        return;
    }
    for gap in gaps {
        let share = (gap - shown.start) / (shown.end - shown.start).max(1.0);
        let y = (plot.bottom_px() - px(share) * plot.height_px).round() + 0.5;
        scene.add_hairline(Point::new(plot.x_px - 4.0, y), Point::new(plot.x_px, y), Role::Limit);
    }
}

impl Grid {
    /// The cells as rectangles, for files: neighbors that show the same are joined.
    pub fn rects(&self, groups: &Groups, plot: Rect) -> Scene {
        let mut scene = Scene::new(0.0, 0.0);
        let (width, height) = self.size();
        let cell_px = (plot.width_px / count_px(width), plot.height_px / count_px(height));
        // Runs that continue from the column before, by their first cell and the cell after the last: the
        // value that they show, and the column in which they began.
        let mut open: BTreeMap<(usize, usize), (u32, usize)> = BTreeMap::new();
        for column in 0..=width {
            let runs = if column < width { self.runs(column) } else { BTreeMap::new() };
            open.retain(|run, (value, from)| {
                if runs.get(run) == Some(value) {
                    return true;
                }
                let left = plot.x_px + count_px(*from) * cell_px.0;
                let right = plot.x_px + count_px(column) * cell_px.0;
                let top = plot.bottom_px() - count_px(run.1) * cell_px.1;
                let bottom = plot.bottom_px() - count_px(run.0) * cell_px.1;
                let rect = Rect::new(left, top, right - left, bottom - top);
                scene.add_rect(rect, Self::fill_of(*value, groups), None);
                false
            });
            for (run, value) in runs {
                open.entry(run).or_insert((value, column));
            }
        }
        scene
    }

    fn fill_of(value: u32, groups: &Groups) -> Fill {
        match Cell::of(value) {
            Cell::Row(row) => Fill::solid(groups.role(row)),
            Cell::Small => SMALL_FILL,
            _ => Fill::of(BreakdownClass::Cached),
        }
    }

    /// The runs of cells of a column that show the same: the shown value, by the first cell and the cell
    /// after the last.
    fn runs(&self, column: usize) -> BTreeMap<(usize, usize), u32> {
        let from = column * self.height;
        let cells = self.cells.get(from..from + self.height).unwrap_or_default();
        let mut runs = BTreeMap::new();
        let mut at = 0;
        for run in cells.chunk_by(|one, other| one == other) {
            if let Some(value) = run.first().filter(|value| **value != super::NOTHING) {
                runs.insert((at, at + run.len()), *value);
            }
            at += run.len();
        }
        runs
    }
}

impl Cell {
    pub(super) fn of(value: u32) -> Self {
        match value {
            super::NOTHING => Self::Nothing,
            super::RESERVED => Self::Reserved,
            super::SMALL => Self::Small,
            row => Self::Row(row as usize),
        }
    }
}
