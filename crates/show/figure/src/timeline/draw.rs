//! The scene of the timeline.

use blockyard_record::{Bytes, OomLimit, Recording};

use crate::conversions::{bytes_f64, count_f64, count_px, floor_count, round_bytes};
use crate::fill::{BEYOND_LIMIT, Fill, Pattern, WITHIN_LIMIT};
use crate::geometry::{Point, Rect, Size};
use crate::labels::{PLATE_PX, baseline, draw_plated_text};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, Mark, Scene, TargetId, TextStyle, Weight};
use crate::text_width::text_width_px;
use crate::timeline::air::Air;
use crate::timeline::axis::{TEXT_PX, YScale, draw_axes_of_moments, draw_grid_over, draw_y_axis};
use crate::timeline::bands::{draw_bands, lane_px};
use crate::timeline::clock::Clock;
use crate::timeline::cursor::timeline_cursor;
use crate::timeline::legend::{LegendContent, UnnamedBound, draw_legend};
use crate::timeline::marks::{draw_failures, draw_labels};
use crate::timeline::names::{draw_area_names, draw_failed_requests, draw_peak};
use crate::timeline::series::{Extent, FAN, Series};
use crate::timeline::view::{TimelineView, XScale, has_second_axis, legend_rows, plot_above, timeline_plot};

/// The classes of the breakdown over time, stacked; with labels, failures, the peak, both running peaks and
/// the limit.
///
/// If a pixel covers several moments, areas and lines show the highest values, so that a spike of one step is
/// visible. Bytes that are requested only during a part of these moments are drawn lighter, and the legend
/// says so. The cursor is not drawn, so that the scene can be kept while only the cursor moves.
pub fn timeline(
    series: &Series,
    recording: &Recording,
    view: &TimelineView,
    clock: Option<&Clock>,
    size: Size,
) -> Scene {
    let size = size.tame();
    let view = view.clamp(series.step_count());
    let plot = timeline_plot(series, size);
    let scale = XScale::by(clock, view, plot);
    let columns = columns_on(&scale, series, recording, &view, &plot);
    let (mut scene, explained, bounds) = draw_run(series, recording, (&view, &scale, &columns), None, size);
    draw_legend(&mut scene, legend_rows(size, series.facts()), explained, &bounds);
    scene
}

/// What a reader sees of a run beside a text about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadRun {
    /// How many complete steps are shown at most: what follows would answer an open question.
    pub last: Option<usize>,
    /// The axis of bytes has room for these, so that several runs have one scale.
    pub highest: Bytes,
    /// The allocated bytes by group, from the lowest area on: its color, and its bytes after each number of
    /// complete steps. Empty for a single area.
    pub groups: Vec<(Role, Vec<Bytes>)>,
    /// The allocated bytes of an earlier run after each number of complete steps, drawn as a line; empty for
    /// none.
    pub before: Vec<Bytes>,
}

/// A whole run as [`timeline`] has it, as far as the reader sees it, with the cursor after `step` complete
/// steps. A text beside the figure explains the colors.
pub fn read_timeline(
    series: &Series,
    recording: &Recording,
    read: &ReadRun,
    step: usize,
    size: Size,
) -> Scene {
    let size = size.tame();
    let view = TimelineView::fit(series.step_count().max(read.before.len().saturating_sub(1)));
    let plot = plot_above(size, if has_second_axis(size) { 4.0 } else { 0.0 });
    let scale = XScale::new(view, plot);
    let mut columns = columns_on(&scale, series, recording, &view, &plot);
    columns.retain(|column| read.last.is_none_or(|last| column.last_moment <= last));
    // The labels and failures of steps that are not shown yet are beyond this part.
    let seen = read.last.map_or(view, |last| TimelineView { last_step: count_f64(last) + 0.5, ..view });
    let (mut scene, ..) = draw_run(series, recording, (&seen, &scale, &columns), Some(read), size);
    scene.marks.extend(timeline_cursor(Some(recording), &scene, &plot, &view, None, step).marks);
    scene
}

