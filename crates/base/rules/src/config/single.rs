//! PyTorch's parser of a settings text up to release 2.9: one for all keys, which checks each separator.

use super::parse::{IGNORED_BY_MALLOC_ASYNC, backend_named};
use super::tokens::Tokens;
use super::{AllocatorConfig, ConfigError, MAX_MIB, MAX_REGISTER_THREADS, ROUNDUP_INTERVALS};
use crate::size::{DEFAULT_LARGE_SEGMENT_SIZE, UNLIMITED};
use crate::{Backend, Bytes};

/// The backend that a text selects while the library loads: the first one that is named and known. A text
/// without one is not an error (`parseEnvForBackend`).
pub(super) fn backend_at_load(text: &str) -> Backend {
    let options = text.split(|letter: char| letter.is_ascii_whitespace() || letter == ',');
    let mut named = options.filter_map(|option| {
        let mut parts = option.split(':').filter(|part| !part.is_empty());
        if parts.next() == Some("backend") { parts.next() } else { None }
    });
    named.find_map(backend_named).unwrap_or(Backend::Native)
}

impl AllocatorConfig {
    /// Mirrors `CUDAAllocatorConfig::parseArgs` of these releases.
    pub(super) fn apply_single(&mut self, text: &str) -> Result<(), ConfigError> {
        self.max_split_size = UNLIMITED;
        self.roundup_divisions = [0; ROUNDUP_INTERVALS];
        self.garbage_collection_threshold = 0.0;
        text.clone_into(&mut self.text);
        let tokens = Tokens::new(text);
        let (mut is_async, mut has_native_option) = (false, false);
        let mut at = 0;
        while at < tokens.len() {
            let key = tokens.get(at)?;
            if !self.release.knows_setting(key) {
                return Err(ConfigError::UnrecognizedOption { key: key.to_owned() });
            }
            if key == "backend" {
                expect(&tokens, at + 1, ":")?;
                if !tokens.has_token(at + 2) {
                    return Err(ConfigError::NoBackend);
                }
                is_async = self.check_backend(tokens.get(at + 2)?)? == Backend::CudaMallocAsync;
                at += 2;
            } else {
                at = self.apply_single_key(&tokens, at)?;
                has_native_option = true;
            }
            at += 1;
            if at < tokens.len() {
                expect(&tokens, at, ",")?;
                at += 1;
            }
        }
        if is_async && has_native_option {
            self.warnings.push(IGNORED_BY_MALLOC_ASYNC.to_owned());
        }
        Ok(())
    }

    /// Returns the index of the value's last token.
    fn apply_single_key(&mut self, tokens: &Tokens, at: usize) -> Result<usize, ConfigError> {
        let (key, value) = (tokens.get(at)?, at + 2);
        expect(tokens, at + 1, ":")?;
        let has_value = tokens.has_token(value);
        let needs_value =
            |option: &'static str| if has_value { Ok(()) } else { Err(ConfigError::NoValue { option }) };
        match key {
            "max_split_size_mb" => {
                needs_value("max_split_size_mb")?;
                self.max_split_size = above_a_segment(tokens, value, "max_split_size_mb")?;
            }
            "max_non_split_rounding_mb" => {
                needs_value("max_non_split_rounding_mb")?;
                self.max_non_split_rounding = above_a_segment(tokens, value, "max_non_split_rounding_mb")?;
            }
            "garbage_collection_threshold" => {
                needs_value("garbage_collection_threshold")?;
                let threshold = tokens.real(value)?;
                if threshold.is_nan() || threshold <= 0.0 {
                    return Err(ConfigError::ThresholdTooSmall);
                }
                if threshold >= 1.0 {
                    return Err(ConfigError::ThresholdTooBig);
                }
                self.garbage_collection_threshold = threshold;
            }
            "roundup_power2_divisions" => {
                needs_value("roundup_power2_divisions")?;
                return self.apply_roundup(tokens, value);
            }
            "expandable_segments" => {
                self.expandable_segments = boolean(tokens, value, "expandable_segments")?;
            }
            "release_lock_on_cudamalloc" | "release_lock_on_hipmalloc" => {
                self.release_lock_on_device_malloc = boolean(tokens, value, "release_lock_on_cudamalloc")?;
            }
            "pinned_use_cuda_host_register" | "pinned_use_hip_host_register" => {
                needs_value("pinned_use_cuda_host_register")?;
                self.pinned.use_host_register = boolean(tokens, value, "pinned_use_cuda_host_register")?;
            }
            "graph_capture_record_stream_reuse" => {
                needs_value("graph_capture_record_stream_reuse")?;
                self.graph_capture_record_stream_reuse =
                    boolean(tokens, value, "graph_capture_record_stream_reuse")?;
            }
            "pinned_use_background_threads" => {
                needs_value("pinned_use_background_threads")?;
                self.pinned.use_background_threads = boolean(tokens, value, "pinned_use_background_threads")?;
            }
            _ => {
                needs_value("pinned_num_register_threads")?;
                let threads = tokens.small_integer(value)?;
                if !threads.is_power_of_two() {
                    return Err(ConfigError::OddRegisterThreads);
                }
                if threads > MAX_REGISTER_THREADS {
                    return Err(ConfigError::RegisterThreadsAbove128);
                }
                self.pinned.register_threads = threads;
            }
        }
        Ok(value)
    }
}

pub(super) fn expect(tokens: &Tokens, at: usize, separator: &'static str) -> Result<(), ConfigError> {
    if tokens.get(at).is_ok_and(|token| token == separator) {
        Ok(())
    } else {
        Err(ConfigError::Separator { separator })
    }
}

fn boolean(tokens: &Tokens, at: usize, option: &'static str) -> Result<bool, ConfigError> {
    match tokens.get(at) {
        Ok("True") => Ok(true),
        Ok("False") => Ok(false),
        _ => Err(ConfigError::SingleBoolean { option }),
    }
}

fn above_a_segment(tokens: &Tokens, at: usize, option: &'static str) -> Result<Bytes, ConfigError> {
    let mib = tokens.small_integer(at)?;
    let bound = DEFAULT_LARGE_SEGMENT_SIZE.get() >> 20;
    if mib > bound { Ok(Bytes::mib(mib.min(MAX_MIB))) } else { Err(ConfigError::NotAbove { option, bound }) }
}
