//! Names of blocks, streams and pools in sentences.

pub(super) use blockyard_record::counted;
use blockyard_record::{
    BlockId, BlockSnapshot, BlockState, MemoryState, PoolId, Recording, StreamId, joined,
};

/// The program's name for the block, or else `block #17`. A cached block serves no tensor and has no name.
pub(super) fn block_name(recording: &Recording, block: &BlockSnapshot) -> String {
    let named = block.allocation.filter(|_| block.state.is_active()).and_then(|id| recording.name(id));
    named.map_or_else(|| numbered(block.id), str::to_owned)
}

/// The block as the subject that begins a sentence: a word before its name, so that the name keeps its own
/// first letter. See [`name_of`].
pub(super) fn subject(recording: &Recording, state: &MemoryState, id: BlockId) -> String {
    let name = name_of(recording, state, id);
    if name == numbered(id) { name } else { format!("tensor {name}") }
}

pub(super) fn numbered(block: BlockId) -> String {
    format!("block #{block}")
}

/// The name of a block as [`block_name`] has it, also if the block does not exist any more.
pub(super) fn name_of(recording: &Recording, state: &MemoryState, id: BlockId) -> String {
    state.block(id).map_or_else(|| numbered(id), |block| block_name(recording, &block))
}

/// `stream side`, `the default stream`.
pub(super) fn stream_phrase(recording: &Recording, stream: StreamId) -> String {
    let name = recording.stream_name(stream);
    if stream == StreamId::DEFAULT && name == "default" {
        "the default stream".to_owned()
    } else if name.starts_with("stream ") {
        name
    } else {
        format!("stream {name}")
    }
}

/// `stream side and stream copy`.
pub(super) fn streams_phrase(recording: &Recording, streams: &[StreamId]) -> String {
    joined(&streams.iter().map(|stream| stream_phrase(recording, *stream)).collect::<Vec<_>>())
}

/// The heading over the segments of a memory pool.
pub(crate) fn pool_heading(pool_id: PoolId, name: Option<&str>) -> String {
    match (name, pool_id) {
        (Some(name), _) => format!("memory pool {name} {pool_id}"),
        (None, PoolId::DEFAULT) => "default pool".to_owned(),
        (None, PoolId { user: 0, .. }) => format!("private pool {pool_id} of a graph capture"),
        (None, _) => format!("memory pool {pool_id}"),
    }
}

/// The word for the state in figures.
pub(super) fn state_word(state: BlockState) -> &'static str {
    match state {
        BlockState::Allocated => "allocated",
        BlockState::PendingFree => "pending",
        BlockState::Inactive => "cached",
        BlockState::Unmapped => "without memory",
    }
}
