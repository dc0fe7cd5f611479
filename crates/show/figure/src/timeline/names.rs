//! Names and values within the figure: the peak at the peak, and each area in the area.

use blockyard_record::{Bytes, Recording, grouped};

use crate::fill::{Fill, Pattern};
use crate::geometry::{Point, Rect};
use crate::labels::{AreaStrip, PLATE_PX, baseline, roomiest_place};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, Mark, Scene, Target, TargetId, TextStyle, Weight};
use crate::text_width::text_width_px;
use crate::timeline::air::{Air, leader_end};
use crate::timeline::axis::{TEXT_PX, YScale, grid_lines_px};
use crate::timeline::draw::Column;
use crate::timeline::marks::column;
use crate::timeline::series::{FailedRequest, MAX_FAILED, Series};
use crate::timeline::view::XScale;

/// A text with a longer line to its point is left for a shorter text.
const MAX_LEADER_PX: f32 = 90.0;

/// The distance between a point and its label.
const BESIDE_PX: f32 = 7.0;

/// The places that no text may cover: other texts, and the marks of failures and time spans.
fn taken(scene: &Scene) -> Vec<Rect> {
    let texts = scene.marks.iter().filter(|mark| matches!(mark, Mark::Text { .. })).map(Mark::bounds);
    texts.chain(scene.targets.iter().map(|target| target.rect)).collect()
}

/// The upright lines of labels and failures.
#[expect(clippy::float_cmp, reason = "an upright line has one position")]
fn upright(scene: &Scene) -> impl Iterator<Item = Rect> + '_ {
    let is_upright = |mark: &&Mark| matches!(mark, Mark::Line { from, to, .. } if from.x_px == to.x_px);
    scene.marks.iter().filter(is_upright).map(Mark::bounds)
}

/// The fine lines of the axis of bytes in the plot.
fn level(range: &YScale, plot: &Rect) -> Vec<Rect> {
    grid_lines_px(range).map(|y| Rect::new(plot.x_px, y, plot.width_px, 1.0)).collect()
}

/// The width of a request that failed.
const FAILED_PX: f32 = 14.0;

/// Draws a request that failed on top of the reserved bytes, as high as the segment that it needed: so the
/// reader sees by how much it does not fit below the limit. Under an expandable segment it begins at the cached
/// end of the segment. Where enough bytes were free in pieces, the largest
/// piece is drawn beside it. `y_px` is the vertical scale. Returns the request's rectangle.
fn draw_failed_request(
    scene: &mut Scene,
    failed: &FailedRequest,
    x_px: f32,
    plot: &Rect,
    y_px: impl Fn(Bytes) -> f32,
) -> Rect {
    let foot = y_px(failed.foot).clamp(plot.y_px, plot.bottom_px());
    let standing = |left: f32, top: f32| {
        let top = top.min(foot - 3.0).max(plot.y_px);
        Rect::new(left, top, FAILED_PX, (foot - top).max(1.0))
    };
    let left = (x_px - FAILED_PX / 2.0).min(plot.right_px() - FAILED_PX).max(plot.x_px).floor();
    let request = standing(left, y_px(failed.top()));
    scene.add_rect(request, Fill::solid(Role::Background), None);
    scene.add_rect(request, Fill { role: Role::Failure, pattern: Pattern::Hatch }, None);
    scene.add_frame(request, Role::Failure, Dash::Solid, 2.0);
    scene.add_target(request, TargetId::FailedStep(failed.step));
    if let Some((_, largest)) = failed.in_pieces {
        let left =
            if left - FAILED_PX >= plot.x_px { left - FAILED_PX - 2.0 } else { request.right_px() + 2.0 };
        let piece = standing(left, y_px(failed.foot.saturating_add(largest)));
        scene.add_rect(piece, Fill::solid(Role::Background), None);
        scene.add_rect(piece, Fill::of(BreakdownClass::Cached), Some(Role::Cached));
        scene.add_target(piece, TargetId::FailedStep(failed.step));
    }
    request
}

/// What the figure says about a request that failed, the longest wording first.
fn failed_texts(failed: &FailedRequest) -> Vec<String> {
    let FailedRequest { requested, segment_size, in_pieces, is_growth, .. } = *failed;
    let asked = format!("out of memory: {requested} asked for");
    let mut texts = Vec::new();
    if let Some((free, largest)) = in_pieces {
        texts.push(format!("{asked}, {free} free in pieces, the largest {largest}"));
        texts.push(format!("{requested} asked for, largest free block {largest}"));
    } else if segment_size > requested && !is_growth {
        texts.push(format!("{asked}, in a segment of {segment_size}"));
    }
    texts.extend([asked, "out of memory".to_owned()]);
    texts
}

