//! Words for memory that have a number, a name in PyTorch's API and a place in the figures.

use serde::{Deserialize, Serialize};

use crate::role::{BreakdownClass, Role};

/// A word for memory that has a number, a name in PyTorch's API and a place in the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Term {
    /// The size of allocated blocks.
    Allocated,
    /// The size of all segments.
    Reserved,
    /// Reserved and not active.
    Cached,
    /// Not reserved by the allocator.
    Free,
    /// The bytes that callers asked for.
    Requested,
    /// Allocated minus requested.
    Rounding,
    /// Freed by the caller, waiting for a stream.
    Pending,
    /// The most bytes allocated so far.
    MaxAllocated,
    /// The most bytes reserved so far.
    MaxReserved,
}

impl Term {
    /// All terms, in the order in which to learn them.
    pub const ALL: [Self; 9] = [
        Self::Allocated,
        Self::Reserved,
        Self::Cached,
        Self::Free,
        Self::MaxAllocated,
        Self::MaxReserved,
        Self::Requested,
        Self::Rounding,
        Self::Pending,
    ];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::Reserved => "reserved",
            Self::Cached => "cached",
            Self::Free => "free",
            Self::Requested => "requested",
            Self::Rounding => "rounding",
            Self::Pending => "pending",
            Self::MaxAllocated => "peak allocated so far",
            Self::MaxReserved => "peak reserved so far",
        }
    }

    /// How a program gets the number from PyTorch: a function of `torch.cuda`, or an expression of several.
    pub fn api(self) -> &'static str {
        match self {
            Self::Allocated => "memory_allocated()",
            Self::Reserved => "memory_reserved()",
            Self::Cached => "reserved, not in use",
            Self::Free => "mem_get_info()[0]",
            Self::Requested => "requested_bytes in memory_stats()",
            Self::Rounding => "allocated − requested",
            Self::Pending => "active − allocated",
            Self::MaxAllocated => "max_memory_allocated()",
            Self::MaxReserved => "max_memory_reserved()",
        }
    }

    /// The meaning of the word, in one or two sentences.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Allocated => "The size of all blocks that tensors hold now, rounding included.",
            Self::Reserved => {
                "The size of all segments that PyTorch has from the device. Older texts call this \"cached memory\". \
                 nvidia-smi shows this and the CUDA context on top."
            }
            Self::Cached => {
                "Reserved, and in no tensor: PyTorch keeps these bytes for the next request. Other texts say \
                 \"unallocated\"."
            }
            Self::Free => "What the device has left: other programs can take these bytes.",
            Self::Requested => "The bytes that the program asked for, before rounding.",
            Self::Rounding => {
                "Allocated beyond what was asked for: sizes are rounded up, and a small remainder stays with its block."
            }
            Self::Pending => {
                "Freed by the program, and not usable yet: another stream has to finish its work with the block first."
            }
            Self::MaxAllocated => "The most bytes allocated at any moment since the peaks were reset.",
            Self::MaxReserved => "The most bytes reserved at any moment since the peaks were reset.",
        }
    }

    /// The color that goes with the word.
    pub fn role(self) -> Role {
        match self {
            Self::Allocated | Self::Requested => Role::Requested,
            Self::Reserved | Self::MaxReserved => Role::PeakReserved,
            Self::Cached => Role::Cached,
            Self::Free => Role::Free,
            Self::Rounding => Role::Rounding,
            Self::Pending => Role::Pending,
            Self::MaxAllocated => Role::PeakAllocated,
        }
    }

    /// The term of a class of bytes.
    #[must_use]
    pub fn of_class(class: BreakdownClass) -> Self {
        match class {
            BreakdownClass::Requested => Self::Requested,
            BreakdownClass::Rounding => Self::Rounding,
            BreakdownClass::Pending => Self::Pending,
            BreakdownClass::Cached => Self::Cached,
            BreakdownClass::Free => Self::Free,
        }
    }

    /// The first and the last class that the term covers in a figure; a peak covers the classes that it
    /// measures.
    pub fn classes(self) -> (BreakdownClass, BreakdownClass) {
        match self {
            Self::Allocated | Self::MaxAllocated => (BreakdownClass::Requested, BreakdownClass::Rounding),
            Self::Reserved | Self::MaxReserved => (BreakdownClass::Requested, BreakdownClass::Cached),
            Self::Cached => (BreakdownClass::Cached, BreakdownClass::Cached),
            Self::Free => (BreakdownClass::Free, BreakdownClass::Free),
            Self::Requested => (BreakdownClass::Requested, BreakdownClass::Requested),
            Self::Rounding => (BreakdownClass::Rounding, BreakdownClass::Rounding),
            Self::Pending => (BreakdownClass::Pending, BreakdownClass::Pending),
        }
    }
}
