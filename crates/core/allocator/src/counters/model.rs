//! The counters against [`Stats`], which keeps every number by itself.

use blockyard_record::{Bytes, PoolKind, Stats};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;

use super::Counters;

#[derive(Clone, Copy, Debug)]
enum Act {
    Allocate(PoolKind, u64, u64),
    Free(Index),
    RequestFree(Index),
    Complete(Index),
    RemainderTaken(PoolKind),
    RemainderSplit(PoolKind, u64),
    RemainderLeft(PoolKind, u64),
    RemainderGrown(PoolKind, u8, u64),
    RemaindersLost(PoolKind, u8),
    Segment(PoolKind, u64, bool),
    ResetPeak,
    ResetAccumulated,
    TakeOver,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let pool = || select(PoolKind::ALL.to_vec());
    let size = || (1..=40_u64).prop_map(|units| units * 512);
    let act = prop_oneof![
        8 => (pool(), size(), 0..512_u64).prop_map(|(pool, size, rounding)| Act::Allocate(pool, size, size - rounding)),
        4 => any::<Index>().prop_map(Act::Free),
        3 => any::<Index>().prop_map(Act::RequestFree),
        2 => any::<Index>().prop_map(Act::Complete),
        1 => pool().prop_map(Act::RemainderTaken),
        1 => (pool(), size()).prop_map(|(pool, size)| Act::RemainderSplit(pool, size)),
        2 => (pool(), size()).prop_map(|(pool, size)| Act::RemainderLeft(pool, size)),
        2 => (pool(), 0..=2_u8, size()).prop_map(|(pool, absorbed, size)| Act::RemainderGrown(pool, absorbed, size)),
        1 => (pool(), 1..=2_u8).prop_map(|(pool, blocks)| Act::RemaindersLost(pool, blocks)),
        1 => (pool(), size(), any::<bool>()).prop_map(|(pool, size, comes)| Act::Segment(pool, size, comes)),
        1 => Just(Act::ResetPeak),
        1 => Just(Act::ResetAccumulated),
    ];
    let late = prop_oneof![20 => act, 1 => Just(Act::TakeOver)];
    vec(late, 1..if cfg!(miri) { 40 } else { 150 })
}

/// The counters, the statistics that they are compared with, and the blocks that both count.
#[derive(Default)]
struct Pair {
    counters: Counters,
    stats: Stats,
    live: Vec<(PoolKind, Bytes, Bytes)>,
    pending: Vec<(PoolKind, Bytes, Bytes)>,
    /// Inactive blocks of split segments, for the small and the large pool.
    inactive_splits: [Vec<u64>; 2],
}

impl Pair {
    fn act(&mut self, act: Act) {
        match act {
            Act::Allocate(pool, size, requested) => {
                let (size, requested) = (Bytes::new(size), Bytes::new(requested));
                self.live.push((pool, size, requested));
                self.counters.allocated(pool, size, requested);
                self.counters.note_pending();
                self.stats.allocated(pool, size, requested, false);
            }
            Act::Free(place) if !self.live.is_empty() => {
                let (pool, size, requested) = self.live.swap_remove(place.index(self.live.len()));
                self.counters.freed(pool, size, requested);
                self.stats.free_requested(pool, size, false);
                self.stats.free_completed(pool, size, requested);
            }
            Act::RequestFree(place) if !self.live.is_empty() => {
                let block = self.live.swap_remove(place.index(self.live.len()));
                self.pending.push(block);
                self.counters.free_requested(block.0, block.1);
                self.stats.free_requested(block.0, block.1, false);
            }
            Act::Complete(place) if !self.pending.is_empty() => {
                let (pool, size, requested) = self.pending.swap_remove(place.index(self.pending.len()));
                self.counters.pending_completed(pool, size, requested);
                self.stats.free_completed(pool, size, requested);
            }
            Act::Segment(pool, size, comes) => {
                let size = Bytes::new(size);
                if comes {
                    self.counters.infrequent.segment_allocated(pool, size, true);
                    self.stats.segment_allocated(pool, size, true);
                } else {
                    self.counters.infrequent.segment_released(pool, size, true);
                    self.stats.segment_released(pool, size, true);
                }
            }
            Act::ResetPeak => {
                self.counters.reset_peak();
                self.stats.reset_peak();
            }
            Act::ResetAccumulated => {
                self.counters.reset_accumulated();
                self.stats.reset_accumulated();
            }
            Act::TakeOver => {
                // A new allocator begins with nothing counted and every peak at its current value.
                self.stats.reset_peak();
                self.stats.reset_accumulated();
                self.counters = Counters::beginning_with(&self.stats);
            }
            Act::Free(_) | Act::RequestFree(_) | Act::Complete(_) => {}
            act => self.change_inactive_splits(act),
        }
    }

    fn change_inactive_splits(&mut self, act: Act) {
        let (counters, stats) = (&mut self.counters, &mut self.stats);
        match act {
            Act::RemainderTaken(pool) => {
                if let Some(size) = self.inactive_splits[pool as usize].pop() {
                    counters.splits_changed(pool, -1, -size.cast_signed());
                    stats.inactive_split_changed(pool, -1, -size.cast_signed());
                }
            }
            Act::RemainderSplit(pool, size) => {
                if let Some(remainder) =
                    self.inactive_splits[pool as usize].last_mut().filter(|remainder| **remainder > size)
                {
                    *remainder -= size;
                    counters.splits_changed(pool, 0, -size.cast_signed());
                    stats.inactive_split_changed(pool, 0, -size.cast_signed());
                }
            }
            Act::RemainderLeft(pool, size) => {
                self.inactive_splits[pool as usize].push(size);
                counters.splits_changed(pool, 1, size.cast_signed());
                stats.inactive_split_changed(pool, 1, size.cast_signed());
            }
            Act::RemainderGrown(pool, absorbed, size) => {
                let inactive_splits = &mut self.inactive_splits[pool as usize];
                if let Some(kept) = inactive_splits.len().checked_sub(usize::from(absorbed)) {
                    let whole = inactive_splits.drain(kept..).sum::<u64>() + size;
                    inactive_splits.push(whole);
                    counters.splits_changed(pool, 1 - i64::from(absorbed), size.cast_signed());
                    stats.inactive_split_changed(pool, 1 - i64::from(absorbed), size.cast_signed());
                }
            }
            Act::RemaindersLost(pool, blocks) => {
                let inactive_splits = &mut self.inactive_splits[pool as usize];
                if let Some(kept) = inactive_splits.len().checked_sub(usize::from(blocks)) {
                    let size = inactive_splits.drain(kept..).sum::<u64>();
                    counters.splits_changed(pool, -i64::from(blocks), -size.cast_signed());
                    stats.inactive_split_changed(pool, -i64::from(blocks), -size.cast_signed());
                }
            }
            _ => unreachable!("the others were done before"),
        }
    }

    fn check(&self) {
        assert_eq!(self.counters.read(), self.stats);
        assert_eq!(self.counters.allocated_bytes().signed(), self.stats.allocated_bytes.all.current);
        assert_eq!(self.counters.active_bytes().signed(), self.stats.active_bytes.all.current);
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, max_shrink_iters: 1024, ..Config::with_cases(if cfg!(miri) { 2 } else { 512 }) })]

    #[test]
    fn counters_read_as_statistics_kept_one_by_one(acts in acts()) {
        let mut pair = Pair::default();
        for act in acts {
            pair.act(act);
            pair.check();
        }
    }
}
