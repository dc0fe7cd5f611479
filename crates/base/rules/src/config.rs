//! The allocator's settings and the syntax of `PYTORCH_CUDA_ALLOC_CONF`.

mod environment;
mod error;
mod keys;
mod known;
mod parse;
mod reserve;
mod single;
mod tokens;

use crate::size::{DEFAULT_LARGE_SEGMENT_SIZE, LARGE_SEGMENT_ROUNDING, UNLIMITED, most_addresses};
use crate::{Backend, Bytes, Release};

pub use environment::{Environment, EnvironmentError};
pub use error::ConfigError;
pub use keys::{SETTING_KEYS, SettingKey, has_setting, setting_values, with_setting};
pub use known::{conf_text, known_config, left_out_note, shell_line};
pub use reserve::AddressReserve;

const ROUNDUP_INTERVALS: usize = 16;
const MAX_REGISTER_THREADS: u64 = 128;
/// The largest number of MiB whose bytes fit in 64 bits. A larger number counts as this one, as in PyTorch
/// for `max_split_size_mb`.
const MAX_MIB: u64 = u64::MAX >> 20;

/// The settings of one allocator, as `PYTORCH_CUDA_ALLOC_CONF` gives them.
///
/// The text is `key:value` pairs separated by commas; see [`AllocatorConfig::apply`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "PyTorch has a switch for each of them")]
pub struct AllocatorConfig {
    release: Release,
    text: String,
    max_split_size: Bytes,
    max_non_split_rounding: Bytes,
    large_segment_size: Bytes,
    garbage_collection_threshold: f64,
    per_process_memory_fraction: f64,
    roundup_divisions: [u64; ROUNDUP_INTERVALS],
    expandable_segments: bool,
    expandable_segments_reserve: Option<AddressReserve>,
    expandable_segments_reserve_by_class: Vec<(String, AddressReserve)>,
    throw_on_cudamalloc_oom: bool,
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
    /// Whether memory is allocated as usual and then registered, instead of being allocated by the driver.
    pub use_host_register: bool,
    /// How many threads touch the pages of registered memory: a power of two, at most 128.
    pub register_threads: u64,
    /// Whether a background thread looks for completed work. Otherwise each allocation does.
    pub use_background_threads: bool,
    /// How much is pinned at once as a reserve that blocks are taken from; zero for no reserve.
    pub reserve_segment_size: Bytes,
    /// Whether an error while memory is freed is a warning and no exception (`pinned_free_catch_all`).
    pub free_catch_all: bool,
    /// Requests up to this size are rounded up to a power of two; 2^64-1 for no limit.
    pub max_round_threshold: Bytes,
    /// Blocks above this size are not cached; 2^64-1 for no limit.
    pub max_cached_size: Bytes,
}

impl Default for PinnedConfig {
    fn default() -> Self {
        Self {
            use_host_register: false,
            register_threads: 1,
            use_background_threads: false,
            reserve_segment_size: Bytes::ZERO,
            free_catch_all: false,
            max_round_threshold: UNLIMITED,
            max_cached_size: UNLIMITED,
        }
    }
}

impl Default for AllocatorConfig {
    fn default() -> Self {
        Self {
            release: Release::default(),
            text: String::new(),
            max_split_size: UNLIMITED,
            max_non_split_rounding: DEFAULT_LARGE_SEGMENT_SIZE,
            large_segment_size: DEFAULT_LARGE_SEGMENT_SIZE,
            garbage_collection_threshold: 0.0,
            per_process_memory_fraction: 1.0,
            roundup_divisions: [0; ROUNDUP_INTERVALS],
            expandable_segments: false,
            expandable_segments_reserve: None,
            expandable_segments_reserve_by_class: Vec::new(),
            throw_on_cudamalloc_oom: false,
            backend: Backend::Native,
            pinned: PinnedConfig::default(),
            release_lock_on_device_malloc: false,
            graph_capture_record_stream_reuse: false,
            is_caching: true,
            warnings: Vec::new(),
        }
    }
}

impl AllocatorConfig {
    /// The settings of a process of this release with this text in `PYTORCH_CUDA_ALLOC_CONF`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with PyTorch's message.
    pub fn parse(text: &str, release: Release) -> Result<Self, ConfigError> {
        let environment = Environment { cuda_alloc_conf: Some(text.to_owned()), ..Environment::default() };
        environment.config_under(release).map_err(|error| match error {
            EnvironmentError::AtImport(error) | EnvironmentError::AtFirstUse(error) => error,
        })
    }

    /// The default settings of a release.
    #[must_use]
    pub fn of(release: Release) -> Self {
        Self { release, ..Self::default() }
    }

    /// The release of PyTorch whose rules hold.
    #[inline]
    #[must_use]
    pub fn release(&self) -> Release {
        self.release
    }

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

    /// Segments for requests of 10 MiB and more are multiples of this.
    #[inline]
    #[must_use]
    pub fn large_segment_rounding(&self) -> Bytes {
        LARGE_SEGMENT_ROUNDING
    }

    /// The fraction of the memory limit above which garbage collection runs; 0 for never.
    #[must_use]
    pub fn garbage_collection_threshold(&self) -> f64 {
        self.garbage_collection_threshold
    }

    /// The fraction of the device that may be reserved from the start; 1 for the whole device.
    #[must_use]
    pub fn per_process_memory_fraction(&self) -> f64 {
        self.per_process_memory_fraction
    }

