//! The releases of PyTorch whose rules are known.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Bytes, Dialect, SETTING_KEYS};

/// A minor release of PyTorch, and whose GPUs its build is for. Patch releases have the rules of their minor
/// release.
///
/// Releases have no public order: what a release does is a method here. The
/// written form is `2.11` for CUDA, and `2.11+xpu`, `2.11+rocm` or `2.11+npu` for another
/// [dialect](Release::dialect).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// The number after the first point, one of those in `KNOWN`.
    minor: u8,
    dialect: Dialect,
}

/// The releases, oldest first and without a gap: the name, and what `torch.__version__` shows in the newest patch
/// release, built for CUDA.
const KNOWN: [(&str, &str); 10] = [
    ("2.6", "2.6.0+cu124"),
    ("2.7", "2.7.1+cu126"),
    ("2.8", "2.8.0+cu128"),
    ("2.9", "2.9.1+cu128"),
    ("2.10", "2.10.0+cu128"),
    ("2.11", "2.11.0+cu130"),
    ("2.12", "2.12.1+cu130"),
    ("2.13", "2.13.0+cu130"),
    ("2.14", "2.14.1+cu130"),
    ("2.15", "2.15.0+cu132"),
];

/// The number of the oldest release.
const OLDEST: u8 = 6;

/// [`Release::LATEST`].
impl Default for Release {
    fn default() -> Self {
        Self::LATEST
    }
}

/// What PyTorch advises at the end of the text of `torch.OutOfMemoryError`, where expandable segments serve
/// the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpandableAdvice {
    /// To try expandable segments, as for every request.
    TryExpandableSegments,
    /// No advice.
    None,
    /// To change how many addresses an expandable segment reserves.
    AddressReserve,
}

impl Release {
    /// 2.6 for CUDA.
    pub const V2_6: Self = Self::cuda(6);
    /// 2.7 for CUDA.
    pub const V2_7: Self = Self::cuda(7);
    /// 2.8 for CUDA.
    pub const V2_8: Self = Self::cuda(8);
    /// 2.9 for CUDA.
    pub const V2_9: Self = Self::cuda(9);
    /// 2.10 for CUDA.
    pub const V2_10: Self = Self::cuda(10);
    /// 2.11 for CUDA.
    pub const V2_11: Self = Self::cuda(11);
    /// 2.12 for CUDA.
    pub const V2_12: Self = Self::cuda(12);
    /// 2.13 for CUDA.
    pub const V2_13: Self = Self::cuda(13);
    /// 2.14 for CUDA.
    pub const V2_14: Self = Self::cuda(14);
    /// 2.15 for CUDA.
    pub const V2_15: Self = Self::cuda(15);

    const fn cuda(minor: u8) -> Self {
        Self { minor, dialect: Dialect::Cuda }
    }

    /// The same release for the GPUs of this dialect.
    #[must_use]
    pub const fn with_dialect(self, dialect: Dialect) -> Self {
        Self { minor: self.minor, dialect }
    }

    /// This release with the dialect of a run, where it names no other dialect than CUDA's.
    #[must_use]
    pub const fn with_dialect_of(self, run: Self) -> Self {
        if matches!(self.dialect, Dialect::Cuda) { self.with_dialect(run.dialect) } else { self }
    }

