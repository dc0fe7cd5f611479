//! Reads recorded runs: lines of JSON, perhaps gzipped.

use std::borrow::Cow;

use blockyard_record::{Bytes, PoolId, PoolKind, StreamId, TraceAction, TraceEntry};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::gzip::gunzip;
use crate::recorded::{
    AllocationResult, Meta, OperationKind, RecordedBlock, RecordedOperation, RecordedRun, RecordedSegment,
    StatChange,
};
use crate::{LineError, ReadError, stat_index};

// A browser tab has 4 GiB at most; the largest recording so far unpacks to 50 MB.
const MAX_MIB: u64 = 1024;

/// The text of a file: unpacked if it is gzip.
///
/// # Errors
///
/// [`ReadError::Empty`], [`ReadError::Gzip`], [`ReadError::TooLarge`], and [`ReadError::OtherKind`] for bytes
/// that are not text.
pub fn unpack(bytes: &[u8]) -> Result<String, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    let content = if bytes.starts_with(&[0x1f, 0x8b]) {
        let most = MAX_MIB << 20;
        let unpacked = gunzip(bytes, most).map_err(ReadError::Gzip)?;
        if unpacked.len() as u64 > most {
            return Err(ReadError::TooLarge { most_mib: MAX_MIB });
        }
        unpacked
    } else {
        bytes.to_vec()
    };
    if content.is_empty() {
        return Err(ReadError::Empty);
    }
    if let Some(kind) = other_kind(&content) {
        return Err(ReadError::OtherKind(kind));
    }
    String::from_utf8(content).map_err(|_| ReadError::OtherKind("not text"))
}

fn other_kind(content: &[u8]) -> Option<&'static str> {
    match content {
        [0x80, 2..=5, ..] => Some("a Python pickle (perhaps a PyTorch memory snapshot)"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [0x89, b'P', b'N', b'G', ..] => Some("a PNG image"),
        [b'%', b'P', b'D', b'F', ..] => Some("a PDF document"),
        [0x1f, 0x8b, ..] => Some("gzip inside gzip"),
        _ => None,
    }
}

impl RecordedRun {
    /// Reads a recording from the bytes of a file, plain or gzip.
    ///
    /// # Errors
    ///
    /// [`ReadError`] says what is wrong and in which line.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        Self::parse(&unpack(bytes)?)
    }

    /// Reads a recording from its text.
    ///
    /// # Errors
    ///
    /// [`ReadError`] says what is wrong and in which line.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        let mut run = Self::default();
        let mut has_meta = false;
        // Editors of some systems put a mark in front of a text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = index + 1;
            if !has_meta && !begins_with_meta(line) {
                return Err(ReadError::OtherKind(kind_of_text(text, line)));
            }
            // Without this check, serde would read a list as the members of a line in order.
            if !line.trim_start().starts_with('{') {
                return Err(ReadError::Line { line: number, error: LineError::NotAnObject });
            }
            let parsed: AnyLine = serde_json::from_str(line)
                .map_err(|error| ReadError::Line { line: number, error: explain(&error) })?;
            if parsed.meta.is_none() && !has_meta {
                return Err(ReadError::OtherKind("another kind of JSON"));
            }
            has_meta = true;
            run.add(parsed, number)?;
        }
        if !has_meta {
            return Err(ReadError::Empty);
        }
        if run.operations.is_empty() && run.trace.as_ref().is_none_or(Vec::is_empty) {
            return Err(ReadError::Nothing);
        }
        Ok(run)
    }

    fn add(&mut self, mut line: AnyLine, number: usize) -> Result<(), ReadError> {
        if let Some(meta) = line.meta.take() {
            self.meta = meta.into();
        }
        if line.op.is_some() {
            self.operations.push(line.operation(number)?);
            return Ok(());
        }
        if let Some(trace) = line.trace {
            self.trace = Some(trace.into_iter().map(TraceEntry::from).collect());
        }
        if let Some(segments) = line.segments {
            self.segments = Some(segments.into_iter().map(RecordedSegment::from).collect());
        }
        if let Some(keepers) = line.keepers {
            self.keepers = keepers.to_string();
        }
        if line.memory_summary.is_some() {
            self.memory_summary = line.memory_summary;
        }
        if let Some(checkpoints) = line.checkpoints {
            self.checkpoints =
                checkpoints.into_iter().map(|(label, at, stats)| (label, at, stats.0)).collect();
        }
        if let Some(stats) = line.stats {
            self.final_stats = Some(stats.0);
        }
        Ok(())
    }
}

fn begins_with_meta(line: &str) -> bool {
    let member = line.trim_start().strip_prefix('{').map(str::trim_start);
    member.is_some_and(|member| member.starts_with("\"meta\""))
}

fn kind_of_text(text: &str, first_line: &str) -> &'static str {
    // Pickles of protocols 0 and 1 are text, or nearly so: `(dp0`, `(lp0`, `}q`.
    if ["(dp", "(lp", "}q", "]q"].iter().any(|begin| first_line.starts_with(begin)) {
        return "a pickle of protocol 0 or 1, which PyTorch does not write (load it in Python and write it again with \
                pickle.dump(snapshot, file, protocol=4))";
    }
    if serde_json::from_str::<IgnoredAny>(text).is_err()
        && serde_json::from_str::<IgnoredAny>(first_line).is_err()
    {
        return "another kind of text";
    }
    let is_snapshot = text.contains("\"segments\"") && text.contains("\"device_traces\"");
    if is_snapshot { "a memory snapshot in JSON" } else { "another kind of JSON" }
}

// The position that serde_json gives is a column of a long line: say which one.
fn explain(error: &serde_json::Error) -> LineError {
    let message = error.to_string();
    let cause = message.split(" at line ").next().unwrap_or(&message);
    LineError::Json { column: error.column(), cause: cause.to_owned() }
}

