//! The cursor over a timeline, and thin lines at other moments.

use blockyard_record::{Recording, grouped};

use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect, Size};
use crate::labels::baseline;
use crate::role::Role;
use crate::scene::{Anchor, Dash, Mark, Scene, TextStyle, Weight};
use crate::text_width::text_width_px;
use crate::timeline::axis::TEXT_PX;
use crate::timeline::clock::Clock;
use crate::timeline::marks::column;
use crate::timeline::view::{TimelineView, VALUES_PX, XScale, has_values};

/// The cursor at the moment after `step` complete steps, for drawing over `base`, a
/// [`timeline`](crate::timeline) of the same view with this [`plot`](crate::timeline_plot): a line beside the
/// moment, which leaves its column and all texts of the figure in sight, the step's number on the axis, and
/// above the plot the values of the moment. Steps to the left of the line have happened.
pub fn timeline_cursor(
    recording: Option<&Recording>,
    base: &Scene,
    plot: &Rect,
    view: &TimelineView,
    clock: Option<&Clock>,
    step: usize,
) -> Scene {
    let size = Size::new(base.width_px, base.height_px).tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let (left, right) = column(&XScale::by(clock, *view, *plot), step);
    if !(right >= plot.x_px - 0.5 && left <= plot.right_px()) {
        return scene;
    }
    let (left, right) = (left.max(plot.x_px), right.min(plot.right_px()));
    if right - left >= 3.0 {
        let band = Rect::new(left, plot.y_px, right - left, plot.height_px);
        scene.add_rect(band, Fill { role: Role::Cursor, pattern: Pattern::Faint }, None);
    }
    // The line is at the pixel that shows the moment.
    let x = if right - left >= 1.0 { right.floor() } else { left.floor() + 1.0 } + 0.5;
    draw_line(&mut scene, base, x, plot);
    draw_flag(&mut scene, base, x, plot, &grouped(step));
    if let Some(recording) = recording.filter(|_| has_values(size)) {
        draw_values(&mut scene, recording, plot, step, x);
    }
    scene
}

/// The line, with gaps where the figure has a text or the dot of a peak.
fn draw_line(scene: &mut Scene, base: &Scene, x: f32, plot: &Rect) {
    let (top, foot) =
        (if has_values(size_of(scene)) { plot.y_px - 4.0 } else { plot.y_px }, plot.bottom_px() + 4.0);
    let across = Rect::new(x - 1.0, top, 2.5, plot.bottom_px() - top);
    let is_kept = |mark: &&Mark| matches!(mark, Mark::Text { .. } | Mark::Rounded { .. });
    let kept = base.marks.iter().filter(is_kept).map(Mark::bounds);
    let mut gaps: Vec<Rect> = kept.filter(|text| text.overlaps(&across)).collect();
    gaps.sort_by(|one, other| one.y_px.total_cmp(&other.y_px));
    let mut from = top;
    let ends = gaps.iter().map(|gap| (gap.y_px - 1.0, gap.bottom_px() + 1.0));
    for (end, next) in ends.chain(std::iter::once((foot, foot))) {
        if end > from {
            // The line in the background color makes the cursor visible on dark areas.
            scene.add_hairline(Point::new(x + 1.0, from), Point::new(x + 1.0, end), Role::Background);
            scene.add_hairline(Point::new(x, from), Point::new(x, end), Role::Cursor);
        }
        from = from.max(next);
    }
}

fn size_of(scene: &Scene) -> Size {
    Size::new(scene.width_px, scene.height_px)
}

