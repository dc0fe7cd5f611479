//! Runs written in the format of recordings: one JSON value a line, without the end of the line.

use std::fmt::Write as _;

use blockyard_record::{BlockSnapshot, SegmentSnapshot, Snapshot, TraceEntry};
use serde_json::{Map, Value, json};

use crate::recorded::{AllocationResult, Meta, OperationKind};
use crate::stat_keys;

/// The first line: the program and the machine.
#[must_use]
pub fn meta(meta: &Meta) -> String {
    let streams: Vec<u64> = meta.streams.iter().map(|stream| stream.get()).collect();
    json!({"meta": {
        "name": meta.name,
        "profile": meta.profile,
        "torch": meta.torch,
        "conf": meta.conf,
        "total_memory": meta.total_memory.get(),
        "device": meta.device,
        "streams": streams,
    }})
    .to_string()
}

/// The line of an operation; `changed` is the statistics that changed, by key index.
#[must_use]
pub fn operation(
    kind: &OperationKind,
    result: Option<&AllocationResult>,
    changed: &[(usize, i64)],
) -> String {
    let mut line = Map::new();
    let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
    let name = match kind {
        OperationKind::Start => "start",
        OperationKind::Allocate { .. } => "alloc",
        OperationKind::Free { .. } => "free",
        OperationKind::RecordStream { .. } => "record_stream",
        OperationKind::EmptyCache => "empty_cache",
        OperationKind::ResetPeak => "reset_peak",
        OperationKind::ResetAccumulated => "reset_accumulated",
        OperationKind::SetFraction { .. } => "set_fraction",
        OperationKind::End => "end",
    };
    put("op", json!(name));
    match kind {
        OperationKind::Allocate { id, size, stream, pool, .. } => {
            put("id", json!(id));
            put("size", json!(size.get()));
            put("stream", json!(stream));
            if let Some(pool) = pool {
                put("pool", json!(pool));
            }
        }
        OperationKind::Free { id } => {
            put("id", json!(id));
        }
        OperationKind::RecordStream { id, stream } => {
            put("id", json!(id));
            put("stream", json!(stream));
        }
        OperationKind::SetFraction { fraction } => {
            put("fraction", json!(fraction));
        }
        _ => {}
    }
    match result {
        Some(AllocationResult::At(addr)) => {
            put("addr", json!(addr));
        }
        Some(AllocationResult::OutOfMemory(text)) => {
            put("oom", json!(text));
        }
        None => {}
    }
    put("stats", Value::Object(stat_map(changed.iter().copied())));
    Value::Object(line).to_string()
}

fn stat_map(values: impl Iterator<Item = (usize, i64)>) -> Map<String, Value> {
    let keys = stat_keys();
    values.filter_map(|(key, value)| Some((keys.get(key)?.clone(), json!(value)))).collect()
}

/// The line of the trace.
#[must_use]
pub fn trace(entries: &[TraceEntry]) -> String {
    // The text is written without JSON values, which would take ten times the memory of the text.
    let mut line = String::from("{\"trace\":[");
    for (index, TraceEntry { action, addr, size, stream }) in entries.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let _ = write!(line, "{separator}[\"{action}\",{addr},{},{stream}]", size.get());
    }
    line.push_str("]}");
    line
}

/// The line of the checkpoints: a label, how many trace entries there were, and all values in the order of
/// [`stat_keys`].
#[must_use]
pub fn checkpoints(checkpoints: &[(String, usize, Vec<i64>)]) -> String {
    let checkpoint = |(label, entries, values): &(String, usize, Vec<i64>)| {
        json!([label, entries, stat_map(values.iter().copied().enumerate())])
    };
    json!({"checkpoints": checkpoints.iter().map(checkpoint).collect::<Vec<_>>()}).to_string()
}

/// The line of the final statistics, in the order of [`stat_keys`].
#[must_use]
pub fn final_stats(values: &[i64]) -> String {
    json!({"stats": stat_map(values.iter().copied().enumerate())}).to_string()
}

/// The line of the final segments.
#[must_use]
pub fn segments(snapshot: &Snapshot) -> String {
    let segments: Vec<Value> =
        snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs).map(|run| segment(&run)).collect();
    json!({"segments": segments}).to_string()
}

/// The line of the objects that kept blocks, which is JSON already.
#[must_use]
pub fn keepers(keepers: &str) -> String {
    format!("{{\"keepers\":{keepers}}}")
}

/// The line of the summary.
#[must_use]
pub fn memory_summary(text: &str) -> String {
    json!({"memory_summary": text}).to_string()
}

fn segment(segment: &SegmentSnapshot) -> Value {
    let block = |block: &BlockSnapshot| {
        json!([block.addr.get(), block.size.get(), block.requested.get(), block.state.name()])
    };
    json!({
        "address": segment.addr.get(),
        "total_size": segment.size.get(),
        "stream": segment.stream.get(),
        "segment_type": segment.pool.to_string(),
        "segment_pool_id": [segment.pool_id.capture, segment.pool_id.user],
        "is_expandable": segment.is_expandable,
        "allocated_size": segment.allocated().get(),
        "active_size": segment.active().get(),
        "requested_size": segment.requested().get(),
        "blocks": segment.blocks.iter().map(block).collect::<Vec<_>>(),
    })
}