/// The run in the scale's plot without a legend, and what a legend has to explain.
fn draw_run(
    series: &Series,
    recording: &Recording,
    (view, scale, columns): (&TimelineView, &XScale, &[Column]),
    read: Option<&ReadRun>,
    size: Size,
) -> (Scene, LegendContent, Vec<UnnamedBound>) {
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = scale.plot();
    let capacity = recording.known_capacity();
    // Below zero, so that no band lies over the areas.
    let data = Rect { height_px: plot.height_px - lane_px(recording, &plot), ..plot };
    let highest = read.map_or(Bytes::ZERO, |read| read.highest);
    let range = YScale::new(y_top(series, recording, columns, view, (highest, data.height_px)), data);
    draw_y_axis(&mut scene, &range, &plot);
    draw_beyond_limit(&mut scene, series, columns, &range);
    let areas = draw_areas(&mut scene, columns, &range, Fill::of(BreakdownClass::Cached).pattern);
    draw_groups(&mut scene, read.map_or(&[], |read| &read.groups), columns, &range);
    draw_grid_over(&mut scene, &range, &plot);
    draw_lines(&mut scene, series, columns, &range);
    draw_before(&mut scene, read.map_or(&[], |read| &read.before), scale, &range);
    let air = Air::new(series, columns, &range, capacity);
    // A reader's program has lines, and no requests that the reader wrote.
    let moment = if read.is_some() { "step" } else { "request" };
    draw_axes_of_moments(
        &mut scene,
        (recording, &format!("{moment}s")),
        scale,
        view,
        &plot,
        has_second_axis(size),
    );
    draw_labels(&mut scene, recording, view, scale, &plot);
    // The bounds are drawn over the lines of labels.
    let bounds = draw_bounds(&mut scene, series, &air, capacity);
    // The bands are drawn over the lines that mark their names.
    let has_bars = draw_bands(&mut scene, recording, scale, &plot);
    let has_failures = draw_failures(&mut scene, recording, view, scale, &plot);
    draw_failed_requests(&mut scene, series, scale, &air);
    draw_peak(&mut scene, series, recording, scale, (&air, moment, read.and_then(|read| read.last)));
    // The areas of a reader are the memory that another figure names.
    draw_area_names(&mut scene, columns, &range, usize::from(read.is_some()));
    (scene, LegendContent { areas, has_bars, has_failures }, bounds)
}

/// The groups of the allocated bytes on top of each other. A pixel of several moments shows the moment with
/// the most bytes.
fn draw_groups(scene: &mut Scene, groups: &[(Role, Vec<Bytes>)], columns: &[Column], range: &YScale) {
    let bytes = |group: &(Role, Vec<Bytes>), moment: usize| group.1.get(moment).copied().unwrap_or_default();
    let all = |moment: usize| groups.iter().map(|group| bytes(group, moment)).sum::<Bytes>();
    let mut next = 0;
    let of_column = |column: &Column| {
        let from = std::mem::replace(&mut next, column.last_moment + 1).min(column.last_moment);
        (from..=column.last_moment).max_by_key(|moment| all(*moment)).unwrap_or(from)
    };
    let shown: Vec<usize> = columns.iter().map(of_column).collect();
    let mut floor = vec![Bytes::ZERO; columns.len()];
    let line = |tops: &[Bytes]| {
        let mut tops = tops.iter().copied();
        step_points(columns, |_| range.y_px(tops.next().unwrap_or_default()))
    };
    for group in groups {
        let top: Vec<Bytes> = floor
            .iter()
            .zip(&shown)
            .map(|(floor, moment)| floor.saturating_add(bytes(group, *moment)))
            .collect();
        if top != floor {
            let points = band(line(&top), line(&floor));
            scene.marks.push(Mark::Area { points, fill: Fill::solid(group.0) });
        }
        floor = top;
    }
}

