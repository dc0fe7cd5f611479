//! The mapped ranges of a device's addresses.

use std::collections::BTreeMap;

/// Which addresses are mapped, as runs that never touch each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappedAddresses {
    /// From the start of each run to its end.
    runs: BTreeMap<u64, u64>,
}

impl MappedAddresses {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether any address from `start` to `end` is mapped.
    pub(crate) fn touches(&self, start: u64, end: u64) -> bool {
        self.runs.range(..end).next_back().is_some_and(|(_, to)| *to > start)
    }

    /// Whether all addresses from `start` to `end` are mapped.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        self.runs.range(..=start).next_back().is_some_and(|(_, to)| *to >= end)
    }

    /// Adds addresses. None of them may be mapped.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        let before = self.runs.range(..start).next_back().filter(|(_, to)| **to == start);
        let from = before.map_or(start, |(from, _)| *from);
        let to = self.runs.remove(&end).unwrap_or(end);
        self.runs.insert(from, to);
    }

    /// Removes addresses. All of them must be mapped.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        let Some((from, to)) = self.runs.range(..=start).next_back().map(|(from, to)| (*from, *to)) else {
            return;
        };
        self.runs.remove(&from);
        if from < start {
            self.runs.insert(from, start);
        }
        if end < to {
            self.runs.insert(end, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_and_divided() {
        let mut mapped = MappedAddresses::default();
        mapped.add(0, 10);
        mapped.add(20, 30);
        assert!(!mapped.covers(0, 30) && mapped.touches(9, 11) && !mapped.touches(10, 20));
        mapped.add(10, 20);
        assert!(mapped.covers(0, 30) && !mapped.covers(0, 31));
        mapped.remove(5, 25);
        assert!(mapped.covers(0, 5) && !mapped.touches(5, 25) && mapped.covers(25, 30));
        mapped.remove(0, 5);
        mapped.remove(25, 30);
        assert!(mapped.is_empty());
    }
}