/// Draws the requests that failed, and writes their bytes beside the marks of their failures, while these are
/// few.
pub(super) fn draw_failed_requests(scene: &mut Scene, series: &Series, scale: &XScale, air: &Air<'_>) {
    let is_failure = |target: &&Target| matches!(target.what, TargetId::FailedStep(_));
    let marks: Vec<Target> = scene.targets.iter().filter(is_failure).copied().collect();
    if marks.len() > MAX_FAILED {
        return;
    }
    for mark in marks {
        let failed = series.failed().iter().find(|failed| mark.what == TargetId::FailedStep(failed.step));
        let Some(failed) = failed.filter(|failed| air.range.holds(failed.foot)) else { continue };
        let x = scale.x_px(f64::from(failed.step) + 1.0).floor() + 0.5;
        draw_failed_request(scene, failed, x, &air.range.plot, |bytes| air.range.y_px(bytes));
        let texts = failed_texts(failed);
        let taken: Vec<Rect> = taken(scene).into_iter().chain(upright(scene)).collect();
        let width = |text: &String| text_width_px(text, TEXT_PX, Weight::Bold).ceil() + 6.0;
        let (left, right, y) = (mark.rect.x_px, mark.rect.right_px(), mark.rect.y_px);
        let places = texts.iter().flat_map(|text| {
            let lefts = [left - 2.0 - width(text), right + 2.0];
            lefts.map(|left| (text, Rect::new(left.round(), (y + 1.0).round(), width(text), PLATE_PX)))
        });
        let is_free = |place: &Rect| air.is_clear(place) && !taken.iter().any(|other| other.overlaps(place));
        let Some((text, place)) = places.into_iter().find(|(_, place)| is_free(place)) else { continue };
        scene.add_rect(place, Fill::solid(Role::Background), None);
        let at = Point::new(place.x_px + 3.0, baseline(place.center().y_px, TEXT_PX));
        scene.add_text(at, text.clone(), TextStyle::new(Role::Failure, TEXT_PX).bold());
        scene.add_target(place, mark.what);
    }
}

/// A peak that is as near as this to a failure has no name.
const AT_FAILURE_PX: f32 = 60.0;

