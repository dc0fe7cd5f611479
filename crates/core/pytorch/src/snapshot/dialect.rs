//! Whose allocator made a snapshot, as far as its sizes tell.

use blockyard_record::{Bytes, TraceAction};
use blockyard_rules::{Dialect, size};
use rustc_hash::FxHashSet;

use super::DeviceSnapshot;

/// The dialect whose rounding explains the blocks in use, else the places of allocations in the traces; CUDA
/// where nothing tells.
pub(super) fn dialect_of(devices: &[DeviceSnapshot]) -> Dialect {
    let segments = devices.iter().flat_map(|device| &device.segments);
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
