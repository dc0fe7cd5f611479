//! Marks of the timeline: labels and failures.

use blockyard_record::{Label, Marker, Recording, StepOutcome};

use crate::conversions::count_f64;
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::role::Role;
use crate::scene::{Dash, Mark, Scene, TargetId, TextStyle, Weight};
use crate::text_width::{fitted, text_width_px};
use crate::timeline::axis::TEXT_PX;
use crate::timeline::view::{TimelineView, XScale};

/// Marks closer than this are drawn as one.
const NEAR_PX: f32 = 3.0;
/// The height of the lane of labels.
const LANE_PX: f32 = 18.0;
/// With more failures in sight than these, none has a line through the figure.
const MAX_FAILURE_LINES: usize = 40;

/// The names of steps, ascending: labels, or the markers of the program where there are no labels.
enum Names<'a> {
    Labels(&'a [Label]),
    Markers(&'a [Marker]),
}

impl<'a> Names<'a> {
    fn of(recording: &'a Recording) -> Self {
        if recording.labels().is_empty() {
            Self::Markers(recording.markers())
        } else {
            Self::Labels(recording.labels())
        }
    }

    /// The first step of a name, and the name.
    fn get(&self, index: usize) -> Option<(u32, &'a str)> {
        match self {
            Self::Labels(labels) => labels.get(index).map(|label| (label.step, label.text.as_str())),
            Self::Markers(markers) => markers.get(index).map(|it| (it.start_step, it.text.as_str())),
        }
    }

    /// The index of the first name from `from` on for whose step `is_before` is false.
    fn first(&self, from: usize, is_before: impl Fn(u32) -> bool) -> usize {
        match self {
            Self::Labels(labels) => {
                let rest = labels.get(from..).unwrap_or_default();
                from + rest.partition_point(|label| is_before(label.step))
            }
            Self::Markers(markers) => {
                let rest = markers.get(from..).unwrap_or_default();
                from + rest.partition_point(|marker| is_before(marker.start_step))
            }
        }
    }
}

/// The labels, in a lane above the figure: a tick where a label begins, and its name if there is room. Those of
/// a workload have a line through the figure too. A program may name dozens of time spans, whose lines would
/// hide the curves.
pub(super) fn draw_labels(
    scene: &mut Scene,
    recording: &Recording,
    view: &TimelineView,
    scale: &XScale,
    plot: &Rect,
) {
    let labels = Names::of(recording);
    // The memory after the first step of a label fills the next column.
    let begin = |step: u32| f64::from(step) + 1.0;
    let from = labels.first(0, |step| begin(step) < view.first_step);
    let to = labels.first(0, |step| begin(step) <= view.last_step);
    let right = plot.right_px();
    let foot = if matches!(labels, Names::Labels(_)) { plot.bottom_px() } else { LANE_PX };
    let mut text_end = plot.x_px;
    if let Some((_, running)) = from.checked_sub(1).and_then(|index| labels.get(index)) {
        let next = labels.get(from).map_or(right, |(step, _)| scale.x_px(begin(step)).min(right));
        let style = TextStyle::new(Role::TextMuted, TEXT_PX);
        if let Some(text) = fitted(&format!("… {running}"), TEXT_PX, Weight::Normal, next - plot.x_px - 10.0)
        {
            text_end += text_width_px(&text, TEXT_PX, Weight::Normal) + 8.0;
            scene.add_text(Point::new(plot.x_px + 2.0, 13.0), text, style);
        }
    }
    let mut index = from;
    let mut before = "";
    while let Some((step, name)) = labels.get(index).filter(|_| index < to) {
        let x = scale.x_px(begin(step));
        let x_line = x.floor() + 0.5;
        // The line is shorter where it would cross the name of the label before.
        let top = if x_line < text_end { LANE_PX } else { 4.0 };
        if top < foot {
            let (from, to) = (Point::new(x_line, top), Point::new(x_line, foot));
            scene.add_line(from, to, Role::TextMuted, Dash::Dotted, 1.0);
        }
        let left = x_line + 4.0;
        let room = (right - left).min(220.0);
        // A name equal to that of the label before is not written again.
        let is_new = std::mem::replace(&mut before, name) != name;
        if is_new
            && left >= text_end
            && let Some(text) = fitted(name, TEXT_PX, Weight::Normal, room)
        {
            let width = text_width_px(&text, TEXT_PX, Weight::Normal);
            scene.add_text(Point::new(left, 13.0), text, TextStyle::new(Role::Text, TEXT_PX));
            scene.add_target(Rect::new(x_line - 2.0, 0.0, width + 8.0, LANE_PX), TargetId::Label(step));
            text_end = left + width + 8.0;
        } else {
            scene.add_target(Rect::new(x_line - 2.0, 0.0, 4.0, LANE_PX), TargetId::Label(step));
        }
        // The next label that is far enough away, found by binary search.
        index = labels.first(index + 1, |step| scale.x_px(begin(step)) < x + NEAR_PX).max(index + 1);
    }
}

/// The requests that ran out of memory. Returns whether one is in sight.
pub(super) fn draw_failures(
    scene: &mut Scene,
    recording: &Recording,
    view: &TimelineView,
    scale: &XScale,
    plot: &Rect,
) -> bool {
    let mut is_drawn = false;
    let failed_steps = recording.failed_steps();
    let place = |step: u32| f64::from(step) + 1.0;
    let from = failed_steps.partition_point(|(step, _)| place(*step) < view.first_step);
    let to = failed_steps.partition_point(|(step, _)| place(*step) <= view.last_step);
    // Many failures would be a red fence before the figure: beyond these, only the triangles are drawn.
    let is_crowded = to - from > MAX_FAILURE_LINES;
    let mut index = from;
    while let Some((step, outcome)) = failed_steps.get(index).filter(|_| index < to) {
        if !matches!(outcome, StepOutcome::OutOfMemory(_)) {
            index += 1;
            continue;
        }
        let x = scale.x_px(place(*step));
        let ahead = failed_steps.get(index + 1..to).unwrap_or_default();
        let near = ahead.partition_point(|(step, _)| scale.x_px(place(*step)) < x + 2.0 * NEAR_PX);
        let x_line = x.floor() + 0.5;
        let top = plot.y_px;
        if !is_crowded {
            let line = (Point::new(x_line, top), Point::new(x_line, plot.bottom_px()));
            scene.add_line(line.0, line.1, Role::Background, Dash::Solid, 3.0);
            scene.add_line(line.0, line.1, Role::Failure, Dash::Dashed, 1.0);
        }
        let tip = vec![
            Point::new(x_line - 6.0, top),
            Point::new(x_line + 6.0, top),
            Point::new(x_line, top + 10.0),
        ];
        scene.marks.push(Mark::Area { points: tip, fill: Fill::solid(Role::Failure) });
        scene.add_target(Rect::new(x_line - 6.0, top, 12.0, 14.0), TargetId::FailedStep(*step));
        is_drawn = true;
        index += 1 + near;
    }
    is_drawn
}

/// Where the column of a moment lies.
pub(super) fn column(scale: &XScale, step: usize) -> (f32, f32) {
    (scale.x_px(count_f64(step)), scale.x_px(count_f64(step) + 1.0))
}