    /// The bytes that may be reserved on a device of `total` bytes under
    /// [`AllocatorConfig::per_process_memory_fraction`].
    #[must_use]
    pub fn memory_limit(&self, total: Bytes) -> Bytes {
        self.release.memory_limit(total, self.per_process_memory_fraction)
    }

    /// Whether new segments are expandable.
    #[must_use]
    pub fn expandable_segments(&self) -> bool {
        self.expandable_segments
    }

    /// The value of `expandable_segments_reserve`. Classes that `expandable_segments_reserve_by_class` names
    /// are for streams that a C++ program tags, which is not modeled.
    #[must_use]
    pub fn expandable_segments_reserve(&self) -> Option<AddressReserve> {
        self.expandable_segments_reserve
    }

    /// How many bytes of addresses the settings let an expandable segment reserve on a device of `total`
    /// bytes, before the number is rounded up to whole pages; `None` where they do not ask for less than
    /// [`most_addresses`](crate::size::most_addresses).
    #[must_use]
    pub fn address_reserve(&self, total: Bytes) -> Option<Bytes> {
        let reserve = self.expandable_segments_reserve?.bytes(total);
        (reserve < most_addresses(total)).then_some(reserve)
    }

    /// The reserves of `expandable_segments_reserve_by_class`, by the name of the class, in the order of the
    /// text.
    #[must_use]
    pub fn expandable_segments_reserve_by_class(&self) -> &[(String, AddressReserve)] {
        &self.expandable_segments_reserve_by_class
    }

    /// Whether a request for which the device cannot have enough memory is rejected before the device is
    /// asked.
    #[inline]
    #[must_use]
    pub fn throw_on_cudamalloc_oom(&self) -> bool {
        self.throw_on_cudamalloc_oom
    }

    /// The backend that the settings name.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Into how many divisions the range between two powers of two is cut; a request is rounded up to the
    /// next division. 0 and 1 for no such rounding.
    #[must_use]
    pub fn roundup_divisions(&self, requested: Bytes) -> u64 {
        let exponent = requested.get().checked_ilog2().unwrap_or(0) as usize;
        self.roundup_divisions[exponent.saturating_sub(20).min(ROUNDUP_INTERVALS - 1)]
    }

    /// Whether requests of some size are rounded to divisions between two powers of two.
    #[must_use]
    pub fn has_roundup(&self) -> bool {
        self.roundup_divisions.iter().any(|divisions| *divisions > 1)
    }

    /// The table of [`AllocatorConfig::roundup_divisions`]: entry `i` is for requests from 2^`i` MiB up to
    /// 2^(`i` + 1) MiB. The first entry is also for smaller requests, the last entry for larger ones.
    #[must_use]
    pub fn roundup_table(&self) -> &[u64] {
        &self.roundup_divisions
    }

    /// Settings of the allocator of pinned host memory.
    #[must_use]
    pub fn pinned(&self) -> PinnedConfig {
        self.pinned
    }

    /// Whether the lock is released during a call of the device. It has no effect here: the handle that
    /// threads share keeps its lock during every call of the device.
    #[must_use]
    pub fn release_lock_on_device_malloc(&self) -> bool {
        self.release_lock_on_device_malloc
    }

    /// Whether graph captures reuse blocks that other streams have used. It has no effect here: during a
    /// capture, blocks that other streams have used always wait for its end.
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

    /// PyTorch's warnings about the settings text last read.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What PyTorch does not warn about: two settings that do not belong together, in a sentence.
    ///
    /// With `expandable_segments` a free block above `max_split_size_mb` is not split. A stream has one segment
    /// for each pool, so that reserved memory can grow far above what is allocated: PyTorch's own allocator
    /// reserved 16,280 MiB where each setting alone stayed below 500.
    #[must_use]
    pub fn warning_about_pair(&self) -> Option<&'static str> {
        (self.max_split_size() != UNLIMITED && self.expandable_segments()).then_some(
            "`max_split_size_mb` is set together with `expandable_segments`: free blocks above it are \
             then not split, and reserved memory can grow far above what is allocated; set one of the two",
        )
    }

    /// Reads further settings, as PyTorch does at run time (`_set_allocator_settings`).
    ///
    /// `max_split_size_mb`, `roundup_power2_divisions` and `garbage_collection_threshold` first return to
    /// their defaults, and `max_non_split_rounding_mb` to the size of a large segment; the others keep their
    /// values unless named. `per_process_memory_fraction` counts only when an allocator is made. On an error,
    /// settings that were read before the bad one stay applied: first those for all kinds of devices, then
    /// those for CUDA alone, each in the order of the text.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with PyTorch's message, [`ConfigError::BackendChanged`] for another backend among
    /// them.
    pub fn apply(&mut self, text: &str) -> Result<(), ConfigError> {
        self.warnings.clear();
        if self.release.has_one_parser() {
            return self.apply_single(text);
        }
        self.apply_generic(text)?;
        self.apply_cuda(text)?;
        self.leave_out_foreign_settings();
        Ok(())
    }

    /// Gives settings that the dialect does not read their defaults.
    fn leave_out_foreign_settings(&mut self) {
        if self.release.dialect().has_all_settings() {
            return;
        }
        *self = Self {
            text: std::mem::take(&mut self.text),
            expandable_segments: self.expandable_segments,
            per_process_memory_fraction: self.per_process_memory_fraction,
            is_caching: self.is_caching,
            warnings: std::mem::take(&mut self.warnings),
            ..Self::of(self.release)
        };
    }
}

#[cfg(test)]
mod tests;
