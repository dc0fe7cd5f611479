use std::cmp::Reverse;

use blockyard_record::{BlockId, Bytes, DeviceAddr, MemoryState, SegmentId, SegmentInfo};

use crate::changes::{Changes, Ghost};
use crate::geometry::Size;
use crate::map::view::{MapOrder, MapScale, MapView};
use crate::numbers::{count_px, floor_count};

/// The additional height of a zoomed segment's row, for the strip that shows the whole segment.
pub(super) const OVERVIEW_PX: f32 = 30.0;

/// One row of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Segment(SegmentInfo),
    /// A segment that the current step released.
    Ghost(Ghost),
}

impl Row {
    pub(super) fn id(&self) -> SegmentId {
        match self {
            Self::Segment(info) => info.id,
            Self::Ghost(ghost) => ghost.segment,
        }
    }

    pub(super) fn size(&self) -> Bytes {
        match self {
            Self::Segment(info) => info.size,
            Self::Ghost(ghost) => ghost.size,
        }
    }

    fn addr(&self) -> DeviceAddr {
        match self {
            Self::Segment(info) => info.addr,
            Self::Ghost(ghost) => ghost.addr,
        }
    }
}

/// All rows in order, and where they are.
pub(super) struct Rows {
    pub(super) list: Vec<Row>,
    pub(super) header_px: f32,
    pub(super) row_px: f32,
    zoomed: Option<usize>,
}

impl Rows {
    pub(super) fn new(state: &MemoryState, changed: &Changes, view: &MapView) -> Self {
        let segments = state.segments().map(Row::Segment);
        let mut rows: Vec<_> = segments.chain(changed.released.iter().copied().map(Row::Ghost)).collect();
        match view.order {
            MapOrder::Address if changed.released.is_empty() => {}
            MapOrder::Address => rows.sort_by_key(|row| (row.addr(), row.id())),
            MapOrder::Size => rows.sort_by_key(|row| (Reverse(row.size()), row.addr(), row.id())),
        }
        let zoomed = view.zoom.and_then(|zoom| {
            rows.iter().position(|row| matches!(row, Row::Segment(info) if info.id == zoom.segment))
        });
        Self { list: rows, header_px: header_px(view), row_px: view.rows.row_px(), zoomed }
    }

    /// Where the row begins, from the top of all rows with the header above them.
    pub(super) fn top_px(&self, index: usize) -> f32 {
        let extra = if self.zoomed.is_some_and(|zoomed| index > zoomed) { OVERVIEW_PX } else { 0.0 };
        self.header_px + count_px(index) * self.row_px + extra
    }

    pub(super) fn is_zoomed(&self, index: usize) -> bool {
        self.zoomed == Some(index)
    }

    pub(super) fn height_px(&self) -> f32 {
        self.top_px(self.list.len()).max(self.header_px + self.row_px) + 4.0
    }

    /// The wanted scroll position, limited to the last position in a window of this height.
    pub(super) fn scroll_px(&self, wish_px: f32, height_px: f32) -> f32 {
        let most = (self.height_px() - height_px).max(0.0);
        if wish_px.is_finite() { wish_px.round().clamp(0.0, most) } else { 0.0 }
    }

    /// The first row in sight and the one after the last.
    pub(super) fn visible(&self, scroll_px: f32, height_px: f32) -> (usize, usize) {
        // The range is computed with the smallest height of rows, so that a zoomed row makes the range longer by at most two.
        let first = floor_count(f64::from((scroll_px - OVERVIEW_PX) / self.row_px));
        let last = floor_count(f64::from((scroll_px + height_px - self.header_px) / self.row_px)) + 1;
        let last = last.min(self.list.len());
        let first = first.min(last);
        let is_above = |index: &usize| self.top_px(*index + 1) - scroll_px <= self.header_px;
        let hidden = (first..last).take_while(is_above).count();
        (first + hidden, last)
    }
}

pub(super) fn header_px(view: &MapView) -> f32 {
    match view.scale {
        MapScale::Each => 24.0,
        MapScale::Common => 38.0,
    }
}

/// Where the row's head ends and the bars are: from the first x to before the second.
pub(super) fn bars_px(size: Size) -> (f32, f32) {
    let width = size.tame().width_px;
    let left = if width < 560.0 { 112.0 } else { 178.0 };
    let left = f32::min(left, width / 2.0).floor();
    (left, (width - 6.0).max(left + 1.0))
}

/// The height of all rows and the header, for a scroll bar. Rows of segments just released count, hence `changed`.
#[must_use]
pub fn segment_map_height(state: &MemoryState, changed: &Changes, view: &MapView) -> f32 {
    Rows::new(state, changed, view).height_px()
}

/// The scroll position nearest to the present one at which the block's row is in sight; the present one where the block
/// is gone.
#[must_use]
pub fn scroll_to(state: &MemoryState, changed: &Changes, view: &MapView, block: BlockId, size: Size) -> f32 {
    let rows = Rows::new(state, changed, view);
    let height = size.tame().height_px;
    let segment = state.segment_of(block);
    let found =
        rows.list.iter().position(|row| matches!(row, Row::Segment(info) if Some(info.id) == segment));
    let Some(index) = found else { return view.scroll_px };
    let highest = rows.top_px(index) - rows.header_px;
    let lowest = rows.top_px(index + 1) - height;
    rows.scroll_px(view.scroll_px.max(lowest).min(highest), height)
}
