//! The shown part of the segment map: the scroll position, and the enlarged segment.

use std::sync::Arc;

use blockyard_record::{AllocationId, BlockId, Bytes, MemoryState, PoolId, SegmentId};

use crate::conversions::{bytes_f64, count_px, round_bytes};
use crate::geometry::Size;
use crate::map::rows::bars_px;
use crate::scene::TargetId;

/// How the segment map is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapView {
    /// How far the rows are scrolled up.
    pub scroll_px: f32,
    /// A segment of which only a part is shown, enlarged.
    pub zoom: Option<SegmentZoom>,
    /// The chosen block.
    pub selected: Option<BlockId>,
    /// Chosen allocations, ascending.
    pub picked: Arc<Vec<AllocationId>>,
    /// The target under the pointer.
    pub hovered: Option<TargetId>,
    /// The height of the rows.
    pub rows: RowHeight,
    /// The program's names of its memory pools, by ascending id.
    pub pool_names: Arc<Vec<(PoolId, String)>>,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentZoom {
    /// The segment that is magnified.
    pub segment: SegmentId,
    /// The first byte shown, from the segment's start.
    pub from: Bytes,
    /// The byte after the last one shown.
    pub to: Bytes,
}

/// How high rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowHeight {
    /// As low as text allows, for many segments.
    #[default]
    Low,
    /// Between low and high.
    Middle,
    /// For a few segments.
    High,
    /// For a few segments with much room.
    Highest,
}

impl RowHeight {
    /// The highest at which this many rows are in sight in a map of `height_px`.
    ///
    /// Meant for the most segments that a recording ever has: rows that change their height while it plays
    /// are hard to follow.
    #[must_use]
    pub fn fitting(rows: usize, height_px: f32) -> Self {
        let fits = |height: &Self| 48.0 + count_px(rows) * height.row_px() <= height_px;
        [Self::Highest, Self::High, Self::Middle].into_iter().find(fits).unwrap_or_default()
    }

    /// The height of a segment's row.
    pub fn row_px(self) -> f32 {
        match self {
            Self::Low => 26.0,
            Self::Middle => 36.0,
            Self::High => 48.0,
            Self::Highest => 76.0,
        }
    }

    /// The height of the bar in a row.
    pub(super) fn bar_px(self) -> f32 {
        self.row_px() - 6.0
    }
}

/// The direction of a key from a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the block before, in the order of rows.
    Left,
    /// To the block after.
    Right,
    /// To the row above, at the same place.
    Up,
    /// To the row below, at the same place.
    Down,
    /// To the first block of the row.
    Home,
    /// To the last block of the row.
    End,
    /// To the first block of the map.
    First,
    /// To the last block of the map.
    Last,
}

/// The smallest part of a segment that a zoom shows.
const MIN: Bytes = Bytes::new(2048);

impl SegmentZoom {
    /// The part from `from` on that is `span` bytes long, moved into a segment of `size` bytes; `None` where
    /// the part is the whole segment.
    fn within(segment: SegmentId, size: Bytes, from: f64, span: f64) -> Option<Self> {
        let span = round_bytes(span).max(MIN);
        if span >= size {
            return None;
        }
        let from = round_bytes(from.max(0.0)).min(size.saturating_sub(span));
        Some(Self { segment, from, to: from.saturating_add(span) })
    }
}

/// The zoom after turning the wheel by `factor` (2 shows half as much) over `x_px` of the segment's row;
/// `None` once the whole segment is shown, and where the segment was released.
pub fn zoom_segment(
    state: &MemoryState,
    view: &MapView,
    segment: SegmentId,
    x_px: f32,
    factor: f64,
    size: Size,
) -> Option<SegmentZoom> {
    let info = state.segments().find(|info| info.id == segment)?;
    let (from, span) = shown(view, segment, info.size);
    let bars = bars_px(size);
    let fraction = f64::from((x_px - bars.0) / (bars.1 - bars.0).max(1.0)).clamp(0.0, 1.0);
    let factor = if factor.is_finite() { factor.clamp(0.01, 100.0) } else { 1.0 };
    let wanted = (span / factor).max(bytes_f64(MIN));
    SegmentZoom::within(segment, info.size, from + fraction * (span - wanted), wanted)
}

/// The zoom moved to the right by `fraction` of the shown part; `None` without a zoom.
pub fn pan_segment(state: &MemoryState, view: &MapView, fraction: f64) -> Option<SegmentZoom> {
    let zoom = view.zoom?;
    let info = state.segments().find(|info| info.id == zoom.segment)?;
    let (from, span) = shown(view, zoom.segment, info.size);
    let by = if fraction.is_finite() { span * fraction } else { 0.0 };
    SegmentZoom::within(zoom.segment, info.size, from + by, span)
}

/// Start and length of the part that the view shows of a segment of `size` bytes.
fn shown(view: &MapView, segment: SegmentId, size: Bytes) -> (f64, f64) {
    let (from, to) = view.window(segment, size);
    (bytes_f64(from), bytes_f64(to.saturating_sub(from)))
}

impl MapView {
    /// The program's name of the memory pool.
    pub(super) fn pool_name(&self, pool_id: PoolId) -> Option<&str> {
        let index = self.pool_names.binary_search_by_key(&pool_id, |(id, _)| *id).ok()?;
        self.pool_names.get(index).map(|(_, name)| name.as_str())
    }

    /// The bytes that are shown of a segment: the zoomed part where that is sound, else all.
    pub(super) fn window(&self, segment: SegmentId, size: Bytes) -> (Bytes, Bytes) {
        match self.zoom {
            Some(zoom) if zoom.segment == segment && zoom.from < zoom.to.min(size) => {
                (zoom.from, zoom.to.min(size))
            }
            _ => (Bytes::ZERO, size),
        }
    }
}
