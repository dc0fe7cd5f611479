//! PyTorch's statistics as numbers of 64 bits (words): the 122 of `DeviceStats` in release 2.11 in order,
//! then those that later releases added.

use std::collections::BTreeMap;

use blockyard_record::{PoolId, Stat, StatArray, Stats};
use blockyard_rules::{Dialect, Release};

/// How many statistics release 2.11 has.
const OLDEST_COUNT: usize = 122;

/// How many words a private pool has: its two numbers, and three statistics of four values.
const PRIVATE_POOL_WORDS: usize = 14;

const ARRAYS: [&str; 9] = [
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
];
const POOLS: [&str; 3] = ["all", "small_pool", "large_pool"];
const MEMBERS: [&str; 4] = ["current", "peak", "allocated", "freed"];
const NUMBERS: [&str; 4] = ["num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size"];
const OVERSIZE: usize = ARRAYS.len() * POOLS.len() * MEMBERS.len() + 2;

/// The statistics in the order of this module; `private_pools` has the reserved bytes of each private pool
/// that ever existed.
pub fn words(stats: &Stats, private_pools: &BTreeMap<PoolId, StatArray>, release: Release) -> Vec<i64> {
    let mut words = oldest_words(stats).to_vec();
    if release.dialect() == Dialect::Ascend {
        // Its allocator does not count calls of the device, nor what later releases count.
        words[OLDEST_COUNT - 4..OLDEST_COUNT - 1].fill(0);
        return words;
    }
    if release.counts_oom_rejections() {
        words.push(stats.num_oom_rejections);
    }
    if release.counts_private_pools() {
        for (pool, array) in private_pools {
            words.extend([i64::from(pool.capture), i64::from(pool.user)]);
            for stat in [&array.all, &array.small_pool, &array.large_pool] {
                words.extend([stat.current, stat.peak, stat.allocated, stat.freed]);
            }
        }
    }
    words
}

fn oldest_words(stats: &Stats) -> [i64; OLDEST_COUNT] {
    let mut words = [0; OLDEST_COUNT];
    let mut slots = words.iter_mut();
    let mut put = |value: i64| {
        if let Some(slot) = slots.next() {
            *slot = value;
        }
    };
    let mut put_stat = |stat: &Stat| [stat.current, stat.peak, stat.allocated, stat.freed].map(&mut put);
    let arrays: [&StatArray; 9] = [
        &stats.allocation,
        &stats.segment,
        &stats.active,
        &stats.inactive_split,
        &stats.allocated_bytes,
        &stats.reserved_bytes,
        &stats.active_bytes,
        &stats.inactive_split_bytes,
        &stats.requested_bytes,
    ];
    for array in arrays {
        for stat in [&array.all, &array.small_pool, &array.large_pool] {
            put_stat(stat);
        }
    }
    let singles = [&stats.oversize_allocations, &stats.oversize_segments];
    let counters = [stats.num_alloc_retries, stats.num_ooms];
    let last =
        [stats.num_sync_all_streams, stats.num_device_alloc, stats.num_device_free, stats.max_split_size];
    words[OVERSIZE - 2..OVERSIZE].copy_from_slice(&counters);
    for (index, stat) in singles.into_iter().enumerate() {
        let at = OVERSIZE + 4 * index;
        words[at..at + 4].copy_from_slice(&[stat.current, stat.peak, stat.allocated, stat.freed]);
    }
    words[OLDEST_COUNT - 4..].copy_from_slice(&last);
    words
}

/// The name of the statistic at `index`, as `memory_stats()` writes it.
pub fn key(index: usize) -> String {
    let member = |index: usize| MEMBERS[index % MEMBERS.len()];
    let in_arrays = OVERSIZE - 2;
    match index {
        _ if index < in_arrays => {
            let (array, pool) = (index / 12, index / 4 % 3);
            format!("{}.{}.{}", ARRAYS[array], POOLS[pool], member(index))
        }
        _ if index == in_arrays => "num_alloc_retries".to_owned(),
        _ if index == in_arrays + 1 => "num_ooms".to_owned(),
        _ if index < OVERSIZE + 4 => format!("oversize_allocations.{}", member(index - OVERSIZE)),
        _ if index < OVERSIZE + 8 => format!("oversize_segments.{}", member(index - OVERSIZE)),
        _ if index < OLDEST_COUNT => NUMBERS[index - OVERSIZE - 8].to_owned(),
        _ if index == OLDEST_COUNT => "num_oom_rejections".to_owned(),
        _ => {
            let (pool, word) = (
                (index - OLDEST_COUNT - 1) / PRIVATE_POOL_WORDS,
                (index - OLDEST_COUNT - 1) % PRIVATE_POOL_WORDS,
            );
            match word {
                0 | 1 => format!("id of private pool {pool}"),
                _ => format!(
                    "reserved_bytes_by_private_pools.{pool}.{}.{}",
                    POOLS[(word - 2) / 4],
                    member(word - 2)
                ),
            }
        }
    }
}

/// A hash of all statistics; `native/driver.cpp` computes the same number.
pub fn digest(words: &[i64]) -> u64 {
    let mut lanes = [1_u64, 2];
    for (index, word) in words.iter().enumerate() {
        let lane = &mut lanes[index % 2];
        *lane = (*lane ^ word.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *lane ^= *lane >> 32;
    }
    lanes[0] ^ (lanes[1] << 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_at_their_keys() {
        let mut stats = Stats {
            num_ooms: 7,
            num_device_free: 11,
            num_oom_rejections: 3,
            max_split_size: 5,
            ..Stats::default()
        };
        stats.requested_bytes.large_pool.freed = 13;
        stats.oversize_segments.peak = 17;
        let words = words(&stats, &BTreeMap::new(), Release::V2_12);
        let at = |wanted: &str| {
            words[(0..words.len()).find(|index| key(*index) == wanted).expect("there is such a key")]
        };
        assert_eq!(at("num_ooms"), 7);
        assert_eq!(at("num_device_free"), 11);
        assert_eq!(at("max_split_size"), 5);
        assert_eq!(at("num_oom_rejections"), 3);
        assert_eq!(at("requested_bytes.large_pool.freed"), 13);
        assert_eq!(at("oversize_segments.peak"), 17);
    }
}
