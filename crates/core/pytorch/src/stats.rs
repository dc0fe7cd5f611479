//! `torch.cuda.memory_stats()`: its keys by release, and their values.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use blockyard_record::{PoolId, Stat, StatArray, Stats};
use blockyard_rules::Release;

/// How many keys `memory_stats()` has in the oldest release, and a recording in every release.
pub const STAT_COUNT: usize = 122;

type ArrayOf = fn(&Stats) -> &StatArray;
type StatOf = fn(&StatArray) -> &Stat;
type ValueOf = fn(&Stat) -> i64;
type SingleOf = fn(&Stats) -> &Stat;
type NumberOf = fn(&Stats) -> i64;

const ARRAYS: [(&str, ArrayOf); 9] = [
    ("active", |stats| &stats.active),
    ("active_bytes", |stats| &stats.active_bytes),
    ("allocated_bytes", |stats| &stats.allocated_bytes),
    ("allocation", |stats| &stats.allocation),
    ("inactive_split", |stats| &stats.inactive_split),
    ("inactive_split_bytes", |stats| &stats.inactive_split_bytes),
    ("requested_bytes", |stats| &stats.requested_bytes),
    ("reserved_bytes", |stats| &stats.reserved_bytes),
    ("segment", |stats| &stats.segment),
];
const POOLS: [(&str, StatOf); 3] = [
    ("all", |array| &array.all),
    ("large_pool", |array| &array.large_pool),
    ("small_pool", |array| &array.small_pool),
];
const MEMBERS: [(&str, ValueOf); 4] = [
    ("allocated", |stat| stat.allocated),
    ("current", |stat| stat.current),
    ("freed", |stat| stat.freed),
    ("peak", |stat| stat.peak),
];
const SINGLES: [(&str, SingleOf); 2] = [
    ("oversize_allocations", |stats| &stats.oversize_allocations),
    ("oversize_segments", |stats| &stats.oversize_segments),
];
const NUMBERS: [(&str, NumberOf); 6] = [
    ("max_split_size", |stats| stats.max_split_size),
    ("num_alloc_retries", |stats| stats.num_alloc_retries),
    ("num_device_alloc", |stats| stats.num_device_alloc),
    ("num_device_free", |stats| stats.num_device_free),
    ("num_ooms", |stats| stats.num_ooms),
    ("num_sync_all_streams", |stats| stats.num_sync_all_streams),
];

/// The keys of `torch.cuda.memory_stats()` in the oldest release, sorted as PyTorch sorts them: by their
/// text.
#[must_use]
pub fn stat_keys() -> &'static [String] {
    static KEYS: OnceLock<Vec<String>> = OnceLock::new();
    KEYS.get_or_init(|| each(&Stats::default()).into_iter().map(|(key, _)| key).collect())
}

/// The index of a key in [`stat_keys`].
#[must_use]
pub fn stat_index(key: &str) -> Option<usize> {
    stat_keys().binary_search_by(|known| known.as_str().cmp(key)).ok()
}

/// The values in the order of [`stat_keys`].
#[must_use]
pub fn stat_values(stats: &Stats) -> Vec<i64> {
    static ORDER: OnceLock<Vec<usize>> = OnceLock::new();
    let values = in_declared_order(stats);
    // The place of each sorted key in the declared order; found once, since this runs after every operation.
    let order = ORDER.get_or_init(|| {
        let mut order: Vec<usize> = (0..STAT_COUNT).collect();
        let keys = declared_keys();
        order.sort_by(|left, right| keys[*left].cmp(&keys[*right]));
        order
    });
    order.iter().map(|index| values[*index]).collect()
}

/// The result of `torch.cuda.memory_stats()` in a release, sorted by key: 122 keys in the oldest,
/// `num_oom_rejections` too from 2.12 on, and from 2.13 on twelve more, `reserved_bytes_by_private_pools`,
/// for each memory pool that ever had a segment.
#[must_use]
pub fn memory_stats_in(
    release: Release,
    stats: &Stats,
    reserved_by_private_pools: &BTreeMap<PoolId, StatArray>,
) -> Vec<(String, i64)> {
    let mut all: Vec<(String, i64)> =
        memory_stats(stats).into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if release.counts_oom_rejections() {
        all.push(("num_oom_rejections".to_owned(), stats.num_oom_rejections));
    }
    if release.counts_private_pools() {
        for (id, reserved) in reserved_by_private_pools {
            for (pool, of) in POOLS {
                let members = MEMBERS.map(|(member, value)| {
                    let (capture, user) = (id.capture, id.user);
                    let key = format!("reserved_bytes_by_private_pools.{capture}_{user}.{pool}.{member}");
                    (key, value(of(reserved)))
                });
                all.extend(members);
            }
        }
    }
    all.sort();
    all
}

