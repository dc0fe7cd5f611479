//! The allocator's settings and the syntax of `PYTORCH_CUDA_ALLOC_CONF`.

use std::str::FromStr;

use blockyard_record::{Backend, Bytes};

use crate::ConfigError;
use crate::size::UNLIMITED;

mod environment;
mod parse;
mod tokens;

pub use environment::{Environment, EnvironmentError};

const ROUNDUP_INTERVALS: usize = 16;
const DEFAULT_LARGE_SEGMENT_SIZE: Bytes = Bytes::mib(20);
const MOST_MIB: u64 = u64::MAX >> 20;

/// The settings of one allocator, as `PYTORCH_CUDA_ALLOC_CONF` gives them.
///
/// The text is `key:value` pairs separated by commas; see [`AllocatorConfig::apply`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "PyTorch has a switch for each of them")]
pub struct AllocatorConfig {
    text: String,
    max_split_size: Bytes,
    max_non_split_rounding: Bytes,
    large_segment_size: Bytes,
    garbage_collection_threshold: f64,
    per_process_memory_fraction: f64,
    roundup_divisions: [u64; ROUNDUP_INTERVALS],
    expandable_segments: bool,
    backend: Backend,
    pinned: PinnedConfig,
    release_lock_on_device_malloc: bool,
    graph_capture_record_stream_reuse: bool,
    is_caching: bool,
    warnings: Vec<String>,
}

/// The settings of the allocator of pinned host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedConfig {
    /// Whether memory is allocated as usual and registered, instead of allocated by the driver.
    pub use_host_register: bool,
    /// How many threads touch its pages then: a power of two, at most 128.
    pub register_threads: u64,
    /// Whether a thread of its own looks for completed work, instead of each allocation.
    pub use_background_threads: bool,
    /// What is pinned at once, to carve blocks from; zero for nothing.
    pub reserve_segment_size: Bytes,
}

impl Default for PinnedConfig {
    fn default() -> Self {
        Self {
            use_host_register: false,
            register_threads: 1,
            use_background_threads: false,
            reserve_segment_size: Bytes::ZERO,
        }
    }
}

impl Default for AllocatorConfig {
    fn default() -> Self {
        Self {
            text: String::new(),
            max_split_size: UNLIMITED,
            max_non_split_rounding: DEFAULT_LARGE_SEGMENT_SIZE,
            large_segment_size: DEFAULT_LARGE_SEGMENT_SIZE,
            garbage_collection_threshold: 0.0,
            per_process_memory_fraction: 1.0,
            roundup_divisions: [0; ROUNDUP_INTERVALS],
            expandable_segments: false,
            backend: Backend::Native,
            pinned: PinnedConfig::default(),
            release_lock_on_device_malloc: false,
            graph_capture_record_stream_reuse: false,
            is_caching: true,
            warnings: Vec::new(),
        }
    }
}

/// The settings of a process with this text in `PYTORCH_CUDA_ALLOC_CONF`.
impl FromStr for AllocatorConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let environment = Environment { cuda_alloc_conf: Some(text.to_owned()), ..Environment::default() };
        environment.config().map_err(|error| match error {
            EnvironmentError::AtImport(error) | EnvironmentError::AtFirstUse(error) => error,
        })
    }
}

impl AllocatorConfig {
    /// The settings text last applied, even if it had an error.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Blocks from this size on are not split; 2^64-1 for no limit.
    #[must_use]
    pub fn max_split_size(&self) -> Bytes {
        self.max_split_size
    }

    /// `max_split_size` as PyTorch's dictionaries show it: in bytes, -1 for no limit.
    #[must_use]
    pub fn max_split_size_signed(&self) -> i64 {
        if self.max_split_size == UNLIMITED { -1 } else { self.max_split_size.signed() }
    }

    /// A request of at least [`AllocatorConfig::max_split_size`] takes a block at most this much larger.
    #[must_use]
    pub fn max_non_split_rounding(&self) -> Bytes {
        self.max_non_split_rounding
    }

    /// The size of segments for requests between 1 and 10 MiB.
    #[must_use]
    pub fn large_segment_size(&self) -> Bytes {
        self.large_segment_size
    }

    /// The share of the memory limit above which garbage collection runs; 0 for never.
    #[must_use]
    pub fn garbage_collection_threshold(&self) -> f64 {
        self.garbage_collection_threshold
    }

    /// The share of the device that may be reserved from the start; 1 for all of it.
    #[must_use]
    pub fn per_process_memory_fraction(&self) -> f64 {
        self.per_process_memory_fraction
    }

    /// Whether new memory goes into segments that grow page by page.
    #[must_use]
    pub fn expandable_segments(&self) -> bool {
        self.expandable_segments
    }

    /// Which allocator the settings ask for.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// In how many steps the range between two powers of two is divided for a request; 0 and 1 for no such rounding.
    #[must_use]
    pub fn roundup_divisions(&self, requested: Bytes) -> u64 {
        let exponent = requested.get().checked_ilog2().unwrap_or(0) as usize;
        self.roundup_divisions[exponent.saturating_sub(20).min(ROUNDUP_INTERVALS - 1)]
    }

    /// The table behind [`AllocatorConfig::roundup_divisions`]: entry `i` is for requests from 2^`i` MiB on, the first
    /// for smaller ones too, the last for larger ones too.
    #[must_use]
    pub fn roundup_table(&self) -> &[u64] {
        &self.roundup_divisions
    }

    /// Settings of the allocator of pinned host memory.
    #[must_use]
    pub fn pinned(&self) -> PinnedConfig {
        self.pinned
    }

    /// Whether the lock is given up while the device is asked for a segment. Nothing here has a lock to give up.
    #[must_use]
    pub fn release_lock_on_device_malloc(&self) -> bool {
        self.release_lock_on_device_malloc
    }

    /// Whether captures reuse blocks that other streams have used. No capture is modeled.
    #[must_use]
    pub fn graph_capture_record_stream_reuse(&self) -> bool {
        self.graph_capture_record_stream_reuse
    }

    /// Whether memory is cached at all; see [`Environment`].
    #[must_use]
    pub fn is_caching(&self) -> bool {
        self.is_caching
    }

    /// Switches caching on or off (`torch.cuda.caching_allocator_enable`).
    pub fn set_caching(&mut self, is_caching: bool) {
        self.is_caching = is_caching;
    }

    /// What PyTorch warned of when it read the settings last.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Reads further settings, as PyTorch does at run time (`_set_allocator_settings`).
    ///
    /// `max_split_size_mb`, `roundup_power2_divisions` and `garbage_collection_threshold` first return to their defaults, and
    /// `max_non_split_rounding_mb` to the size of a large segment; the others keep their values unless named.
    /// `per_process_memory_fraction` counts only when an allocator is made. On an error, settings that were read before the
    /// bad one stay applied: first those for all kinds of devices, then those for CUDA alone, each in the order of the text.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with PyTorch's message, [`ConfigError::BackendChanged`] for another backend among them.
    pub fn apply(&mut self, text: &str) -> Result<(), ConfigError> {
        self.warnings.clear();
        self.apply_generic(text)?;
        self.apply_cuda(text)
    }
}

#[cfg(test)]
mod tests;
