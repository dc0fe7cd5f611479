//! Times as bytes.

use serde::{Deserialize, Serialize};

use crate::varint::{self, Reader};

/// Times in microseconds, encoded as differences of one or two bytes, in groups that can be decoded alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PackedTimes {
    count: usize,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    /// Where each group starts, and the time before the group.
    groups: Vec<(u64, u64)>,
    last: u64,
}

/// Times in one group.
const GROUP: usize = 64;

impl PackedTimes {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn push(&mut self, time: u64) {
        if self.count.is_multiple_of(GROUP) {
            self.groups.push((self.bytes.len() as u64, self.last));
        }
        varint::push_difference(&mut self.bytes, self.last, time);
        self.count += 1;
        self.last = time;
    }

    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        self.from(index).next()
    }

    /// The times from `index` on. The iterator ends early if the bytes are damaged.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = u64> + '_ {
        let mut at = index - index % GROUP;
        let (mut rest, mut time) = (Reader(&[]), 0);
        let times = std::iter::from_fn(move || {
            if at >= self.count {
                return None;
            }
            if at.is_multiple_of(GROUP) {
                let (start, before) = *self.groups.get(at / GROUP)?;
                rest = Reader(self.bytes.get(usize::try_from(start).ok()?..)?);
                time = before;
            }
            time = rest.add_difference(time)?;
            at += 1;
            Some(time)
        });
        times.skip(index % GROUP)
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.bytes.capacity() + self.groups.capacity() * size_of::<(u64, u64)>()
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.groups.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_comes_back() {
        let times: Vec<u64> =
            (0..1000).map(|index: u64| 1_795_186_945_879_848 + index * index % 977).collect();
        let mut packed = PackedTimes::default();
        for time in &times {
            packed.push(*time);
        }
        packed.shrink();
        for (index, time) in times.iter().enumerate() {
            assert_eq!(packed.get(index), Some(*time));
        }
        assert_eq!(packed.get(1000), None);
        assert_eq!(packed.from(65).collect::<Vec<_>>(), times[65..]);
        assert!(packed.memory_size() < 3 * times.len());
        packed.groups[1].0 = u64::MAX;
        assert_eq!(packed.get(64), None);
    }
}
