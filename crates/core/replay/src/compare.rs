//! The comparison of a replay with its recording.

use blockyard_answers::Difference;
use blockyard_record::grouped;
use serde::{Deserialize, Serialize};

/// The comparison of a replay with its recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// How many facts of each kind are identical, in a fixed order. Kinds that the recording does not have
    /// are left out.
    pub counts: Vec<Count>,
    /// The first fact that differs.
    pub first_difference: Option<Difference>,
    /// What was inferred, what cannot be compared, and why.
    pub notes: Vec<String>,
}

/// How many facts of a kind are identical.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The kind: `events`, `placements`, `statistics`, `checkpoints`, `final statistics`, `segments`,
    /// `blocks`, `memory_summary`.
    pub kind: String,
    /// How many facts of this kind are identical.
    pub identical: u64,
    /// How many facts the recording or the replay has, the larger number of the two.
    pub total: u64,
}

impl Comparison {
    /// Whether all compared facts are identical, and there is at least one.
    pub fn is_identical(&self) -> bool {
        let all = self.counts.iter().all(|count| count.identical == count.total);
        all && self.counts.iter().any(|count| count.total > 0) && self.first_difference.is_none()
    }

    /// The comparison in one line: `52,141 of 52,141 events identical`, or the first kind of fact that
    /// differs, `differs: 656 of 657 placements identical`.
    pub fn headline(&self) -> String {
        let differing = self.counts.iter().find(|count| count.identical != count.total);
        let text = |count: &Count| {
            format!("{} of {} {} identical", grouped(count.identical), grouped(count.total), count.kind)
        };
        match (differing, self.counts.first()) {
            (Some(count), _) => format!("differs: {}", text(count)),
            (None, Some(count)) => text(count),
            (None, None) => "nothing to compare".to_owned(),
        }
    }

    /// The meaning of the comparison for answers about other settings, and its [`headline`](Self::headline).
    pub fn meaning(&self) -> String {
        placements_meaning(self.is_identical(), &self.headline())
    }

    pub(crate) fn count(&mut self, kind: &str, is_identical: bool) {
        let index = if let Some(index) = self.counts.iter().position(|count| count.kind == kind) {
            index
        } else {
            self.counts.push(Count { kind: kind.to_owned(), identical: 0, total: 0 });
            self.counts.len() - 1
        };
        let count = &mut self.counts[index];
        count.total = count.total.saturating_add(1);
        count.identical = count.identical.saturating_add(u64::from(is_identical));
    }

    /// Compares a fact, counts it, and stores the first one that differs.
    pub(crate) fn compare<T: PartialEq>(
        &mut self,
        kind: &str,
        expected: &T,
        found: &T,
        step: Option<usize>,
        describe: impl FnOnce() -> (String, String, String),
    ) {
        let is_identical = expected == found;
        self.count(kind, is_identical);
        if !is_identical && self.first_difference.is_none() {
            let (what, expected, found) = describe();
            let step = step.map(|step| (step as u64).saturating_add(1));
            self.first_difference = Some(Difference { step, what, expected, found });
        }
    }
}

/// What it means for the answers about a file that our allocator placed its blocks where PyTorch did, or not. `counts`
/// says how many.
pub fn placements_meaning(is_identical: bool, counts: &str) -> String {
    if is_identical {
        format!(
            "Blockyard placed every block where PyTorch did, so its answers hold for this file ({counts})"
        )
    } else {
        format!(
            "Blockyard did not place every block where PyTorch did, so its answers are estimates ({counts})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(facts: &[(&str, u32, u32)]) -> Comparison {
        let mut comparison = Comparison::default();
        for (step, (kind, expected, found)) in facts.iter().enumerate() {
            comparison.compare(kind, expected, found, Some(step), || {
                ((*kind).to_owned(), expected.to_string(), found.to_string())
            });
        }
        comparison
    }

    #[test]
    fn facts_are_counted_by_kind_in_the_order_in_which_kinds_come() {
        let comparison = compared(&[("placements", 1, 1), ("events", 2, 2), ("placements", 3, 3)]);
        let counts =
            comparison.counts.iter().map(|count| (count.kind.as_str(), count.identical, count.total));
        assert_eq!(counts.collect::<Vec<_>>(), [("placements", 2, 2), ("events", 1, 1)]);
        assert!(comparison.is_identical());
        assert_eq!(comparison.headline(), "2 of 2 placements identical");
    }

    #[test]
    fn the_first_difference_is_kept_and_the_headline_names_the_kind_that_differs() {
        let comparison = compared(&[("placements", 1, 1), ("events", 2, 5), ("events", 6, 7)]);
        assert!(!comparison.is_identical());
        assert_eq!(comparison.headline(), "differs: 0 of 2 events identical");
        let difference = comparison.first_difference.unwrap();
        assert_eq!(difference.to_string(), "request 2: events: PyTorch 2, replay 5");
        let outside = Difference { step: None, ..difference };
        assert_eq!(outside.to_string(), "events: PyTorch 2, replay 5");
    }

    #[test]
    fn nothing_compared_is_not_identical() {
        assert!(!Comparison::default().is_identical());
        assert_eq!(Comparison::default().headline(), "nothing to compare");
        let empty = Count { kind: "events".to_owned(), identical: 0, total: 0 };
        assert!(!Comparison { counts: vec![empty], ..Comparison::default() }.is_identical());
    }
}
