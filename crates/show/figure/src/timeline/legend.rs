//! The legend of the timeline.

use crate::conversions::count_px;
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Mark, Scene, TextStyle, Weight};
use crate::text_width::{first_fitting, text_width_px};
use crate::timeline::axis::TEXT_PX;
use crate::timeline::draw::{DrawnAreas, VARIED};
use crate::timeline::series::SeriesFacts;
use crate::timeline::view::LEGEND_ROW_PX;

/// The room of a legend's sign, with the distance to the name after it.
pub(super) const SIGN_PX: f32 = 20.0;
/// The distance between two entries of a legend.
const ENTRY_GAP_PX: f32 = 14.0;
/// Where the first entry begins.
const LEFT_PX: f32 = 2.0;

/// The sign of a legend's entry.
#[derive(Clone, Copy)]
enum Sign {
    Area(Fill),
    Line(Role, Dash, f32),
    /// A request that failed.
    Failure,
    /// The peaks of allocated and of reserved bytes until then.
    Peaks,
}

/// Bytes that are requested only during a part of the moments of a pixel, in words.
const VARIED_NAME: &str = "requested at times";

/// Time spans that the program named, where a bar has no room for the name.
const SPAN_NAME: &str = "named by the program";

/// The mark of a request that failed.
const FAILURE_NAME: &str = "out of memory";

/// All entries of the legend. Only some figures have rounding, pending bytes, and the things that the last
/// three entries explain. The limit is named in the plot.
fn entries() -> impl Iterator<Item = (&'static str, Sign)> {
    let class = |class: BreakdownClass| (class.name(), Sign::Area(Fill::of(class)));
    let line = |name, role, dash, width_px| (name, Sign::Line(role, dash, width_px));
    let [requested, rounding, pending, cached, _] = BreakdownClass::ALL.map(class);
    [
        requested,
        rounding,
        pending,
        cached,
        line("allocated", Role::PeakAllocated, Dash::Solid, 1.5),
        line("reserved", Role::PeakReserved, Dash::Solid, 1.5),
        ("peaks", Sign::Peaks),
        (VARIED_NAME, Sign::Area(VARIED)),
        (SPAN_NAME, Sign::Area(Fill::solid(Role::TextMuted))),
        (FAILURE_NAME, Sign::Failure),
    ]
    .into_iter()
}

/// How much room an entry of the legend takes, with the distance to the next one.
pub(super) fn entry_px(name: &str) -> f32 {
    SIGN_PX + text_width_px(name, TEXT_PX, Weight::Normal) + ENTRY_GAP_PX
}

/// The row of each of these entries and where it begins, in a figure of this width.
fn places<'a>(
    width_px: f32,
    entries: impl Iterator<Item = (&'a str, Sign)>,
) -> impl Iterator<Item = (usize, f32)> {
    let right = width_px - 4.0 + ENTRY_GAP_PX;
    entries.scan((0, LEFT_PX), move |(row, x), (name, _)| {
        let wide = entry_px(name);
        if *x + wide > right && *x > LEFT_PX {
            (*row, *x) = (*row + 1, LEFT_PX);
        }
        let place = (*row, *x);
        *x += wide;
        Some(place)
    })
}

/// How many lines hold all entries that a figure of the run may have.
pub(super) fn rows(width_px: f32, facts: SeriesFacts) -> usize {
    let may_be_there = entries().filter(|(name, _)| match *name {
        VARIED_NAME => facts.is_long,
        "rounding" => facts.has_rounding,
        "pending" => facts.has_pending,
        SPAN_NAME => facts.has_time_spans,
        FAILURE_NAME => facts.has_failures,
        _ => true,
    });
    places(width_px, may_be_there).last().map_or(1, |(row, _)| row + 1)
}

/// The sign of a class in a legend whose text is on the line `y`.
pub(super) fn draw_class_sign(scene: &mut Scene, class: BreakdownClass, x: f32, y: f32) {
    scene.add_rect(Rect::new(x, y - 10.0, 14.0, 11.0), Fill::of(class), Some(class.role()));
}

/// Which things occur in a figure, so that its legend explains them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LegendContent {
    pub(super) areas: DrawnAreas,
    /// Whether there are time spans that the program named, as bars.
    pub(super) has_bars: bool,
    pub(super) has_failures: bool,
}

/// A value at which the plot has a line, or would have one if the scale reached so far, and that the plot
/// does not name.
#[derive(Clone, Debug)]
pub(super) struct UnnamedBound {
    pub(super) text: String,
    pub(super) has_line: bool,
}

/// The legend on the last `rows` lines of the scene, and the bounds that the plot does not name. Only things
/// that occur in the figure have entries.
pub(super) fn draw_legend(scene: &mut Scene, rows: usize, explained: LegendContent, bounds: &[UnnamedBound]) {
    let shown = || {
        entries().filter(|(name, _)| match *name {
            VARIED_NAME => explained.areas.is_varied,
            "rounding" => explained.areas.has_rounding,
            "pending" => explained.areas.has_pending,
            SPAN_NAME => explained.has_bars,
            FAILURE_NAME => explained.has_failures,
            _ => true,
        })
    };
    let style = TextStyle::new(Role::TextMuted, TEXT_PX);
    let last = scene.height_px - 7.0;
    let y_of = |row: usize| last - count_px(rows.saturating_sub(row + 1)) * LEGEND_ROW_PX;
    let mut end = (0, LEFT_PX);
    for ((name, sign), (row, x)) in shown().zip(places(scene.width_px, shown())) {
        // Rows that do not fit into a low figure are left out.
        if row >= rows {
            break;
        }
        end = (row, x + entry_px(name));
        let y = y_of(row);
        draw_sign(scene, sign, x, y);
        scene.add_text(Point::new(x + SIGN_PX, y), name, style);
    }
    if rows == 0 || bounds.is_empty() {
        return;
    }
    let joined = |is_long: bool| {
        let text = |bound: &UnnamedBound| match (is_long, bound.has_line) {
            (true, false) => format!("{}, beyond the scale", bound.text),
            _ => bound.text.clone(),
        };
        bounds.iter().map(text).collect::<Vec<_>>().join("; ")
    };
    let right = scene.width_px - 4.0;
    if let Some(text) = first_fitting(&[joined(true), joined(false)], TEXT_PX, Weight::Normal, right - end.1)
    {
        scene.add_text(Point::new(right, y_of(end.0)), text, style.anchored(Anchor::End));
    }
}

fn draw_sign(scene: &mut Scene, sign: Sign, x: f32, y: f32) {
    let box_of = Rect::new(x, y - 10.0, 14.0, 11.0);
    match sign {
        Sign::Area(fill) => scene.add_rect(box_of, fill, Some(fill.role)),
        Sign::Line(role, dash, width_px) => {
            scene.add_line(Point::new(x, y - 4.0), Point::new(x + 16.0, y - 4.0), role, dash, width_px);
        }
        Sign::Failure => {
            let tip =
                [Point::new(x + 1.0, y - 9.0), Point::new(x + 13.0, y - 9.0), Point::new(x + 7.0, y + 1.0)];
            scene.marks.push(Mark::Area { points: tip.to_vec(), fill: Fill::solid(Role::Failure) });
        }
        Sign::Peaks => {
            for (y, role, dash) in
                [(y - 7.0, Role::PeakReserved, Dash::Dotted), (y - 2.0, Role::PeakAllocated, Dash::Dashed)]
            {
                scene.add_line(Point::new(x, y), Point::new(x + 16.0, y), role, dash, 1.0);
            }
        }
    }
}
