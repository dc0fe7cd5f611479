//! Which bytes of device memory are known, as ranges.

use std::collections::BTreeMap;

/// Ranges of addresses whose bytes are known. Ranges that touch are one.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Start and end.
    ranges: BTreeMap<u64, u64>,
}

impl Known {
    /// The bytes from `start` to `end` are known from now on.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut low, mut high) = (start, end);
        let touching: Vec<(u64, u64)> = self
            .ranges
            .range(..=end)
            .rev()
            .map(|(from, to)| (*from, *to))
            .take_while(|(_, to)| *to >= start)
            .collect();
        for (from, to) in touching {
            self.ranges.remove(&from);
            low = low.min(from);
            high = high.max(to);
        }
        self.ranges.insert(low, high);
    }

    /// The bytes from `start` to `end` are unknown from now on.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        for (from, to) in self.within(start, end) {
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, start);
            }
            if to > end {
                self.ranges.insert(end, to);
            }
        }
    }

    /// Nothing is known from now on.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Whether all bytes from `start` to `end` are known.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        start >= end || self.ranges.range(..=start).next_back().is_some_and(|(_, to)| *to >= end)
    }

    /// Whether any byte from `start` to `end` is known.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end && self.ranges.range(..end).next_back().is_some_and(|(_, to)| *to > start)
    }

    /// The ranges that overlap these addresses, whole.
    fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        self.ranges
            .range(..end)
            .rev()
            .map(|(from, to)| (*from, *to))
            .take_while(|(_, to)| *to > start)
            .collect()
    }

    /// The known parts of these addresses.
    pub(crate) fn parts(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        self.within(start, end).into_iter().map(|(from, to)| (from.max(start), to.min(end))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Known;

    #[test]
    fn ranges_join_and_split() {
        let mut known = Known::default();
        known.add(10, 20);
        known.add(30, 40);
        assert!(known.covers(12, 20) && !known.covers(12, 21) && known.covers(5, 5));
        known.add(20, 30);
        assert!(known.covers(10, 40));
        known.remove(15, 18);
        assert!(known.covers(10, 15) && known.covers(18, 40) && !known.covers(14, 16));
        assert_eq!(known.parts(12, 19), [(18, 19), (12, 15)]);
        known.add(0, 100);
        assert!(known.covers(0, 100));
        known.clear();
        assert!(!known.covers(0, 1));
    }
}
