//! The workspaces of cuDNN for convolutions: recorded, since they cannot be derived.
//!
//! `tables.bin` is written by `cargo xtask truth operator-calls FILE --write-tables OUT`. It holds, by
//! ascending hash of a configuration, the bytes of a workspace, written as a sum of the operands' sizes and a
//! remainder. `networks.bin`, with the feature `networks`, holds the convolutions of 45 networks of
//! torchvision and timm in the same form (`--besides`). `layers.bin`, with the same feature, holds the
//! convolutions of more networks by batch.

mod estimate;
#[cfg(feature = "networks")]
mod layers;
mod trees;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

pub use estimate::{WorkspaceRequest, estimate};
#[cfg(feature = "networks")]
pub use layers::{LayerSize, LayerTable, largest_in_layers, size_in_layers};

static RECORDED: &[u8] = include_bytes!("tables.bin");

#[cfg(feature = "networks")]
static NETWORKS: &[u8] = include_bytes!("networks.bin");

/// A function that gives the recorded size of the workspace that is asked for now; for the program that
/// writes the tables.
pub type SizeRecorder = Rc<dyn Fn(&[i64], &Operands) -> Option<u64>>;

thread_local! {
    static TABLE: OnceCell<Vec<(u32, u64)>> = const { OnceCell::new() };
    static RECORDER: RefCell<Option<SizeRecorder>> = const { RefCell::new(None) };
}

/// Asks `recorder` instead of the tables, until it is set to `None`.
pub fn set_recorder(recorder: Option<SizeRecorder>) {
    RECORDER.with(|slot| *slot.borrow_mut() = recorder);
}

/// The numbers of types in a configuration.
pub mod dtype {
    /// `float16`.
    pub const F16: i64 = 6;
    /// `bfloat16`.
    pub const BF16: i64 = 7;
    /// `float32`.
    pub const F32: i64 = 8;
    /// `float64`.
    pub const F64: i64 = 9;
}

/// Sizes in bytes that cuDNN's workspaces are made of: copies of the operands in another order, and sums of
/// partial filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// The bytes of input, filter and output.
    pub plain: [u64; 3],
    /// The bytes of input, filter and output with channels rounded up to as many as tensor cores read at
    /// once.
    pub padded: [u64; 3],
    /// The bytes of the filter in `float32`.
    pub partial: u64,
    /// How many images the batch has.
    pub batch: u64,
}

// Saturates: sizes that no tensor has are not in the tables, and an estimate for them fails when it is
// allocated.
impl Operands {
    /// The sum of the operands that the low bits of a code choose: three bits for input, filter and output,
    /// two for how the filter and the sizes count.
    fn sum(&self, choice: u64, partials: u64) -> u64 {
        let [input, filter, output] = match choice >> 3 & 3 {
            1 => self.padded,
            2 => [self.plain[0], self.partial.saturating_mul(self.batch), self.plain[2]],
            3 => [self.plain[0], self.partial.saturating_mul(partials), self.plain[2]],
            _ => self.plain,
        };
        let chosen = [input, filter, output].into_iter().enumerate();
        chosen
            .filter(|(bit, _)| choice >> bit & 1 == 1)
            .fold(0_u64, |sum, (_, size)| sum.saturating_add(size))
    }
}

/// The most partial filters that a code can count.
const MAX_PARTIALS: u64 = 63;

/// Bytes of the workspace of a configuration, which these numbers describe; `None` if it was not recorded.
pub fn lookup(numbers: &[i64], operands: &Operands) -> Option<u64> {
    if let Some(recorder) = RECORDER.with(|slot| slot.borrow().clone()) {
        return recorder(numbers, operands);
    }
    recorded_size(hash(numbers), operands)
}

/// Bytes of the workspace of a configuration as the tables have them, also while a recorder is set; `None` if
/// they have none.
pub fn recorded_size(key: u32, operands: &Operands) -> Option<u64> {
    let code = TABLE.with(|table| {
        let table = table.get_or_init(|| read(RECORDED));
        let place = table.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        table.get(place).map(|(_, code)| *code)
    });
    Some(decode(code?, operands))
}

/// Bytes of the workspace of a configuration that a known network has; `None` if no known network has the
/// configuration.
#[cfg(feature = "networks")]
pub fn size_in_networks(key: u32, operands: &Operands) -> Option<u64> {
    static TABLE: std::sync::OnceLock<Vec<(u32, u64)>> = std::sync::OnceLock::new();
    let table = TABLE.get_or_init(|| read(NETWORKS));
    let place = table.binary_search_by_key(&key, |(key, _)| *key).ok()?;
    Some(decode(table.get(place)?.1, operands))
}

