//! The figure of two timelines of the same requests.

use blockyard_record::Bytes;

use super::axes::{Axes, draw_legend};
use crate::axis_range::AxisRange;
use crate::conversions::bytes_f64;
use crate::fill::{BEYOND_LIMIT, Fill, WITHIN_LIMIT};
use crate::geometry::{Point, Rect, Size};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, Mark, Scene};

/// Two timelines of the same requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedTimelines {
    /// The timeline that the other is compared with.
    pub before: ComparedCurve,
    /// The timeline under other conditions.
    pub after: ComparedCurve,
    /// The number of requests of both runs.
    pub requests: u64,
    /// The most bytes that may be reserved, between a lower and an upper bound; `None` where the limit is not
    /// known.
    pub limit: Option<(Bytes, Bytes)>,
}

/// The curve of one run, as the parts that it is divided into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedCurve {
    /// The parts of the curve, in order of time.
    pub parts: Vec<CurvePart>,
    /// The request that ran out of memory first, counted from 1.
    pub oom: Option<u64>,
}

/// The most allocated and the most reserved bytes after any request of a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurvePart {
    /// The number of requests up to the end of this part.
    pub until: u64,
    /// Bytes of allocated blocks.
    pub allocated: Bytes,
    /// Bytes of segments.
    pub reserved: Bytes,
}

/// Both timelines on one scale. `part` is the part of the requests that is shown.
pub fn compared_timelines(compared: &ComparedTimelines, part: AxisRange, size: Size) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let parts = compared.before.parts.iter().chain(&compared.after.parts);
    let highest = parts.map(|part| part.reserved.max(part.allocated)).max().unwrap_or_default();
    // A limit that is far away would press the curves together.
    let limit = compared.limit.filter(|(_, limit)| limit.get() / 3 < highest.get());
    let most = limit.map_or(Bytes::ZERO, |(_, limit)| limit);
    let axes = Axes::new(size, compared.requests, part, most.max(highest));
    axes.draw(&mut scene);
    if let Some((lowest, limit)) = limit {
        let top = Bytes::new(u64::MAX);
        axes.draw_band(&mut scene, (limit, top), BEYOND_LIMIT);
        axes.draw_band(&mut scene, (lowest.min(limit), limit), WITHIN_LIMIT);
    }
    // The run after the change has the areas of memory over time, and the run before it has a line.
    let after = &compared.after;
    let (allocated, reserved) =
        (steps(after, &axes, |part| part.allocated), steps(after, &axes, |part| part.reserved));
    let base: Vec<Point> =
        allocated.iter().map(|point| Point::new(point.x_px, axes.plot.bottom_px())).collect();
    for (upper, lower, class) in
        [(&allocated, &base, BreakdownClass::Requested), (&reserved, &allocated, BreakdownClass::Cached)]
    {
        let points: Vec<Point> = upper.iter().chain(lower.iter().rev()).copied().collect();
        if points.is_empty() {
            continue;
        }
        scene.marks.push(Mark::Area { points, fill: Fill::of(class) });
    }
    let mut path = |points: Vec<Point>, role: Role, dash: Dash, width_px: f32| {
        if points.len() >= 2 {
            scene.marks.push(Mark::Path { points, role, dash, width_px });
        }
    };
    path(reserved, Role::PeakReserved, Dash::Solid, 1.5);
    path(allocated, Role::PeakAllocated, Dash::Solid, 1.5);
    let before = steps(&compared.before, &axes, |part| part.reserved);
    // A line in the color of the ground makes the dashes visible on dark areas.
    path(before.clone(), Role::Background, Dash::Solid, 4.0);
    path(before, Role::Text, Dash::Dashed, 2.0);
    if let Some((lowest, limit)) = limit {
        let is_band = axes.height_px(lowest, limit) >= 18.0;
        if is_band {
            axes.draw_level(
                &mut scene,
                lowest,
                Role::Limit,
                Dash::Dashed,
                &format!("limit at least {lowest}"),
            );
        }
        let text = match (lowest < limit, is_band) {
            (false, _) => format!("limit {limit}"),
            (true, true) => format!("limit at most {limit}"),
            (true, false) => format!("limit between {lowest} and {limit}"),
        };
        axes.draw_level(&mut scene, limit, Role::Limit, Dash::Dashed, &text);
    }
    for (curve, role) in [(&compared.before, Role::Text), (after, Role::Failure)] {
        if let Some(request) = curve.oom.filter(|request| axes.shows(*request)) {
            draw_failure(&mut scene, axes.x_px(request), axes.plot.y_px, role);
        }
    }
    let area = |class: BreakdownClass| {
        move |scene: &mut Scene, x: f32, y: f32| {
            let fill = Fill::of(class);
            scene.add_rect(Rect::new(x, y - 5.0, 14.0, 10.0), fill, Some(fill.role));
        }
    };
    let (requested, cached) = (area(BreakdownClass::Requested), area(BreakdownClass::Cached));
    let mut entries: Vec<super::axes::LegendEntry<'_>> = vec![
        ("reserved before", &|scene, x, y| draw_line(scene, x, y, Role::Text, Dash::Dashed)),
        ("reserved after", &|scene, x, y| draw_line(scene, x, y, Role::PeakReserved, Dash::Solid)),
        ("allocated", &requested),
        ("cached", &cached),
    ];
    if compared.before.oom.is_some() {
        entries
            .push(("out of memory before", &|scene, x, y| draw_failure(scene, x + 7.0, y - 5.0, Role::Text)));
    }
    if after.oom.is_some() {
        entries.push(("after", &|scene, x, y| draw_failure(scene, x + 7.0, y - 5.0, Role::Failure)));
    }
    draw_legend(&mut scene, &entries);
    scene
}

/// The corners of a step line.
fn steps(curve: &ComparedCurve, axes: &Axes, value: impl Fn(&CurvePart) -> Bytes) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut left = axes.x_px(0);
    for part in &curve.parts {
        let (right, y) = (axes.x_px(part.until), axes.y_px(bytes_f64(value(part))));
        // A part of the curve outside of the shown requests lies on an edge of the plot.
        if right <= left && !axes.shows(part.until) {
            continue;
        }
        match points.last_mut() {
            #[expect(
                clippy::float_cmp,
                reason = "equal values give equal floats; anything else is another level"
            )]
            Some(last) if last.y_px == y => last.x_px = right,
            _ => points.extend([Point::new(left, y), Point::new(right, y)]),
        }
        left = right;
    }
    points
}

fn draw_line(scene: &mut Scene, x: f32, y: f32, role: Role, dash: Dash) {
    scene.add_line(Point::new(x, y), Point::new(x + 16.0, y), role, dash, 2.0);
}

/// The mark of a request that failed, as memory over time has it.
fn draw_failure(scene: &mut Scene, x: f32, top: f32, role: Role) {
    let points = vec![Point::new(x - 6.0, top), Point::new(x + 6.0, top), Point::new(x, top + 10.0)];
    scene.marks.push(Mark::Area { points, fill: Fill::solid(role) });
}
