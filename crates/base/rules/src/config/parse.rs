//! PyTorch's two parsers of a settings text: one for all kinds of devices, one for CUDA. Each parser skips
//! the keys of the other.

use super::keys::has_key;
use super::reserve::{self, AddressReserve};
use super::single::expect;
use super::tokens::Tokens;
use super::{AllocatorConfig, ConfigError, MAX_MIB, MAX_REGISTER_THREADS, ROUNDUP_INTERVALS};
use crate::size::UNLIMITED;
use crate::{Backend, Bytes};

pub(super) const IGNORED_BY_MALLOC_ASYNC: &str = "backend:cudaMallocAsync ignores max_split_size_mb,roundup_power2_divisions, and \
     garbage_collect_threshold.";

/// The backend that a text selects while the library loads: the first backend named, or the native one for an
/// unknown name (`parseEnvForBackend`).
pub(super) fn backend_at_load(text: &str) -> Result<Backend, ConfigError> {
    let tokens = Tokens::new(text);
    let mut at = 0;
    while at < tokens.len() {
        if tokens.get(at)? == "backend" {
            let is_async = tokens.get(at + 2)? == Backend::CudaMallocAsync.name();
            return Ok(if is_async { Backend::CudaMallocAsync } else { Backend::Native });
        }
        at = tokens.skip_value(at)? + 2;
    }
    Ok(Backend::Native)
}

/// The backend with this name in settings.
pub(super) fn backend_named(name: &str) -> Option<Backend> {
    [Backend::Native, Backend::CudaMallocAsync].into_iter().find(|known| known.name() == name)
}

impl AllocatorConfig {
    /// Mirrors `AcceleratorAllocatorConfig::parseArgs`.
    pub(super) fn apply_generic(&mut self, text: &str) -> Result<(), ConfigError> {
        self.max_split_size = UNLIMITED;
        self.roundup_divisions = [0; ROUNDUP_INTERVALS];
        self.garbage_collection_threshold = 0.0;
        text.clone_into(&mut self.text);
        let tokens = Tokens::new(text);
        // Without this key, the rounding that an earlier text set holds.
        if self.release.knows_setting("large_segment_size_mb") {
            self.apply_large_segment_size(&tokens)?;
            self.max_non_split_rounding = self.large_segment_size;
        }
        let mut at = 0;
        while at < tokens.len() {
            // Separators are skipped without a check, as in PyTorch: the next key is two tokens after the
            // value.
            at = self.apply_generic_key(&tokens, at)? + 2;
        }
        Ok(())
    }

    /// Applies `large_segment_size_mb`. This key is applied first wherever it is in the text, because the
    /// lower bounds of two other keys depend on it.
    fn apply_large_segment_size(&mut self, tokens: &Tokens) -> Result<(), ConfigError> {
        let mut at = 0;
        while at < tokens.len() {
            if tokens.get(at)? == "large_segment_size_mb" {
                let mib = tokens.integer(at + 2)?;
                if mib <= 10 {
                    return Err(ConfigError::LargeSegmentTooSmall);
                }
                self.large_segment_size = Bytes::mib(mib.min(MAX_MIB));
                at += 2;
            }
            at += 1;
        }
        Ok(())
    }

    /// Returns the index of the value's last token.
    fn apply_generic_key(&mut self, tokens: &Tokens, at: usize) -> Result<usize, ConfigError> {
        let value = at + 2;
        let key = tokens.get(at)?;
        if !has_key(true, key, self.release) {
            if has_key(false, key, self.release) {
                return tokens.skip_value(at);
            }
            return Err(ConfigError::UnrecognizedKey { key: key.to_owned(), parser: "Accelerator" });
        }
        match key {
            "max_split_size_mb" => {
                let mib = self.at_least_a_segment(tokens.value(at)?, "max_split_size_mb")?;
                self.max_split_size = Bytes::mib(mib);
            }
            "max_non_split_rounding_mb" => {
                let mib = self.at_least_a_segment(tokens.value(at)?, "max_non_split_rounding_mb")?;
                self.max_non_split_rounding = Bytes::mib(mib);
            }
            "garbage_collection_threshold" => {
                let threshold = tokens.real(value)?;
                if !(threshold > 0.0 && threshold < 1.0) {
                    return Err(ConfigError::GarbageCollectionThreshold);
                }
                self.garbage_collection_threshold = threshold;
            }
            "roundup_power2_divisions" => return self.apply_roundup(tokens, value),
            "expandable_segments" => self.expandable_segments = tokens.boolean(value)?,
            "pinned_use_background_threads" => {
                self.pinned.use_background_threads = tokens.boolean(value)?;
            }
            "pinned_max_round_threshold_mb" => {
                self.pinned.max_round_threshold = Bytes::mib(tokens.integer(value)?.min(MAX_MIB));
                self.warn_about_pinned_sizes();
            }
            "pinned_max_cached_size_mb" => {
                self.pinned.max_cached_size = Bytes::mib(tokens.integer(value)?.min(MAX_MIB));
                self.warn_about_pinned_sizes();
            }
            // `large_segment_size_mb` was read before all others.
            _ => return tokens.skip_value(at),
        }
        Ok(value)
    }

