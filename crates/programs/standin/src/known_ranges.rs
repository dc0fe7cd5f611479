//! Which bytes of device memory are known, as ranges.

use rangemap::RangeSet;

/// Ranges of addresses whose bytes are known. Ranges that touch are one.
#[derive(Debug, Default)]
pub(crate) struct KnownRanges {
    ranges: RangeSet<u64>,
}

impl KnownRanges {
    /// The bytes from `start` to `end` are known from now on.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        // The set takes no empty range.
        if start < end {
            self.ranges.insert(start..end);
        }
    }

    /// The bytes from `start` to `end` are unknown from now on.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start < end {
            self.ranges.remove(start..end);
        }
    }

    /// All bytes are unknown from now on.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Whether all bytes from `start` to `end` are known.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        start >= end || self.ranges.get(&start).is_some_and(|known| known.end >= end)
    }

    /// Whether any byte from `start` to `end` is known.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end && self.ranges.overlaps(&(start..end))
    }

    /// The known parts of these addresses.
    pub(crate) fn parts(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        if start >= end {
            return Vec::new();
        }
        let known = self.ranges.overlapping(start..end);
        known.map(|known| (known.start.max(start), known.end.min(end))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::KnownRanges;

    #[test]
    fn ranges_join_and_split() {
        let mut known = KnownRanges::default();
        known.add(10, 20);
        known.add(30, 40);
        assert!(known.covers(12, 20) && !known.covers(12, 21) && known.covers(5, 5));
        known.add(20, 30);
        assert!(known.covers(10, 40));
        known.remove(15, 18);
        assert!(known.covers(10, 15) && known.covers(18, 40) && !known.covers(14, 16));
        assert_eq!(known.parts(12, 19), [(12, 15), (18, 19)]);
        assert!(known.overlaps(14, 16) && !known.overlaps(15, 18) && !known.overlaps(20, 20));
        known.add(7, 7);
        known.remove(30, 30);
        assert_eq!((known.parts(0, 11), known.parts(35, 35)), (vec![(10, 11)], Vec::new()));
        known.add(0, 100);
        assert!(known.covers(0, 100));
        known.clear();
        assert!(!known.covers(0, 1));
    }
}
