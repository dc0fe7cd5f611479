use blockyard_record::{Bytes, Recording};

use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect, Size};
use crate::labels::baseline;
use crate::numbers::{bytes_f64, count_f64, count_px, floor_count, grouped_count, round_bytes};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Mark, Scene, TextStyle, Weight};
use crate::text_width::text_width_px;
use crate::timeline::axis::{
    TEXT_PX, Tick, YScale, clock_ticks, draw_clock_axis, draw_x_axis, draw_y_axis, step_ticks,
};
use crate::timeline::bands::draw_bands;
use crate::timeline::clock::Clock;
use crate::timeline::marks::{column, draw_failures, draw_labels};
use crate::timeline::series::{Extent, FAN, Series};
use crate::timeline::view::{TimelineView, XScale, has_legend, timeline_plot};

/// The classes of the breakdown over time, stacked; with labels, failures, both running peaks and the limit.
///
/// If a pixel covers several moments, areas and lines show the highest values, so that a spike of one step is visible. Bytes
/// that are in a class only during a part of these moments are drawn lighter. The cursor is not drawn, so that the scene can
/// be kept while only the cursor moves.
#[must_use]
pub fn timeline(
    series: &Series,
    recording: &Recording,
    view: &TimelineView,
    clock: Option<&Clock>,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let view = view.clamp(series.step_count());
    let plot = timeline_plot(size);
    let scale = XScale::by(clock, view, plot);
    let columns = match scale.clock() {
        Some(clock) => columns_by_clock(series, recording, clock, &view, &plot),
        None => columns(series, recording, &view, &plot),
    };
    let highest = columns.iter().map(|column| column.extent.high[3]).max().unwrap_or_default();
    let capacity = recording.known_capacity();
    let last = floor_count((view.last_step.ceil() - 1.0).max(0.0));
    let range = YScale::new(y_top(highest, series.peaks_at(last).1, capacity, plot.height_px), plot);
    draw_y_axis(&mut scene, &range, &plot);
    draw_areas(&mut scene, &columns, &range);
    draw_lines(&mut scene, series, &columns, &range);
    draw_bounds(&mut scene, series, &columns, &range, capacity);
    match scale.clock() {
        Some(clock) => draw_clock_axis(&mut scene, clock, &view, &plot),
        None => draw_x_axis(&mut scene, &scale, &view, &plot, Some(recording)),
    }
    draw_labels(&mut scene, recording, &view, &scale, &plot);
    // Over the lines of their names.
    draw_bands(&mut scene, recording, &scale, &plot);
    draw_failures(&mut scene, recording, &view, &scale, &plot);
    if has_legend(size) {
        draw_legend(&mut scene, capacity.filter(|capacity| !range.holds(*capacity)));
    }
    scene
}

/// The line at the moment after `step` complete steps, for drawing over a [`timeline`] of the same view and size. Steps to
/// the left of the line have happened. With the recording, a text of the axis that the cursor's number would cover in part is covered
/// whole.
#[must_use]
pub fn timeline_cursor(
    recording: Option<&Recording>,
    view: &TimelineView,
    clock: Option<&Clock>,
    step: usize,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = timeline_plot(size);
    let (left, right) = column(&XScale::by(clock, *view, plot), step);
    if !(right >= plot.x_px - 0.5 && left <= plot.right_px()) {
        return scene;
    }
    let (left, right) = (left.max(plot.x_px), right.min(plot.right_px()));
    let (top, bottom) = (plot.y_px, plot.bottom_px());
    if right - left >= 3.0 {
        let band = Rect::new(left, top, right - left, plot.height_px);
        scene.rect(band, Fill { role: Role::Cursor, pattern: Pattern::Faint }, None);
    }
    let x = (right - 0.5).floor() + 0.5;
    scene.line(Point::new(x, top), Point::new(x, bottom), Role::Background, Dash::Solid, 4.0);
    scene.line(Point::new(x, top), Point::new(x, bottom + 4.0), Role::Cursor, Dash::Solid, 2.0);
    let text = grouped_count(step);
    let width = text_width_px(&text, TEXT_PX, Weight::Bold).ceil() + 8.0;
    let flag_left = (x - width / 2.0).clamp(0.0, (size.width_px - width).max(0.0)).round();
    let flag = Rect::new(flag_left, bottom.round() + 3.0, width, 16.0);
    for tick in recording.map(|recording| ticks_of(recording, view, clock, &plot)).unwrap_or_default() {
        let half = tick.half_width_px().ceil() + 1.0;
        let text = Rect::new(tick.x_px - half, bottom.round() + 5.0, 2.0 * half, 14.0);
        if text.overlaps(&flag) {
            scene.rect(text, Fill::solid(Role::Background), None);
        }
    }
    scene.rect(flag, Fill::solid(Role::Cursor), None);
    let style = TextStyle::new(Role::Background, TEXT_PX).bold().anchored(Anchor::Middle);
    scene.text(Point::new(flag.center().x_px, baseline(flag.center().y_px, TEXT_PX)), text, style);
    scene
}

