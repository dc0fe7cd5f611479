//! The run as a slim strip for seeking, with a tick where each chapter begins.

use blockyard_record::{Bytes, Recording, StepOutcome};

use crate::conversions::{bytes_f64, count_f64, floor_count, px, round_bytes};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect, Size};
use crate::labels::{AreaStrip, LabelRows, PLATE_PX, baseline, roomiest_place};
use crate::role::Role;
use crate::scene::{Dash, Mark, Scene, TargetId, TextStyle, Weight};
use crate::text_width::{fitted, text_width_px};
use crate::timeline::axis::{TEXT_PX, YScale};
use crate::timeline::clock::Clock;
use crate::timeline::cursor::timeline_range;
use crate::timeline::draw::{Column, columns, columns_on, draw_areas};
use crate::timeline::series::Series;
use crate::timeline::view::{TimelineView, XScale};

/// The height of the line with the chapters' names.
fn names_px(width_px: f32) -> f32 {
    text_px(width_px) + 8.0
}

/// The size of the letters, which are larger on a large screen.
fn text_px(width_px: f32) -> f32 {
    (width_px / 130.0).round().clamp(12.0, 22.0)
}

/// Ticks closer than this are drawn as one.
const NEAR_PX: f32 = 3.0;

fn plot(size: Size) -> Rect {
    Rect::new(0.0, 2.0, size.width_px, (size.height_px - names_px(size.width_px) - 2.0).max(4.0))
}

/// A part of the run over the whole width, without axes: allocated and cached bytes, ticks and names of
/// chapters, and failures.
pub fn timeline_strip(series: &Series, recording: &Recording, view: &TimelineView, size: Size) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let view = view.clamp(series.step_count());
    let plot = plot(size);
    let columns = columns(series, recording, &view, &plot);
    let highest = columns.iter().map(|column| column.extent.high[3]).max().unwrap_or_default();
    let value = value_place(&columns, highest, &plot);
    let top =
        if value.is_some_and(|(_, is_clear)| !is_clear) { with_headroom(highest, &plot) } else { highest };
    draw_on_base(&mut scene, &columns, top, plot, size);
    let scale = XScale::new(view, plot);
    draw_chapters(&mut scene, recording, &scale, &plot);
    draw_failures(&mut scene, recording, &scale, &plot);
    if let Some((place, _)) = value {
        draw_values(&mut scene, &columns, (highest, place), &YScale::new(top, plot));
    }
    scene
}

/// A strip that is lower than this has room for its areas alone.
const NAMED_PX: f32 = 34.0;

/// The place at the upper edge for the text of the highest bytes, and whether this place is clear of areas:
/// at the left, or else at the right. `None` for a strip without room.
fn value_place(columns: &[Column], highest: Bytes, plot: &Rect) -> Option<(Rect, bool)> {
    if highest.is_zero() || plot.height_px < NAMED_PX {
        return None;
    }
    let width = text_width_px(&highest.to_string(), TEXT_PX, Weight::Bold).ceil() + 6.0;
    let place = |left: f32| Rect::new(left, plot.y_px + 1.0, width, PLATE_PX - 1.0);
    let range = YScale::new(highest, *plot);
    let is_clear = |place: &Rect| {
        let near =
            columns.iter().filter(|column| column.right_px > place.x_px && column.left_px < place.right_px());
        near.map(|column| range.y_px(column.extent.high[3])).all(|y| y >= place.bottom_px())
    };
    let left = place(1.0);
    let found = [left, place(plot.right_px() - width - 1.0)].into_iter().find(is_clear);
    Some((found.unwrap_or(left), found.is_some()))
}

/// The bytes at the upper edge, where a line of text is above the highest areas.
fn with_headroom(highest: Bytes, plot: &Rect) -> Bytes {
    round_bytes(bytes_f64(highest) * f64::from(plot.height_px / (plot.height_px - PLATE_PX - 1.0).max(1.0)))
}

/// The highest bytes at their place, and the names of both areas where they have room.
fn draw_values(scene: &mut Scene, columns: &[Column], (highest, place): (Bytes, Rect), range: &YScale) {
    let size_px = TEXT_PX;
    let mut taken: Vec<Rect> = scene.targets.iter().map(|target| target.rect).collect();
    let at = Point::new(place.x_px + 3.0, baseline(place.center().y_px, size_px));
    scene.add_text(at, highest.to_string(), TextStyle::new(Role::Text, size_px).bold());
    taken.push(place);
    for (name, low, high, role) in
        [("allocated", None, 1, Role::TextOnRequested), ("cached", Some(2), 3, Role::Text)]
    {
        let y = |column: &Column, border: Option<usize>| {
            range.y_px(border.and_then(|border| column.extent.high.get(border).copied()).unwrap_or_default())
        };
        let strip = |column: &Column| AreaStrip {
            left_px: column.left_px,
            right_px: column.right_px,
            // Where rounding begins, a text would lie over a hatch.
            top_px: y(column, Some(if low.is_none() { high - 1 } else { high })),
            foot_px: y(column, low),
        };
        let strips: Vec<AreaStrip> = columns.iter().map(strip).collect();
        let width = text_width_px(name, size_px, Weight::Bold).ceil() + 8.0;
        let Some(area) = roomiest_place(&strips, width, PLATE_PX - 2.0, &taken) else { continue };
        let at = Point::new(area.x_px + 4.0, baseline(area.center().y_px, size_px));
        scene.add_text(at, name, TextStyle::new(role, size_px).bold());
        taken.push(area);
    }
}