/// The result of `torch.cuda.memory_stats()` in the oldest release: 122 keys and values, sorted by key.
#[must_use]
pub fn memory_stats(stats: &Stats) -> Vec<(&'static str, i64)> {
    stat_keys().iter().map(String::as_str).zip(stat_values(stats)).collect()
}

/// One value of [`memory_stats`], without the others: programs ask for it after every line.
#[must_use]
pub fn memory_stat(stats: &Stats, key: &str) -> Option<i64> {
    let mut parts = key.split('.');
    match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        (array, Some(pool), Some(member), None) => {
            let (_, array) = ARRAYS.iter().find(|(name, _)| *name == array)?;
            let (_, pool) = POOLS.iter().find(|(name, _)| *name == pool)?;
            let (_, member) = MEMBERS.iter().find(|(name, _)| *name == member)?;
            Some(member(pool(array(stats))))
        }
        (single, Some(member), None, None) => {
            let (_, single) = SINGLES.iter().find(|(name, _)| *name == single)?;
            let (_, member) = MEMBERS.iter().find(|(name, _)| *name == member)?;
            Some(member(single(stats)))
        }
        (number, None, None, None) => {
            let (_, number) = NUMBERS.iter().find(|(name, _)| *name == number)?;
            Some(number(stats))
        }
        _ => None,
    }
}

fn each(stats: &Stats) -> Vec<(String, i64)> {
    let mut pairs: Vec<(String, i64)> = declared_keys().into_iter().zip(in_declared_order(stats)).collect();
    pairs.sort();
    pairs
}

fn declared_keys() -> Vec<String> {
    let mut keys = Vec::with_capacity(STAT_COUNT);
    for (array, _) in ARRAYS {
        for (pool, _) in POOLS {
            keys.extend(MEMBERS.map(|(member, _)| format!("{array}.{pool}.{member}")));
        }
    }
    for (single, _) in SINGLES {
        keys.extend(MEMBERS.map(|(member, _)| format!("{single}.{member}")));
    }
    keys.extend(NUMBERS.map(|(number, _)| number.to_owned()));
    keys
}

fn in_declared_order(stats: &Stats) -> Vec<i64> {
    let mut values = Vec::with_capacity(STAT_COUNT);
    for (_, array) in ARRAYS {
        for (_, pool) in POOLS {
            values.extend(MEMBERS.map(|(_, member)| member(pool(array(stats)))));
        }
    }
    for (_, single) in SINGLES {
        values.extend(MEMBERS.map(|(_, member)| member(single(stats))));
    }
    values.extend(NUMBERS.map(|(_, number)| number(stats)));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_found_by_its_key() {
        let mut stats = Stats { num_ooms: 3, ..Stats::default() };
        stats.allocated_bytes.large_pool.peak = 7;
        stats.oversize_segments.freed = 5;
        for (key, value) in memory_stats(&stats) {
            assert_eq!(memory_stat(&stats, key), Some(value), "{key}");
        }
        for key in ["", "active", "active.all", "active.all.peak.x", "num_ooms.peak"] {
            assert_eq!(memory_stat(&stats, key), None, "{key}");
        }
    }

    #[test]
    fn there_are_122_keys_in_the_order_of_their_text() {
        let keys = stat_keys();
        assert_eq!(keys.len(), STAT_COUNT);
        assert!(keys.is_sorted());
        assert_eq!(keys.first().map(String::as_str), Some("active.all.allocated"));
        assert_eq!(keys.last().map(String::as_str), Some("segment.small_pool.peak"));
    }

    #[test]
    fn values_stand_at_their_keys() {
        let mut stats = Stats { num_ooms: 7, ..Stats::default() };
        stats.reserved_bytes.small_pool.peak = 11;
        stats.oversize_segments.freed = 13;
        let values = stat_values(&stats);
        let at = |key| values[stat_index(key).unwrap()];
        assert_eq!(at("num_ooms"), 7);
        assert_eq!(at("reserved_bytes.small_pool.peak"), 11);
        assert_eq!(at("oversize_segments.freed"), 13);
        assert_eq!(at("max_split_size"), -1);
    }
}
