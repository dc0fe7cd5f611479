//! Statistics from before a recording began.

use std::sync::OnceLock;

use blockyard_pytorch::stat_keys;

/// The counts of the statistics before a recording began. They are taken from its first checkpoint, which is
/// the first moment at which the recorded program wrote its statistics.
///
/// Current values need none of these. Accumulated counts are compared as differences since the first
/// checkpoint. A peak must be the larger of two values: the peak at the checkpoint before, and the largest
/// value of the replay since that checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct EarlierStats {
    /// Whether the sizes of some blocks are not known, on which some sums of bytes depend.
    has_open_sizes: bool,
    /// For each key, the count before the recording; for peaks, the value at the last checkpoint.
    learned: Option<Vec<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatKind {
    Current,
    Counted,
    Peak,
}

impl EarlierStats {
    pub(crate) fn new(has_open_sizes: bool) -> Self {
        Self { has_open_sizes, learned: None }
    }

    /// A note that says how statistics were compared; `None` if none were.
    pub(crate) fn note(&self) -> Option<String> {
        self.learned.as_ref()?;
        let details = if self.has_open_sizes {
            "; peaks of bytes in the large pool and the counts of inactive_split_bytes there depend on the sizes that cannot be \
             known and are not compared"
        } else {
            ""
        };
        Some(format!(
            "accumulated counts and peaks go back to before the recording: counts are compared as differences since its first \
             statistics, peaks from there on{details}"
        ))
    }

    /// Adds the earlier counts to the values of the replay, and learns them from the recorded values.
    pub(crate) fn add_to(&mut self, found: &mut [i64], expected: &[i64]) {
        let kinds = kinds();
        let is_first = self.learned.is_none();
        let learned = self.learned.get_or_insert_with(|| vec![0; found.len()]);
        for (((found, expected), learned), (kind, is_detail)) in
            found.iter_mut().zip(expected).zip(learned).zip(kinds)
        {
            match kind {
                StatKind::Current => {}
                _ if *is_detail && self.has_open_sizes => *found = *expected,
                StatKind::Counted => {
                    if is_first {
                        *learned = expected.wrapping_sub(*found);
                    }
                    *found = found.wrapping_add(*learned);
                }
                StatKind::Peak => {
                    if is_first {
                        *learned = *expected;
                    }
                    *found = (*found).max(*learned);
                    *learned = *expected;
                }
            }
        }
    }
}

/// The kind of each key, and whether it depends on the size of each block rather than on sums at a moment.
fn kinds() -> &'static [(StatKind, bool)] {
    static KINDS: OnceLock<Vec<(StatKind, bool)>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let kind = |key: &String| {
            let (name, member) =
                (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
            let kind = match member {
                "current" | "max_split_size" => StatKind::Current,
                "peak" => StatKind::Peak,
                _ => StatKind::Counted,
            };
            let is_detail = match name {
                "inactive_split_bytes" => true,
                "allocated_bytes" | "active_bytes" => kind == StatKind::Peak,
                _ => false,
            };
            (kind, is_detail && !key.contains("small_pool"))
        };
        stat_keys().iter().map(kind).collect()
    })
}

#[cfg(test)]
mod tests {
    use blockyard_pytorch::{STAT_COUNT, stat_index};

    use super::*;

    #[test]
    fn counts_are_compared_as_differences_and_peaks_by_their_growth() {
        let [current, peak, freed] = ["current", "peak", "freed"]
            .map(|member| stat_index(&format!("allocation.all.{member}")).unwrap());
        let values = |pairs: [(usize, i64); 3]| {
            let mut values = vec![0; STAT_COUNT];
            for (key, value) in pairs {
                values[key] = value;
            }
            values
        };
        let mut earlier = EarlierStats::new(false);
        let mut found = values([(current, 5), (peak, 7), (freed, 3)]);
        let expected = values([(current, 5), (peak, 20), (freed, 103)]);
        earlier.add_to(&mut found, &expected);
        assert_eq!(found, expected);

        let mut found = values([(current, 6), (peak, 22), (freed, 4)]);
        earlier.add_to(&mut found, &values([(current, 6), (peak, 20), (freed, 103)]));
        assert_eq!(found, values([(current, 6), (peak, 22), (freed, 104)]));
    }
}
