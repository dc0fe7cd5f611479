//! All allocations of a recording as columns: where each block is, how long it lives, and its segment, stream
//! and pool.

mod collect;
mod gradients;
mod index;

pub use self::collect::Collector;

use blockyard_record::{AllocationId, Bytes, DeviceAddr, PoolId, PoolKind, SegmentId, StreamId};

use self::index::IntervalIndex;

/// Stands for a moment that the recording does not reach: a block that is never freed.
pub(crate) const NEVER: u32 = u32::MAX;

/// All allocations of a recording, by ascending [`AllocationId`], and the memory that the allocator had
/// reserved.
///
/// Moments count complete steps, as everywhere in figures. A block that step `s` allocates and step `f` frees
/// exists at the moments `s + 1 ..= f`. A [`Collector`] makes the columns in slices, so that a page can do it
/// between frames.
///
/// At each moment the sizes of the allocations whose free was not requested add up to the allocated bytes,
/// and the sizes of those whose free is not completed add up to the active bytes.
#[derive(Clone, Debug, Default)]
pub struct Allocations {
    ids: Vec<AllocationId>,
    addrs: Vec<u64>,
    sizes: Vec<u64>,
    requested: Vec<u64>,
    starts: Vec<u32>,
    /// For each row, the moments from which on the free is requested (`frees`) and completed (`ends`).
    frees: Vec<u32>,
    ends: Vec<u32>,
    segments: Vec<SegmentId>,
    /// Indices into `streams` and `pools`.
    stream_indices: Vec<u16>,
    pool_indices: Vec<u16>,
    streams: Vec<StreamId>,
    pools: Vec<(PoolId, PoolKind)>,
    reserved: Vec<ReservedRange>,
    moments: usize,
    /// The rows without a stack that are gradients, ascending.
    gradients: Vec<u32>,
    /// Active bytes at each moment, in units of 512 bytes; larger sums than fit are cut off, since only their
    /// order counts.
    pub(crate) active: Vec<u32>,
    /// For each group of moments the moment with the most active bytes; each further level is for `GROUP`
    /// groups of the level before.
    busiest: Vec<Vec<u32>>,
    /// The rows by size, an entry for each power of two.
    classes: Vec<SizeClass>,
    reserved_index: IntervalIndex,
}

/// One allocation: its life in moments, its block, and the block's segment, stream and pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationLifetime {
    /// The allocation's number in the recording.
    pub id: AllocationId,
    /// The address of the allocation's block.
    pub addr: DeviceAddr,
    /// The size of the block.
    pub size: Bytes,
    /// The requested bytes.
    pub requested: Bytes,
    /// The first moment at which the allocation exists; 0 if it is older than the recording.
    pub start: usize,
    /// The first moment at which the free is requested; `None` if the recording ends before.
    pub freed: Option<usize>,
    /// The first moment at which the block can be used again; `None` if the recording ends before.
    pub end: Option<usize>,
    /// The segment that the block is part of.
    pub segment: SegmentId,
    /// The stream that the block belongs to.
    pub stream: StreamId,
    /// The memory pool that the block belongs to.
    pub pool_id: PoolId,
    /// The block pool, small or large, that the block belongs to.
    pub pool: PoolKind,
}

/// Addresses with memory of the device: a segment, or a range of mapped pages of an expandable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReservedRange {
    pub(crate) addr: u64,
    pub(crate) size: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The allocations whose sizes have the same power of two.
#[derive(Clone, Debug, Default)]
struct SizeClass {
    /// Ascending, which is also the order of their starts.
    rows: Vec<u32>,
    index: IntervalIndex,
    ends: Vec<u32>,
}

/// How many moments of one level make one of the next.
const GROUP: usize = 16;

impl Allocations {
    /// How many allocations there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no allocation.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// How many moments there are: one more than steps.
    pub fn moments(&self) -> usize {
        self.moments
    }

    /// The allocation of a row.
    pub fn get(&self, row: usize) -> Option<AllocationLifetime> {
        let moment = |moment: u32| (moment != NEVER).then_some(moment as usize);
        let (pool_id, pool) = *self.pools.get(*self.pool_indices.get(row)? as usize)?;
        Some(AllocationLifetime {
            id: *self.ids.get(row)?,
            addr: DeviceAddr::new(*self.addrs.get(row)?),
            size: Bytes::new(*self.sizes.get(row)?),
            requested: Bytes::new(*self.requested.get(row)?),
            start: *self.starts.get(row)? as usize,
            freed: moment(*self.frees.get(row)?),
            end: moment(*self.ends.get(row)?),
            segment: *self.segments.get(row)?,
            stream: *self.streams.get(*self.stream_indices.get(row)? as usize)?,
            pool_id,
            pool,
        })
    }

    /// The row of an allocation.
    pub fn row(&self, id: AllocationId) -> Option<usize> {
        let place = id.get() as usize;
        if self.ids.get(place) == Some(&id) {
            return Some(place);
        }
        self.ids.binary_search(&id).ok()
    }

