//! Whose GPUs a build of PyTorch is for: each backend has its own copy of CUDA's allocator.

use crate::Bytes;

/// The backend whose allocator made a run.
///
/// The rules of all are those of CUDA's allocator, but for what the methods here say. They were read in the
/// public sources (`c10/xpu/XPUCachingAllocator.cpp` of PyTorch, `NPUCachingAllocator.cpp` of `torch_npu`), and
/// Ascend's were compared with the library of `torch_npu` (`docs/releases.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// NVIDIA's GPUs.
    #[default]
    Cuda,
    /// AMD's GPUs: the source is CUDA's.
    Rocm,
    /// Intel's GPUs.
    Xpu,
    /// Huawei's Ascend NPUs, by `torch_npu`.
    Ascend,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 4] = [Self::Cuda, Self::Rocm, Self::Xpu, Self::Ascend];

    /// What the local part of a version begins with: `xpu` in `2.11.0+xpu`. Versions of `torch_npu` have no
    /// such part, so `npu` is chosen.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Cuda => "cu",
            Self::Rocm => "rocm",
            Self::Xpu => "xpu",
            Self::Ascend => "npu",
        }
    }

    /// The dialect that a version of PyTorch names after its `+`; CUDA where it names none of the others.
    #[must_use]
    pub fn of_version(version: &str) -> Self {
        let local = version.split_once('+').map_or("", |(_, local)| local);
        Self::ALL.into_iter().find(|dialect| local.starts_with(dialect.suffix())).unwrap_or_default()
    }

    /// What the rules are, where they are not CUDA's, in a sentence.
    #[must_use]
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Cuda | Self::Rocm => None,
            Self::Xpu => Some("the rules are those of PyTorch's allocator for XPU"),
            Self::Ascend => Some(
                "the rules are those of torch_npu's allocator for Ascend: 32 bytes are added to each request",
            ),
        }
    }

    /// How many bytes are added to each request before it is rounded (`AddPadSize`).
    #[inline]
    #[must_use]
    pub const fn padding(self) -> Bytes {
        match self {
            Self::Ascend => Bytes::new(32),
            Self::Cuda | Self::Rocm | Self::Xpu => Bytes::ZERO,
        }
    }

    /// The multiple at which the block of a rounded request begins in an expandable segment
    /// (`base_addr_aligned_size`), if there is one: a free block before it keeps what is skipped.
    #[inline]
    #[must_use]
    pub const fn expandable_alignment(self, rounded: Bytes) -> Option<Bytes> {
        match self {
            Self::Ascend if rounded.get() >= Bytes::mib(2).get() => Some(Bytes::kib(16)),
            _ => None,
        }
    }

    /// Whether a free waits for the allocation's own stream too, where `record_stream` named it.
    #[must_use]
    pub const fn waits_for_own_stream(self) -> bool {
        matches!(self, Self::Ascend)
    }

    /// Whether settings other than `expandable_segments` count.
    #[must_use]
    pub const fn has_all_settings(self) -> bool {
        !matches!(self, Self::Xpu)
    }

    /// The dialect whose rounding explains more blocks; `None` where no block tells.
    ///
    /// `blocks` are requested sizes and sizes of blocks, both in bytes, of blocks that are in use.
    #[must_use]
    pub fn of_blocks(blocks: impl Iterator<Item = (Bytes, Bytes)>) -> Option<Self> {
        let rounded = |requested: Bytes, dialect: Self| {
            crate::size::least(requested.saturating_add(dialect.padding())).unwrap_or(Bytes::ZERO)
        };
        let (mut cuda, mut ascend) = (0_usize, 0_usize);
        for (requested, size) in blocks {
            let [plain, padded] = [Self::Cuda, Self::Ascend].map(|dialect| rounded(requested, dialect));
            if plain != padded {
                cuda = cuda.saturating_add(usize::from(size == plain));
                ascend = ascend.saturating_add(usize::from(size == padded));
            }
        }
        match cuda.cmp(&ascend) {
            std::cmp::Ordering::Greater => Some(Self::Cuda),
            std::cmp::Ordering::Less => Some(Self::Ascend),
            std::cmp::Ordering::Equal => None,
        }
    }
}
