//! The table against a map, with addresses that share tags and homes.

use std::collections::BTreeMap;

use blockyard_record::DeviceAddr;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;

use super::{AddrTable, LEAST, Slot, tag};
use crate::block::BlockIndex;

#[derive(Clone, Debug)]
enum Act {
    Insert(u64),
    /// So many neighbors, as the blocks of a segment are.
    InsertRow(u64, u64),
    Remove(Index),
    /// So many, the ones that came last first.
    RemoveLast(usize),
    Find(u64),
}

/// Addresses of which many have the same tag, since they lie whole windows of 2 TiB apart.
fn addrs() -> impl Strategy<Value = u64> {
    let crowded = homes_at_the_end();
    let unit = prop_oneof![3 => select(crowded), 2 => 1..200_u64, 1 => any::<u32>().prop_map(u64::from)];
    (unit, 0..4_u64).prop_map(|(unit, window)| unit * 512 + (window << 41))
}

/// Places in units of 512 bytes whose homes are the last and the first few of the smallest table, so that rows of slots go around
/// its end.
fn homes_at_the_end() -> Vec<u64> {
    let table = AddrTable { slots: vec![Slot::default(); LEAST], len: 0 };
    let is_there = |unit: &u64| {
        let home = table.home(tag(DeviceAddr::new(unit * 512)));
        !(2..LEAST - 4).contains(&home)
    };
    (1..4096).filter(is_there).collect()
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
        self.table.insert(DeviceAddr::new(addr), index);
    }

    fn remove(&mut self, addr: u64) {
        let (place, index) = self.find(addr).expect("what is in the map is in the table");
        assert_eq!(self.model.remove(&addr), Some(index));
        self.table.remove(place);
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
        assert_eq!(self.table.len, self.model.len());
        let filled = self.table.slots.iter().filter(|slot| slot.block != 0).count();
        assert_eq!(filled, self.model.len());
        assert!(filled * 4 <= self.table.slots.len());
        for (addr, index) in &self.model {
            assert_eq!(self.find(*addr).map(|(_, index)| index), Some(*index), "at {addr:#x}");
            // Its window is told apart by asking the block.
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
fn addresses_whole_windows_apart_are_different() {
    let mut pair = Pair::default();
    let windows = if cfg!(miri) { 12 } else { 50 };
    for window in 0..windows {
        pair.insert(512 + (window << 41));
    }
    assert!(pair.table.slots.iter().filter(|slot| slot.block != 0).all(|slot| slot.tag == 1));
    pair.check();
    for window in (0..windows).step_by(3) {
        pair.remove(512 + (window << 41));
        pair.check();
    }
}
