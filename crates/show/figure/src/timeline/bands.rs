//! Bands under a timeline: time spans that a program named.

use blockyard_record::{Marker, Recording};

use crate::conversions::step_u32;
use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::labels::baseline;
use crate::role::Role;
use crate::scene::{Dash, Scene, TargetId, TextStyle, Weight};
use crate::text_width::fitted;
use crate::timeline::axis::TEXT_PX;
use crate::timeline::view::XScale;

/// The height of a band.
const BAND_PX: f32 = 14.0;
/// How much lower a band without a name is, at its top and its foot.
const BAR_INSET_PX: f32 = 4.0;
/// A narrower band is left out: its beginning is among the marks above the figure.
const NARROW_PX: f32 = 3.0;
/// Time spans after this number of spans are left out.
const MAX_MARKERS: usize = 50_000;

/// How many rows the bands have at most.
fn most_rows(plot: &Rect) -> usize {
    if plot.height_px < 90.0 { 1 } else { 2 }
}

/// The height of the rows of bands, which the areas leave free: none where the program named no time span.
pub(super) fn lane_px(recording: &Recording, plot: &Rect) -> f32 {
    let mut open_until: Option<u32> = None;
    let mut rows = 0_usize;
    for marker in recording.markers().iter().take(MAX_MARKERS) {
        let Some(end) = marker.end_step else { continue };
        let is_inner = open_until.is_some_and(|open| open > marker.start_step);
        rows = rows.max(if is_inner { 2 } else { 1 });
        open_until = Some(open_until.map_or(end, |open| if is_inner { open.max(end) } else { end }));
    }
    crate::conversions::count_px(rows.min(most_rows(plot))) * BAND_PX
}

/// The time spans that the program named, as bands at the foot of the figure, below zero; a span within
/// another span is drawn above it. Returns whether some are bars, which have no room for a name.
pub(super) fn draw_bands(scene: &mut Scene, recording: &Recording, scale: &XScale, plot: &Rect) -> bool {
    let mut open: Vec<u32> = Vec::new();
    // Where the last band of each row ends.
    let mut rows_px = vec![plot.x_px; most_rows(plot)];
    let mut has_bars = false;
    for (index, marker) in recording.markers().iter().enumerate().take(MAX_MARKERS) {
        let Marker { start_step, end_step: Some(end), ref text, .. } = *marker else { continue };
        open.retain(|end| *end > start_step);
        let row = open.len();
        open.push(end);
        let Some(end_px) = rows_px.get_mut(row) else { continue };
        // The band begins where the step before the span ends, as ticks do.
        let left = scale.x_px(f64::from(start_step) + 1.0).max(plot.x_px).max(*end_px);
        let right = scale.x_px(f64::from(end) + 1.0).min(plot.right_px());
        if right - left < NARROW_PX {
            continue;
        }
        *end_px = right;
        let top = plot.bottom_px() - BAND_PX - if row == 0 { 0.0 } else { BAND_PX };
        let band = Rect::new(left, top, right - left, BAND_PX);
        if let Some(words) = fitted(text, TEXT_PX, Weight::Normal, band.width_px - 6.0) {
            scene.add_rect(band, Fill::solid(Role::Background), None);
            scene.add_frame(band, Role::TextMuted, Dash::Solid, 1.0);
            let at = Point::new(left + 3.0, baseline(band.center().y_px, TEXT_PX));
            scene.add_text(at, words, TextStyle::new(Role::Text, TEXT_PX));
        } else {
            // Without room for its name a frame would be an empty box: a bar says how long the span is, the
            // pointer says which.
            let bar = Rect::new(left, top + BAR_INSET_PX, right - left - 1.0, BAND_PX - 2.0 * BAR_INSET_PX);
            scene.add_rect(bar, Fill::solid(Role::TextMuted), Some(Role::Background));
            has_bars = true;
        }
        scene.add_target(band, TargetId::Marker(step_u32(index)));
    }
    has_bars
}