    fn at_least_a_segment(&self, mib: u64, option: &'static str) -> Result<u64, ConfigError> {
        let least = self.large_segment_size.get() >> 20;
        if mib < least { Err(ConfigError::TooSmall { option, least }) } else { Ok(mib.min(MAX_MIB)) }
    }

    /// Applies one number of divisions, or a list with one for each interval. Returns the index of the value's
    /// last token.
    ///
    /// The parser up to 2.9 checks each separator. There `>` begins at the last interval, later one above it.
    pub(super) fn apply_roundup(&mut self, tokens: &Tokens, value: usize) -> Result<usize, ConfigError> {
        let checks_separators = self.release.has_one_parser();
        let number = |at| if checks_separators { tokens.small_integer(at) } else { tokens.integer(at) };
        if tokens.get(value)? != "[" {
            let divisions = number(value)?;
            if !divisions.is_power_of_two() {
                return Err(ConfigError::Divisions(self.release));
            }
            self.roundup_divisions = [divisions; ROUNDUP_INTERVALS];
            return Ok(value);
        }
        let (mut at, mut last, mut is_first) = (value + 1, 0, true);
        while tokens.has_token(at) && tokens.get(at)? != "]" {
            if checks_separators {
                expect(tokens, at + 1, ":")?;
                if !tokens.has_token(at + 2) {
                    return Err(ConfigError::NoDivisions);
                }
            }
            let divisions = number(at + 2)?;
            if divisions != 0 && !divisions.is_power_of_two() {
                return Err(ConfigError::DivisionsInList(self.release));
            }
            if tokens.get(at)? == ">" {
                let from = if checks_separators { last } else { last + 1 };
                self.roundup_divisions[from..].fill(divisions);
            } else {
                let mib = tokens.integer(at)?;
                if !mib.is_power_of_two() {
                    return Err(ConfigError::Intervals);
                }
                let index = (mib.ilog2() as usize).min(ROUNDUP_INTERVALS - 1);
                let from = if is_first { 0 } else { index };
                self.roundup_divisions[from..=index].fill(divisions);
                (last, is_first) = (index, false);
            }
            at += 3;
            // The parser up to 2.9 reads past the end of a text that ends here.
            if tokens.get(at)? != "]" {
                if checks_separators {
                    expect(tokens, at, ",")?;
                }
                at += 1;
            }
        }
        if checks_separators || tokens.has_token(at) { Ok(at) } else { Err(ConfigError::UnclosedList) }
    }

    /// Mirrors `CUDAAllocatorConfig::parseArgs`.
    pub(super) fn apply_cuda(&mut self, text: &str) -> Result<(), ConfigError> {
        let tokens = Tokens::new(text);
        let (mut is_async, mut has_native_option) = (false, false);
        let mut at = 0;
        while at < tokens.len() {
            let key = tokens.get(at)?;
            if key == "backend" {
                is_async = self.check_backend(tokens.get(at + 2)?)? == Backend::CudaMallocAsync;
            } else {
                has_native_option |= has_key(false, key, self.release);
            }
            at = self.apply_cuda_key(&tokens, at)? + 2;
        }
        if is_async && has_native_option {
            self.warnings.push(IGNORED_BY_MALLOC_ASYNC.to_owned());
        }
        Ok(())
    }

