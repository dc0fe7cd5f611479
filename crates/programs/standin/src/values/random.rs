//! Random numbers of a GPU: Philox 4x32-10 with the launch geometry of PyTorch's kernels.
//!
//! Philox: J. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011). A thread's numbers are
//! those of its own subsequence. Which thread writes which element follows PyTorch's
//! `DistributionTemplates.h`, `Distributions.cu`, `Dropout.cu` and `Randperm.cu`. The tests compare with
//! numbers that an H200 gave.
#![expect(
    clippy::cast_possible_truncation,
    reason = "places are below the limit of elements, and words are halves of numbers"
)]

use std::ffi::c_int;

use crate::abi::{In, Out};
use crate::settings::settings;

/// Threads of a block of the kernels here.
const BLOCK: u64 = 256;
/// The most elements that are filled at once.
const MAX: u64 = 1 << 22;

/// Four words of a subsequence.
fn philox(seed: u64, subsequence: u64, offset: u64) -> [u32; 4] {
    let low = |value: u64| (value & 0xffff_ffff) as u32;
    let high = |value: u64| (value >> 32) as u32;
    let mut counter = [low(offset), high(offset), low(subsequence), high(subsequence)];
    let mut key = [low(seed), high(seed)];
    for _ in 0..10 {
        let [a, b, c, d] = counter;
        let one = u64::from(a) * 0xd251_1f53;
        let two = u64::from(c) * 0xcd9e_8d57;
        counter = [high(two) ^ b ^ key[0], low(two), high(one) ^ d ^ key[1], low(one)];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// A number above 0 and at most 1, as cuRAND makes it of a word.
#[expect(clippy::cast_precision_loss, reason = "cuRAND rounds to 24 bits, too")]
fn uniform(word: u32) -> f32 {
    /// 2 to the power of -32.
    const STEP: f32 = 2.328_306_4e-10;
    word as f32 * STEP + STEP / 2.0
}

/// Two numbers of a normal distribution, by Box and Muller, as cuRAND makes them of two words; sines and
/// logarithms differ in the last digits.
#[expect(clippy::cast_precision_loss, reason = "cuRAND rounds to 24 bits, too")]
fn normal(first: u32, second: u32) -> [f32; 2] {
    const TURN: f32 = 2.328_306_4e-10 * std::f32::consts::TAU;
    let angle = second as f32 * TURN + TURN / 2.0;
    let radius = (-2.0 * uniform(first).ln()).sqrt();
    [angle.sin() * radius, angle.cos() * radius]
}

/// Threads of a kernel over this many elements.
fn threads(count: u64, each: u64) -> u64 {
    let gpu = &settings().gpu;
    let blocks = u64::from(gpu.threads_per_multiprocessor) / BLOCK * u64::from(gpu.multiprocessors);
    count.div_ceil(BLOCK * each).clamp(1, blocks.max(1)) * BLOCK
}

/// Calls `put` with each element's place and the words that its thread takes for it: `each` elements of a
/// draw, a grid apart.
fn spread(count: u64, seed: u64, offset: u64, each: u64, mut put: impl FnMut(u64, [u32; 4], usize)) {
    let threads = threads(count, 1);
    for round in 0..count.div_ceil(threads * each) {
        for thread in 0..threads {
            let start = round * threads * each + thread;
            if start >= count {
                break;
            }
            let words = philox(seed, thread, offset / 4 + round);
            for index in 0..each {
                let element = start + index * threads;
                if element < count {
                    put(element, words, index as usize);
                }
            }
        }
    }
}

/// Writes `count` random numbers, whose kind is one of these. False for other kinds, and for too many
/// numbers.
///
/// - 0: `f32` above 0 and at most 1.
/// - 1: `i64` below `numbers[0]`, each made of one word.
/// - 2: `i64` below `numbers[0]`, each made of two words.
/// - 3: the numbers of 0, for dropout with `numbers[0]` elements a thread.
/// - 4: the numbers of 0, for truth values with a probability each.
/// - 5: `f32` of a normal distribution.
/// - 6: `i64`, a permutation.
pub(super) fn fill(kind: c_int, to: Out<u8>, count: u64, seed: u64, offset: u64, numbers: In<u64>) -> bool {
    if count > MAX || to.is_null() {
        return false;
    }
    let range = numbers.get().unwrap_or(0);
    let floats = Out::<f32>::from_bytes(to);
    let integers = Out::<u64>::from_bytes(to);
    let put = |element: u64, value: f32| floats.put_at(element as usize, value);
    match kind {
        0 => spread(count, seed, offset, 4, |element, words, index| put(element, uniform(words[index]))),
        1 if range > 0 => spread(count, seed, offset, 4, |element, words, index| {
            integers.put_at(element as usize, u64::from(words[index]) % range);
        }),
        2 if range > 0 => spread(count, seed, offset, 2, |element, words, index| {
            integers.put_at(element as usize, two_words(words, index) % range);
        }),
        // Single elements are spread as in other kernels.
        3 if range == 1 => {
            spread(count, seed, offset, 4, |element, words, index| put(element, uniform(words[index])));
        }
        3 if matches!(range, 2 | 4 | 8) => dropout(count, seed, offset, range, put),
        4 => {
            for thread in 0..count.div_ceil(4) {
                let words = philox(seed, thread, offset / 4);
                for (index, word) in words.into_iter().enumerate() {
                    let element = thread * 4 + index as u64;
                    if element < count {
                        put(element, uniform(word));
                    }
                }
            }
        }
        5 => spread(count, seed, offset, 4, |element, words, index| {
            let pair = if index < 2 { normal(words[0], words[1]) } else { normal(words[2], words[3]) };
            put(element, pair[index % 2]);
        }),
        6 => {
            for (index, value) in permutation(count, seed, offset).into_iter().enumerate() {
                integers.put_at(index, value);
            }
        }
        _ => return false,
    }
    true
}

fn two_words(words: [u32; 4], index: usize) -> u64 {
    let [a, b, c, d] = words;
    let (high, low) = if index == 0 { (a, b) } else { (c, d) };
    u64::from(high) << 32 | u64::from(low)
}

/// Each thread takes `each` elements that follow each other; of four words, two elements leave two for the
/// next round.
fn dropout(count: u64, seed: u64, offset: u64, each: u64, put: impl Fn(u64, f32)) {
    let threads = threads(count, each);
    for round in 0..count.div_ceil(threads * each) {
        for thread in 0..threads {
            let start = (round * threads + thread) * each;
            if start >= count {
                break;
            }
            for index in 0..each {
                let word = round * each + index;
                let words = philox(seed, thread, offset / 4 + word / 4);
                if let Some(word) = words.get((word % 4) as usize) {
                    put(start + index, uniform(*word));
                }
            }
        }
    }
}

/// A permutation: the order of random keys, which have as few bits as make equal keys rare.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as PyTorch rounds"
)]
fn permutation(count: u64, seed: u64, offset: u64) -> Vec<u64> {
    let number = count as f64;
    let bits = (number - (6.0 * number * number + 1.0) / (0.9_f64.ln() * 12.0)).log2().ceil().clamp(1.0, 64.0)
        as u32;
    let mut keys = vec![(0_u64, 0_u64); count as usize];
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    spread(count, seed, offset, 2, |element, words, index| {
        let word = two_words(words, index);
        // Keys are signed numbers of 32 or 64 bits, from the least on; their highest bit is turned for the
        // sort.
        let key = if bits <= 32 { (word % 0xffff_ffff) ^ 0x8000_0000 } else { (word % u64::MAX) ^ (1 << 63) };
        let turned = if bits == 32 || bits == 64 { 1 << (bits - 1) } else { 0 };
        if let Some(slot) = keys.get_mut(element as usize) {
            *slot = (key & mask ^ turned, element);
        }
    });
    keys.sort_unstable();
    keys.into_iter().map(|(_, element)| element).collect()
}

#[cfg(test)]
mod tests {
    use super::{permutation, philox, spread, uniform};

    #[test]
    fn numbers_are_those_of_a_gpu() {
        // What an H200 gave for `torch.rand(5)`, `torch.randint(3, 50257, (5,))` and `torch.randperm(5)`
        // after `manual_seed`.
        let mut found = [0.0; 5];
        spread(5, 7, 0, 4, |element, words, index| found[element as usize] = uniform(words[index]));
        let expected = [0.954_597_1, 0.495_039_8, 0.941_953_1, 0.592_580_26, 0.699_600_2];
        assert_eq!(found.map(f32::to_bits), expected.map(f32::to_bits));
        let mut found = [0; 5];
        spread(5, 7, 16, 4, |element, words, index| found[element as usize] = words[index] % 50_254 + 3);
        assert_eq!(found, [40_345, 37_672, 20_646, 326, 29_921]);
        assert_eq!(permutation(5, 7, 80), [2, 4, 0, 3, 1]);
        // The authors' own example: all bits 0.
        assert_eq!(philox(0, 0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}