    /// Whose GPUs the build of PyTorch is for.
    #[inline]
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        self.dialect
    }

    /// All releases for CUDA, oldest first.
    pub const ALL: [Self; KNOWN.len()] = {
        let mut all = [Self::cuda(OLDEST); KNOWN.len()];
        let mut place = 1;
        while place < all.len() {
            all[place] = Self::cuda(all[place - 1].minor + 1);
            place += 1;
        }
        all
    };

    /// The newest release: the default of workloads.
    pub const LATEST: Self = Self::ALL[KNOWN.len() - 1];

    /// The release under which the operators of programs are compared with recordings of GPUs: the default of
    /// programs.
    pub const OF_RECORDED_OPERATORS: Self = Self::V2_11;

    const fn known(self) -> (&'static str, &'static str) {
        KNOWN[(self.minor - OLDEST) as usize]
    }

    /// The name without a patch number: `2.11`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.known().0
    }

    /// The release whose rules are taken for a version of PyTorch: its own, else the nearest that is known;
    /// the newest for a text that is not a version.
    #[must_use]
    pub fn nearest(version: &str) -> Self {
        let Some(number) = minor_release(version.trim()) else {
            return Self::default();
        };
        let of =
            |text: &str| text.split('.').filter_map(|part| part.parse::<u32>().ok()).collect::<Vec<u32>>();
        let number = of(number);
        let release = Self::ALL.into_iter().rev().find(|release| of(release.name()) <= number);
        release.unwrap_or(Self::ALL[0]).with_dialect(Dialect::of_version(version))
    }

    /// What `torch.__version__` shows in the newest patch release, built for CUDA.
    #[must_use]
    pub const fn version(self) -> &'static str {
        self.known().1
    }

    /// Whether this is the other release or a later one.
    #[inline]
    #[must_use]
    pub(crate) const fn is_at_least(self, other: Self) -> bool {
        self.minor >= other.minor
    }

    /// Whether the parsers of this release know a key of settings.
    #[must_use]
    pub fn knows_setting(self, key: &str) -> bool {
        SETTING_KEYS.iter().any(|known| known.key == key && self.is_at_least(known.since))
    }

    /// The number after the first point: 11 for 2.11.
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.minor as u32
    }

    /// Whether the allocator takes each open scope on a memory pool for a graph capture. From 2.13 on a
    /// capture announces itself (`markCaptureBegin`, pull request 181830).
    #[inline]
    #[must_use]
    pub const fn scopes_are_captures(self) -> bool {
        !self.is_at_least(Self::V2_13)
    }

    /// Whether the pool of the program's innermost open scope (`MemPoolContext`) is the only one that a snapshot
    /// lists and that `empty_cache` releases.
    #[must_use]
    pub const fn has_active_pool(self) -> bool {
        !self.is_at_least(Self::V2_8)
    }

    /// Whether a request that needs new memory fails while a scope of the program is open and segments expand.
    #[must_use]
    pub const fn refuses_expandable_pools(self) -> bool {
        self.minor == 7
    }

    /// Whether the oldest of several free blocks of one size comes first. In 2.12 a block is as old as the
    /// `Block` that describes it, which a split makes again for its front; in all other releases the lowest
    /// address comes first. Found by running the libraries.
    #[inline]
    #[must_use]
    pub const fn oldest_block_first(self) -> bool {
        self.minor == 12
    }

    /// Whether settings have one parser and count in `PYTORCH_CUDA_ALLOC_CONF` alone; from 2.10 on there are
    /// two parsers, and `PYTORCH_ALLOC_CONF` counts too.
    #[must_use]
    pub const fn has_one_parser(self) -> bool {
        !self.is_at_least(Self::V2_10)
    }

    /// The word in errors about `roundup_power2_divisions`.
    pub(crate) const fn spelling_of_divisions(self) -> &'static str {
        if self.is_at_least(Self::V2_8) { "divisions" } else { "divisons" }
    }

    /// Whether of several open scopes on memory pools the one opened last gets a request; before, the one
    /// opened first, as on Ascend.
    #[must_use]
    pub const fn last_scope_counts(self) -> bool {
        self.is_at_least(Self::V2_10) && !matches!(self.dialect, Dialect::Ascend)
    }

    /// Whether a memory fraction of 1 removes the limit; before, the whole device was a limit.
    #[must_use]
    pub const fn whole_device_is_no_limit(self) -> bool {
        self.is_at_least(Self::V2_10)
    }

    /// Whether a pool lends blocks of expandable segments too (`use_on_oom`).
    #[must_use]
    pub const fn lends_expandable_blocks(self) -> bool {
        !self.is_at_least(Self::V2_10)
    }

    /// Whether a pool lends its memory (`use_on_oom`) before the allocator releases cached memory; before
    /// 2.11 it lent as the last thing, and a pool that lends could not be destroyed.
    #[must_use]
    pub const fn lends_before_releases(self) -> bool {
        self.is_at_least(Self::V2_11)
    }

    /// Whether the statistics have `num_oom_rejections`.
    #[must_use]
    pub const fn counts_oom_rejections(self) -> bool {
        self.is_at_least(Self::V2_12)
    }

    /// Whether the statistics have the reserved bytes of each memory pool.
    #[must_use]
    pub const fn counts_private_pools(self) -> bool {
        self.is_at_least(Self::V2_13)
    }

    /// Whether entries of a trace name their memory pool.
    #[must_use]
    pub const fn traces_pools(self) -> bool {
        self.is_at_least(Self::V2_12)
    }

    /// Whether entries of a trace name the compilation of `torch.compile`.
    #[must_use]
    pub const fn traces_compile_context(self) -> bool {
        self.is_at_least(Self::V2_8)
    }

    /// Whether entries of a trace have the text of `_set_memory_metadata`.
    #[must_use]
    pub const fn traces_user_metadata(self) -> bool {
        self.is_at_least(Self::V2_10)
    }

    /// Whether a snapshot has pinned host memory.
    #[must_use]
    pub const fn snapshots_host_memory(self) -> bool {
        self.is_at_least(Self::V2_14)
    }

    /// Whether the addresses of an expandable segment are given back as soon as PyTorch sees that the request
    /// does not fit into them; before, the request fails when its memory is mapped.
    #[must_use]
    pub const fn gives_back_too_few_addresses(self) -> bool {
        self.is_at_least(Self::V2_15)
    }

    /// What the text of `torch.OutOfMemoryError` advises for a request that expandable segments serve.
    #[must_use]
    pub const fn expandable_advice(self) -> ExpandableAdvice {
        if self.is_at_least(Self::V2_15) {
            ExpandableAdvice::AddressReserve
        } else if self.is_at_least(Self::V2_14) {
            ExpandableAdvice::None
        } else {
            ExpandableAdvice::TryExpandableSegments
        }
    }

    /// The variable that the advice to try expandable segments names, and where it sends its reader.
    #[must_use]
    pub const fn advised_variable_and_page(self) -> (&'static str, &'static str) {
        const OLD_PAGE: &str = "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables";
        match self.minor {
            ..=9 => ("PYTORCH_CUDA_ALLOC_CONF", OLD_PAGE),
            10 => ("PYTORCH_ALLOC_CONF", OLD_PAGE),
            _ => (
                "PYTORCH_CUDA_ALLOC_CONF",
                "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
            ),
        }
    }

    /// The release that a snapshot is of, as far as its keys say: one with pinned memory or a setting of it
    /// is of 2.13 or later, one whose trace entries name their memory pools of 2.12, any other of 2.11.
    /// For a snapshot of 2.13 or later this is the newest release, since all releases from 2.13 on place
    /// blocks alike.
    #[must_use]
    pub const fn of_snapshot(has_pinned: bool, traces_pools: bool) -> Self {
        if has_pinned {
            Self::LATEST
        } else if traces_pools {
            Self::V2_12
        } else {
            Self::V2_11
        }
    }

    /// Whether cuDNN's attention is the first choice where it can run; before, it was the last. Found by
    /// running the releases.
    #[must_use]
    pub const fn prefers_cudnn_attention(self) -> bool {
        self.is_at_least(Self::V2_11)
    }

    /// Whether cuDNN's attention is left out where the probability of dropout is not a multiple of 1/16 (pull
    /// request 174245).
    #[must_use]
    pub const fn cudnn_attention_needs_sixteenths(self) -> bool {
        self.is_at_least(Self::V2_12)
    }

    /// Whether flash attention has the state of its random numbers on the GPU; before, it was on the host. Found
    /// by running the releases.
    #[must_use]
    pub const fn has_flash_state_on_device(self) -> bool {
        self.is_at_least(Self::V2_7)
    }

    /// Whether memory-efficient attention without dropout has its seed and offset on the GPU, 8 bytes each;
    /// before, they were on the host. Found by running the releases.
    #[must_use]
    pub const fn seeds_attention_on_device(self) -> bool {
        self.is_at_least(Self::V2_14)
    }

    /// Whether `backend:cudaMallocAsync` gives cached memory back when a request fails, and asks the driver
    /// once more (pull request 188110).
    #[must_use]
    pub const fn trims_before_oom(self) -> bool {
        self.is_at_least(Self::V2_14)
    }

    /// The bytes that may be reserved on a device of `total` bytes under a memory fraction from 0 to 1: cut
    /// off to whole bytes, from 2.13 on rounded to the nearest (pull request 179444).
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "PyTorch multiplies doubles as well"
    )]
    pub fn memory_limit(self, total: Bytes, fraction: f64) -> Bytes {
        if !self.is_at_least(Self::V2_13) || self.dialect == Dialect::Xpu {
            return total.share(fraction);
        }
        Bytes::new((total.get() as f64 * fraction).round() as u64)
    }
}

