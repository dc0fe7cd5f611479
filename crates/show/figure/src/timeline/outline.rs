//! The outlines of memory over time, for drawing over another figure of the same steps.

use blockyard_record::{Bytes, Recording};

use crate::geometry::Rect;
use crate::role::Role;
use crate::scene::{Dash, Mark, Scene};
use crate::timeline::air::Air;
use crate::timeline::axis::YScale;
use crate::timeline::clock::Clock;
use crate::timeline::draw::{columns_on, draw_beyond_limit, draw_bounds, step_points};
use crate::timeline::marks::{draw_failures, draw_labels};
use crate::timeline::names::{draw_failed_requests, draw_peak};
use crate::timeline::series::Series;
use crate::timeline::view::{TimelineView, XScale};

/// The reserved bytes, the limit, the requests that failed and both peaks, over a plot that shows the bytes from
/// `low` to `high`; above the plot the time spans of a file.
pub(crate) fn draw_outlines(
    scene: &mut Scene,
    (series, recording): (&Series, &Recording),
    view: &TimelineView,
    clock: Option<&Clock>,
    plot: Rect,
    (low, high): (Bytes, Bytes),
) {
    let view = view.clamp(series.step_count());
    let scale = XScale::by(clock, view, plot);
    let range = YScale { low, ..YScale::new(high, plot) };
    let columns = columns_on(&scale, series, recording, &view, &plot);
    draw_beyond_limit(scene, series, &columns, &range);
    // A line that leaves the shown bytes ends there.
    for part in columns.split(|column| !range.holds(column.extent.high[3])) {
        let points = step_points(part, |column| range.y_px(column.extent.high[3]));
        if points.len() >= 2 {
            let (role, dash, width_px) = (Role::PeakReserved, Dash::Solid, 1.5);
            scene.marks.push(Mark::Path { points, role, dash, width_px });
        }
    }
    let capacity = recording.known_capacity();
    let air = Air::new(series, &columns, &range, capacity);
    if recording.labels().is_empty() {
        draw_labels(scene, recording, &view, &scale, &plot);
    }
    draw_bounds(scene, series, &air, capacity);
    draw_failures(scene, recording, &view, &scale, &plot);
    draw_failed_requests(scene, series, &scale, &air);
    draw_peak(scene, series, recording, &scale, (&air, "request", None));
}