/// The ticks of the horizontal axis of a [`timeline`] of the same view.
fn ticks_of(recording: &Recording, view: &TimelineView, clock: Option<&Clock>, plot: &Rect) -> Vec<Tick> {
    let view = view.clamp(recording.step_count());
    match clock {
        Some(clock) => clock_ticks(clock, &view, plot),
        None => step_ticks(&XScale::new(view, *plot), &view, plot, Some(recording)),
    }
}

/// A thin line at a moment, for the pointer or for a second cursor, to be drawn over a [`timeline`] of the same view and size.
pub fn timeline_line(
    scene: &mut Scene,
    view: &TimelineView,
    clock: Option<&Clock>,
    step: usize,
    role: Role,
    size: Size,
) {
    let plot = timeline_plot(size.tame());
    let (left, right) = column(&XScale::by(clock, *view, plot), step);
    let x = (f32::midpoint(left.max(right - 2.0), right)).floor() + 0.5;
    if x >= plot.x_px - 0.5 && x <= plot.right_px() + 0.5 {
        let (from, to) = (Point::new(x, plot.y_px), Point::new(x, plot.bottom_px()));
        scene.line(from, to, role, Dash::Dashed, if role == Role::Hover { 1.0 } else { 2.0 });
    }
}

/// The values between two x positions: of one moment, or of all moments that share a pixel.
pub(super) struct Column {
    left_px: f32,
    right_px: f32,
    last_moment: usize,
    pub(super) extent: Extent,
}

/// Where a pixel has as many moments, its edges move to whole entries of the series, by at most a sixteenth of a pixel. The moments of
/// an entry need not be decoded then, which took most of the time of a frame while the figure moves.
const MANY_MOMENTS: f64 = 128.0;

/// The nearest beginning of an entry of the series.
fn whole_entry(moment: usize) -> usize {
    (moment + FAN / 2) / FAN * FAN
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

/// As [`columns`], each pixel of equally much time.
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
        // The moment at the right edge is there too, but for one that only begins there.
        let to = (edge(pixel + 1) + usize::from(pixel + 1 < pixels)).clamp(from + 1, last);
        let left_px = plot.x_px + count_px(pixel);
        let extent = series.extent(recording, from, to);
        Column { left_px, right_px: left_px + 1.0, last_moment: to - 1, extent }
    };
    (0..pixels).map(of_pixel).collect()
}

/// The value at the top edge. There is room for the highest curve, for the peak and the capacity if they are not much higher,
/// and for a line of text above.
fn y_top(highest: Bytes, peak: Bytes, capacity: Option<Bytes>, height_px: f32) -> Bytes {
    if highest.is_zero() {
        return capacity.unwrap_or_default().max(Bytes::mib(1));
    }
    let affordable = bytes_f64(highest) * 1.5;
    let wanted =
        [highest, peak].into_iter().chain(capacity).filter(|bytes| bytes_f64(*bytes) <= affordable).max();
    let text = f64::from((height_px / (height_px - 17.0).max(1.0)).min(1.5));
    round_bytes(bytes_f64(wanted.unwrap_or(highest)) * text.max(1.05))
}