/// The values between two x positions: of one moment, or of all moments that share a pixel.
pub(crate) struct Column {
    pub(crate) left_px: f32,
    pub(crate) right_px: f32,
    pub(crate) last_moment: usize,
    pub(crate) extent: Extent,
}

/// Where a pixel has at least this many moments, its edges move to whole entries of the series, by at most a
/// sixteenth of a pixel. The moments within an entry then need no decoding, which took most of the time of a
/// frame while the figure moves.
const MANY_MOMENTS: f64 = 128.0;

/// The nearest beginning of an entry of the series.
fn whole_entry(moment: usize) -> usize {
    (moment + FAN / 2) / FAN * FAN
}

/// The values of each pixel or moment on a scale of requests or of time.
pub(crate) fn columns_on(
    scale: &XScale,
    series: &Series,
    recording: &Recording,
    view: &TimelineView,
    plot: &Rect,
) -> Vec<Column> {
    match scale.clock() {
        Some(clock) => columns_by_clock(series, recording, clock, view, plot),
        None => columns(series, recording, view, plot),
    }
}

pub(super) fn columns(
    series: &Series,
    recording: &Recording,
    view: &TimelineView,
    plot: &Rect,
) -> Vec<Column> {
    let scale = XScale::new(*view, *plot);
    let last = series.step_count() + 1;
    if scale.step_px() >= 1.0 {
        let from = floor_count(view.first_step);
        let to = floor_count(view.last_step.ceil()).min(last);
        let of_moment = |moment: usize| Column {
            left_px: scale.x_px(count_f64(moment)).max(plot.x_px),
            right_px: scale.x_px(count_f64(moment) + 1.0).min(plot.right_px()),
            last_moment: moment,
            extent: series.extent(recording, moment, moment + 1),
        };
        return (from..to).map(of_moment).filter(|column| column.right_px > column.left_px).collect();
    }
    let pixels = floor_count(f64::from(plot.width_px));
    let edge = |pixel: usize| view.first_step + count_f64(pixel) / scale.step_px();
    let is_coarse = scale.step_px() * MANY_MOMENTS <= 1.0;
    let of_pixel = |pixel: usize| {
        let (from, to) = (floor_count(edge(pixel)), floor_count(edge(pixel + 1).ceil()));
        let is_inner = |border: usize| is_coarse && 0 < border && border < pixels;
        let from = if is_inner(pixel) { whole_entry(from) } else { from }.min(last - 1);
        let to = if is_inner(pixel + 1) { whole_entry(to) } else { to }.clamp(from + 1, last);
        let left_px = plot.x_px + count_px(pixel);
        let extent = series.extent(recording, from, to);
        Column { left_px, right_px: left_px + 1.0, last_moment: to - 1, extent }
    };
    (0..pixels).map(of_pixel).collect()
}

/// The values of each pixel as [`columns`] has them, where every pixel covers the same span of time.
fn columns_by_clock(
    series: &Series,
    recording: &Recording,
    clock: &Clock,
    view: &TimelineView,
    plot: &Rect,
) -> Vec<Column> {
    let last = series.step_count() + 1;
    let pixels = floor_count(f64::from(plot.width_px)).max(1);
    let edge = |pixel: usize| {
        let position = clock.position_at(view, count_f64(pixel) / count_f64(pixels));
        floor_count(position.max(0.0))
    };
    let of_pixel = |pixel: usize| {
        let from = edge(pixel).min(last - 1);
        // The moment at the right edge is drawn too, except for a moment that only begins there.
        let to = (edge(pixel + 1) + usize::from(pixel + 1 < pixels)).clamp(from + 1, last);
        let left_px = plot.x_px + count_px(pixel);
        let extent = series.extent(recording, from, to);
        Column { left_px, right_px: left_px + 1.0, last_moment: to - 1, extent }
    };
    (0..pixels).map(of_pixel).collect()
}

