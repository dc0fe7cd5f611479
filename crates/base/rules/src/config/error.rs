//! Settings that PyTorch refuses, in its words.

use crate::{Backend, Release};

/// A settings text that PyTorch refuses, in PyTorch's words if those are clear.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No option has this name.
    #[error("Unrecognized key '{key}' in {parser} allocator config.")]
    UnrecognizedKey {
        /// The name.
        key: String,
        /// Which of PyTorch's two parsers read the name first: `CUDA` or `Accelerator`.
        parser: &'static str,
    },
    /// No option has this name, up to release 2.9.
    #[error("Unrecognized CachingAllocator option: {key}")]
    UnrecognizedOption {
        /// The name.
        key: String,
    },
    /// A separator is missing, up to release 2.9.
    #[error("Error parsing CachingAllocator settings, expected {separator}")]
    Separator {
        /// The separator.
        separator: &'static str,
    },
    /// The text ends where the value of an option was expected, up to release 2.9.
    #[error("Error, expecting {option} value")]
    NoValue {
        /// The option's name.
        option: &'static str,
    },
    /// The text ends past `backend:`, up to release 2.9.
    #[error("Error parsing backend value")]
    NoBackend,
    /// The text ends where a number of divisions was expected, up to release 2.9.
    #[error("Error parsing roundup_power2_divisions value")]
    NoDivisions,
    /// A value that is neither `True` nor `False`, up to release 2.9.
    #[error("Expected a single True/False argument for {option}")]
    SingleBoolean {
        /// The option's name.
        option: &'static str,
    },
    /// A size that is not above that of a large segment, up to release 2.9.
    #[error("CachingAllocator option {option} too small, must be > {bound}")]
    NotAbove {
        /// The option's name.
        option: &'static str,
        /// The size of a large segment, in MiB.
        bound: u64,
    },
    /// `garbage_collection_threshold` of 0 or less, up to release 2.9.
    #[error("garbage_collect_threshold too small, set it 0.0~1.0")]
    ThresholdTooSmall,
    /// `garbage_collection_threshold` of 1 or more, up to release 2.9.
    #[error("garbage_collect_threshold too big, set it 0.0~1.0")]
    ThresholdTooBig,
    /// `pinned_num_register_threads` that is not a power of two, up to release 2.9.
    #[error("Number of register threads has to be power of 2 ")]
    OddRegisterThreads,
    /// `pinned_num_register_threads` above 128, up to release 2.9.
    #[error("Number of register threads should be less than or equal to 128")]
    RegisterThreadsAbove128,
    /// A list has no end.
    #[error("Expected closing bracket ']' in ConfigTokenizer but reached end of config")]
    UnclosedList,
    /// The text ends where a value was expected.
    #[error("Index out of bounds in ConfigTokenizer: the value of '{0}' is missing")]
    Missing(String),
    /// A value that is neither `True` nor `False`.
    #[error("Expected 'True' or 'False' at index {index} in ConfigTokenizer but got '{found}'")]
    Boolean {
        /// The index of the token in the text, from 0 on.
        index: usize,
        /// The token.
        found: String,
    },
    /// A value that is not a whole number.
    #[error("stoull: '{0}' is not a number")]
    NotAnInteger(String),
    /// A whole number of more than 64 bits.
    #[error("stoull: '{0}' is out of range")]
    IntegerRange(String),
    /// A value that is not a real number.
    #[error("stod: '{0}' is not a number")]
    NotAReal(String),
    /// A real number that is too large.
    #[error("stod: '{0}' is out of range")]
    RealRange(String),
    /// A size below that of a large segment.
    #[error("CachingAllocator option {option} too small, must be >= {least}")]
    TooSmall {
        /// The option's name.
        option: &'static str,
        /// The least value, in MiB.
        least: u64,
    },
    /// `large_segment_size_mb` of 10 or less.
    #[error("CachingAllocator option large_segment_size_mb must be > 10 MB")]
    LargeSegmentTooSmall,
    /// `garbage_collection_threshold` outside of 0 to 1, both excluded.
    #[error("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")]
    GarbageCollectionThreshold,
    /// `per_process_memory_fraction` outside of 0 to 1.
    #[error("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")]
    MemoryFraction,
    /// A single number of divisions that is not a power of two.
    #[error("For roundups, the {} has to be power of 2 ", .0.spelling_of_divisions())]
    Divisions(Release),
    /// A number of divisions in a list that is neither zero nor a power of two.
    #[error("For roundups, the {} has to be power of 2 or 0 to disable roundup ", .0.spelling_of_divisions())]
    DivisionsInList(Release),
    /// A size in a list that is not a power of two.
    #[error("For roundups, the intervals have to be power of 2 ")]
    Intervals,
    /// No backend has this name.
    #[error("Unknown allocator backend, options are native and cudaMallocAsync")]
    Backend,
    /// Another backend than the one that the library was loaded with.
    #[error(
        "Allocator backend parsed at runtime != allocator backend parsed at load time, {asked} != {loaded}"
    )]
    BackendChanged {
        /// The backend that the text names.
        asked: Backend,
        /// The backend in use.
        loaded: Backend,
    },
    /// `pinned_num_register_threads` that is not a power of two.
    #[error("Number of register threads has to be power of 2, got {0}")]
    RegisterThreadsNotPowerOfTwo(u64),
    /// `pinned_num_register_threads` above 128.
    #[error("Number of register threads should be less than or equal to 128, got {0}")]
    TooManyRegisterThreads(u64),
    /// `pinned_reserve_segment_size_mb` of zero.
    #[error("Pinned reserve segment size has to be greater than 0")]
    PinnedReserve,
}
