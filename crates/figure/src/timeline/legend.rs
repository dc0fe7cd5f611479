//! The legend of the timeline.

use blockyard_record::Bytes;

use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::numbers::count_px;
use crate::role::{BreakdownClass, Role};
use crate::scene::{Anchor, Dash, Scene, TextStyle, Weight};
use crate::text_width::{first_fitting, text_width_px};
use crate::timeline::axis::TEXT_PX;
use crate::timeline::draw::{DrawnAreas, VARIED};
use crate::timeline::view::{LEGEND_ROW_PX, legend_rows};

/// The room of a legend's sign, with the distance to the name after it.
pub(super) const SIGN_PX: f32 = 20.0;
/// The distance between two entries of a legend.
const ENTRY_GAP_PX: f32 = 14.0;
/// Where the first entry begins.
const LEFT_PX: f32 = 2.0;

/// What an entry of the legend explains.
#[derive(Clone, Copy)]
enum Sign {
    Area(Fill),
    Line(Role, Dash, f32),
}

/// Bytes that are requested only during a part of the moments of a pixel, in words.
const VARIED_NAME: &str = "requested at times";

/// Time spans that the program named, where a bar has no room for the name.
const SPAN_NAME: &str = "named by the program";

/// All entries of the legend. Only some figures have rounding, pending bytes, and what the last two explain.
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
        line("peak allocated", Role::PeakAllocated, Dash::Dashed, 1.0),
        line("peak reserved", Role::PeakReserved, Dash::Dotted, 1.0),
        (VARIED_NAME, Sign::Area(VARIED)),
        (SPAN_NAME, Sign::Area(Fill::solid(Role::TextMuted))),
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

/// How many lines hold all entries of the legend.
pub(super) fn rows(width_px: f32) -> usize {
    places(width_px, entries()).last().map_or(1, |(row, _)| row + 1)
}

/// The sign of a class in a legend whose text is on the line `y`.
pub(super) fn draw_class_sign(scene: &mut Scene, class: BreakdownClass, x: f32, y: f32) {
    scene.rect(Rect::new(x, y - 10.0, 14.0, 11.0), Fill::of(class), Some(class.role()));
}

/// The legend on the last lines of the scene, and the capacity if the plot does not name it, with whether the plot has its line. Only what
/// the figure has is explained: `drawn` are its areas, `has_bars` says whether there are time spans that the program named.
pub(super) fn draw_legend(
    scene: &mut Scene,
    capacity: Option<(Bytes, bool)>,
    drawn: DrawnAreas,
    has_bars: bool,
) {
    let shown = || {
        entries().filter(|(name, _)| match *name {
            VARIED_NAME => drawn.is_varied,
            "rounding" => drawn.has_rounding,
            "pending" => drawn.has_pending,
            SPAN_NAME => has_bars,
            _ => true,
        })
    };
    let rows = legend_rows(crate::geometry::Size::new(scene.width_px, scene.height_px));
    let style = TextStyle::new(Role::TextMuted, TEXT_PX);
    let last = scene.height_px - 7.0;
    let y_of = |row: usize| last - count_px(rows.saturating_sub(row + 1)) * LEGEND_ROW_PX;
    let mut end = (0, LEFT_PX);
    for ((name, sign), (row, x)) in shown().zip(places(scene.width_px, shown())) {
        // What does not fit into a low figure.
        if row >= rows {
            break;
        }
        end = (row, x + entry_px(name));
        let y = y_of(row);
        match sign {
            Sign::Area(fill) => scene.rect(Rect::new(x, y - 10.0, 14.0, 11.0), fill, Some(fill.role)),
            Sign::Line(role, dash, width_px) => {
                scene.line(Point::new(x, y - 4.0), Point::new(x + 16.0, y - 4.0), role, dash, width_px);
            }
        }
        scene.text(Point::new(x + SIGN_PX, y), name, style);
    }
    let Some((capacity, has_line)) = capacity.filter(|_| rows > 0) else { return };
    let short = format!("capacity {capacity}");
    let texts = [if has_line { short.clone() } else { format!("{short}, beyond the scale") }, short];
    let right = scene.width_px - 4.0;
    if let Some(text) = first_fitting(&texts, TEXT_PX, Weight::Normal, right - end.1) {
        scene.text(Point::new(right, y_of(end.0)), text, style.anchored(Anchor::End));
    }
}