/// The value at the top edge: room for what [`Series::bytes_in_sight`] says, and for the names of both peaks
/// above, one below the other where the figure is high.
fn y_top(
    series: &Series,
    recording: &Recording,
    columns: &[Column],
    view: &TimelineView,
    (least, height_px): (Bytes, f32),
) -> Bytes {
    let highest = columns.iter().map(|column| column.extent.high[3]).max().unwrap_or_default().max(least);
    if highest.is_zero() {
        return recording.known_capacity().unwrap_or_default().max(Bytes::mib(1));
    }
    // The curves keep 85 percent of the height.
    let both_px = 2.0 * PLATE_PX + 2.0;
    let names_px = if both_px <= height_px * 0.15 { both_px } else { 17.0 };
    let text = f64::from((height_px / (height_px - names_px).max(1.0)).min(1.5));
    round_bytes(bytes_f64(series.bytes_in_sight(recording, view, highest)) * text.max(1.05))
}

/// The points of a step line, from left to right, without those that change nothing.
pub(crate) fn step_points(columns: &[Column], mut y_px: impl FnMut(&Column) -> f32) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for column in columns {
        let y = y_px(column);
        match points.last_mut() {
            #[expect(
                clippy::float_cmp,
                reason = "equal values give equal floats; anything else is another level"
            )]
            Some(last) if last.y_px == y => last.x_px = column.right_px,
            _ => points.extend([Point::new(column.left_px, y), Point::new(column.right_px, y)]),
        }
    }
    points
}

fn band(upper: Vec<Point>, lower: Vec<Point>) -> Vec<Point> {
    upper.into_iter().chain(lower.into_iter().rev()).collect()
}

/// How bytes are filled that are requested only during a part of the moments of a pixel.
pub(super) const VARIED: Fill = Fill { role: Role::Requested, pattern: Pattern::Strong };

/// Which areas [`draw_areas`] drew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DrawnAreas {
    /// Whether there is rounding, and whether there are pending bytes.
    pub(super) has_rounding: bool,
    pub(super) has_pending: bool,
    /// Whether some bytes are requested only during a part of the moments of a pixel.
    pub(super) is_varied: bool,
}

/// The classes on top of each other.
pub(super) fn draw_areas(
    scene: &mut Scene,
    columns: &[Column],
    range: &YScale,
    cached: Pattern,
) -> DrawnAreas {
    let mut draw = |fill: Fill, floor: &dyn Fn(&Column) -> Bytes, top: &dyn Fn(&Column) -> Bytes| {
        let is_seen = columns.iter().any(|column| top(column) > floor(column));
        if is_seen {
            let line = |value: &dyn Fn(&Column) -> Bytes| step_points(columns, |it| range.y_px(value(it)));
            let (upper, lower) = (line(top), line(floor));
            scene.marks.push(Mark::Area { points: band(upper, lower), fill });
        }
        is_seen
    };
    draw(Fill::of(BreakdownClass::Requested), &|_| Bytes::ZERO, &|column| column.extent.low[0]);
    let is_varied = draw(VARIED, &|column| column.extent.low[0], &|column| column.extent.high[0]);
    let mut class = |fill: Fill, index: usize| {
        draw(fill, &|column| column.extent.high[index - 1], &|column| column.extent.high[index])
    };
    let has_rounding = class(Fill::of(BreakdownClass::Rounding), 1);
    let has_pending = class(Fill::of(BreakdownClass::Pending), 2);
    class(Fill { pattern: cached, ..Fill::of(BreakdownClass::Cached) }, 3);
    DrawnAreas { has_rounding, has_pending, is_varied }
}

/// A line that turns more often than once in this many pixels has the color of the area below it: its upright
/// parts would be a separate dark area.
const BUSY_PX: usize = 4;

