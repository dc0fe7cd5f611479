//! An index of intervals: which allocations live at a moment.

/// Intervals of moments, sorted by their starts, that can be asked which of them hold a moment.
///
/// An implicit balanced tree: the node of a range of intervals is the middle one, and knows the last end in
/// the range. A question costs the logarithm of the number of intervals, and the number of answers.
#[derive(Clone, Debug, Default)]
pub(super) struct IntervalIndex {
    starts: Vec<u32>,
    ends: Vec<u32>,
    last_ends: Vec<u32>,
}

impl IntervalIndex {
    /// The index of intervals whose starts ascend; `starts` and `ends` are of the same length.
    pub(super) fn new(starts: Vec<u32>, ends: Vec<u32>) -> Self {
        let mut index = Self { last_ends: ends.clone(), starts, ends };
        index.prepare(0, index.ends.len());
        index
    }

    fn prepare(&mut self, from: usize, to: usize) -> u32 {
        if from >= to {
            return 0;
        }
        let middle = from + (to - from) / 2;
        let last = self.prepare(from, middle).max(self.prepare(middle + 1, to));
        match self.last_ends.get_mut(middle) {
            Some(place) => {
                *place = last.max(*place);
                *place
            }
            None => last,
        }
    }

    /// Calls `found` with the place of each interval that holds the moment, ascending. An interval does not
    /// hold its end.
    pub(super) fn at(&self, moment: u32, mut found: impl FnMut(usize)) {
        self.look(moment, 0, self.starts.len(), &mut found);
    }

    fn look(&self, moment: u32, from: usize, to: usize, found: &mut impl FnMut(usize)) {
        if from >= to {
            return;
        }
        let middle = from + (to - from) / 2;
        let (Some(start), Some(end), Some(last)) =
            (self.starts.get(middle), self.ends.get(middle), self.last_ends.get(middle))
        else {
            return;
        };
        if *last <= moment {
            return;
        }
        self.look(moment, from, middle, found);
        if *start <= moment {
            if *end > moment {
                found(middle);
            }
            self.look(moment, middle + 1, to, found);
        }
    }

    /// How many intervals begin at or before the moment.
    pub(super) fn begun(&self, moment: u32) -> usize {
        self.starts.partition_point(|start| *start <= moment)
    }

    pub(super) fn memory(&self) -> usize {
        self.starts.len() * 3 * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_index_finds_what_a_scan_finds(
            intervals in prop::collection::vec((0_u32..60, 0_u32..30), 0..80),
            moment in 0_u32..100,
        ) {
            let mut intervals = intervals;
            intervals.sort_by_key(|(start, _)| *start);
            let (starts, ends): (Vec<u32>, Vec<u32>) =
                intervals.iter().map(|(start, length)| (*start, start + length)).unzip();
            let expected: Vec<usize> = (0..starts.len())
                .filter(|place| starts[*place] <= moment && moment < ends[*place])
                .collect();
            let mut found = Vec::new();
            IntervalIndex::new(starts, ends).at(moment, |place| found.push(place));
            prop_assert_eq!(found, expected);
        }
    }
}
