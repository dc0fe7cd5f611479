//! The scene over the cells of a grid: axes, the moment, names.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, Recording};

use super::{AddressMap, Cell, Grid, GridKind, GridView};
use crate::coloring::{Groups, LegendEntry};
use crate::conversions::{ByteUnit, bytes_f64, count_f64, count_px, floor_count, px, round_bytes};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect, Size};
use crate::labels::baseline;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Mark, Scene, TextStyle, Weight};
use crate::text_width::text_width_px;
use crate::timeline::{
    Clock, Series, TimelineView, XScale, columns_on, draw_failed_request, draw_x_axis, plot_sides,
    step_points, tick_step, timeline_range,
};

/// The rectangle of the cells in a figure of this size. Its left and right edges are those of a timeline's
/// plot, so that both figures can be drawn below each other.
#[must_use]
pub fn grid_plot(size: Size) -> Rect {
    let size = size.tame();
    let (left, width_px) = plot_sides(size);
    // The unit of the axis is at its upper end.
    Rect::new(left, 20.0, width_px, (size.height_px - 42.0).max(1.0))
}

/// The axes around the cells of a figure of this size.
#[must_use]
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
    let y = |bytes: f64| y_px(view, &plot, bytes);
    let most = (plot.height_px / 28.0).clamp(1.0, 12.0);
    let most = u64::try_from(floor_count(f64::from(most))).unwrap_or(1);
    let step = tick_step(round_bytes(high - low), most);
    let unit = ByteUnit::of_ticks(step, round_bytes(high));
    let style = TextStyle::new(Role::TextMuted, 11.0).anchored(Anchor::End);
    let name = match kind {
        GridKind::Stacked => "active bytes",
        GridKind::Address => "addresses",
    };
    let words = TextStyle { anchor: Anchor::Start, ..style };
    scene.add_text(Point::new(2.0, plot.y_px - 8.0), format!("{name}, {}", unit.name()), words);
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

/// The height of a byte.
fn y_px(view: &GridView, plot: &Rect, bytes: f64) -> f32 {
    plot.bottom_px() - px((bytes - view.low) / (view.high - view.low).max(1.0)) * plot.height_px
}

/// The bounds of stacked allocations, for drawing over a grid of the same view and size: the reserved bytes,
/// the limit of the process or else the capacity, and the requests that failed.
#[must_use]
pub fn grid_bounds(
    series: &Series,
    recording: &Recording,
    view: &GridView,
    clock: Option<&Clock>,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = grid_plot(size);
    let steps = view.steps.clamp(series.step_count());
    let scale = XScale::by(clock, steps, plot);
    let y = |bytes: Bytes| y_px(view, &plot, bytes_f64(bytes));
    let is_seen = |y: f32| y >= plot.y_px - 0.5 && y <= plot.bottom_px() + 0.5;
    let columns = columns_on(&scale, series, recording, &steps, &plot);
    // A line that leaves the shown bytes ends there.
    for part in columns.split(|column| !is_seen(y(column.extent.high[3]))) {
        let points = step_points(part, |column| y(column.extent.high[3]));
        if points.len() >= 2 {
            let (role, dash, width_px) = (Role::PeakReserved, Dash::Solid, 1.5);
            scene.marks.push(Mark::Path { points, role, dash, width_px });
        }
    }
    let last = columns.last().map_or(0, |column| column.last_moment);
    let limit = series.process_limit(last);
    let bound = limit.map(|limit| (limit.highest, format!("limit {}", limit.range_text())));
    let capacity =
        || Some((recording.known_capacity()?, format!("capacity {}", recording.known_capacity()?)));
    if let Some((bytes, text)) = bound.or_else(capacity).filter(|(bytes, _)| is_seen(y(*bytes))) {
        let level = y(bytes).round() + 0.5;
        let ends = (Point::new(plot.x_px, level), Point::new(plot.right_px(), level));
        scene.add_line(ends.0, ends.1, Role::Limit, Dash::Dashed, 1.0);
        let width = text_width_px(&text, 11.0, Weight::Normal).ceil() + 6.0;
        let plate = Rect::new(plot.x_px + 3.0, (level - 15.0).max(0.0).round(), width, 14.0);
        scene.add_rect(plate, Fill::solid(Role::Background), None);
        let at = Point::new(plate.x_px + 3.0, baseline(plate.center().y_px, 11.0));
        scene.add_text(at, text, TextStyle::new(Role::Limit, 11.0));
    }
    for failed in series.failed() {
        let x = scale.x_px(f64::from(failed.step) + 1.0);
        if x >= plot.x_px && x <= plot.right_px() + 0.5 && is_seen(y(failed.reserved)) {
            draw_failed_request(&mut scene, failed, x, &plot, y);
        }
    }
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

/// The cursors, for drawing over a grid of the same view and size.
#[must_use]
pub fn grid_cursor(view: &TimelineView, clock: Option<&Clock>, cursor: &GridCursor, size: Size) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = grid_plot(size);
    let scale = XScale::by(clock, *view, plot);
    // The lines are at the pixel that shows the moment.
    let place = |moment: usize| {
        let (left, right) = (scale.x_px(count_f64(moment)), scale.x_px(count_f64(moment) + 1.0));
        let x = if right - left >= 1.0 { right.floor() } else { left.floor() + 1.0 } + 0.5;
        (x >= plot.x_px - 0.5 && x <= plot.right_px() + 1.5).then_some(x)
    };
    let ends = |x: f32| (Point::new(x, plot.y_px), Point::new(x, plot.bottom_px() + 4.0));
    if let Some(range) = cursor.range {
        timeline_range(&mut scene, view, clock, range, &plot);
    }
    if let Some(x) = place(cursor.moment) {
        // The line in the background color makes the cursor visible on dark areas.
        for (x, role) in [(x + 1.0, Role::Background), (x, Role::Cursor)] {
            let (from, to) = ends(x);
            scene.add_hairline(from, to, role);
        }
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
    #[must_use]
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
            Cell::Row(row) => {
                let place = groups.legend().get(groups.place(row));
                place.map_or(Fill::solid(Role::Group(Role::GROUPS - 1)), LegendEntry::fill)
            }
            Cell::Small => Fill { role: Role::Group(Role::GROUPS - 1), pattern: Pattern::Tint },
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