fn draw_lines(scene: &mut Scene, series: &Series, columns: &[Column], range: &YScale) {
    let mut path = |points: Vec<Point>, role: Role, dash: Dash, width_px: f32| {
        if points.len() >= 2 {
            scene.marks.push(Mark::Path { points, role, dash, width_px });
        }
    };
    let peak_allocated = |column: &Column| range.y_px(series.peaks_at(column.last_moment).0);
    let peak_reserved = |column: &Column| range.y_px(series.peaks_at(column.last_moment).1);
    path(step_points(columns, peak_reserved), Role::PeakReserved, Dash::Dotted, 1.0);
    path(step_points(columns, peak_allocated), Role::PeakAllocated, Dash::Dashed, 1.0);
    for (border, role) in [(3, Role::PeakReserved), (1, Role::PeakAllocated)] {
        let points = step_points(columns, |column| range.y_px(column.extent.high[border]));
        let is_busy = points.len() / 2 * BUSY_PX > floor_count(f64::from(range.plot.width_px));
        let is_varied = columns.iter().any(|column| column.extent.low[border] != column.extent.high[border]);
        match (is_busy && is_varied, border) {
            (false, _) => path(points, role, Dash::Solid, 1.5),
            (true, 1) => path(points, Role::Requested, Dash::Solid, 1.0),
            (true, _) => {}
        }
    }
}

/// The allocated bytes of an earlier run, as a dashed line with its name at its peak.
fn draw_before(scene: &mut Scene, before: &[Bytes], scale: &XScale, range: &YScale) {
    let mut points: Vec<Point> = Vec::new();
    for (moment, bytes) in before.iter().enumerate() {
        let (left, right) = (scale.x_px(count_f64(moment)), scale.x_px(count_f64(moment) + 1.0));
        points.extend([left, right].map(|x_px| Point::new(x_px, range.y_px(*bytes))));
    }
    let Some(peak) = points.iter().copied().min_by(|one, other| one.y_px.total_cmp(&other.y_px)) else {
        return;
    };
    // A line in the color of the ground makes the dashes visible on dark areas.
    for (role, dash, width_px) in [(Role::Background, Dash::Solid, 4.0), (Role::Text, Dash::Dashed, 2.0)] {
        scene.marks.push(Mark::Path { points: points.clone(), role, dash, width_px });
    }
    let at = Point::new(peak.x_px.max(range.plot.x_px + 24.0), (peak.y_px - 9.0).max(range.plot.y_px + 8.0));
    draw_plated_text(scene, at, "before", TEXT_PX, Weight::Bold);
}

/// The columns in turn that have the same limit of the process, with that limit.
fn spans_of_limits<'a>(
    series: &Series,
    columns: &'a [Column],
) -> impl Iterator<Item = (&'a [Column], Option<OomLimit>)> {
    let limit = |column: &Column| series.process_limit(column.last_moment);
    let spans = columns.chunk_by(move |one, other| limit(one) == limit(other));
    let limits: Vec<Option<OomLimit>> = spans.clone().map(|span| span.first().and_then(limit)).collect();
    spans.zip(limits)
}

/// The area that the process may not reserve, under the areas of the classes.
pub(super) fn draw_beyond_limit(scene: &mut Scene, series: &Series, columns: &[Column], range: &YScale) {
    for (span, limit) in spans_of_limits(series, columns) {
        let Some(limit) = limit.filter(|limit| range.holds(limit.highest)) else { continue };
        let (Some(first), Some(last)) = (span.first(), span.last()) else { continue };
        let (top, foot) = (range.plot.y_px, range.y_px(limit.highest).round() + 0.5);
        // Somewhere in this band the limit lies.
        let lowest = range.y_px(limit.lowest).round() + 0.5;
        if lowest > foot {
            let band = Rect::new(first.left_px, foot, last.right_px - first.left_px, lowest - foot);
            scene.add_rect(band, WITHIN_LIMIT, None);
        }
        if foot > top {
            let beyond = Rect::new(first.left_px, top, last.right_px - first.left_px, foot - top);
            scene.add_rect(beyond, BEYOND_LIMIT, None);
        }
    }
}