    /// The streams of allocations, in the order in which they appear.
    pub fn streams(&self) -> &[StreamId] {
        &self.streams
    }

    /// The pools of allocations, in the order in which they appear.
    pub fn pools(&self) -> &[(PoolId, PoolKind)] {
        &self.pools
    }

    /// The rows of all allocations that exist at this moment and whose free is not requested by then,
    /// ascending. Their sizes add up to the allocated bytes.
    pub fn allocated_at(&self, moment: usize) -> Vec<usize> {
        let moment = crate::conversions::step_u32(moment);
        let mut rows = Vec::new();
        self.active_at(moment, 0, &mut rows);
        rows.retain(|row| self.frees.get(*row as usize).is_some_and(|freed| *freed > moment));
        rows.sort_unstable();
        rows.into_iter().map(|row| row as usize).collect()
    }

    /// Adds the rows of the allocations that are active at this moment, of this size class and larger
    /// classes, the largest class first.
    pub(crate) fn active_at(&self, moment: u32, smallest_class: usize, rows: &mut Vec<u32>) {
        for class in self.classes.iter().skip(smallest_class).rev() {
            class.index.at(moment, |place| rows.extend(class.rows.get(place)));
        }
    }

    /// How many allocations of the size class are active at this moment.
    pub(crate) fn active_count(&self, moment: u32, class: usize) -> usize {
        let Some(class) = self.classes.get(class) else { return 0 };
        let begun = class.index.begun(moment);
        begun.saturating_sub(class.ends.partition_point(|end| *end <= moment))
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// The moment with the most active bytes among the moments from `from` on and before `to`. Over many
    /// moments, `from` and `to` count as rounded up to whole groups.
    pub(crate) fn busiest(&self, from: usize, to: usize) -> usize {
        let to = to.min(self.moments);
        let from = from.min(to.saturating_sub(1));
        let mut level = 0;
        let mut width = 1_usize;
        while level < self.busiest.len() && (to - from) / (width * GROUP) >= GROUP {
            (level, width) = (level + 1, width * GROUP);
        }
        let most = |best: usize, moment: usize| {
            let active = |moment: usize| self.active.get(moment).copied().unwrap_or(0);
            if active(moment) > active(best) { moment } else { best }
        };
        match level.checked_sub(1).and_then(|level| self.busiest.get(level)) {
            None => (from..to).fold(from, most),
            Some(groups) => {
                let range = from.div_ceil(width)..to.div_ceil(width).min(groups.len());
                let mut best = groups.get(range).unwrap_or_default().iter().map(|moment| *moment as usize);
                let first = best.next().unwrap_or(from);
                best.fold(first, most)
            }
        }
    }

    /// The most active bytes at any moment from `from` on and before `to`, in units of 512 bytes.
    pub(crate) fn most_units(&self, from: usize, to: usize) -> u32 {
        let to = to.min(self.moments);
        let (mut at, mut most) = (from, 0);
        while at < to {
            let (mut level, mut width) = (0, 1_usize);
            while level < self.busiest.len() && at.is_multiple_of(width * GROUP) && to - at >= width * GROUP {
                (level, width) = (level + 1, width * GROUP);
            }
            let group = level.checked_sub(1).and_then(|level| self.busiest.get(level)?.get(at / width));
            let moment = group.map_or(at, |moment| *moment as usize);
            most = most.max(self.active.get(moment).copied().unwrap_or(0));
            at += width;
        }
        most
    }

    /// Calls `found` with each range that is reserved at this moment, in no order.
    pub(crate) fn reserved_at(&self, moment: u32, mut found: impl FnMut(&ReservedRange)) {
        self.reserved_index.at(moment, |place| {
            if let Some(reserved) = self.reserved.get(place) {
                found(reserved);
            }
        });
    }

    pub(crate) fn reserved(&self) -> &[ReservedRange] {
        &self.reserved
    }

    pub(crate) fn addrs(&self) -> &[u64] {
        &self.addrs
    }

    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    pub(crate) fn frees(&self) -> &[u32] {
        &self.frees
    }

    /// Whether the row is a gradient although it has no stack: its size, its life and the parameters of the
    /// recording say so.
    pub fn is_gradient_without_stack(&self, row: usize) -> bool {
        self.gradients.binary_search(&crate::conversions::step_u32(row)).is_ok()
    }

    /// The id of a row.
    pub fn id(&self, row: usize) -> Option<AllocationId> {
        self.ids.get(row).copied()
    }

    /// The bytes of memory that the columns and their indices take.
    pub fn memory(&self) -> usize {
        let per_row = 3 * size_of::<u64>() + 5 * size_of::<u32>() + 2 * size_of::<u16>();
        let classes: usize =
            self.classes.iter().map(|class| class.rows.len() * 8 + class.index.memory()).sum();
        self.len() * per_row
            + classes
            + self.active.len() * 4
            + self.reserved.len() * size_of::<ReservedRange>()
    }
}

/// The size class of a size: the power of two at or below it.
pub(crate) fn size_class(size: u64) -> usize {
    size.max(1).ilog2() as usize
}
