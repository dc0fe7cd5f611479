//! Whose allocator made a snapshot, as far as its sizes tell.

use blockyard_record::{Bytes, PoolKind, TraceAction};
use blockyard_rules::{Dialect, size};
use rustc_hash::FxHashSet;

use super::{DeviceSnapshot, SnapshotSegment};

/// The dialect whose rounding explains the blocks in use, else the places of allocations in the traces; CUDA
/// where nothing tells.
pub(super) fn dialect_of(devices: &[DeviceSnapshot]) -> Dialect {
    // Elsewhere a block may keep a remainder of up to 1 MiB, so that its size shows no rounding.
    let splits_all = |segment: &&SnapshotSegment| segment.is_expandable || segment.pool == PoolKind::Small;
    let segments = devices.iter().flat_map(|device| &device.segments).filter(splits_all);
    let blocks = segments.flat_map(|segment| &segment.blocks);
    let in_use = blocks.filter(|block| block.state.is_active());
    let sizes = in_use.filter_map(|block| Some((block.requested?, block.size)));
    Dialect::of_blocks(sizes)
        .or_else(|| Dialect::of_blocks(devices.iter().flat_map(neighbors)))
        .unwrap_or_default()
}

/// The request of each allocation after which another allocation begins, at a distance that the rounding of
/// a dialect explains, and this distance.
fn neighbors(device: &DeviceSnapshot) -> impl Iterator<Item = (Bytes, Bytes)> {
    let entries = || {
        let all = (0..device.trace.len()).map_while(|index| device.trace.entry(index));
        all.filter(|entry| entry.action == TraceAction::Alloc)
    };
    let places: FxHashSet<u64> = entries().map(|entry| entry.addr).collect();
    entries().flat_map(move |entry| {
        let padded = entry.size.saturating_add(Dialect::Ascend.padding());
        let distances = [entry.size, padded].into_iter().filter_map(size::least);
        let shown = distances.filter(|distance| places.contains(&entry.addr.saturating_add(distance.get())));
        shown.map(|distance| (entry.size, distance)).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use blockyard_record::BlockState;

    use super::*;
    use crate::snapshot::SnapshotBlock;

    /// A device with one block in use.
    fn device(pool: PoolKind, requested: u64, size: u64) -> DeviceSnapshot {
        let (requested, size) = (Some(Bytes::new(requested)), Bytes::new(size));
        let block =
            SnapshotBlock { requested, size, state: BlockState::Allocated, ..SnapshotBlock::default() };
        let segment = SnapshotSegment { pool, size, blocks: vec![block], ..SnapshotSegment::default() };
        DeviceSnapshot { segments: vec![segment], ..DeviceSnapshot::default() }
    }

    #[test]
    fn a_remainder_that_was_not_split_is_no_rounding() {
        let (mib, rest) = (1 << 20, 512);
        assert_eq!(dialect_of(&[device(PoolKind::Large, 12 * mib - rest, 12 * mib)]), Dialect::Cuda);
        assert_eq!(dialect_of(&[device(PoolKind::Small, 1024, 1536)]), Dialect::Ascend);
        assert_eq!(dialect_of(&[device(PoolKind::Small, 1024, 1024)]), Dialect::Cuda);
        assert_eq!(dialect_of(&[]), Dialect::Cuda);
    }
}
