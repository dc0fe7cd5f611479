//! The bins against an ordered set, with sizes crowded so that a bin goes through all its forms.

use std::collections::BTreeSet;

use blockyard_record::{BlockId, Bytes, DeviceAddr, PoolKind, SegmentId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;

use super::{Bin, List, SizeBins, bin_of};
use crate::block::{Block, BlockIndex, BlockTable};
use crate::free_list::FreeListIndex;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Of blocks of this size every sixteenth has an address that a list does not hold.
const FAR_AWAY: u64 = 1536;

#[derive(Clone, Debug)]
enum Act {
    /// A block of each of these sizes, one after the other.
    Insert(Vec<u64>),
    /// A block for each place in the order.
    Remove(Vec<Index>),
    /// The lowest or the highest blocks.
    RemoveEnd {
        count: usize,
        is_low: bool,
    },
    RemoveAbsent(u64),
    Take(Vec<u64>),
    PutLatestInBin,
}

/// Sizes that share a bin, and a few that do not.
fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0..4_u64).prop_map(|units| MIB + 512 * units),
        3 => (0..32_u64).prop_map(|units| 3 * MIB + 512 * units),
        3 => Just(512),
        1 => Just(FAR_AWAY),
        1 => (1..2047_u64).prop_map(|units| 512 * units),
        2 => select(vec![1024, MIB - 512, 2 * MIB - 512, 2 * MIB, 40 * MIB, 8 * GIB - 512, 8 * GIB, 8 * GIB + 512, MIB * MIB, 1 << 53, 1 << 60]),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => vec(sizes(), 1..8).prop_map(Act::Insert),
        2 => (sizes(), 20..120_usize).prop_map(|(size, count)| Act::Insert(vec![size; count])),
        5 => vec(any::<Index>(), 1..6).prop_map(Act::Remove),
        2 => (20..120_usize, any::<bool>()).prop_map(|(count, is_low)| Act::RemoveEnd { count, is_low }),
        1 => sizes().prop_map(Act::RemoveAbsent),
        5 => vec(sizes(), 1..6).prop_map(Act::Take),
        2 => Just(Act::PutLatestInBin),
    ];
    vec(act, 1..if cfg!(miri) { 12 } else { 60 })
}

/// The bins, the ordered set that they are compared with, and the blocks that both hold.
struct Pair {
    blocks: BlockTable,
    bins: SizeBins,
    model: BTreeSet<(Bytes, DeviceAddr, BlockIndex)>,
    made: u64,
    /// The form of a bin before and after each change by one block.
    turns: BTreeSet<(&'static str, &'static str)>,
}

impl Pair {
    fn new(pool: PoolKind) -> Self {
        Self {
            blocks: BlockTable::default(),
            bins: SizeBins::new(pool),
            model: BTreeSet::new(),
            made: 0,
            turns: BTreeSet::new(),
        }
    }

    fn block(&mut self, size: u64) -> (BlockIndex, Bytes, DeviceAddr) {
        // No two of the first 2^24 are equal, and they come in no order.
        let addr = self.made.wrapping_mul(0x009E_3779) % (1 << 24) * 512;
        let is_far = size == FAR_AWAY && self.made.is_multiple_of(16);
        let addr = DeviceAddr::new(if is_far { addr | 1 << 60 } else { addr });
        self.made += 1;
        let (size, list) = (Bytes::new(size), FreeListIndex::FIRST);
        let whole = (addr, size);
        let block =
            Block::of_segment(BlockId::new(0), SegmentId::new(0), whole, (list, self.bins.pool), false);
        (self.blocks.insert(block), size, addr)
    }