/// `2.11`, and `2.11+npu` for another dialect than CUDA.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dialect {
            Dialect::Cuda => f.pad(self.name()),
            other => f.pad(&format!("{}+{}", self.name(), other.suffix())),
        }
    }
}

/// The text of [`fmt::Display`].
impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Reads `2.11` and what `torch.__version__` shows: `2.11.0`, `2.12.1+cu130`, `2.11.0+xpu`,
/// `2.15.0a0+git5f1c3e2`.
impl FromStr for Release {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let named = text.trim();
        let number = minor_release(named).ok_or_else(|| ReleaseError::NoVersion(text.to_owned()))?;
        let known = Self::ALL.into_iter().find(|release| release.name() == number);
        let known = known.ok_or_else(|| ReleaseError::Unknown(named.to_owned()))?;
        Ok(known.with_dialect(Dialect::of_version(named)))
    }
}

/// The part `2.11` of a version, if the text is a version.
fn minor_release(text: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let major = digits(text);
    let rest = text.get(major..)?.strip_prefix('.')?;
    let minor = digits(rest);
    let end = major.checked_add(1)?.checked_add(minor)?;
    let tail = rest.get(minor..)?;
    let is_version =
        major > 0 && minor > 0 && (tail.is_empty() || tail.starts_with(['.', '+', '-', 'a', 'b', 'r', 'd']));
    if is_version { text.get(..end) } else { None }
}

