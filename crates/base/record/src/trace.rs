//! Entries of PyTorch's trace.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, StreamId};

/// An entry of PyTorch's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// The action of the entry.
    pub action: TraceAction,
    /// The address; for [`TraceAction::OutOfMemory`] the bytes that the device reported free.
    pub addr: u64,
    /// The size: of the segment, of the request (allocations and frees), or the rounded request (out of
    /// memory).
    pub size: Bytes,
    /// The stream of the block or of the request.
    pub stream: StreamId,
}

/// The kind of a trace entry. PyTorch's trace has neither splits nor merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TraceAction {
    /// A block was allocated.
    Alloc,
    /// A caller freed a block.
    FreeRequested,
    /// The free of a block completed.
    FreeCompleted,
    /// The device allocated a segment.
    SegmentAlloc,
    /// A segment was released to the device.
    SegmentFree,
    /// Memory was mapped into an expandable segment.
    SegmentMap,
    /// Memory was unmapped from an expandable segment.
    SegmentUnmap,
    /// A snapshot was taken.
    Snapshot,
    /// A request failed.
    OutOfMemory,
}

impl TraceAction {
    const NAMES: [(Self, &str); 9] = [
        (Self::Alloc, "alloc"),
        (Self::FreeRequested, "free_requested"),
        (Self::FreeCompleted, "free_completed"),
        (Self::SegmentAlloc, "segment_alloc"),
        (Self::SegmentFree, "segment_free"),
        (Self::SegmentMap, "segment_map"),
        (Self::SegmentUnmap, "segment_unmap"),
        (Self::Snapshot, "snapshot"),
        (Self::OutOfMemory, "oom"),
    ];

    /// All actions.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(action, _)| *action)
    }

    /// The action with PyTorch's number; `None` for other numbers.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        Self::NAMES.get(number).map(|(action, _)| *action)
    }

    /// The action with PyTorch's name; `None` for other names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(action, _)| *action)
    }

    /// PyTorch's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(action, _)| *action == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for TraceAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
