//! Bytes of a fuzzer, read as choices.

use std::fmt::Write as _;

use blockyard_record::{Bytes, PoolId, StreamId};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Bytes that are read as choices; zeros after their end.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// A value of the list, which must not be empty.
    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.index(values.len())]
    }

    /// An index of a list that is not empty and has at most 256 members that matter.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::from(self.byte()) % length
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Handles of real streams are addresses; best fit orders by them.
    pub(crate) fn stream(&mut self) -> StreamId {
        StreamId::new(self.of(&[0, 0, 0, 1, 2, 0x7f12_3456_7890, u64::MAX]))
    }

    pub(crate) fn pool(&mut self) -> PoolId {
        let pool = |capture, user| PoolId { capture, user };
        self.of(&[
            pool(0, 1),
            pool(1, 0),
            pool(0, 2),
            pool(0, 3),
            pool(2, 0),
            PoolId::DEFAULT,
            pool(0, u32::MAX),
        ])
    }

    /// A size, crowded around every threshold.
    pub(crate) fn size(&mut self) -> Bytes {
        let (class, part) = (self.byte() % 16, u64::from(self.byte()));
        let change = i64::try_from(part % 3).unwrap_or_default() - 1;
        Bytes::new(match class {
            0 => part,
            1 | 2 => (512 * part).saturating_add_signed(change),
            3 => MIB - 512 + 4 * part,
            4 => 10 * MIB - 512 + 4 * part,
            5 => (2 * MIB * (part % 24)).saturating_add_signed(change),
            6 | 7 => MIB * (part % 64),
            8 => (1_u64 << (part % 32)).saturating_add_signed(change),
            9 => MIB + 12 * KIB * part,
            10 => 8 * KIB * part,
            11 => 20 * MIB - 512 + 4 * part,
            12 => MIB / 2 * part,
            13 => 1000 * part,
            14 => MIB + part * part * part,
            _ => match part % 8 {
                0 => u64::MAX - part,
                1 => 1 << 60,
                2 => (1 << 60) - 1,
                3 => 1 << 59,
                4 => 1 << (30 + part / 8),
                _ => 100 * MIB,
            },
        })
    }

    /// A capacity: mostly small enough that memory runs out often, and not always a multiple of a power of
    /// two; or larger than any device.
    pub(crate) fn capacity(&mut self) -> Bytes {
        let mib = [24, 40, 64, 100, 200, 1024, 2, 0];
        Bytes::new(match self.byte() {
            255 => u64::MAX,
            254 => i64::MAX.unsigned_abs(),
            253 => 64 * MIB + 12_345,
            byte => mib[usize::from(byte) % mib.len()] * MIB,
        })
    }

    /// A text of up to three settings, which may have an error.
    pub(crate) fn settings(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.byte() % 4 {
            let (key, value) = (self.byte(), self.byte());
            let mib = [20, 21, 24, 40, 11, 12, 32, u64::MAX >> 20][usize::from(value) % 8];
            let share = ["0.2", "0.5", "0.8", "1.0", "0", "0.99", "1e-9", "nan"][usize::from(value) % 8];
            let divisions =
                ["2", "4", "8", "64", "[2:4,8:2,>:8]", "[1:0,4:16,16:1]", "[>:8]", "4611686018427387904"]
                    [usize::from(value) % 8];
            // Writing to a string cannot fail.
            let _ = match key % 8 {
                0 => write!(text, "max_split_size_mb:{mib},"),
                1 => write!(text, "max_non_split_rounding_mb:{mib},"),
                2 => write!(text, "large_segment_size_mb:{mib},"),
                3 => write!(text, "garbage_collection_threshold:{share},"),
                4 => write!(text, "per_process_memory_fraction:{share},"),
                5 => write!(text, "roundup_power2_divisions:{divisions},"),
                6 => write!(text, "expandable_segments:{},", if value & 1 == 0 { "True" } else { "False" }),
                _ => write!(text, "backend:{},", if value & 1 == 0 { "native" } else { "" }),
            };
        }
        text
    }
}
