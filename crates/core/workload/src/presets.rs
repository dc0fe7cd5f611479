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
    /// The value of `PYTORCH_CUDA_ALLOC_CONF`; empty for the defaults.
    pub conf: &'static str,
    /// The size of the device.
    pub capacity: Bytes,
}

/// All presets, in the order in which to learn from them.
#[must_use]
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

const PRESETS: [Preset; 7] = [
    Preset {
        id: "terms",
        title: "The terms",
        summary: "Allocated, reserved, cached, free, rounding and the peaks, one at a time",
        text: include_str!("../presets/terms.workload"),
        conf: "",
        capacity: Bytes::mib(64),
    },
    Preset {
        id: "two-tensors",
        title: "Two tensors",
        summary: "Two 10000 x 10000 tensors, one deleted: why the memory is still in use, and what empty_cache does",
        text: include_str!("../presets/two-tensors.workload"),
        conf: "",
        capacity: Bytes::gib(1),
    },
    Preset {
        id: "training",
        title: "Training steps",
        summary: "Four training steps of a small network: parameters, activations, gradients, optimizer state",
        text: include_str!("../presets/training.workload"),
        conf: "",
        capacity: Bytes::gib(1),
    },
    Preset {
        id: "fragmentation",
        title: "Fragmentation",
        summary: "Out of memory while most of the device is unused",
        text: include_str!("../presets/fragmentation.workload"),
        conf: "",
        capacity: Bytes::mib(128),
    },
    Preset {
        id: "streams",
        title: "Streams",
        summary: "Blocks that two streams cannot share, and a free that has to wait",
        text: include_str!("../presets/streams.workload"),
        conf: "",
        capacity: Bytes::mib(64),
    },
    Preset {
        id: "caching",
        title: "Caching",
        summary: "Why freed memory is kept: the same loop with and without calls to the device",
        text: include_str!("../presets/caching.workload"),
        conf: "",
        capacity: Bytes::mib(128),
    },
    Preset {
        id: "pools",
        title: "Memory pools",
        summary: "Segments for one part of a program, and a pool that serves other requests when memory runs out",
        text: include_str!("../presets/pools.workload"),
        conf: "",
        capacity: Bytes::mib(64),
    },
];
