//! The facts about a block, as labels and values.

use blockyard_record::{BlockId, BlockState, MemoryState, PoolId, Recording, exact_size, grouped};

use crate::words::names::{block_name, numbered, state_word};

/// All facts about a block, as labels and values in the order to show them; `None` if the block does not
/// exist.
pub fn block_facts(
    recording: &Recording,
    state: &MemoryState,
    block: BlockId,
) -> Option<Vec<(&'static str, String)>> {
    let found = state.block(block)?;
    let segment_id = state.segment_of(block)?;
    let segment = state.segments().find(|info| info.id == segment_id)?;
    let mut facts = vec![("state", state_word(found.state).to_owned())];
    let name = block_name(recording, &found);
    if name != numbered(block) {
        facts.insert(0, ("name", name));
    }
    if found.state.is_active() {
        facts.push(("requested", exact_size(found.requested)));
    }
    facts.push(("size", exact_size(found.size)));
    if found.state.is_active() {
        facts.push(("rounding", exact_size(found.size.saturating_sub(found.requested))));
    }
    facts.push(("address", found.addr.to_string()));
    facts.push(("offset in segment", exact_size(found.addr.offset_from(segment.addr))));
    let kind = if segment.is_expandable { "expandable, " } else { "" };
    facts.push((
        "segment",
        format!("{kind}{} at {}, {} pool", exact_size(segment.size), segment.addr, segment.pool),
    ));
    if segment.pool_id != PoolId::DEFAULT {
        facts.push(("memory pool", segment.pool_id.to_string()));
    }
    facts.push(("stream", recording.stream_name(segment.stream)));
    if !found.streams.is_empty() {
        let names: Vec<_> = found.streams.iter().map(|stream| recording.stream_name(*stream)).collect();
        let label = if found.state == BlockState::PendingFree { "waits for" } else { "also used on" };
        facts.push((label, names.join(", ")));
    }
    if let Some(allocation) = found.allocation.filter(|_| found.state.is_active()) {
        facts.push(match recording.allocated_at(allocation) {
            Some(step) => ("allocated by request", grouped(step + 1)),
            None => ("allocated", "before the recording".to_owned()),
        });
    }
    Some(facts)
}
