//! What cuDNN takes for convolutions and recurrent layers: recorded, since it cannot be derived.
//!
//! `tables.bin` is written by `cargo xtask zoo FILE --write-tables OUT`. It holds, by ascending hash of a configuration, the
//! bytes of a workspace, written as a sum of the operands' sizes and a remainder.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

static RECORDED: &[u8] = include_bytes!("tables.bin");

/// What tells the recorded size of the workspace that is asked for now; for the program that writes the tables.
pub type Learner = Rc<dyn Fn(u32, &[u64; 3]) -> Option<u64>>;

thread_local! {
    static TABLE: OnceCell<FxHashMap<u32, u64>> = const { OnceCell::new() };
    static LEARNER: RefCell<Option<Learner>> = const { RefCell::new(None) };
}

/// Asks `learner` instead of the tables, until it is set to `None`.
pub fn set_learner(learner: Option<Learner>) {
    LEARNER.with(|slot| *slot.borrow_mut() = learner);
}

/// Bytes of the workspace of a configuration whose operands have these sizes; `None` if it was not recorded.
pub(crate) fn lookup(key: u32, operands: &[u64; 3]) -> Option<u64> {
    if let Some(learner) = LEARNER.with(|slot| slot.borrow().clone()) {
        return learner(key, operands);
    }
    let code = TABLE.with(|table| table.get_or_init(|| read(RECORDED)).get(&key).copied())?;
    Some(decode(code, operands))
}

fn decode(code: u64, operands: &[u64; 3]) -> u64 {
    let chosen = operands.iter().enumerate().filter(|(bit, _)| code >> bit & 1 == 1).map(|(_, size)| *size);
    (code >> 3).saturating_add(chosen.sum())
}

/// A size as operands and remainder: the shortest way to say it.
#[must_use]
pub fn encode(size: u64, operands: &[u64; 3]) -> u64 {
    (0..8_u64)
        .filter_map(|mask| {
            let chosen: u64 = operands
                .iter()
                .enumerate()
                .filter(|(bit, _)| mask >> bit & 1 == 1)
                .map(|(_, size)| *size)
                .sum();
            size.checked_sub(chosen).map(|rest| rest << 3 | mask)
        })
        .min()
        .unwrap_or(size << 3)
}

fn read(bytes: &[u8]) -> FxHashMap<u32, u64> {
    let mut table = FxHashMap::default();
    let mut rest = bytes;
    let mut key = 0_u32;
    while let (Some(step), Some(code)) = (number(&mut rest), number(&mut rest)) {
        key = key.wrapping_add(step as u32);
        table.insert(key, code);
    }
    table
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The bytes of a table file.
#[must_use]
pub fn write(entries: &std::collections::BTreeMap<u32, u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = 0;
    for (key, code) in entries {
        for mut value in [u64::from(key - before), *code] {
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        }
        before = *key;
    }
    bytes
}

/// A hash of a configuration that stays the same on every target (FNV-1a, mixed at the end).
pub(crate) fn hash(numbers: &[i64]) -> u32 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for number in numbers {
        for byte in number.to_le_bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    state ^= state >> 29;
    state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{decode, encode, read, write};

    #[test]
    fn sizes_come_back() {
        let operands = [1000, 300, 20];
        for size in [0, 16, 147, 1016, 1320, 5000] {
            assert_eq!(decode(encode(size, &operands), &operands), size);
        }
        let entries = BTreeMap::from([(5_u32, encode(1016, &operands)), (70_000, 8), (u32::MAX, 0)]);
        assert_eq!(read(&write(&entries)).len(), 3);
        assert_eq!(read(&write(&entries)).get(&5), Some(&encode(1016, &operands)));
    }
}