/// Any line. Its members say which kind of line it is.
#[derive(Deserialize)]
struct AnyLine {
    meta: Option<MetaLine>,
    op: Option<String>,
    id: Option<u64>,
    size: Option<u64>,
    stream: Option<u64>,
    addr: Option<u64>,
    /// The text of an error in an operation. The last line of a program has a member of this name with
    /// another type.
    oom: Option<serde_json::Value>,
    fraction: Option<f64>,
    pool: Option<u32>,
    stats: Option<StatMap>,
    trace: Option<Vec<TraceLine>>,
    segments: Option<Vec<SegmentLine>>,
    memory_summary: Option<String>,
    keepers: Option<serde_json::Value>,
    checkpoints: Option<Vec<(String, usize, StatMap)>>,
}

impl AnyLine {
    fn operation(self, line: usize) -> Result<RecordedOperation, ReadError> {
        let missing = |member| ReadError::Line { line, error: LineError::NoMember(member) };
        let id = self.id.ok_or_else(|| missing("id"));
        let stream = self.stream.ok_or_else(|| missing("stream"));
        let kind = match self.op.as_deref().ok_or_else(|| missing("op"))? {
            "start" => OperationKind::Start,
            "alloc" => OperationKind::Allocate {
                id: id?,
                size: Bytes::new(self.size.ok_or_else(|| missing("size"))?),
                stream: self.stream.unwrap_or(0),
                pool: self.pool,
                result: match (self.addr, self.oom) {
                    (Some(addr), _) => Some(AllocationResult::At(addr)),
                    (None, Some(serde_json::Value::String(text))) => {
                        Some(AllocationResult::OutOfMemory(text))
                    }
                    _ => None,
                },
            },
            "free" => OperationKind::Free { id: id? },
            "record_stream" => OperationKind::RecordStream { id: id?, stream: stream? },
            "empty_cache" => OperationKind::EmptyCache,
            "reset_peak" => OperationKind::ResetPeak,
            "reset_accumulated" => OperationKind::ResetAccumulated,
            "set_fraction" => {
                OperationKind::SetFraction { fraction: self.fraction.ok_or_else(|| missing("fraction"))? }
            }
            "end" => OperationKind::End,
            other => {
                let error = LineError::UnknownOperation(other.to_owned());
                return Err(ReadError::Line { line, error });
            }
        };
        Ok(RecordedOperation { line, kind, stats: self.stats.map(|stats| stats.0).unwrap_or_default() })
    }
}

#[derive(Deserialize)]
struct MetaLine {
    #[serde(default)]
    name: String,
    #[serde(default)]
    torch: String,
    #[serde(default)]
    conf: String,
    total_memory: u64,
    #[serde(default)]
    device: String,
    #[serde(default)]
    profile: String,
    #[serde(default)]
    streams: Vec<u64>,
}

impl From<MetaLine> for Meta {
    fn from(line: MetaLine) -> Self {
        Self {
            name: line.name,
            torch: line.torch,
            conf: line.conf,
            total_memory: Bytes::new(line.total_memory),
            device: line.device,
            profile: line.profile,
            streams: line.streams.into_iter().map(StreamId::new).collect(),
        }
    }
}

/// Action, address, size, stream.
#[derive(Deserialize)]
struct TraceLine(ActionName, u64, u64, u64);

impl From<TraceLine> for TraceEntry {
    fn from(TraceLine(action, addr, size, stream): TraceLine) -> Self {
        Self { action: action.0, addr, size: Bytes::new(size), stream: StreamId::new(stream) }
    }
}

/// A text that is copied only where it holds escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct ActionName(TraceAction);

impl<'de> Deserialize<'de> for ActionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(name) = Text::deserialize(deserializer)?;
        TraceAction::from_name(&name)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("unknown action \"{name}\"")))
    }
}

/// Values by key. Keys that 2.11 does not have are skipped.
struct StatMap(Vec<StatChange>);

impl<'de> Deserialize<'de> for StatMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = StatMap;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map from statistics to whole numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StatMap, A::Error> {
                let mut changes = Vec::new();
                while let Some((Text(key), value)) = map.next_entry::<Text, i64>()? {
                    changes.extend(stat_index(&key).map(|key| StatChange { key, value }));
                }
                Ok(StatMap(changes))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[derive(Deserialize)]
struct SegmentLine {
    address: u64,
    total_size: u64,
    #[serde(default)]
    stream: u64,
    #[serde(default)]
    segment_type: String,
    #[serde(default)]
    segment_pool_id: (u32, u32),
    #[serde(default)]
    is_expandable: bool,
    #[serde(default)]
    allocated_size: u64,
    #[serde(default)]
    active_size: u64,
    #[serde(default)]
    requested_size: u64,
    #[serde(default)]
    blocks: Vec<(u64, u64, u64, String)>,
}

impl From<SegmentLine> for RecordedSegment {
    fn from(line: SegmentLine) -> Self {
        Self {
            addr: line.address,
            size: Bytes::new(line.total_size),
            stream: StreamId::new(line.stream),
            pool: if line.segment_type == "small" { PoolKind::Small } else { PoolKind::Large },
            pool_id: PoolId { capture: line.segment_pool_id.0, user: line.segment_pool_id.1 },
            is_expandable: line.is_expandable,
            sums: [line.allocated_size, line.active_size, line.requested_size].map(Bytes::new),
            blocks: line
                .blocks
                .into_iter()
                .map(|(addr, size, requested, state)| RecordedBlock {
                    addr,
                    size: Bytes::new(size),
                    requested: Bytes::new(requested),
                    state,
                })
                .collect(),
        }
    }
}
