//! Recordings and snapshots as text.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use blockyard_pytorch::snapshot::SnapshotSettings;
use blockyard_pytorch::{Meta, log, stat_values};
use blockyard_record::{Bytes, FrameId, SegmentSnapshot, Snapshot, StackId};
use blockyard_rules::AllocatorConfig;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use crate::devices::{Device, settings};
use crate::error::PluginError;
use crate::history::{History, TimedEntry};
use crate::python_stack;

/// A recording that has ended, with the memory at its end.
#[derive(Debug)]
pub(crate) struct FinishedRecording {
    pub(crate) history: Box<History>,
    pub(crate) snapshot: Snapshot,
    pub(crate) total: Bytes,
    pub(crate) device: String,
}

impl FinishedRecording {
    /// The lines of the file, in the format of recorded programs.
    pub(crate) fn lines(self, name: String, torch: String, conf: String) -> Vec<String> {
        let Self { history, snapshot, total, device } = self;
        let meta = Meta {
            name,
            torch,
            conf,
            total_memory: total,
            device,
            profile: "program".to_owned(),
            streams: Vec::new(),
        };
        let entries: Vec<_> = history.entries().iter().map(|noted| noted.entry).collect();
        vec![
            log::meta(&meta),
            log::trace(&entries),
            log::checkpoints(history.checkpoints()),
            log::segments(&snapshot),
            log::final_stats(&stat_values(history.stats())),
        ]
    }
}

/// Writes the lines, packed where the name ends in `.gz`.
pub(crate) fn write(path: &Path, lines: &[String]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(file, Compression::default());
        put(&mut packed, lines)?;
        file = packed.finish()?;
    } else {
        put(&mut file, lines)?;
    }
    file.flush()
}

fn put(to: &mut impl io::Write, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(to, "{line}"))
}

/// All segments, with blocks as `[address, size, requested, state]`; traces as
/// `[action, address, size, stream, microseconds, stack, pool]` by device, with a pool of null where the
/// release names none; stacks as lists of frames, innermost first, and frames as `[function, file, line]`;
/// settings.
pub(crate) fn snapshot() -> Result<String, PluginError> {
    let mut segments = Vec::new();
    let mut traces = String::new();
    let mut config = settings()?;
    for device in Device::all() {
        // Segments and trace are of one moment: a viewer replays the trace backward from the segments.
        let (snapshot, noted, failure) = device.allocator.with(|allocator| {
            config = allocator.config().clone();
            let trace = allocator.sink().trace();
            let noted = trace.map(History::entries).cloned().unwrap_or_default();
            (allocator.snapshot(), noted, trace.and_then(History::error))
        });
        if let Some(source) = failure {
            return Err(PluginError::History { device: device.index, source });
        }
        let runs = snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs);
        segments.extend(runs.map(|run| segment(device.index, &run)));
        let separator = if traces.is_empty() { "" } else { "," };
        let _ = write!(
            traces,
            "{separator}[{},{}]",
            device.index,
            trace(&noted, config.release().traces_pools())
        );
    }
    let (segments, config) = (Value::Array(segments), settings_of(&config));
    // After the traces, so that every stack of an entry exists.
    let known = python_stack::stacks();
    let stacks = (0..)
        .take(known.len())
        .map(|number| known.frames(StackId::new(number)).map(|frame| json!(frame.get())).collect::<Value>());
    let stacks = Value::Array(stacks.collect());
    let frames = (0..).take(known.frame_count()).map(|number| {
        let frame = known.frame(FrameId::new(number));
        json!([frame.name, frame.filename, frame.line])
    });
    let frames = Value::Array(frames.collect());
    Ok(format!(
        r#"{{"segments":{segments},"traces":[{traces}],"stacks":{stacks},"frames":{frames},"settings":{config}}}"#
    ))
}

fn trace(noted: &VecDeque<TimedEntry>, names_pools: bool) -> String {
    let mut text = String::from("[");
    for (index, TimedEntry { entry, micros, stack, pool_id }) in noted.iter().enumerate() {
        let pool =
            if names_pools { format!("[{},{}]", pool_id.capture, pool_id.user) } else { "null".to_owned() };
        let separator = if index == 0 { "" } else { "," };
        let (action, addr, size, stream) = (entry.action, entry.addr, entry.size.get(), entry.stream);
        let _ = write!(text, r#"{separator}["{action}",{addr},{size},{stream},{micros},{stack},{pool}]"#);
    }
    text.push(']');
    text
}

fn segment(device: i32, segment: &SegmentSnapshot) -> Value {
    let blocks = segment
        .blocks
        .iter()
        .map(|block| json!([block.addr.get(), block.size.get(), block.requested.get(), block.state.name()]));
    json!({
        "device": device,
        "address": segment.addr.get(),
        "total_size": segment.size.get(),
        "allocated_size": segment.allocated().get(),
        "active_size": segment.active().get(),
        "requested_size": segment.requested().get(),
        "stream": segment.stream.get(),
        "segment_type": segment.pool.to_string(),
        "segment_pool_id": [segment.pool_id.capture, segment.pool_id.user],
        "is_expandable": segment.is_expandable,
        "blocks": blocks.collect::<Vec<_>>(),
    })
}

fn settings_of(config: &AllocatorConfig) -> Value {
    let value = |name: &str, text: &str| match (name, text) {
        ("PYTORCH_CUDA_ALLOC_CONF", _) => json!(text),
        ("garbage_collection_threshold", _) => json!(config.garbage_collection_threshold()),
        ("roundup_power2_divisions", _) => json!(config.roundup_table()),
        (_, "True" | "False") => json!(text == "True"),
        _ => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
    };
    let listed = SnapshotSettings::listed(config).into_iter();
    listed.map(|(name, text)| (name.clone(), value(&name, &text))).collect::<Map<String, Value>>().into()
}
