//! The table against a map, with addresses that share homes.

use std::collections::BTreeMap;

use blockyard_record::DeviceAddr;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;

use super::{AddrTable, Hash, MIN_PAIRS, SPARSITY, Slot, TAG_SHIFT};
use crate::block::BlockIndex;

#[derive(Clone, Debug)]
enum Act {
    Insert(u64),
    /// The first address, and how many neighbors: the blocks of a segment.
    InsertRow(u64, u64),
    Remove(Index),
    /// How many, the latest first.
    RemoveLast(usize),
    Find(u64),
}

/// Addresses of which many share few homes, and some lie far apart.
fn addrs() -> impl Strategy<Value = u64> {
    let crowded = units_of_few_homes();
    let unit = prop_oneof![3 => select(crowded), 2 => 1..200_u64, 1 => any::<u32>().prop_map(u64::from)];
    (unit, 0..4_u64).prop_map(|(unit, window)| unit * 512 + (window << 41))
}

/// Places in units of 512 bytes whose homes are three of the smallest table's, so that most of them find no
/// slot.
fn units_of_few_homes() -> Vec<u64> {
    (1..8192).filter(|unit| Hash::of(DeviceAddr::new(unit * 512)).home(MIN_PAIRS) < 3).collect()
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => addrs().prop_map(Act::Insert),
        1 => (addrs(), 1..if cfg!(miri) { 20 } else { 80_u64 }).prop_map(|(addr, count)| Act::InsertRow(addr, count)),
        5 => any::<Index>().prop_map(Act::Remove),
        1 => (1..60_usize).prop_map(Act::RemoveLast),
        2 => addrs().prop_map(Act::Find),
    ];
    vec(act, 1..if cfg!(miri) { 20 } else { 200 })
}

#[derive(Default)]
struct Pair {
    table: AddrTable,
    /// Blocks by address.
    model: BTreeMap<u64, BlockIndex>,
    /// Addresses by the number of their block.
    addrs: BTreeMap<u32, u64>,
    made: u32,
}

impl Pair {
    fn find(&self, addr: u64) -> Option<(usize, BlockIndex)> {
        let is_it = |index: BlockIndex| self.addrs.get(&index.number()) == Some(&addr);
        self.table.find(DeviceAddr::new(addr), is_it)
    }

    fn insert(&mut self, addr: u64) {
        if self.model.contains_key(&addr) {
            return;
        }
        self.made += 1;
        let index = BlockIndex::from_number(self.made).unwrap();
        self.addrs.insert(self.made, addr);
        self.model.insert(addr, index);
        let addr_of = |index: BlockIndex| DeviceAddr::new(self.addrs[&index.number()]);
        self.table.insert(DeviceAddr::new(addr), index, addr_of);
    }

    fn remove(&mut self, addr: u64) {
        let (place, index) = self.find(addr).expect("what is in the map is in the table");
        assert_eq!(self.model.remove(&addr), Some(index));
        self.table.remove(DeviceAddr::new(addr), place);
        self.addrs.remove(&index.number());
        assert_eq!(self.find(addr), None);
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Insert(addr) => self.insert(*addr),
            Act::InsertRow(addr, count) => (0..*count).for_each(|place| self.insert(addr + place * 512)),
            Act::Remove(_) if self.model.is_empty() => {}
            Act::Remove(place) => self.remove(*self.model.keys().nth(place.index(self.model.len())).unwrap()),
            Act::RemoveLast(count) => {
                for _ in 0..*count {
                    if let Some(addr) = self.addrs.last_key_value().map(|(_, addr)| *addr) {
                        self.remove(addr);
                    }
                }
            }
            Act::Find(addr) => {
                let found = self.find(*addr).map(|(_, index)| index);
                assert_eq!(found, self.model.get(addr).copied());
            }
        }
    }

    fn check(&self) {
        let AddrTable { pairs, overflow, room } = &self.table;
        let filled = pairs.iter().flatten().filter(|slot| **slot != Slot::EMPTY).count();
        assert_eq!(filled + overflow.len(), self.model.len());
        assert_eq!(room + self.model.len(), pairs.len() * 2 / SPARSITY);
        for (addr, index) in &self.model {
            assert_eq!(self.find(*addr).map(|(_, index)| index), Some(*index), "at {addr:#x}");
            let elsewhere = addr ^ (1 << 43);
            assert_eq!(self.find(elsewhere).map(|(_, index)| index), self.model.get(&elsewhere).copied());
        }
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, max_shrink_iters: 1024, ..Config::with_cases(if cfg!(miri) { 2 } else { 256 }) })]

    #[test]
    fn the_table_answers_as_a_map(acts in acts()) {
        let mut pair = Pair::default();
        for act in &acts {
            pair.act(act);
            pair.check();
        }
    }
}

#[test]
fn four_of_one_home_find_a_slot() {
    let mut pair = Pair::default();
    let units = units_of_few_homes();
    let home = |unit: &u64| Hash::of(DeviceAddr::new(unit * 512)).home(MIN_PAIRS);
    let of_first: Vec<_> = units.into_iter().filter(|unit| home(unit) == 0).take(12).collect();
    for unit in &of_first {
        pair.insert(unit * 512);
        pair.check();
    }
    assert_eq!(pair.table.overflow.len(), of_first.len() - 4);
    for unit in of_first.iter().step_by(3) {
        pair.remove(unit * 512);
        pair.check();
    }
}

#[test]
fn a_number_that_no_slot_holds_waits_in_the_tree() {
    let mut table = AddrTable::default();
    let (addr, index) = (DeviceAddr::new(512), BlockIndex::from_number(1 << TAG_SHIFT).unwrap());
    table.insert(addr, index, |_| addr);
    assert_eq!(table.overflow.len(), 1);
    let (place, found) = table.find(addr, |found| found == index).unwrap();
    assert_eq!(found, index);
    table.remove(addr, place);
    assert!(table.overflow.is_empty());
    assert_eq!(table.find(addr, |_| true), None);
}
