//! Thresholds, rounding and segment sizes: pure functions over bytes.

use crate::{AllocatorConfig, Bytes, PoolKind};

/// Every block is a multiple of this (`kMinBlockSize`).
pub const MIN_BLOCK_SIZE: Bytes = Bytes::new(512);
/// Rounded requests up to this are small (`kSmallSize`). A large block is split only if the remainder is
/// larger than this.
pub const SMALL_SIZE: Bytes = Bytes::mib(1);
/// The size of segments of the small block pool (`kSmallBuffer`).
pub const SMALL_SEGMENT_SIZE: Bytes = Bytes::mib(2);
/// Rounded requests of at least this get a segment of their own size (`kMinLargeAlloc`).
pub const MIN_LARGE_ALLOCATION: Bytes = Bytes::mib(10);
/// Segments for such requests are multiples of this (`kRoundLarge`).
pub(crate) const LARGE_SEGMENT_ROUNDING: Bytes = Bytes::mib(2);
/// The size of segments for requests between [`SMALL_SIZE`] and [`MIN_LARGE_ALLOCATION`], unless
/// `large_segment_size_mb` is set (`kLargeBuffer`).
pub const DEFAULT_LARGE_SEGMENT_SIZE: Bytes = Bytes::mib(20);
/// The value that means no limit on the size of blocks.
pub const UNLIMITED: Bytes = Bytes::new(u64::MAX);
/// Requests of at least this are refused before anything else happens (`one_exa_bytes` in
/// `NativeCachingAllocator::allocate`).
pub const MAX_REQUEST: Bytes = Bytes::new(1 << 60);
/// The driver's stream-ordered memory pool (`backend:cudaMallocAsync`) maps memory in pieces of this size,
/// and its range of addresses begins at a multiple of this. PyTorch does not have the number: it was found in
/// recordings of an H200.
pub const MALLOC_ASYNC_GRANULE: Bytes = Bytes::mib(32);

/// A request after rounding (`round_size`); `requested` is below [`MAX_REQUEST`].
#[inline]
#[must_use]
pub fn rounded(requested: Bytes, config: &AllocatorConfig) -> Bytes {
    let requested = requested.saturating_add(config.release().dialect().padding());
    let count = requested.get();
    if requested < MIN_BLOCK_SIZE {
        return MIN_BLOCK_SIZE;
    }
    let divisions = config.roundup_divisions(requested);
    if divisions > 1 && count > MIN_BLOCK_SIZE.get().saturating_mul(divisions) {
        rounded_to_division(requested, divisions)
    } else {
        round_up(requested, MIN_BLOCK_SIZE)
    }
}

/// The size of a request without any setting: at least one byte, rounded up to a multiple of
/// [`MIN_BLOCK_SIZE`]. Every setting rounds to at least this, so a block for the request is never smaller.
/// `None` if that does not fit in 64 bits.
#[inline]
#[must_use]
pub fn least(requested: Bytes) -> Option<Bytes> {
    requested.get().max(1).checked_next_multiple_of(MIN_BLOCK_SIZE.get()).map(Bytes::new)
}

/// Rounds up to one of `divisions` equal divisions between two powers of two
/// (`roundup_power2_next_division`).
fn rounded_to_division(requested: Bytes, divisions: u64) -> Bytes {
    let count = requested.get();
    if count.is_power_of_two() {
        return requested;
    }
    let floor = 1_u64 << count.ilog2();
    let step = floor >> divisions.ilog2();
    if step == 0 { Bytes::new(floor << 1) } else { round_up(requested, Bytes::new(step)) }
}

/// The size of the segment for a rounded request (`get_allocation_size`).
#[inline]
#[must_use]
pub fn segment_size(rounded: Bytes, config: &AllocatorConfig) -> Bytes {
    if rounded <= SMALL_SIZE {
        SMALL_SEGMENT_SIZE
    } else if rounded < MIN_LARGE_ALLOCATION {
        config.large_segment_size()
    } else {
        round_up(rounded, config.large_segment_rounding())
    }
}

/// Whether a block of `size` is split when it serves a rounded request (`should_split`). `expands` says
/// whether expandable segments are used.
#[inline]
#[must_use]
pub fn should_split(
    size: Bytes,
    rounded: Bytes,
    pool: PoolKind,
    expands: bool,
    config: &AllocatorConfig,
) -> bool {
    let remainder = size.saturating_sub(rounded);
    if pool == PoolKind::Small || expands {
        remainder >= MIN_BLOCK_SIZE
    } else {
        rounded < config.max_split_size() && remainder > SMALL_SIZE
    }
}