    /// The backend is selected while the library loads. Later texts can only name the same backend.
    pub(super) fn check_backend(&self, name: &str) -> Result<Backend, ConfigError> {
        let asked = backend_named(name).ok_or(ConfigError::Backend)?;
        if asked == self.backend {
            Ok(asked)
        } else {
            Err(ConfigError::BackendChanged { asked, loaded: self.backend })
        }
    }

    fn apply_cuda_key(&mut self, tokens: &Tokens, at: usize) -> Result<usize, ConfigError> {
        let value = at + 2;
        let key = tokens.get(at)?;
        if !has_key(false, key, self.release) {
            if has_key(true, key, self.release) {
                return tokens.skip_value(at);
            }
            return Err(ConfigError::UnrecognizedKey { key: key.to_owned(), parser: "CUDA" });
        }
        match key {
            "backend" => {}
            // The lock of the handle that threads share is always kept.
            "release_lock_on_cudamalloc" | "release_lock_on_hipmalloc" => {
                self.release_lock_on_device_malloc = tokens.boolean(value)?;
            }
            "graph_capture_record_stream_reuse" => {
                self.graph_capture_record_stream_reuse = tokens.boolean(value)?;
            }
            "pinned_use_cuda_host_register" | "pinned_use_hip_host_register" => {
                self.pinned.use_host_register = tokens.boolean(value)?;
            }
            "pinned_num_register_threads" => {
                let threads = tokens.integer(value)?;
                if !threads.is_power_of_two() {
                    return Err(ConfigError::RegisterThreadsNotPowerOfTwo(threads));
                }
                if threads > MAX_REGISTER_THREADS {
                    return Err(ConfigError::TooManyRegisterThreads(threads));
                }
                self.pinned.register_threads = threads;
            }
            "pinned_reserve_segment_size_mb" => {
                let mib = tokens.integer(value)?;
                if mib == 0 {
                    return Err(ConfigError::PinnedReserve);
                }
                self.pinned.reserve_segment_size = Bytes::mib(mib.min(MAX_MIB));
            }
            "per_process_memory_fraction" => {
                let fraction = tokens.real(value)?;
                if !(0.0..=1.0).contains(&fraction) {
                    return Err(ConfigError::MemoryFraction);
                }
                self.per_process_memory_fraction = fraction;
            }
            "pinned_free_catch_all" => self.pinned.free_catch_all = tokens.boolean(value)?,
            "throw_on_cudamalloc_oom" => self.throw_on_cudamalloc_oom = tokens.boolean(value)?,
            "expandable_segments_reserve" => {
                if let Some(reserve) = self.read_reserve(tokens.get(value)?) {
                    self.expandable_segments_reserve = Some(reserve);
                }
            }
            "expandable_segments_reserve_by_class" => return self.apply_reserves_by_class(tokens, value),
            _ => return tokens.skip_value(at),
        }
        Ok(value)
    }

    /// A value of a reserve of addresses; a wrong one is a warning.
    fn read_reserve(&mut self, text: &str) -> Option<AddressReserve> {
        let reserve = AddressReserve::read(text);
        if reserve.is_none() {
            self.warnings.push(reserve::ignored(text));
        }
        reserve
    }

    /// Reads `[name:value,...]`; returns the index of the bracket at the end.
    fn apply_reserves_by_class(&mut self, tokens: &Tokens, value: usize) -> Result<usize, ConfigError> {
        let mut at = value + 1;
        while tokens.get(at)? != "]" {
            let class = tokens.get(at)?.to_owned();
            let text = tokens.get(at + 2)?.to_owned();
            if let Some(reserve) = self.read_reserve(&text) {
                self.expandable_segments_reserve_by_class.retain(|(known, _)| *known != class);
                self.expandable_segments_reserve_by_class.push((class, reserve));
            }
            at += 3;
            if tokens.get(at)? == "," {
                at += 1;
            }
        }
        Ok(at)
    }

    fn warn_about_pinned_sizes(&mut self) {
        let (rounded, cached) = (self.pinned.max_round_threshold, self.pinned.max_cached_size);
        if rounded != UNLIMITED && rounded > cached {
            self.warnings.push(format!(
                "pinned_max_round_threshold_mb ({}) > pinned_max_cached_size_mb ({}). The cache size limit takes precedence: \
                 allocations above pinned_max_cached_size_mb are never rounded up.",
                rounded.get() >> 20,
                cached.get() >> 20
            ));
        }
    }
}