/// Lines at the capacity and at the limit of the process, with their values where there is room. Returns the
/// bounds whose values have no room.
pub(super) fn draw_bounds(
    scene: &mut Scene,
    series: &Series,
    air: &Air<'_>,
    capacity: Option<Bytes>,
) -> Vec<UnnamedBound> {
    let (columns, range) = (air.columns, air.range);
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else { return Vec::new() };
    let mut bounds = Bounds { texts: Vec::new(), air };
    let mut unnamed = Vec::new();
    let mut keep = |text: String, has_line: bool| {
        if !unnamed.iter().any(|known: &UnnamedBound| known.text == text) {
            unnamed.push(UnnamedBound { text, has_line });
        }
    };
    if let Some(capacity) = capacity {
        let text = format!("capacity {capacity}");
        let has_line = range.holds(capacity);
        let edges = (first.left_px, last.right_px);
        let y = range.y_px(capacity).round() + 0.5;
        if !(has_line && bounds.draw(scene, edges, y, Dash::Solid, &text)) {
            keep(text, has_line);
        }
    }
    for (span, limit) in spans_of_limits(series, columns) {
        let is_lower = |limit: &OomLimit| capacity.is_none_or(|capacity| limit.highest < capacity);
        let Some(limit) = limit.filter(is_lower) else { continue };
        let (Some(first), Some(last)) = (span.first(), span.last()) else { continue };
        let has_line = range.holds(limit.highest);
        let y = range.y_px(limit.highest).round() + 0.5;
        let edges = (first.left_px, last.right_px);
        let lowest = range.y_px(limit.lowest).round() + 0.5;
        let [at_least, at_most] = limit.bound_texts().map(|text| format!("limit {text}"));
        // Both bounds are named where the band has room for a text, else the upper line names both.
        let is_wide = has_line && lowest - y >= 18.0;
        if is_wide {
            bounds.draw(scene, edges, lowest, Dash::Dashed, &at_least);
        }
        let text = if is_wide { at_most } else { format!("limit {}", limit.range_text()) };
        if has_line {
            let line = Rect::new(edges.0, y - 1.5, edges.1 - edges.0, 3.0);
            scene.add_target(line, TargetId::Limit);
        }
        if !(has_line && bounds.draw(scene, edges, y, Dash::Dashed, &text)) {
            keep(text, has_line);
        }
    }
    unnamed
}

struct Bounds<'a> {
    texts: Vec<Rect>,
    air: &'a Air<'a>,
}

impl Bounds<'_> {
    /// Draws the line, and its text above or below the line where nothing else is drawn. Returns whether the
    /// text has a place.
    fn draw(&mut self, scene: &mut Scene, edges: (f32, f32), y_px: f32, dash: Dash, text: &str) -> bool {
        let (left, right) = edges;
        scene.add_line(Point::new(left, y_px), Point::new(right, y_px), Role::Limit, dash, 1.0);
        let width = text_width_px(text, TEXT_PX, Weight::Normal) + 6.0;
        // Places are tried from the left on, since marks of failures are most often at the end.
        let count = floor_count(f64::from((right - left - width) / 12.0).max(-1.0) + 1.0);
        let lefts = (0..count).map(|place| (left + 3.0 + count_px(place) * 12.0).floor());
        let places = [y_px - 15.0, y_px + 2.0]
            .into_iter()
            .flat_map(|top| lefts.clone().map(move |left| Rect::new(left, top.round(), width, 14.0)));
        let is_free =
            |plate: &Rect| self.air.is_clear(plate) && !self.texts.iter().any(|other| other.overlaps(plate));
        let Some(plate) = places.into_iter().find(is_free) else { return false };
        // The thin lines of the area beyond the limit are not data.
        scene.add_rect(plate, Fill::solid(Role::Background), None);
        let at = Point::new(plate.x_px + 3.0, baseline(plate.center().y_px, TEXT_PX));
        scene.add_text(at, text, TextStyle::new(Role::Limit, TEXT_PX));
        self.texts.push(plate);
        true
    }
}
