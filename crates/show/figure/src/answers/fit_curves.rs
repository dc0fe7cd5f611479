//! The figure of a search for the largest value that fits: peaks over the value.

use blockyard_record::{Bytes, grouped};

use crate::{Anchor, Dash, Fill, Mark, Point, Rect, Role, Scene, Size, Weight, text_width_px};

/// The number of colors that distinguish lines; the last color of the groups is for all further lines.
const COLORS: usize = Role::GROUPS as usize - 1;
const TEXT_PX: f32 = 12.0;
const MARK_PX: f32 = 4.5;

/// The runs of one search, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitCurve {
    /// The name that distinguishes the search from the others: a GPU, a value, settings or a layout.
    pub name: String,
    /// The most that may be reserved.
    pub limit: Bytes,
    /// The GPU whose limit that is.
    pub gpu: String,
    /// The largest value that fits, where it is known.
    pub largest: Option<u64>,
    /// The runs of the search, in any order.
    pub points: Vec<FitPoint>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitPoint {
    /// The value.
    pub value: u64,
    /// Most bytes of allocated blocks.
    pub allocated: Bytes,
    /// Most bytes of segments.
    pub reserved: Bytes,
    /// The result of the run.
    pub outcome: FitOutcome,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitOutcome {
    /// No request ran out of memory.
    Fits,
    /// A request ran out of memory; the peaks are those until then.
    RunsOut,
    /// The run had no limit.
    WithoutLimit,
}

/// The color of the line of a curve, counted from 0.
pub fn fit_curve_role(index: usize) -> Role {
    Role::Group(u8::try_from(index % COLORS).unwrap_or(0))
}

/// The plot, with the value at its right edge and the bytes at its upper edge.
struct Plot {
    area: Rect,
    most_value: u64,
    most_bytes: u64,
}

impl Plot {
    fn x_px(&self, value: u64) -> f32 {
        self.area.x_px + part(value, self.most_value) * self.area.width_px
    }

    fn y_px(&self, bytes: Bytes) -> f32 {
        self.area.bottom_px() - part(bytes.get(), self.most_bytes) * self.area.height_px
    }

    fn at(&self, value: u64, bytes: Bytes) -> Point {
        Point::new(self.x_px(value), self.y_px(bytes))
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a part of a figure, from 0 to 1"
)]
fn part(number: u64, most: u64) -> f32 {
    (number as f64 / most.max(1) as f64).clamp(0.0, 1.0) as f32
}

/// The peaks of runs over the value that was varied, with the limits and the largest values that fit.
pub fn fit_curves(varied: &str, curves: &[FitCurve], size: Size) -> Scene {
    let mut scene = Scene::new(size.width_px, size.height_px);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most_value = points().map(|point| point.value).max().unwrap_or(1).max(1);
    let bytes = points().map(|point| point.reserved).chain(curves.iter().map(|curve| curve.limit));
    let most = bytes.max().unwrap_or_default().get().max(1);
    // A tenth above the highest bytes, as room for its name.
    let most_bytes = most.saturating_add(most / 10);
    let left = 72.0;
    let area = Rect::new(left, 14.0, size.width_px - left - 24.0, size.height_px - 14.0 - 48.0);
    let plot = Plot { area, most_value, most_bytes };
    draw_axes(&mut scene, &plot, varied);
    draw_limits(&mut scene, &plot, curves);
    for (index, curve) in curves.iter().enumerate() {
        draw_curve(&mut scene, &plot, index, curve);
    }
    draw_largest(&mut scene, &plot, curves);
    scene
}

fn width_px(text: &str) -> f32 {
    text_width_px(text, TEXT_PX, Weight::Normal)
}

fn draw_text(scene: &mut Scene, at: Point, text: &str, role: Role, anchor: Anchor) {
    let text = text.to_owned();
    let (size_px, weight) = (TEXT_PX, Weight::Normal);
    scene.marks.push(Mark::Text { at, text, role, size_px, anchor, clip: None, weight });
}

fn draw_segment(scene: &mut Scene, from: Point, to: Point, role: Role, dash: Dash) {
    let width_px = if role == Role::Grid { 1.0 } else { 1.5 };
    scene.marks.push(Mark::Line { from, to, role, dash, width_px });
}

fn draw_axes(scene: &mut Scene, plot: &Plot, name: &str) {
    let area = plot.area;
    for bytes in byte_ticks(plot.most_bytes) {
        let y_px = plot.y_px(bytes);
        draw_segment(
            scene,
            Point::new(area.x_px, y_px),
            Point::new(area.right_px(), y_px),
            Role::Grid,
            Dash::Solid,
        );
        let at = Point::new(area.x_px - 8.0, y_px + 4.0);
        draw_text(scene, at, &bytes.to_string(), Role::TextMuted, Anchor::End);
    }
    let y_px = area.bottom_px();
    let mut free_from = f32::MIN;
    for value in value_ticks(plot.most_value, area.width_px) {
        let (x_px, label) = (plot.x_px(value), grouped(value));
        draw_segment(
            scene,
            Point::new(x_px, y_px),
            Point::new(x_px, y_px + 5.0),
            Role::TextMuted,
            Dash::Solid,
        );
        let half = width_px(&label) / 2.0;
        if x_px - half > free_from {
            draw_text(scene, Point::new(x_px, y_px + 19.0), &label, Role::TextMuted, Anchor::Middle);
            free_from = x_px + half + 8.0;
        }
    }
    draw_segment(
        scene,
        Point::new(area.x_px, y_px),
        Point::new(area.right_px(), y_px),
        Role::TextMuted,
        Dash::Solid,
    );
    draw_text(scene, Point::new(area.right_px(), y_px + 38.0), name, Role::Text, Anchor::End);
}

/// Draws a line for each limit; limits of equal bytes share a line.
fn draw_limits(scene: &mut Scene, plot: &Plot, curves: &[FitCurve]) {
    let mut all: Vec<(Bytes, Vec<&str>)> = Vec::new();
    for curve in curves {
        match all.iter_mut().find(|(limit, _)| *limit == curve.limit) {
            Some((_, gpus)) if gpus.contains(&curve.gpu.as_str()) => {}
            Some((_, gpus)) => gpus.push(&curve.gpu),
            None => all.push((curve.limit, vec![&curve.gpu])),
        }
    }
    all.sort_by_key(|(limit, _)| std::cmp::Reverse(*limit));
    let mut free_from = f32::MIN;
    for (limit, gpus) in all {
        let y_px = plot.y_px(limit);
        let (left, right) = (plot.area.x_px, plot.area.right_px());
        draw_segment(scene, Point::new(left, y_px), Point::new(right, y_px), Role::Limit, Dash::Dashed);
        // Two limits that are nearly equal have one name, the name of the higher limit.
        if y_px - TEXT_PX > free_from {
            let mut label = format!("limit {limit}: {}", gpus.join(", "));
            if width_px(&label) > plot.area.width_px {
                label = format!("limit {limit}");
            }
            draw_text(scene, Point::new(left + 6.0, y_px - 5.0), &label, Role::Limit, Anchor::Start);
            free_from = y_px;
        }
    }
}

fn draw_curve(scene: &mut Scene, plot: &Plot, index: usize, curve: &FitCurve) {
    let role = fit_curve_role(index);
    let mut points = curve.points.clone();
    points.sort_by_key(|point| point.value);
    let fits = || points.iter().filter(|point| point.outcome == FitOutcome::Fits);
    let path = |of: fn(&FitPoint) -> Bytes| -> Vec<Point> {
        fits().map(|point| plot.at(point.value, of(point))).collect()
    };
    for (points, dash, width_px) in
        [(path(|point| point.allocated), Dash::Dotted, 1.5), (path(|point| point.reserved), Dash::Solid, 2.0)]
    {
        if points.len() > 1 {
            scene.marks.push(Mark::Path { points, role, dash, width_px });
        }
    }
    for point in &points {
        let at = plot.at(point.value, point.reserved);
        match point.outcome {
            FitOutcome::Fits => draw_mark(scene, at, index, role),
            FitOutcome::RunsOut => draw_cross(scene, plot.at(point.value, curve.limit)),
            FitOutcome::WithoutLimit => {
                let rect = Rect::new(at.x_px - MARK_PX, at.y_px - MARK_PX, 2.0 * MARK_PX, 2.0 * MARK_PX);
                scene.marks.push(Mark::Frame { rect, role, dash: Dash::Solid, width_px: 1.5 });
            }
        }
    }
    if let Some(best) = fits().find(|point| Some(point.value) == curve.largest) {
        let at = plot.at(best.value, best.reserved);
        draw_segment(scene, at, Point::new(at.x_px, plot.area.bottom_px()), role, Dash::Dotted);
    }
}

/// The largest values above the axis, each once: the lowest to the left of its line and the others to the
/// right, so that two values never lie over each other's lines.
fn draw_largest(scene: &mut Scene, plot: &Plot, curves: &[FitCurve]) {
    let mut all: Vec<u64> = curves.iter().filter_map(|curve| curve.largest).collect();
    all.sort_unstable();
    all.dedup();
    for (index, value) in all.into_iter().enumerate() {
        let (x_px, label) = (plot.x_px(value), grouped(value));
        let width = width_px(&label) + 6.0;
        let wants_left = index == 0 || x_px + width > plot.area.right_px();
        let is_left = wants_left && x_px - width > plot.area.x_px;
        let (x_px, anchor) = if is_left { (x_px - 5.0, Anchor::End) } else { (x_px + 5.0, Anchor::Start) };
        // Labels to the right are in rows, so that none lies over another.
        let row = f32::from(u8::try_from(index.saturating_sub(1) % 8).unwrap_or(0)) * (TEXT_PX + 3.0);
        draw_text(scene, Point::new(x_px, plot.area.bottom_px() - 6.0 - row), &label, Role::Text, anchor);
    }
}

/// Draws a point of a line. Each line has a separate form of points beside its color.
fn draw_mark(scene: &mut Scene, at: Point, index: usize, role: Role) {
    let fill = Fill::solid(role);
    let corner = |x: f32, y: f32| Point::new(at.x_px + x * MARK_PX, at.y_px + y * MARK_PX);
    let points = match index % 4 {
        0 => {
            let rect = Rect::new(at.x_px - MARK_PX, at.y_px - MARK_PX, 2.0 * MARK_PX, 2.0 * MARK_PX);
            scene.marks.push(Mark::Rounded { rect, fill, radius_px: MARK_PX });
            return;
        }
        1 => vec![corner(-0.9, -0.9), corner(0.9, -0.9), corner(0.9, 0.9), corner(-0.9, 0.9)],
        2 => vec![corner(0.0, -1.3), corner(1.3, 0.0), corner(0.0, 1.3), corner(-1.3, 0.0)],
        _ => vec![corner(0.0, -1.2), corner(1.2, 1.0), corner(-1.2, 1.0)],
    };
    scene.marks.push(Mark::Area { points, fill });
}

fn draw_cross(scene: &mut Scene, at: Point) {
    for (x, y) in [(-1.0, -1.0), (-1.0, 1.0)] {
        let from = Point::new(at.x_px + x * MARK_PX, at.y_px + y * MARK_PX);
        let to = Point::new(at.x_px - x * MARK_PX, at.y_px - y * MARK_PX);
        draw_segment(scene, from, to, Role::Failure, Dash::Solid);
    }
}

/// How many whole steps fit between 0 and the highest number.
fn steps(most: u64, step: u64) -> u64 {
    most.checked_div(step).unwrap_or(0)
}

/// At most seven sizes from 0 on, whose distance is a power of two.
fn byte_ticks(most: u64) -> Vec<Bytes> {
    let step = (0..63).map(|power| 1_u64 << power).find(|step| steps(most, *step) <= 6).unwrap_or(1 << 62);
    (0..=steps(most, step)).map(|number| Bytes::new(number.saturating_mul(step))).collect()
}

/// Values from 0 on, whose distance is 1, 2 or 5 and zeros.
fn value_ticks(most: u64, width_px: f32) -> Vec<u64> {
    let wanted = if width_px > 500.0 { 10 } else { 5 };
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    let all = powers.flat_map(|power| [1_u64, 2, 5].map(|part| power.saturating_mul(part)));
    let step = all.into_iter().find(|step| steps(most, *step) <= wanted).unwrap_or(u64::MAX);
    (0..=steps(most, step)).map(|number| number.saturating_mul(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(value_ticks(512, 900.0).last(), Some(&500));
        assert_eq!(value_ticks(512, 300.0), [0, 100, 200, 300, 400, 500]);
        assert_eq!(value_ticks(3, 300.0), [0, 1, 2, 3]);
        assert!(value_ticks(u64::MAX, 900.0).len() <= 11);
        let ticks = byte_ticks(Bytes::gib(17).get());
        assert_eq!((ticks.len(), ticks.get(1)), (5, Some(&Bytes::gib(4))));
        assert!(byte_ticks(u64::MAX).len() <= 7);
        assert_eq!(byte_ticks(0), [Bytes::ZERO]);
    }
}