/// A small timeline of allocated and cached bytes, on a scale that several runs share: `top` bytes are the
/// height, and the width is a part of the longest run.
pub fn small_timeline(
    series: &Series,
    recording: &Recording,
    top: Bytes,
    view: &TimelineView,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let end = TimelineView::fit(series.step_count()).last_step;
    let own = TimelineView { last_step: view.last_step.min(end), ..*view };
    if own.span() <= 0.0 {
        return scene;
    }
    let share = own.span() / view.span();
    let plot = Rect::new(0.0, 1.0, size.width_px * px(share), (size.height_px - 2.0).max(4.0));
    let columns = columns(series, recording, &own, &plot);
    draw_on_base(&mut scene, &columns, top, plot, size);
    draw_failures(&mut scene, recording, &XScale::new(own, plot), &plot);
    scene
}

/// The areas with a line under them; `top` bytes are the height.
fn draw_on_base(scene: &mut Scene, columns: &[Column], top: Bytes, plot: Rect, size: Size) {
    // Dots are too coarse for so little room.
    let _ = draw_areas(scene, columns, &YScale::new(top, plot), Pattern::Tint);
    let base = plot.bottom_px().floor() + 0.5;
    scene.add_hairline(Point::new(0.0, base), Point::new(size.width_px, base), Role::Grid);
}

/// A tick where each chapter begins, and its name where there is room.
fn draw_chapters(scene: &mut Scene, recording: &Recording, scale: &XScale, plot: &Rect) {
    let labels = recording.labels();
    let x_of = |step: u32| scale.x_px(f64::from(step) + 1.0);
    // A view of the whole run shows all labels.
    let labels =
        labels.get(labels.partition_point(|label| x_of(label.step) < plot.x_px)..).unwrap_or_default();
    let labels =
        labels.get(..labels.partition_point(|label| x_of(label.step) <= plot.right_px())).unwrap_or_default();
    let text_px = text_px(plot.width_px);
    let mut names = LabelRows::new(0.0, plot.width_px, 1);
    let mut index = 0;
    let mut drawn = 0_usize;
    while let Some(label) = labels.get(index).filter(|_| drawn < 400) {
        let x = x_of(label.step);
        let ahead = labels.get(index + 1..).unwrap_or_default();
        let near = ahead.partition_point(|label| x_of(label.step) < x + NEAR_PX);
        let next = labels.get(index + 1 + near).map_or(plot.right_px(), |label| x_of(label.step));
        index += 1 + near;
        drawn += 1;
        let x_line = x.floor() + 0.5;
        let (top, foot) = (plot.bottom_px() - 4.0, plot.bottom_px() + 5.0);
        scene.add_line(Point::new(x_line, top), Point::new(x_line, foot), Role::Text, Dash::Solid, 2.0);
        scene
            .add_target(Rect::new(x_line - 4.0, plot.y_px, 8.0, plot.height_px), TargetId::Label(label.step));
        // A name that is cut off is left out, unless most of it is visible.
        let room = next - x - 10.0;
        let name = fitted(&label.text, text_px, Weight::Normal, room)
            .filter(|name| name.chars().count() * 2 > label.text.chars().count());
        let Some(name) = name else { continue };
        let width = text_width_px(&name, text_px, Weight::Normal);
        if let Some(place) = names.place(x + width / 2.0 + 2.0, width) {
            let at = Point::new(place.left_px.round(), plot.bottom_px() + text_px + 4.0);
            scene.add_text(at, name, TextStyle::new(Role::TextMuted, text_px));
            let rect = Rect::new(place.left_px, plot.bottom_px() + 4.0, width, names_px(plot.width_px) - 4.0);
            scene.add_target(rect, TargetId::Label(label.step));
        }
    }
}

fn draw_failures(scene: &mut Scene, recording: &Recording, scale: &XScale, plot: &Rect) {
    let mut before = f32::NEG_INFINITY;
    for (step, outcome) in recording.failed_steps() {
        let x = scale.x_px(f64::from(*step) + 1.5);
        let is_hidden = x < plot.x_px - 6.0 || x > plot.right_px() + 6.0;
        if is_hidden || x < before + NEAR_PX || !matches!(outcome, StepOutcome::OutOfMemory(_)) {
            continue;
        }
        before = x;
        let tip = vec![
            Point::new(x - 6.0, plot.y_px),
            Point::new(x + 6.0, plot.y_px),
            Point::new(x, plot.y_px + 9.0),
        ];
        scene.marks.push(Mark::Area { points: tip, fill: Fill::solid(Role::Failure) });
        scene.add_target(Rect::new(x - 6.0, plot.y_px, 12.0, 12.0), TargetId::FailedStep(*step));
    }
}