/// The points of a step line along `value`, from left to right, without those that change nothing.
fn step_points(columns: &[Column], range: &YScale, value: impl Fn(&Column) -> Bytes) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for column in columns {
        let y = range.y_px(value(column));
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

pub(super) fn draw_areas(scene: &mut Scene, columns: &[Column], range: &YScale) {
    let has_spread = columns.iter().any(|column| column.extent.low != column.extent.high);
    for (index, class) in BreakdownClass::ALL.into_iter().take(4).enumerate() {
        let floor = |column: &Column| match index {
            0 => Bytes::ZERO,
            _ => column.extent.high[index - 1],
        };
        let top = |column: &Column| column.extent.high[index];
        if columns.iter().all(|column| top(column) == floor(column)) {
            continue;
        }
        let fill = Fill::of(class);
        let lower = step_points(columns, range, floor);
        let upper = step_points(columns, range, top);
        // Only the first and the last border separate bytes that are at times in no drawn class.
        if has_spread && matches!(class, BreakdownClass::Requested | BreakdownClass::Cached) {
            let light = Fill { role: fill.role, pattern: Pattern::Lines };
            let always = |column: &Column| column.extent.low[index].max(floor(column));
            scene.marks.push(Mark::Area { points: band(upper, lower.clone()), fill: light });
            let certain = step_points(columns, range, always);
            scene.marks.push(Mark::Area { points: band(certain, lower), fill });
        } else {
            scene.marks.push(Mark::Area { points: band(upper, lower), fill });
        }
    }
}

fn draw_lines(scene: &mut Scene, series: &Series, columns: &[Column], range: &YScale) {
    let mut path = |points: Vec<Point>, role: Role, dash: Dash, width_px: f32| {
        if points.len() >= 2 {
            scene.marks.push(Mark::Path { points, role, dash, width_px });
        }
    };
    let peak_allocated = |column: &Column| series.peaks_at(column.last_moment).0;
    let peak_reserved = |column: &Column| series.peaks_at(column.last_moment).1;
    path(step_points(columns, range, peak_reserved), Role::PeakReserved, Dash::Dotted, 1.5);
    path(step_points(columns, range, peak_allocated), Role::PeakAllocated, Dash::Dashed, 1.5);
    path(step_points(columns, range, |column| column.extent.high[3]), Role::PeakReserved, Dash::Solid, 2.0);
    path(step_points(columns, range, |column| column.extent.high[1]), Role::PeakAllocated, Dash::Solid, 2.0);
}

/// Lines at the capacity and at the memory fraction's limit, with their values where there is room.
fn draw_bounds(
    scene: &mut Scene,
    series: &Series,
    columns: &[Column],
    range: &YScale,
    capacity: Option<Bytes>,
) {
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else { return };
    let mut bounds = Bounds { texts: Vec::new(), plot: range.plot };
    if let Some(capacity) = capacity.filter(|capacity| range.holds(*capacity)) {
        let y = range.y_px(capacity).round() + 0.5;
        bounds.draw(scene, (first.left_px, last.right_px), y, Dash::Solid, &format!("capacity {capacity}"));
    }
    let mut start = 0;
    while let Some(column) = columns.get(start) {
        let limit = series.limit_at(column.last_moment);
        let same =
            columns[start..].iter().take_while(|column| series.limit_at(column.last_moment) == limit).count();
        if let Some(limit) =
            limit.filter(|limit| range.holds(*limit) && capacity.is_none_or(|capacity| *limit < capacity))
        {
            let y = range.y_px(limit).round() + 0.5;
            let edges = (column.left_px, columns[start + same - 1].right_px);
            bounds.draw(scene, edges, y, Dash::Dashed, &format!("limit {limit}"));
        }
        start += same;
    }
}

struct Bounds {
    texts: Vec<Rect>,
    plot: Rect,
}

impl Bounds {
    fn draw(&mut self, scene: &mut Scene, edges: (f32, f32), y_px: f32, dash: Dash, text: &str) {
        let (left, right) = edges;
        scene.line(Point::new(left, y_px), Point::new(right, y_px), Role::Limit, dash, 1.0);
        let width = text_width_px(text, TEXT_PX, Weight::Normal);
        if width + 6.0 > right - left {
            return;
        }
        // The text is above the line, where no curve is, or else below the line. It is left out where another text is. At the left:
        // marks of failures, which are most often at the end, do not cover it there.
        for top in [y_px - 15.0, y_px + 2.0] {
            let plate = Rect::new((left + 3.0).floor(), top.round(), width + 6.0, 14.0);
            let is_inside = plate.y_px >= self.plot.y_px && plate.bottom_px() <= self.plot.bottom_px();
            if is_inside && !self.texts.iter().any(|other| other.overlaps(&plate)) {
                scene.rect(plate, Fill::solid(Role::Background), None);
                let at = Point::new(plate.x_px + 3.0, baseline(plate.center().y_px, TEXT_PX));
                scene.text(at, text, TextStyle::new(Role::Limit, TEXT_PX));
                self.texts.push(plate);
                return;
            }
        }
    }
}

/// The room of a legend's sign, with the distance to the name behind it.
pub(super) const SIGN_PX: f32 = 20.0;
/// The distance between two entries of a legend.
const ENTRY_GAP_PX: f32 = 14.0;

/// How much room an entry of the legend takes, with the distance to the next one.
pub(super) fn entry_px(name: &str) -> f32 {
    SIGN_PX + text_width_px(name, TEXT_PX, Weight::Normal) + ENTRY_GAP_PX
}

/// The sign of a class in a legend whose text stands on the line `y`.
pub(super) fn draw_class_sign(scene: &mut Scene, class: BreakdownClass, x: f32, y: f32) {
    scene.rect(Rect::new(x, y - 10.0, 14.0, 11.0), Fill::of(class), Some(class.role()));
}

/// The legend on the last line of the scene, and the capacity if the curves are far below it.
fn draw_legend(scene: &mut Scene, far_capacity: Option<Bytes>) {
    let y = scene.height_px - 7.0;
    let mut x = 2.0;
    let style = TextStyle::new(Role::TextMuted, TEXT_PX);
    let mut right = scene.width_px - 4.0;
    if let Some(capacity) = far_capacity {
        // The classes come first: what the capacity is stands elsewhere too.
        let classes_px: f32 = BreakdownClass::ALL.iter().take(4).map(|class| entry_px(class.name())).sum();
        let texts = [format!("capacity {capacity}, beyond the scale"), format!("capacity {capacity}")];
        let room = right - x - classes_px - 16.0;
        if let Some(text) = crate::text_width::first_fitting(&texts, TEXT_PX, Weight::Normal, room) {
            scene.text(Point::new(right, y), text, style.anchored(Anchor::End));
            right -= text_width_px(text, TEXT_PX, Weight::Normal) + 16.0;
        }
    }
    let mut entry = |scene: &mut Scene, name: &str, draw: &dyn Fn(&mut Scene, f32)| {
        let next = x + entry_px(name);
        if next - ENTRY_GAP_PX <= right {
            draw(scene, x);
            scene.text(Point::new(x + SIGN_PX, y), name, style);
            x = next;
        }
    };
    for class in BreakdownClass::ALL.into_iter().take(4) {
        entry(scene, class.name(), &|scene, x| draw_class_sign(scene, class, x, y));
    }
    let lines = [
        ("allocated", Role::PeakAllocated, Dash::Solid, 2.0),
        ("reserved", Role::PeakReserved, Dash::Solid, 2.0),
        ("peak allocated", Role::PeakAllocated, Dash::Dashed, 1.5),
        ("peak reserved", Role::PeakReserved, Dash::Dotted, 1.5),
    ];
    for (name, role, dash, width) in lines {
        entry(scene, name, &|scene, x| {
            scene.line(Point::new(x, y - 4.0), Point::new(x + 16.0, y - 4.0), role, dash, width);
        });
    }
}
