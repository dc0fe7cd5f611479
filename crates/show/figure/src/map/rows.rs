//! The rows of the segment map, and their heights.

use blockyard_record::{BlockId, Bytes, DeviceAddr, MemoryState, PoolId, SegmentId, SegmentInfo};

use crate::changes::{Changes, ReleasedSegment};
use crate::geometry::Size;
use crate::map::view::MapView;

/// The additional height of a zoomed segment's row, for the strip that shows the whole segment.
pub(super) const OVERVIEW_PX: f32 = 30.0;

/// One row of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Segment(SegmentInfo),
    /// A segment that the current step released.
    Released(ReleasedSegment),
    /// The heading over the segments of a memory pool, where there are several memory pools.
    Heading(PoolHeading),
}

/// A memory pool whose segments follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolHeading {
    pub(super) pool_id: PoolId,
    /// The index of the memory pool in the map; the default pool has the index 0.
    pub(super) place: usize,
    pub(super) segments: usize,
    pub(super) reserved: Bytes,
}

/// The height of the part above the rows.
const HEADER_PX: f32 = 24.0;

/// The height of a heading.
const HEADING_PX: f32 = 24.0;

impl Row {
    fn id(&self) -> Option<SegmentId> {
        match self {
            Self::Segment(info) => Some(info.id),
            Self::Released(ghost) => Some(ghost.segment),
            Self::Heading(_) => None,
        }
    }

    pub(super) fn size(&self) -> Bytes {
        match self {
            Self::Segment(info) => info.size,
            Self::Released(ghost) => ghost.size,
            Self::Heading(_) => Bytes::ZERO,
        }
    }

    fn pool_id(&self) -> PoolId {
        match self {
            Self::Segment(info) => info.pool_id,
            Self::Released(ghost) => ghost.pool_id,
            Self::Heading(heading) => heading.pool_id,
        }
    }

    fn addr(&self) -> DeviceAddr {
        match self {
            Self::Segment(info) => info.addr,
            Self::Released(ghost) => ghost.addr,
            Self::Heading(_) => DeviceAddr::new(0),
        }
    }
}

/// All rows in order, and where they are.
pub(super) struct Rows {
    pub(super) list: Vec<Row>,
    pub(super) header_px: f32,
    pub(super) row_px: f32,
    /// Where each row begins, and where the last one ends.
    tops_px: Vec<f32>,
    zoomed: Option<usize>,
}

impl Rows {
    pub(super) fn new(state: &MemoryState, changed: &Changes, view: &MapView) -> Self {
        let segments = state.segments().map(Row::Segment);
        let mut rows: Vec<_> = segments.chain(changed.released.iter().copied().map(Row::Released)).collect();
        if !changed.released.is_empty() {
            rows.sort_by_key(|row| (row.addr(), row.id()));
        }
        let rows = in_pools(rows);
        let zoomed = view.zoom.and_then(|zoom| {
            rows.iter().position(|row| matches!(row, Row::Segment(info) if info.id == zoom.segment))
        });
        let (header_px, row_px) = (HEADER_PX, view.rows.row_px());
        let mut end_px = header_px;
        let mut tops_px = vec![end_px];
        for (index, row) in rows.iter().enumerate() {
            end_px += match row {
                Row::Heading(_) => HEADING_PX,
                _ if zoomed == Some(index) => row_px + OVERVIEW_PX,
                _ => row_px,
            };
            tops_px.push(end_px);
        }
        Self { list: rows, header_px, row_px, tops_px, zoomed }
    }

    /// Where the row begins, from the top of all rows with the header above them.
    pub(super) fn top_px(&self, index: usize) -> f32 {
        self.tops_px.get(index).or_else(|| self.tops_px.last()).copied().unwrap_or(self.header_px)
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

    /// The index of the first row in sight, and of the row after the last one in sight.
    pub(super) fn visible(&self, scroll_px: f32, height_px: f32) -> (usize, usize) {
        let ends = self.tops_px.get(1..).unwrap_or_default();
        let first = ends.partition_point(|end| end - scroll_px <= self.header_px);
        let last = self.tops_px.partition_point(|top| top - scroll_px < height_px).min(self.list.len());
        (first.min(last), last)
    }
}

/// The rows by memory pool, each pool under its heading; as they are where there is only the default pool.
fn in_pools(mut rows: Vec<Row>) -> Vec<Row> {
    if rows.iter().all(|row| row.pool_id() == PoolId::DEFAULT) {
        return rows;
    }
    // Within a pool the order stays.
    rows.sort_by_key(Row::pool_id);
    let mut grouped = Vec::with_capacity(rows.len() + 4);
    for (place, rows) in rows.chunk_by(|one, other| one.pool_id() == other.pool_id()).enumerate() {
        let segments = rows.iter().filter(|row| matches!(row, Row::Segment(_)));
        grouped.extend(rows.first().map(|row| {
            Row::Heading(PoolHeading {
                pool_id: row.pool_id(),
                place,
                segments: segments.clone().count(),
                reserved: segments.map(Row::size).sum(),
            })
        }));
        grouped.extend_from_slice(rows);
    }
    grouped
}

/// Where the row's head ends and the bars are: from the first x to before the second.
pub(super) fn bars_px(size: Size) -> (f32, f32) {
    let width = size.tame().width_px;
    let left = if width < 560.0 { 112.0 } else { 178.0 };
    let left = f32::min(left, width / 2.0).floor();
    (left, (width - 6.0).max(left + 1.0))
}

/// The height of all rows and the header, for a scroll bar. Rows of segments just released count, hence
/// `changed`.
pub fn segment_map_height(state: &MemoryState, changed: &Changes, view: &MapView) -> f32 {
    Rows::new(state, changed, view).height_px()
}

/// The scroll position nearest to the present scroll position at which the block's row is in sight; the
/// present one where the block does not exist any more.
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

/// The segments in sight and the places of their rows, so that the rows keep their places when a step adds or
/// removes rows above them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapAnchor(Vec<(SegmentId, f32)>);

impl MapAnchor {
    /// The rows that are in sight now.
    #[must_use]
    pub fn of(state: &MemoryState, changed: &Changes, view: &MapView, size: Size) -> Self {
        let rows = Rows::new(state, changed, view);
        let height = size.tame().height_px;
        let scroll = rows.scroll_px(view.scroll_px, height);
        // At the top the reader looks at the beginning, and not at a segment.
        if scroll < 1.0 {
            return Self::default();
        }
        let (first, last) = rows.visible(scroll, height);
        let seen = rows.list.iter().enumerate().take(last).skip(first);
        Self(seen.filter_map(|(index, row)| Some((row.id()?, rows.top_px(index) - scroll))).collect())
    }

    /// The scroll position at which the first of these rows that still exists has its old place; the present
    /// scroll position if none exists.
    pub fn scroll_px(&self, state: &MemoryState, changed: &Changes, view: &MapView, size: Size) -> f32 {
        let rows = Rows::new(state, changed, view);
        let height = size.tame().height_px;
        let found = self.0.iter().find_map(|(segment, y_px)| {
            let index = rows.list.iter().position(|row| row.id() == Some(*segment))?;
            Some(rows.top_px(index) - y_px)
        });
        rows.scroll_px(found.unwrap_or(view.scroll_px), height)
    }
}
