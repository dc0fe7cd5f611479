//! Small workloads to play. Their comments and step labels explain them, and each names the device that it is
//! written for.

use blockyard_record::Bytes;

/// A workload to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// A short name for addresses and commands: lowercase words with hyphens.
    pub id: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// One sentence about what the workload shows.
    pub summary: &'static str,
    /// The workload, with comments and step labels.
    pub text: &'static str,
    /// The size of the device.
    pub capacity: Bytes,
}

/// All presets, in the order in which to learn from them.
#[must_use]
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The presets; the text of each is the file of its id.
macro_rules! presets {
    ($($id:literal, $title:literal, $capacity:expr, $summary:literal;)*) => {
        [$(Preset {
            id: $id,
            title: $title,
            summary: $summary,
            text: include_str!(concat!("../presets/", $id, ".workload")),
            capacity: $capacity,
        }),*]
    };
}

const PRESETS: [Preset; 7] = presets! {
    "terms", "The terms", Bytes::mib(64),
        "Allocated, reserved, cached, free, rounding and the peaks, one at a time";
    "two-tensors", "Two tensors", Bytes::gib(1),
        "Two 10000 x 10000 tensors, one deleted: why the memory is still in use, and what empty_cache does";
    "training", "Training steps", Bytes::gib(1),
        "Four training steps of a small network: parameters, activations, gradients, optimizer state";
    "fragmentation", "Fragmentation", Bytes::mib(128),
        "Out of memory while most of the device is unused";
    "streams", "Streams", Bytes::mib(64),
        "Blocks that two streams cannot share, and a free that has to wait";
    "caching", "Caching", Bytes::mib(128),
        "Why freed memory is kept: the same loop with and without calls to the device";
    "pools", "Memory pools", Bytes::mib(64),
        "Segments for one part of a program, and a pool that serves other requests when memory runs out";
};
