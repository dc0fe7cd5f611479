//! The answer of an allocator to a sequence, and the first place where two answers differ.

use std::fmt;

use blockyard_record::{Bytes, PoolId, StreamId, TraceEntry};

use crate::stats;

/// All results of an allocator for a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceResult {
    /// The result of each operation.
    pub steps: Vec<OperationReply>,
    /// PyTorch's trace.
    pub trace: Vec<TraceEntry>,
    /// The final segments by ascending address.
    pub segments: Vec<Segment>,
}

/// How often PyTorch took the paths that only a lack of memory leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Second attempts at a segment, after the whole cache was released.
    pub retries: u64,
    /// Failed requests.
    pub failures: u64,
    /// Times that all streams were waited for.
    pub waits: u64,
    /// Segments or runs of pages that were released without such a wait: by garbage collection, or as
    /// oversize segments.
    pub chosen_releases: u64,
}

/// The result of an operation, and the statistics after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationReply {
    /// The returned value.
    pub reply: ReturnValue,
    /// The statistics.
    pub stats: StatsAfter,
}

/// The returned value of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnValue {
    /// The operation returns nothing.
    Done,
    /// Memory at this address.
    Address(u64),
    /// An error with this text.
    Failed(String),
    /// The parsed settings, in words.
    Settings(String),
    /// The operation was skipped, since the allocation had failed.
    Skipped,
}

/// All statistics at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatsAfter {
    /// All statistics as one number ([`stats::digest`]).
    Digest(u64),
    /// All statistics, in the order of [`stats::key`].
    All(Vec<i64>),
}

/// A segment at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The address of the first byte.
    pub addr: u64,
    /// The size in bytes.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// The pool that owns it.
    pub pool_id: PoolId,
    /// Whether it belongs to the large block pool.
    pub is_large: bool,
    /// Whether it is a run of mapped pages.
    pub is_expandable: bool,
    /// Sums over the blocks of the segment: allocated, active and requested bytes.
    pub sums: [Bytes; 3],
    /// The blocks of the segment by ascending address.
    pub blocks: Vec<FinalBlock>,
}

/// A block at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalBlock {
    /// The size in bytes.
    pub size: Bytes,
    /// The size of the last request for the block, however long ago.
    pub requested: Bytes,
    /// PyTorch's word for the state of the block.
    pub state: &'static str,
}

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerDifference {
    /// The index of the operation after which the fact differs; `None` if it belongs to no operation.
    pub operation: Option<usize>,
    /// The name of the fact.
    pub what: String,
    /// The value in PyTorch.
    pub expected: String,
    /// Our value.
    pub found: String,
}

impl fmt::Display for AnswerDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation {
            write!(f, "operation {}: ", operation + 1)?;
        }
        write!(f, "{}: PyTorch {}, ours {}", self.what, self.expected, self.found)
    }
}

/// The first fact that differs: replies and statistics in order, then the trace, then segments with their
/// blocks.
pub fn first_difference(expected: &SequenceResult, found: &SequenceResult) -> Option<AnswerDifference> {
    let steps = expected.steps.len().max(found.steps.len());
    (0..steps)
        .find_map(|index| step_difference(index, expected.steps.get(index), found.steps.get(index)))
        .or_else(|| list_difference("trace entry", &expected.trace, &found.trace, entry_text))
        .or_else(|| list_difference("final segment", &expected.segments, &found.segments, segment_text))
}

fn step_difference(
    index: usize,
    expected: Option<&OperationReply>,
    found: Option<&OperationReply>,
) -> Option<AnswerDifference> {
    if expected == found {
        return None;
    }
    let differing = |what: &str, expected: String, found: String| {
        Some(AnswerDifference { operation: Some(index), what: what.to_owned(), expected, found })
    };
    let (Some(expected), Some(found)) = (expected, found) else {
        let described = |step: Option<&OperationReply>| {
            step.map_or("has no answer".to_owned(), |step| step.reply.to_string())
        };
        return differing("answer", described(expected), described(found));
    };
    if expected.reply != found.reply {
        return differing("answer", expected.reply.to_string(), found.reply.to_string());
    }
    if let (StatsAfter::All(expected), StatsAfter::All(found)) = (&expected.stats, &found.stats) {
        let pairs = expected.iter().zip(found.iter()).enumerate();
        let mut pairs = pairs.filter(|(_, (expected, found))| expected != found);
        let Some((key, (expected, found))) = pairs.next() else {
            return differing("number of statistics", expected.len().to_string(), found.len().to_string());
        };
        return differing(&stats::key(key), expected.to_string(), found.to_string());
    }
    differing("statistics", format!("{:x?}", expected.stats), format!("{:x?}", found.stats))
}

fn list_difference<T: PartialEq>(
    what: &str,
    expected: &[T],
    found: &[T],
    words: impl Fn(&T) -> String,
) -> Option<AnswerDifference> {
    let index =
        (0..expected.len().max(found.len())).find(|index| expected.get(*index) != found.get(*index))?;
    let described = |item: Option<&T>| item.map_or("nothing".to_owned(), &words);
    Some(AnswerDifference {
        operation: None,
        what: format!("{what} {index}"),
        expected: described(expected.get(index)),
        found: described(found.get(index)),
    })
}

impl fmt::Display for ReturnValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Address(addr) => write!(f, "{addr:#x}"),
            Self::Failed(text) | Self::Settings(text) => f.write_str(text),
            Self::Skipped => f.write_str("skipped"),
        }
    }
}

/// A trace entry in words.
pub fn entry_text(entry: &TraceEntry) -> String {
    let TraceEntry { action, addr, size, stream } = entry;
    format!("{action} {addr:#x} {} {stream}", size.get())
}

/// A segment and its blocks in words, which contain every compared fact.
pub fn segment_text(segment: &Segment) -> String {
    let Segment { addr, size, stream, pool_id, is_large, is_expandable, sums, blocks } = segment;
    let half = if *is_large { "large" } else { "small" };
    let kind = if *is_expandable { " expandable" } else { "" };
    let [allocated, active, requested] = sums.map(Bytes::get);
    let head = format!(
        "{addr:#x} {} {half}{kind} stream {stream} pool {}.{} sums {allocated} {active} {requested} blocks",
        size.get(),
        pool_id.capture,
        pool_id.user
    );
    let blocks =
        blocks.iter().map(|block| format!(" {}/{}/{}", block.size.get(), block.requested.get(), block.state));
    std::iter::once(head).chain(blocks).collect()
}