/// A dot at the most allocated and at the most reserved bytes, of the first `last` steps if it is given, each
/// with its value and its moment, which is a request or a step.
pub(super) fn draw_peak(
    scene: &mut Scene,
    series: &Series,
    recording: &Recording,
    scale: &XScale,
    (air, moment_name, last): (&Air<'_>, &str, Option<usize>),
) {
    let range = air.range;
    if range.plot.height_px < 60.0 {
        return;
    }
    for (border, name, role, target) in [
        (1, "peak allocated", Role::PeakAllocated, TargetId::PeakAllocated),
        (3, "peak reserved", Role::PeakReserved, TargetId::PeakReserved),
    ] {
        let (bytes, moment) = series.highest(recording, border, last);
        let (left, right) = column(scale, moment);
        // The point is where the step ends, as ticks and the cursor are.
        let x = if right - left >= 2.0 { right } else { left.floor() + 0.5 };
        let is_seen = x >= range.plot.x_px && x <= range.plot.right_px() && range.holds(bytes);
        if bytes.is_zero() || !is_seen {
            continue;
        }
        let texts = [format!("{name} {bytes}, {moment_name} {}", grouped(moment)), format!("{name} {bytes}")];
        // A run that fails fails at its peak most often, and the failure has the name there.
        let is_at_failure = scene.targets.iter().any(|target| {
            matches!(target.what, TargetId::FailedStep(_))
                && (target.rect.center().x_px - x).abs() < AT_FAILURE_PX
        });
        let texts = if is_at_failure { &[][..] } else { &texts[..] };
        // The request is drawn there.
        let is_covered = scene.targets.iter().any(|target| {
            matches!(target.what, TargetId::FailedStep(_))
                && target.rect.grown(1.0).contains(x, range.y_px(bytes))
        });
        if is_covered {
            continue;
        }
        draw_point(scene, Point::new(x, range.y_px(bytes)), texts, (role, target), air);
    }
}

/// A dot, and the first of `texts` where nothing else is drawn: beside the dot, or else at the nearest such
/// place with a line to the dot. A dot without room for a text says its value under the pointer.
fn draw_point(
    scene: &mut Scene,
    at: Point,
    texts: &[String],
    (role, target): (Role, TargetId),
    air: &Air<'_>,
) {
    let taken = taken(scene);
    let lines: Vec<Rect> = taken.iter().copied().chain(upright(scene)).collect();
    let all_lines: Vec<Rect> = lines.iter().copied().chain(level(air.range, &air.range.plot)).collect();
    let width = |text: &String| text_width_px(text, TEXT_PX, Weight::Bold).ceil() + 6.0;
    let beside = |text: &String, taken: &[Rect]| {
        let (right, left) = (at.x_px + BESIDE_PX, at.x_px - BESIDE_PX - width(text));
        let above = at.y_px - PLATE_PX - 1.0;
        let higher = above - PLATE_PX - 1.0;
        let corners = [(right, above), (left, above), (right, higher), (left, higher)];
        let plates = corners.map(|(x, y)| Rect::new(x.round(), y.round(), width(text), PLATE_PX));
        plates
            .into_iter()
            .find(|plate| air.is_clear(plate) && !taken.iter().any(|other| other.overlaps(plate)))
    };
    // Places that cover no line come first, then places that cover lines of the grid, of labels or of
    // failures.
    let near = |lines: &[Rect]| texts.iter().find_map(|text| Some((text, beside(text, lines)?, false)));
    let far = || {
        let places = texts.iter().filter_map(|text| {
            let place = air.nearest(at, width(text), PLATE_PX, &lines)?;
            let end = leader_end(at, &place);
            Some((text, place, (end.x_px - at.x_px).hypot(end.y_px - at.y_px)))
        });
        let places: Vec<(&String, Rect, f32)> = places.collect();
        // A short text near the point is better than a long text with a long line over the data.
        let first = places.iter().find(|(.., distance)| *distance <= MAX_LEADER_PX);
        let found = first.or_else(|| places.iter().min_by(|one, other| one.2.total_cmp(&other.2)))?;
        Some((found.0, found.1, true))
    };
    let found = near(&all_lines).or_else(|| near(&taken)).or_else(far);
    if let Some((text, plate, is_far)) = found {
        if is_far {
            scene.add_hairline(at, leader_end(at, &plate), role);
        }
        // The plate covers lines of the grid, of labels and of the area beyond the limit, which are not data.
        scene.add_rect(plate, Fill::solid(Role::Background), None);
        let baseline = baseline(plate.center().y_px, TEXT_PX);
        let style = TextStyle::new(role, TEXT_PX).bold();
        scene.add_text(Point::new(plate.x_px + 3.0, baseline), text.clone(), style);
        scene.add_target(plate, target);
    } else {
        scene.add_target(Rect::new(at.x_px - 5.0, at.y_px - 5.0, 10.0, 10.0), target);
    }
    // The dot of the reserved bytes is hollow, so that the peaks are told apart without color.
    let hollow = (role == Role::PeakReserved).then_some((2.0, Role::Background));
    for (size, role) in [(8.0, Role::Background), (6.0, role)].into_iter().chain(hollow) {
        let dot = Rect::new(at.x_px - size / 2.0, at.y_px - size / 2.0, size, size);
        scene.add_rounded(dot, Fill::solid(role), size / 2.0);
    }
}

/// The name of each class within its area, where the area has room for it. A name over a hatch would need a
/// separate ground, which would cover the area: the legend alone names hatched areas. The first `skipped`
/// classes have no name.
pub(super) fn draw_area_names(scene: &mut Scene, columns: &[Column], range: &YScale, skipped: usize) {
    let mut taken: Vec<Rect> = taken(scene).into_iter().chain(upright(scene)).collect();
    let plot = &range.plot;
    let grid = level(range, plot);
    for (index, class) in BreakdownClass::ALL.into_iter().take(4).enumerate().skip(skipped) {
        if matches!(class, BreakdownClass::Rounding | BreakdownClass::Pending) {
            continue;
        }
        let low = |column: &Column| if index == 0 { Bytes::ZERO } else { column.extent.high[index - 1] };
        // Only where the bytes are in the class all the time.
        let high =
            |column: &Column| if index == 0 { column.extent.low[0] } else { column.extent.high[index] };
        let name = class.name();
        let width = text_width_px(name, TEXT_PX, Weight::Bold).ceil() + 8.0;
        let strip = |column: &Column| AreaStrip {
            left_px: column.left_px,
            right_px: column.right_px,
            top_px: range.y_px(high(column)),
            foot_px: range.y_px(low(column)),
        };
        let strips: Vec<AreaStrip> = columns.iter().map(strip).collect();
        // Between the lines of the grid where there is room.
        let without_lines: Vec<Rect> = taken.iter().copied().chain(grid.iter().copied()).collect();
        let found = roomiest_place(&strips, width, PLATE_PX, &without_lines);
        let Some(place) = found.or_else(|| roomiest_place(&strips, width, PLATE_PX, &taken)) else {
            continue;
        };
        let role = if index == 0 { Role::TextOnRequested } else { Role::Text };
        let at = Point::new(place.x_px + 4.0, baseline(place.center().y_px, TEXT_PX));
        scene.add_text(at, name, TextStyle::new(role, TEXT_PX).bold());
        taken.push(place);
    }
}
