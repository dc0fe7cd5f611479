//! The allocator's settings and the syntax of `PYTORCH_CUDA_ALLOC_CONF`.

use std::str::FromStr;

use blockyard_record::{Backend, Bytes};

use crate::ConfigError;
use crate::size::UNLIMITED;

mod tokens;

use tokens::Tokens;

const ROUNDUP_INTERVALS: usize = 16;
const DEFAULT_LARGE_SEGMENT_SIZE: Bytes = Bytes::mib(20);
const MOST_MIB: u64 = u64::MAX >> 20;

/// The settings of one allocator, as `PYTORCH_CUDA_ALLOC_CONF` gives them.
///
/// The text is `key:value` pairs separated by commas; see [`AllocatorConfig::apply`].
#[derive(Clone, Debug, PartialEq)]
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
        }
    }
}

impl FromStr for AllocatorConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.apply(text)?;
        Ok(config)
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

    /// Reads further settings, as PyTorch does at run time.
    ///
    /// `max_split_size_mb`, `max_non_split_rounding_mb`, `roundup_power2_divisions` and
    /// `garbage_collection_threshold` first return to their defaults; the others keep their values unless named. On an
    /// error, settings that stand before the bad one stay applied.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with PyTorch's message; [`ConfigError::Unsupported`] for settings that PyTorch knows and this
    /// allocator does not model.
    pub fn apply(&mut self, text: &str) -> Result<(), ConfigError> {
        text.clone_into(&mut self.text);
        let tokens = Tokens::new(text);
        self.apply_large_segment_size(&tokens)?;
        self.max_split_size = UNLIMITED;
        self.max_non_split_rounding = self.large_segment_size;
        self.garbage_collection_threshold = 0.0;
        self.roundup_divisions = [0; ROUNDUP_INTERVALS];
        let mut at = 0;
        while at < tokens.len() {
            at = self.apply_key(&tokens, at)?;
            // The separator is passed over unseen, as PyTorch does.
            at += 1;
        }
        Ok(())
    }

    // This key comes first wherever it stands, since the lower bounds of two others depend on it.
    fn apply_large_segment_size(&mut self, tokens: &Tokens) -> Result<(), ConfigError> {
        for at in 0..tokens.len() {
            if tokens.get(at)? == "large_segment_size_mb" {
                let mib = tokens.integer(at + 2)?;
                if mib <= 10 {
                    return Err(ConfigError::LargeSegmentTooSmall);
                }
                self.large_segment_size = Bytes::mib(mib.min(MOST_MIB));
            }
        }
        Ok(())
    }

    // Returns the index behind the value.
    fn apply_key(&mut self, tokens: &Tokens, at: usize) -> Result<usize, ConfigError> {
        let value = at + 2;
        match tokens.get(at)? {
            "large_segment_size_mb" => {}
            "max_split_size_mb" => {
                let mib = self.at_least_a_segment(tokens.integer(value)?, "max_split_size_mb")?;
                self.max_split_size = Bytes::mib(mib);
            }
            "max_non_split_rounding_mb" => {
                let mib = self.at_least_a_segment(tokens.integer(value)?, "max_non_split_rounding_mb")?;
                self.max_non_split_rounding = Bytes::mib(mib);
            }
            "garbage_collection_threshold" => {
                let threshold = tokens.real(value)?;
                if !(threshold > 0.0 && threshold < 1.0) {
                    return Err(ConfigError::GarbageCollectionThreshold);
                }
                self.garbage_collection_threshold = threshold;
            }
            "per_process_memory_fraction" => {
                let fraction = tokens.real(value)?;
                if !(0.0..=1.0).contains(&fraction) {
                    return Err(ConfigError::MemoryFraction);
                }
                self.per_process_memory_fraction = fraction;
            }
            "roundup_power2_divisions" => return self.apply_roundup(tokens, value),
            "expandable_segments" => {
                self.expandable_segments = tokens.boolean(value)?;
            }
            "backend" => match tokens.get(value)? {
                "native" => self.backend = Backend::Native,
                "cudaMallocAsync" => self.backend = Backend::CudaMallocAsync,
                _ => return Err(ConfigError::Backend),
            },
            // These concern locks, graphs and host memory; they change no device address.
            "release_lock_on_cudamalloc"
            | "release_lock_on_hipmalloc"
            | "graph_capture_record_stream_reuse"
            | "pinned_use_cuda_host_register"
            | "pinned_use_hip_host_register"
            | "pinned_use_background_threads" => {
                tokens.boolean(value)?;
            }
            "pinned_num_register_threads" => {
                let threads = tokens.integer(value)?;
                if !threads.is_power_of_two() {
                    return Err(ConfigError::RegisterThreadsNotPowerOfTwo(threads));
                }
                if threads > 128 {
                    return Err(ConfigError::TooManyRegisterThreads(threads));
                }
            }
            "pinned_reserve_segment_size_mb" => {
                if tokens.integer(value)? == 0 {
                    return Err(ConfigError::PinnedReserve);
                }
            }
            key => return Err(ConfigError::UnrecognizedKey(key.to_owned())),
        }
        Ok(value + 1)
    }

    fn at_least_a_segment(&self, mib: u64, option: &'static str) -> Result<u64, ConfigError> {
        let least = self.large_segment_size.get() >> 20;
        if mib < least { Err(ConfigError::TooSmall { option, least }) } else { Ok(mib.min(MOST_MIB)) }
    }

    fn apply_roundup(&mut self, tokens: &Tokens, at: usize) -> Result<usize, ConfigError> {
        if tokens.get(at)? != "[" {
            let divisions = tokens.integer(at)?;
            if !divisions.is_power_of_two() {
                return Err(ConfigError::Divisions);
            }
            self.roundup_divisions = [divisions; ROUNDUP_INTERVALS];
            return Ok(at + 1);
        }
        let mut at = at + 1;
        let (mut last, mut is_first) = (0, true);
        loop {
            let key = tokens.get(at)?;
            if key == "]" {
                return Ok(at + 1);
            }
            if key == "," {
                at += 1;
                continue;
            }
            let divisions = tokens.integer(at + 2)?;
            if divisions != 0 && !divisions.is_power_of_two() {
                return Err(ConfigError::DivisionsInList);
            }
            if key == ">" {
                // Alone in its list it leaves the first entry out: PyTorch takes that for the last one named.
                self.roundup_divisions[last + 1..].fill(divisions);
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let config: AllocatorConfig =
            "max_split_size_mb:64, max_non_split_rounding_mb:32,garbage_collection_threshold:0.6,"
                .parse()
                .unwrap();
        assert_eq!(config.max_split_size(), Bytes::mib(64));
        assert_eq!(config.max_non_split_rounding(), Bytes::mib(32));
        assert!((config.garbage_collection_threshold() - 0.6).abs() < f64::EPSILON);
        assert_eq!("".parse::<AllocatorConfig>().unwrap(), AllocatorConfig::default());
    }

    #[test]
    fn a_rounding_list_fills_the_table_as_pytorch_does() {
        let config: AllocatorConfig =
            "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]".parse().unwrap();
        assert_eq!(config.roundup_table(), [8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1]);
        let rest_alone: AllocatorConfig = "roundup_power2_divisions:[>:8]".parse().unwrap();
        assert_eq!(rest_alone.roundup_table(), [0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
    }

    #[test]
    fn oddities_of_pytorch_2_11_are_kept() {
        assert_eq!(
            "max_split_size_mb,40".parse::<AllocatorConfig>().unwrap().max_split_size(),
            Bytes::mib(40)
        );
        assert_eq!(
            "max_split_size_mb:40.7".parse::<AllocatorConfig>().unwrap().max_split_size(),
            Bytes::mib(40)
        );
        let wrapped: AllocatorConfig = "max_split_size_mb:-1".parse().unwrap();
        assert_eq!(wrapped.max_split_size(), Bytes::mib(MOST_MIB));
        let late = "max_split_size_mb:40,large_segment_size_mb:32".parse::<AllocatorConfig>().unwrap();
        assert_eq!((late.max_split_size(), late.large_segment_size()), (Bytes::mib(40), Bytes::mib(32)));
        assert!("max_split_size_mb:30,large_segment_size_mb:32".parse::<AllocatorConfig>().is_err());
    }

    #[test]
    fn errors_have_pytorchs_words() {
        let cases = [
            ("foo:1,bar:2", "Unrecognized key 'foo' in CUDA allocator config."),
            ("max_split_size_mb:2", "CachingAllocator option max_split_size_mb too small, must be >= 20"),
            (
                "max_non_split_rounding_mb:2",
                "CachingAllocator option max_non_split_rounding_mb too small, must be >= 20",
            ),
            ("large_segment_size_mb:10", "CachingAllocator option large_segment_size_mb must be > 10 MB"),
            (
                "garbage_collection_threshold:1.2",
                "garbage_collect_threshold is invalid, set it in (0.0, 1.0)",
            ),
            ("per_process_memory_fraction:2", "per_process_memory_fraction is invalid, set it in [0.0, 1.0]"),
            ("roundup_power2_divisions:3", "For roundups, the divisions has to be power of 2 "),
            ("roundup_power2_divisions:[3:2]", "For roundups, the intervals have to be power of 2 "),
            (
                "roundup_power2_divisions:[4:3]",
                "For roundups, the divisions has to be power of 2 or 0 to disable roundup ",
            ),
            (
                "release_lock_on_cudamalloc:none",
                "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'none'",
            ),
            (
                "pinned_num_register_threads:1024",
                "Number of register threads should be less than or equal to 128, got 1024",
            ),
            ("backend:foo", "Unknown allocator backend, options are native and cudaMallocAsync"),
            (
                "max_split_size_mb",
                "Index out of bounds in ConfigTokenizer: the value of 'max_split_size_mb' is missing",
            ),
            ("max_split_size_mb:x", "stoull: 'x' is not a number"),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<AllocatorConfig>().unwrap_err().to_string(), message, "{text}");
        }
    }
}
