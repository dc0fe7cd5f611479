//! A snapshot's device as a recorded run, for verification and for questions about other settings.

use crate::snapshot::{
    DeviceSnapshot, SnapshotBlock, SnapshotEntry, SnapshotError, SnapshotFile, SnapshotSegment,
};
use crate::{Meta, RecordedBlock, RecordedRun, RecordedSegment};
use blockyard_record::{BlockState, Bytes, PoolId, TraceAction};

use crate::trace::beginning::Beginning;
use crate::trace::record::least_capacity;

/// The device at `place` of [`SnapshotFile::devices`] as a recorded run: its trace, its final segments and
/// the settings.
///
/// A snapshot does not have the device's memory; the run has the smallest memory that explains the snapshot.
///
/// # Errors
///
/// [`SnapshotError::Field`] if no such device exists, and for host memory, whose allocator is another
/// one.
pub fn recorded_run(file: &SnapshotFile, place: usize, name: &str) -> Result<RecordedRun, SnapshotError> {
    let device = file.device(place)?;
    let beginning = Beginning::of(file, device);
    let trace = (0..device.trace.len()).map_while(|index| device.trace.entry(index)).collect();
    Ok(RecordedRun {
        meta: Meta {
            name: name.to_owned(),
            conf: file.conf_of(device).to_owned(),
            torch: file.release().to_string(),
            total_memory: total_memory(device, &beginning),
            ..Meta::default()
        },
        trace: Some(trace),
        trace_pools: trace_pools(file, device),
        segments: Some(device.segments.iter().map(recorded_segment).collect()),
        keepers: file.keepers.clone(),
        ..RecordedRun::default()
    })
}

/// The memory pool of each entry, if all entries that allocate name one.
fn trace_pools(file: &SnapshotFile, device: &DeviceSnapshot) -> Vec<PoolId> {
    let of = |entry: SnapshotEntry| {
        let pool = file.contexts.get(entry.context as usize)?.pool_id;
        let is_needed = matches!(entry.entry.action, TraceAction::Alloc | TraceAction::SegmentAlloc);
        if is_needed { pool } else { Some(pool.unwrap_or(PoolId::DEFAULT)) }
    };
    device.trace.iter().map(of).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// At least the memory that the run needs. An expandable segment has an eighth more addresses than the device
/// has memory, so a long one shows a larger device.
fn total_memory(device: &DeviceSnapshot, beginning: &Beginning) -> Bytes {
    let extents = beginning.ranges.iter().map(|(range, _)| range.end.saturating_sub(range.start));
    let longest = extents.max().unwrap_or(0);
    let needed = Bytes::new((longest / 9).saturating_add(1).saturating_mul(8));
    least_capacity(device, &beginning.snapshot).max(if longest == 0 { Bytes::ZERO } else { needed })
}

fn recorded_segment(segment: &SnapshotSegment) -> RecordedSegment {
    let mut sums = segment.sums;
    if sums.iter().all(|sum| sum.is_zero()) {
        // Old releases have no sums, or they are those of an empty segment.
        let sum = |part: &dyn Fn(&SnapshotBlock) -> Bytes| segment.blocks.iter().map(part).sum();
        sums = [
            sum(&|block| if block.state == BlockState::Allocated { block.size } else { Bytes::ZERO }),
            sum(&|block| if block.state.is_active() { block.size } else { Bytes::ZERO }),
            sum(&|block| {
                if block.state.is_active() { block.requested.unwrap_or(block.size) } else { Bytes::ZERO }
            }),
        ];
    }
    RecordedSegment {
        addr: segment.addr,
        size: segment.size,
        stream: segment.stream,
        pool_id: segment.pool_id,
        pool: segment.pool,
        is_expandable: segment.is_expandable,
        sums,
        blocks: segment
            .blocks
            .iter()
            .map(|block| RecordedBlock {
                addr: block.addr(),
                size: block.size,
                requested: block.requested.unwrap_or_default(),
                state: block.state.name().to_owned(),
            })
            .collect(),
    }
}
