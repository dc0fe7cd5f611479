//! Memory over time of a trace that is still being read.

use blockyard_record::Bytes;

use crate::conversions::{bytes_f64, count_px, px, round_bytes};
use crate::fill::Fill;
use crate::geometry::{Point, Size};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Dash, Mark, Scene, TextStyle};
use crate::timeline::axis::{TEXT_PX, YScale, draw_y_axis};
use crate::timeline::legend::{SIGN_PX, draw_class_sign, entry_px};
use crate::timeline::view::plot_over_one_line;

/// Memory over time of the part of a trace that has been read: the most requested and the most reserved bytes
/// of each column, as wide as the share of the file that has been read, from 0 to 1.
pub fn partial_timeline(columns: &[(Bytes, Bytes)], share_read: f64, size: Size) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let plot = plot_over_one_line(size);
    let highest = columns.iter().map(|(_, reserved)| *reserved).max().unwrap_or_default();
    let range = YScale::new(round_bytes(bytes_f64(highest.max(Bytes::mib(1))) * 1.1), plot);
    draw_y_axis(&mut scene, &range, &plot);
    let share = if share_read.is_finite() { share_read.clamp(0.0, 1.0) } else { 1.0 };
    let right_px = plot.x_px + px(share) * plot.width_px;
    let column_px = (right_px - plot.x_px) / count_px(columns.len().max(1));
    let line = |value: fn(&(Bytes, Bytes)) -> Bytes| -> Vec<Point> {
        let ends = |(index, column): (usize, &(Bytes, Bytes))| {
            let left = plot.x_px + count_px(index) * column_px;
            let y = range.y_px(value(column));
            [Point::new(left, y), Point::new(left + column_px, y)]
        };
        columns.iter().enumerate().flat_map(ends).collect()
    };
    let (requested, reserved) = (line(|column| column.0), line(|column| column.1));
    let down = |upper: &[Point], lower: &[Point]| upper.iter().chain(lower.iter().rev()).copied().collect();
    let base = [Point::new(plot.x_px, plot.bottom_px()), Point::new(right_px, plot.bottom_px())];
    if columns.len() > 1 {
        for (class, upper, lower) in [
            (BreakdownClass::Cached, &reserved, requested.as_slice()),
            (BreakdownClass::Requested, &requested, base.as_slice()),
        ] {
            scene.marks.push(Mark::Area { points: down(upper, lower), fill: Fill::of(class) });
        }
        scene.marks.push(Mark::Path {
            points: reserved,
            role: Role::PeakReserved,
            dash: Dash::Solid,
            width_px: 2.0,
        });
    }
    let bottom = plot.bottom_px().round() + 0.5;
    scene.add_hairline(Point::new(plot.x_px, bottom), Point::new(plot.right_px(), bottom), Role::TextMuted);
    let edge = right_px.floor() + 0.5;
    scene.add_line(
        Point::new(edge, plot.y_px),
        Point::new(edge, plot.bottom_px()),
        Role::TextMuted,
        Dash::Dashed,
        1.0,
    );
    draw_legend(&mut scene, plot.x_px);
    scene
}

fn draw_legend(scene: &mut Scene, left_px: f32) {
    let y = scene.height_px - 7.0;
    let mut x = left_px;
    for (class, name) in [
        (BreakdownClass::Requested, "requested"),
        (BreakdownClass::Cached, "reserved and not requested: cached, or rounding"),
    ] {
        draw_class_sign(scene, class, x, y);
        scene.add_text(Point::new(x + SIGN_PX, y), name, TextStyle::new(Role::TextMuted, TEXT_PX));
        x += entry_px(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right_edge(scene: &Scene) -> f32 {
        let points = scene.marks.iter().filter_map(|mark| match mark {
            Mark::Area { points, .. } => Some(points),
            _ => None,
        });
        points.flatten().map(|point| point.x_px).fold(0.0, f32::max)
    }

    #[test]
    fn the_figure_is_as_wide_as_what_is_read() {
        let columns = vec![(Bytes::mib(10), Bytes::mib(20)); 8];
        let size = Size::new(800.0, 200.0);
        let plot = plot_over_one_line(size);
        for share in [0.25, 1.0, 7.0] {
            let scene = partial_timeline(&columns, share, size);
            let expected = plot.x_px + px(share.min(1.0)) * plot.width_px;
            assert!((right_edge(&scene) - expected).abs() < 0.01, "{share}");
        }
    }

    #[test]
    fn nothing_read_is_an_empty_plot() {
        let scene = partial_timeline(&[], f64::NAN, Size::new(800.0, 200.0));
        assert!(!scene.marks.iter().any(|mark| matches!(mark, Mark::Area { .. })));
    }
}