    fn form(&self, size: Bytes) -> &'static str {
        match self.bins.bins.get(bin_of(self.bins.pool, size)) {
            None => "none",
            Some(Bin::Few(_)) => "few",
            Some(Bin::Many(list)) => match self.bins.lists[*list as usize] {
                List::OneSize(_) | List::SeveralSizes(_) => "list",
                List::Anything(_) => "wide",
            },
        }
    }

    fn changed(&mut self, size: Bytes, change: impl FnOnce(&mut Self)) {
        let before = self.form(size);
        change(self);
        self.turns.insert((before, self.form(size)));
        assert_eq!(self.bins.is_empty(), self.model.is_empty());
    }

    fn insert(&mut self, size: u64) {
        let (index, size, addr) = self.block(size);
        // The bin gets the block that was the latest before.
        let binned = self.bins.latest.map_or(size, |_| self.bins.latest_size);
        self.changed(binned, |pair| {
            pair.bins.insert(index, size, addr, &pair.blocks);
            pair.model.insert((size, addr, index));
        });
    }

    fn remove(&mut self, (size, addr, index): (Bytes, DeviceAddr, BlockIndex)) {
        self.changed(size, |pair| {
            assert!(pair.bins.contains(index, &pair.blocks[index]));
            pair.bins.remove(index, size, addr);
            pair.model.remove(&(size, addr, index));
            assert!(!pair.bins.contains(index, &pair.blocks[index]));
            pair.blocks.remove(index);
        });
    }

    fn take(&mut self, size: u64) {
        let size = Bytes::new(size);
        let expected = self.model.range((size, DeviceAddr::new(0), BlockIndex::LOWEST)..).next().copied();
        assert_eq!(self.bins.first_fitting(size, &self.blocks), expected.map(|(.., index)| index));
        let found = expected.map_or(size, |(size, ..)| size);
        self.changed(found, |pair| {
            let taken = pair.bins.take_first_fitting(pair.bins.pool, size, &pair.blocks);
            assert_eq!(taken, expected.map(|(size, _, index)| (index, size)));
            if let Some(key) = expected {
                pair.model.remove(&key);
                pair.blocks.remove(key.2);
            }
        });
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Insert(sizes) => sizes.iter().for_each(|size| self.insert(*size)),
            Act::Remove(places) => {
                for place in places {
                    if !self.model.is_empty() {
                        let key = *self.model.iter().nth(place.index(self.model.len())).unwrap();
                        self.remove(key);
                    }
                }
            }
            Act::RemoveEnd { count, is_low } => {
                for _ in 0..*count {
                    let key = if *is_low { self.model.first() } else { self.model.last() };
                    if let Some(key) = key.copied() {
                        self.remove(key);
                    }
                }
            }
            Act::RemoveAbsent(size) => {
                let (index, size, addr) = self.block(*size);
                assert!(!self.bins.contains(index, &self.blocks[index]));
                self.bins.remove(index, size, addr);
                self.blocks.remove(index);
            }
            Act::Take(sizes) => sizes.iter().for_each(|size| self.take(*size)),
            Act::PutLatestInBin => {
                self.bins.put_latest_in_bin(&self.blocks);
                assert_eq!(self.bins.latest, None);
            }
        }
    }

    /// Everything that can be asked is answered as the ordered set does.
    fn check(&self) {
        let mut in_bins = self.bins.clone();
        in_bins.put_latest_in_bin(&self.blocks);
        let expected: Vec<BlockIndex> = self.model.iter().map(|(.., index)| *index).collect();
        // The list is read up to one block beyond the expected count, so that iteration over a cycle ends.
        assert_eq!(in_bins.iter(&self.blocks).take(expected.len() + 1).collect::<Vec<_>>(), expected);
        assert_eq!(self.bins.count(&self.blocks), expected.len());
        for (size, addr, index) in &self.model {
            assert!(self.bins.contains(*index, &self.blocks[*index]));
            assert!(in_bins.contains(*index, &self.blocks[*index]));
            let next = self.model.range((*size, *addr, *index)..).nth(1).map(|(.., index)| *index);
            assert_eq!(in_bins.next_after(*index, &self.blocks[*index]), next);
        }
        for size in [
            1,
            512,
            1024,
            600 * KIB,
            MIB,
            MIB + 512,
            2 * MIB - 512,
            2 * MIB,
            3 * MIB + 8 * KIB,
            5 * MIB,
            1 << 60,
            u64::MAX,
        ] {
            let size = Bytes::new(size);
            let first = self.model.range((size, DeviceAddr::new(0), BlockIndex::LOWEST)..).next();
            assert_eq!(self.bins.first_fitting(size, &self.blocks), first.map(|(.., index)| *index));
        }
    }
}

fn pools() -> impl Strategy<Value = PoolKind> {
    select(vec![PoolKind::Small, PoolKind::Large])
}

fn follow(pool: PoolKind, acts: &[Act]) -> Pair {
    let mut pair = Pair::new(pool);
    for act in acts {
        pair.act(act);
        pair.check();
    }
    pair
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, max_shrink_iters: 1024, ..Config::with_cases(if cfg!(miri) { 4 } else { 256 }) })]

    #[test]
    fn bins_answer_as_an_ordered_set(pool in pools(), acts in acts()) {
        follow(pool, &acts);
    }
}

// It counts over many runs, which take minutes in Miri.
#[cfg(not(miri))]
#[test]
fn random_runs_lead_a_bin_through_all_its_forms() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    for pool in [PoolKind::Small, PoolKind::Large] {
        let mut runner = TestRunner::deterministic();
        let mut turns = BTreeSet::new();
        for _ in 0..64 {
            turns.extend(follow(pool, &acts().new_tree(&mut runner).unwrap().current()).turns);
        }
        for turn in [("few", "list"), ("list", "few"), ("list", "wide"), ("wide", "wide"), ("wide", "few")] {
            assert!(turns.contains(&turn), "{turn:?} is not among {turns:?} in the {pool:?} pool");
        }
    }
}