/// The moment after `step` steps, to lie over a [`timeline_strip`] of the same view and size; the moments
/// after `hidden_after` steps are covered, so that a reader can guess them.
pub fn timeline_strip_cursor(
    view: &TimelineView,
    step: usize,
    range: Option<(usize, usize)>,
    hidden_after: Option<usize>,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = plot(size);
    let scale = XScale::new(*view, plot);
    let (left, right) = (scale.x_px(count_f64(step)), scale.x_px(count_f64(step) + 1.0));
    if let Some(range) = range {
        timeline_range(&mut scene, view, None, range, &plot);
    }
    let hidden_px = hidden_after.map_or(size.width_px, |step| scale.x_px(count_f64(step) + 1.0).max(0.0));
    if hidden_px < size.width_px {
        let later = Rect::new(hidden_px, 0.0, size.width_px - hidden_px, size.height_px);
        scene.add_rect(later, Fill::solid(Role::Background), None);
        let frame = Rect::new(hidden_px, plot.y_px, size.width_px - hidden_px, plot.height_px);
        scene.add_frame(frame, Role::Grid, Dash::Dashed, 1.0);
    }
    if right < 0.0 || left > size.width_px {
        return scene;
    }
    // Before the first step there is nothing to frame.
    if step > 0 && right - left >= 4.0 {
        let column = Rect::new(left, plot.y_px, right - left, plot.height_px);
        scene.add_frame(column, Role::Cursor, Dash::Solid, 2.0);
        return scene;
    }
    let x = f32::midpoint(left, right).clamp(2.0, (size.width_px - 2.0).max(2.0));
    let (top, foot) = (Point::new(x, 0.0), Point::new(x, plot.bottom_px() + 4.0));
    scene.add_line(top, foot, Role::Background, Dash::Solid, 5.0);
    scene.add_line(top, foot, Role::Cursor, Dash::Solid, 2.0);
    scene
}

/// The whole run without axes and names, for the way through a long run; the highest bytes reserved are its
/// height.
pub fn timeline_mini_map(series: &Series, recording: &Recording, clock: Option<&Clock>, size: Size) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let (whole, plot) = (TimelineView::fit(series.step_count()), mini_plot(size));
    let scale = XScale::by(clock, whole, plot);
    let columns = columns_on(&scale, series, recording, &whole, &plot);
    draw_on_base(&mut scene, &columns, series.peak_bytes(recording).1, plot, size);
    draw_failures(&mut scene, recording, &scale, &plot);
    scene
}

fn mini_plot(size: Size) -> Rect {
    Rect::new(0.0, 1.0, size.width_px, (size.height_px - 2.0).max(4.0))
}

/// The part that other figures show, the brushed range and the moment under the cursor, to lie over a
/// [`timeline_mini_map`] of the same size.
pub fn timeline_mini_map_window(
    view: Option<&TimelineView>,
    clock: Option<&Clock>,
    step: usize,
    range: Option<(usize, usize)>,
    step_count: usize,
    size: Size,
) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = mini_plot(size);
    let scale = XScale::by(clock, TimelineView::fit(step_count), plot);
    if let Some(view) = view {
        draw_window(&mut scene, view, &scale, step_count, plot);
    }
    if let Some(range) = range {
        timeline_range(&mut scene, &TimelineView::fit(step_count), clock, range, &plot);
    }
    let x = scale.x_px(count_f64(step) + 0.5);
    let x = x.clamp(1.0, (size.width_px - 1.0).max(1.0));
    scene.add_line(Point::new(x, 0.0), Point::new(x, size.height_px), Role::Background, Dash::Solid, 3.0);
    scene.add_line(Point::new(x, 0.0), Point::new(x, size.height_px), Role::Cursor, Dash::Solid, 1.0);
    scene
}

fn draw_window(scene: &mut Scene, view: &TimelineView, scale: &XScale, step_count: usize, plot: Rect) {
    let view = view.clamp(step_count);
    let (left, right) = (scale.x_px(view.first_step), scale.x_px(view.last_step));
    let window = Rect::new(left, plot.y_px, (right - left).max(3.0), plot.height_px);
    for (from, to) in [(0.0, left), (window.right_px(), plot.right_px())] {
        if to > from {
            let outside = Rect::new(from, plot.y_px, to - from, plot.height_px);
            scene.add_rect(outside, Fill { role: Role::Background, pattern: Pattern::Tint }, None);
        }
    }
    scene.add_frame(window, Role::Changed, Dash::Solid, 2.0);
}

/// How many steps are complete at a place of a strip or a mini map that shows this part, from 0 (left) to 1.
pub fn timeline_strip_step_at(view: &TimelineView, x_fraction: f64) -> usize {
    let x_fraction = if x_fraction.is_finite() { x_fraction.clamp(0.0, 1.0) } else { 0.0 };
    let last = floor_count((view.last_step.ceil() - 1.0).max(0.0));
    floor_count((view.first_step + x_fraction * view.span()).max(0.0)).min(last)
}
