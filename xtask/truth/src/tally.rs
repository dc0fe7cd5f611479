//! How often each result occurred, by the name of what was compared.

use std::collections::BTreeMap;

/// The number of cases by their result, for each name.
#[derive(Clone, Debug)]
pub(crate) struct Tally<R>(BTreeMap<String, BTreeMap<R, usize>>);

impl<R> Default for Tally<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: Copy + Ord> Tally<R> {
    pub(crate) fn add(&mut self, name: &str, result: R) {
        *self.0.entry(name.to_owned()).or_default().entry(result).or_default() += 1;
    }

    /// The cases with one of these results, over all names.
    pub(crate) fn count(&self, results: &[R]) -> usize {
        self.0.values().map(|counts| sum(counts, results)).sum()
    }

    /// A row for each name and one for `all`. Each column counts the cases with one of its results.
    pub(crate) fn rows(&self, columns: &[&[R]]) -> Vec<(&str, Vec<usize>)> {
        let named = self.0.iter().map(|(name, counts)| {
            (name.as_str(), columns.iter().map(|results| sum(counts, results)).collect())
        });
        let all = columns.iter().map(|results| self.count(results)).collect();
        named.chain([("all", all)]).collect()
    }
}

fn sum<R: Ord>(counts: &BTreeMap<R, usize>, results: &[R]) -> usize {
    results.iter().filter_map(|result| counts.get(result)).sum()
}