fn decode(code: u64, operands: &Operands) -> u64 {
    (code >> 11).saturating_add(operands.sum(code & 0b1_1111, code >> 5 & MAX_PARTIALS))
}

/// A size as a choice of operands and a remainder: the smallest remainder, of these the simplest choice.
pub fn encode(size: u64, operands: &Operands) -> u64 {
    let simple = (0..24_u64).map(|choice| (choice, 0));
    let counted = (0..8_u64)
        .filter(|mask| mask >> 1 & 1 == 1)
        .flat_map(|mask| (1..=MAX_PARTIALS).map(move |count| (mask | 0b1_1000, count)));
    simple
        .chain(counted)
        .filter_map(|(choice, count)| {
            let rest = size.checked_sub(operands.sum(choice, count))?;
            // A filter of few bytes divides almost any size, so sums with partial filters cost more in the
            // comparison.
            let cost = rest + if choice >= 24 { 1024 } else { 0 };
            Some((cost, rest << 11 | count << 5 | choice))
        })
        .min()
        .map_or(size << 11, |(_, code)| code)
}

/// Codes that occur often are numbered from 0; this number says that the code itself follows.
const ESCAPE: u64 = 127;

/// The codes that the crate has now, by the hash of the configuration.
pub fn recorded() -> std::collections::BTreeMap<u32, u64> {
    read(RECORDED).into_iter().collect()
}

/// Keys and codes, by key: the order of the file, in which a program's first layer finds its entry sooner
/// than in a hash table that would have to be filled first.
fn read(bytes: &[u8]) -> Vec<(u32, u64)> {
    // An entry takes about four bytes.
    let mut table = Vec::with_capacity(bytes.len() / 4);
    let mut rest = bytes;
    let mut common = Vec::new();
    for _ in 0..ESCAPE {
        common.extend(number(&mut rest));
    }
    let mut key = 0_u32;
    while let (Some(step), Some(index)) = (number(&mut rest), number(&mut rest)) {
        key = key.wrapping_add(step as u32);
        let code = common.get(index as usize).copied().or_else(|| number(&mut rest));
        if let Some(code) = code {
            table.push((key, code));
        }
    }
    table
}

/// Reads a number that is written with seven bits a byte, lowest first; `None` at the end of the bytes.
pub(crate) fn number(bytes: &mut &[u8]) -> Option<u64> {
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
pub fn write(entries: &std::collections::BTreeMap<u32, u64>) -> Vec<u8> {
    let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
    for code in entries.values() {
        *counts.entry(*code).or_default() += 1;
    }
    let mut common: Vec<(u64, usize)> = counts.into_iter().collect();
    common.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
    common.resize(ESCAPE as usize, (0, 0));
    let mut bytes = Vec::new();
    let mut put = |mut value: u64| {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    for (code, _) in &common {
        put(*code);
    }
    let indices: FxHashMap<u64, u64> =
        common.iter().map(|(code, _)| *code).rev().zip((0..ESCAPE).rev()).collect();
    let mut before = 0;
    for (key, code) in entries {
        put(u64::from(key - before));
        if let Some(index) = indices.get(code) {
            put(*index);
        } else {
            put(ESCAPE);
            put(*code);
        }
        before = *key;
    }
    bytes
}

/// A hash of a configuration that stays the same on every target (FNV-1a, mixed at the end).
pub fn hash(numbers: &[i64]) -> u32 {
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

    use super::{Operands, decode, encode, read, write};

    #[test]
    fn sizes_come_back() {
        let operands = Operands { plain: [1000, 300, 20], padded: [1200, 640, 40], partial: 600, batch: 8 };
        for size in [0, 16, 147, 1016, 1320, 5000, 1896, 1000 + 20 + 7 * 600 + 144, 8 * 600] {
            assert_eq!(decode(encode(size, &operands), &operands), size);
        }
        let entries = BTreeMap::from([(5_u32, encode(1016, &operands)), (70_000, 8), (u32::MAX, 0)]);
        let table = read(&write(&entries));
        assert_eq!(table.into_iter().collect::<BTreeMap<_, _>>(), entries);
        let many = (0..1000_u32).map(|key| (key * 7, u64::from(key % 300) << 11)).collect::<BTreeMap<_, _>>();
        assert_eq!(read(&write(&many)).into_iter().collect::<BTreeMap<_, _>>(), many);
    }
}