/// A text that names none of the releases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The text is not a version at all.
    #[error("'{0}' is not a release of PyTorch; the releases are {all}", all = all_names())]
    NoVersion(String),
    /// The version belongs to a release whose rules are not known.
    #[error("the rules of PyTorch {0} are not known; the releases are {all}", all = all_names())]
    Unknown(String),
}

/// The names of all releases, as a sentence lists them.
fn all_names() -> String {
    let names = Release::ALL.map(Release::name);
    match names.split_last() {
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_from_its_name_and_from_versions_of_it() {
        for release in Release::ALL {
            assert_eq!(release.to_string().parse(), Ok(release));
            let json = serde_json::to_string(&release).unwrap();
            assert_eq!(json, format!("\"{release}\""));
            assert_eq!(serde_json::from_str::<Release>(&json).unwrap(), release);
        }
        let cases = [
            ("2.6.0+cu124", Release::V2_6),
            ("2.7.1", Release::V2_7),
            ("2.8.0+cu128", Release::V2_8),
            ("2.9.1", Release::V2_9),
            ("2.10.0+cu128", Release::V2_10),
            ("2.11.0", Release::V2_11),
            ("2.12.1+cu130", Release::V2_12),
            ("2.13.0a0+git5f1c3e2", Release::V2_13),
            ("2.14.0.dev20260901", Release::V2_14),
            (" 2.15.0+cu132\n", Release::V2_15),
            ("2.15+cu132", Release::V2_15),
            ("2.15rc1", Release::V2_15),
            ("2.11.0+xpu", Release::V2_11.with_dialect(Dialect::Xpu)),
            ("2.12.1+rocm6.4", Release::V2_12.with_dialect(Dialect::Rocm)),
            ("2.11+npu", Release::V2_11.with_dialect(Dialect::Ascend)),
        ];
        for (text, release) in cases {
            assert_eq!(text.parse(), Ok(release), "{text}");
        }
    }

    #[test]
    fn a_release_that_is_not_known_is_refused_by_name() {
        let message = |text: &str| text.parse::<Release>().unwrap_err().to_string();
        assert_eq!(
            message("2.16.0+cu140"),
            "the rules of PyTorch 2.16.0+cu140 are not known; the releases are 2.6, 2.7, 2.8, 2.9, 2.10, 2.11, 2.12, 2.13, 2.14 and 2.15"
        );
        for unknown in ["2.1", "2.110", "2.5.0", "3.11", "12.11"] {
            assert_eq!(unknown.parse::<Release>(), Err(ReleaseError::Unknown(unknown.to_owned())));
        }
        for text in ["", "2", "2.", ".11", "x2.11", "2.11x", "2.11 or so", "-2.11", "2,11", "\u{661}.\u{661}"]
        {
            assert_eq!(text.parse::<Release>(), Err(ReleaseError::NoVersion(text.to_owned())), "{text}");
        }
        assert_eq!(
            message("newest"),
            "'newest' is not a release of PyTorch; the releases are 2.6, 2.7, 2.8, 2.9, 2.10, 2.11, 2.12, 2.13, 2.14 and 2.15"
        );
    }

    #[test]
    fn a_limit_of_whole_bytes_is_met_exactly_from_2_13_on() {
        // From a run of both libraries: 2.11 refuses the last of 249,561,088 bytes that the fraction allows.
        let (total, limit) = (Bytes::new(150_109_880_320), Bytes::new(249_561_088));
        #[expect(clippy::cast_precision_loss, reason = "as a program computes the fraction")]
        let fraction = limit.get() as f64 / total.get() as f64;
        assert_eq!(Release::V2_12.memory_limit(total, fraction), Bytes::new(249_561_087));
        assert_eq!(Release::V2_13.memory_limit(total, fraction), limit);
    }

    #[test]
    fn a_version_that_is_not_known_has_the_rules_of_the_nearest() {
        let cases = [
            ("2.5.1+cu124", Release::ALL[0]),
            ("1.13.1", Release::ALL[0]),
            ("2.12.0", Release::V2_12),
            ("2.16.0a0+git1", Release::LATEST),
            ("3.0", Release::LATEST),
            ("", Release::LATEST),
            ("unknown", Release::LATEST),
        ];
        for (version, release) in cases {
            assert_eq!(Release::nearest(version), release, "{version}");
        }
    }

    #[test]
    fn releases_are_ordered_by_age() {
        assert!(Release::ALL.is_sorted_by_key(|release| release.minor()));
        assert_eq!(Release::ALL.last(), Some(&Release::LATEST));
    }
}
