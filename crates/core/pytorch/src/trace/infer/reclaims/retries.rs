//! Requests that were refused at first, as far as recorded statistics show them.

use blockyard_record::{TraceAction, TraceEntry};

use super::Burst;
use crate::RecordedRun;
use crate::{StatChange, stat_index};

/// How many allocations were tried twice between checkpoints, where statistics were recorded.
pub(super) struct Retries {
    known: Vec<Option<bool>>,
}

impl Retries {
    pub(super) fn new(run: &RecordedRun, trace: &[TraceEntry], bursts: &[Burst], is_whole: bool) -> Self {
        let mut known = vec![None; bursts.len()];
        let Some(key) = stat_index("num_alloc_retries") else { return Self { known } };
        let value =
            |stats: &[StatChange]| stats.iter().find(|change| change.key == key).map(|change| change.value);
        let moments = run.checkpoints.iter().map(|(_, at, stats)| (*at, stats));
        let last = run.final_stats.iter().map(|stats| (trace.len(), stats));
        // A program begins with no retries.
        let mut before = is_whole.then_some((0, 0));
        for (at, stats) in moments.chain(last) {
            let Some(now) = value(stats) else { continue };
            if let Some((from, then)) = before {
                let within = |burst: &Burst| (from..at).contains(&burst.end) && trace.len() > burst.end;
                let fails = trace.get(from..at).unwrap_or_default();
                let fails = fails.iter().filter(|entry| entry.action == TraceAction::OutOfMemory).count();
                let gives: Vec<usize> = (0..bursts.len())
                    .filter(|place| {
                        let burst = &bursts[*place];
                        within(burst) && trace[burst.end].action != TraceAction::OutOfMemory
                    })
                    .collect();
                let retried = usize::try_from(now.saturating_sub(then)).unwrap_or(0).saturating_sub(fails);
                if retried == 0 || retried == gives.len() {
                    for place in gives {
                        known[place] = Some(retried > 0);
                    }
                }
            }
            before = Some((at, now));
        }
        Self { known }
    }

    /// Whether the allocation after the burst was refused first; `None` if the statistics do not show it.
    pub(super) fn is_retry(&self, burst: usize) -> Option<bool> {
        self.known.get(burst).copied().flatten()
    }
}