/// The step's number on the axis. A text of the axis that the number would cover in part is covered
/// completely.
fn draw_flag(scene: &mut Scene, base: &Scene, x: f32, plot: &Rect, text: &str) {
    let bottom = plot.bottom_px();
    let width = text_width_px(text, TEXT_PX, Weight::Bold).ceil() + 8.0;
    // The name of the axis is left of the plot.
    let least = plot.x_px - 8.0;
    let flag_left = (x - width / 2.0).clamp(least, (scene.width_px - width).max(least)).round();
    let flag = Rect::new(flag_left, bottom.round() + 3.0, width, 16.0);
    let axis = Rect::new(plot.x_px, flag.y_px, scene.width_px, 16.0);
    for mark in base.marks.iter().filter(|mark| matches!(mark, Mark::Text { anchor: Anchor::Middle, .. })) {
        let text = mark.bounds();
        if text.overlaps(&flag) && axis.contains(text.center().x_px, text.center().y_px) {
            let plate = Rect { y_px: bottom.round() + 5.0, height_px: 14.0, ..text.grown(1.0) };
            scene.add_rect(plate, Fill::solid(Role::Background), None);
        }
    }
    scene.add_rect(flag, Fill::solid(Role::Cursor), None);
    let style = TextStyle::new(Role::Background, TEXT_PX).bold().anchored(Anchor::Middle);
    scene.add_text(Point::new(flag.center().x_px, baseline(flag.center().y_px, TEXT_PX)), text, style);
}

/// The values of the moment above the plot: to the right of the line, or to the left where the right has no
/// room.
fn draw_values(scene: &mut Scene, recording: &Recording, plot: &Rect, step: usize, x: f32) {
    let breakdown = match step.checked_sub(1) {
        Some(last) => recording.breakdown_after(last).unwrap_or_default(),
        None => recording.breakdown_before(),
    };
    let texts = [
        (format!("allocated {}", breakdown.allocated()), Role::PeakAllocated),
        (format!("reserved {}", breakdown.reserved()), Role::PeakReserved),
    ];
    let widths = texts.each_ref().map(|(text, _)| text_width_px(text, TEXT_PX, Weight::Bold).ceil() + 9.0);
    let width: f32 = widths.iter().sum();
    let (beside, flipped) = (x + 3.0, x - 3.0 - width);
    let left = if beside + width <= scene.width_px || flipped < plot.x_px { beside } else { flipped };
    let mut left = left.min(scene.width_px - width).max(0.0).round();
    for ((text, role), width) in texts.into_iter().zip(widths) {
        let plate = Rect::new(left, plot.y_px - VALUES_PX + 1.0, width, VALUES_PX - 4.0);
        scene.add_rect(plate, Fill::solid(Role::Background), None);
        let at = Point::new(left + 4.0, baseline(plate.center().y_px, TEXT_PX));
        scene.add_text(at, text, TextStyle::new(role, TEXT_PX).bold());
        left += width;
    }
}

/// A thin line at a moment, for the pointer or for the moment of a report, to be drawn over a
/// [`timeline`](crate::timeline) of the same view with this plot.
pub fn timeline_line(
    scene: &mut Scene,
    view: &TimelineView,
    clock: Option<&Clock>,
    step: usize,
    role: Role,
    plot: &Rect,
) {
    let (left, right) = column(&XScale::by(clock, *view, *plot), step);
    let x = (f32::midpoint(left.max(right - 2.0), right)).floor() + 0.5;
    if x >= plot.x_px - 0.5 && x <= plot.right_px() + 0.5 {
        let (from, to) = (Point::new(x, plot.y_px), Point::new(x, plot.bottom_px()));
        scene.add_line(from, to, role, Dash::Dashed, if role == Role::Hover { 1.0 } else { 2.0 });
    }
}

/// The range of moments that the reader has brushed, to be drawn over a figure over time of the same view
/// with this plot.
pub fn timeline_range(
    scene: &mut Scene,
    view: &TimelineView,
    clock: Option<&Clock>,
    (first, last): (usize, usize),
    plot: &Rect,
) {
    let scale = XScale::by(clock, *view, *plot);
    let edge = |x: f32| x.clamp(plot.x_px, plot.right_px());
    let (left, right) = (edge(column(&scale, first).0), edge(column(&scale, last).1));
    if right > left {
        let band = Rect::new(left, plot.y_px, (right - left).max(2.0), plot.height_px);
        scene.add_rect(band, Fill { role: Role::Changed, pattern: Pattern::Faint }, None);
        scene.add_frame(band, Role::Changed, Dash::Solid, 1.0);
    }
}