/// [`should_split`] for default settings.
#[inline]
#[must_use]
pub fn should_split_by_default(size: Bytes, rounded: Bytes, pool: PoolKind) -> bool {
    let least_remainder = match pool {
        PoolKind::Small => MIN_BLOCK_SIZE,
        PoolKind::Large => Bytes::new(SMALL_SIZE.get() + 1),
    };
    size >= rounded.saturating_add(least_remainder)
}

/// The page size of an expandable segment, by its pool.
#[must_use]
pub fn page_size(pool: PoolKind, config: &AllocatorConfig) -> Bytes {
    match pool {
        PoolKind::Small => SMALL_SEGMENT_SIZE,
        PoolKind::Large => config.large_segment_size(),
    }
}

/// The most addresses that an expandable segment reserves on a device of `total` bytes: an eighth more.
#[must_use]
pub fn most_addresses(total: Bytes) -> Bytes {
    total.saturating_add(Bytes::new(total.get() / 8))
}

/// How many bytes of addresses an expandable segment reserves on a device of `total` bytes: `reserve`, else
/// [`most_addresses`], in whole pages.
#[must_use]
pub fn range_size(total: Bytes, reserve: Option<Bytes>, page: Bytes) -> Bytes {
    round_up(reserve.unwrap_or_else(|| most_addresses(total)), page)
}

/// The next multiple of `step`. Saturates: sizes that reach the end of 64 bits are larger than any device.
#[inline]
#[must_use]
pub fn round_up(size: Bytes, step: Bytes) -> Bytes {
    Bytes::new(size.get().div_ceil(step.get()).saturating_mul(step.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Release;

    fn config(text: &str) -> AllocatorConfig {
        AllocatorConfig::parse(text, Release::default()).unwrap()
    }

    #[test]
    fn requests_round_as_the_real_library_rounds_them() {
        let plain = [(1, 512), (511, 512), (512, 512), (513, 1024), (1200, 1536), (400_000_000, 400_000_000)];
        for (requested, wanted) in plain {
            assert_eq!(rounded(Bytes::new(requested), &config("")).get(), wanted, "{requested}");
        }
        let by_four = [
            (1025, 1536),
            (1200, 1536),
            (2048, 2048),
            (2049, 2560),
            (2560, 2560),
            (5000, 5120),
            (1_048_577, 1_310_720),
            (88_080_384, 100_663_296),
        ];
        for (requested, wanted) in by_four {
            let config = config("roundup_power2_divisions:4");
            assert_eq!(rounded(Bytes::new(requested), &config).get(), wanted, "{requested}");
        }
        let by_eight = config("roundup_power2_divisions:8");
        assert_eq!(rounded(Bytes::new(3_000_000), &by_eight).get(), 3_145_728);
    }

    #[test]
    fn the_size_of_a_request_decides_the_size_of_its_segment() {
        let cases = [
            (512, Bytes::mib(2)),
            (1 << 20, Bytes::mib(2)),
            ((1 << 20) + 512, Bytes::mib(20)),
            (10_485_248, Bytes::mib(20)),
            (10_485_760, Bytes::mib(10)),
            (10_486_272, Bytes::mib(12)),
            (400_000_000, Bytes::mib(382)),
        ];
        for (rounded, wanted) in cases {
            assert_eq!(segment_size(Bytes::new(rounded), &config("")), wanted, "{rounded}");
        }
        assert_eq!(segment_size(Bytes::mib(3), &config("large_segment_size_mb:32")), Bytes::mib(32));
    }

    #[test]
    fn an_expandable_segment_reserves_an_eighth_more_than_the_device_has() {
        assert_eq!(range_size(Bytes::gib(1), None, Bytes::mib(2)).get(), 1_207_959_552);
        assert_eq!(range_size(Bytes::gib(1), None, Bytes::mib(20)).get(), 1_216_348_160);
        assert_eq!(range_size(Bytes::gib(1), Some(Bytes::mib(512)), Bytes::mib(20)), Bytes::mib(520));
    }

    #[test]
    fn a_large_block_is_split_only_when_more_than_a_mebibyte_remains() {
        let whole = Bytes::mib(20);
        let config = config("");
        assert!(!should_split(whole, Bytes::mib(19), PoolKind::Large, false, &config));
        assert!(should_split(whole, Bytes::mib(19) - Bytes::new(512), PoolKind::Large, false, &config));
        assert!(should_split(
            Bytes::mib(2),
            Bytes::mib(2) - Bytes::new(512),
            PoolKind::Small,
            false,
            &config
        ));
    }
}
