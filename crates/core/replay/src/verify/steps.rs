//! Compares placements and statistics while the replay runs.

use blockyard_device::{Advance, DeviceMemory};
use blockyard_pytorch::trace::InferredRun;
use blockyard_pytorch::trace::RewoundMemory;
use blockyard_pytorch::{
    AllocationResult, OperationKind, RecordedRun, STAT_COUNT, StatChange, stat_keys, stat_values,
};
use blockyard_record::{Stats, StepOutcome};

use crate::earlier_stats::EarlierStats;
use crate::{Comparison, Runner};

/// Compares recorded placements and statistics with those of the replay, step by step.
pub(super) struct StepComparer<'a> {
    run: &'a RecordedRun,
    inferred: &'a InferredRun,
    /// The recorded statistics at this moment.
    expected: Vec<i64>,
    /// How many operations have changed `expected`.
    operations: usize,
    /// How many checkpoints were compared.
    checkpoints: usize,
    /// The counts before the recording, if the recording begins late.
    earlier: Option<EarlierStats>,
    /// Whether blocks get their recorded addresses, so that a comparison of addresses would prove nothing.
    is_placed: bool,
}

impl<'a> StepComparer<'a> {
    pub(super) fn new(
        run: &'a RecordedRun,
        inferred: &'a InferredRun,
        rewound: Option<&RewoundMemory>,
    ) -> Self {
        let earlier = rewound.map(|rewound| EarlierStats::new(rewound.sizes.open > 0));
        let is_placed = !inferred.placements.is_empty();
        Self {
            run,
            inferred,
            expected: vec![0; STAT_COUNT],
            operations: 0,
            checkpoints: 0,
            earlier,
            is_placed,
        }
    }

    /// Compares before the first request.
    pub(super) fn at_start(&mut self, stats: &Stats, comparison: &mut Comparison) {
        let until = self.inferred.operations.first().copied().unwrap_or(self.run.operations.len());
        self.expect_operations_until(until);
        if self.operations > 0 {
            self.compare_stats("statistics", stats, None, comparison);
        }
        self.compare_checkpoints(0, stats, None, comparison);
    }

    /// Compares after a request.
    pub(super) fn after<D: DeviceMemory + Advance>(
        &mut self,
        request: usize,
        outcome: Option<&StepOutcome>,
        runner: &Runner<'_, D>,
        comparison: &mut Comparison,
    ) {
        if let Some(index) = self.inferred.operations.get(request).copied() {
            let operation = &self.run.operations[index];
            if let (OperationKind::Allocate { result: Some(expected), .. }, Some(found)) =
                (&operation.kind, outcome.and_then(|outcome| runner.answer(outcome)))
                && !(self.is_placed
                    && matches!((expected, &found), (AllocationResult::At(_), AllocationResult::At(_))))
            {
                comparison.compare("placements", expected, &found, Some(request), || {
                    (format!("line {}, allocation", operation.line), placed(expected), placed(&found))
                });
            }
            // One operation may be several requests. Its statistics are compared after the last of these
            // requests.
            let is_last = self.inferred.operations.get(request + 1) != Some(&index);
            if is_last && has_stats(self.run) {
                self.expect_operations_until(index + 1);
                self.compare_stats("statistics", &runner.stats(), Some(request), comparison);
            }
        }
        self.compare_checkpoints(runner.trace().len(), &runner.stats(), Some(request), comparison);
    }

    /// Compares the checkpoints up to this number of trace entries.
    fn compare_checkpoints(
        &mut self,
        entries: usize,
        stats: &Stats,
        step: Option<usize>,
        comparison: &mut Comparison,
    ) {
        while let Some((label, at, expected)) = self.run.checkpoints.get(self.checkpoints) {
            if entries < *at {
                break;
            }
            self.checkpoints += 1;
            self.expected = vec![0; STAT_COUNT];
            set_values(&mut self.expected, expected);
            if entries == *at {
                self.compare_stats("checkpoints", stats, step, comparison);
            } else {
                comparison.count("checkpoints", false);
                comparison
                    .notes
                    .push(format!("no request ends at the checkpoint {label}, after {at} trace entries"));
            }
        }
    }

    /// Compares what is left after the last request.
    pub(super) fn at_end(&mut self, stats: &Stats, comparison: &mut Comparison) {
        if self.operations < self.run.operations.len() && has_stats(self.run) {
            self.expect_operations_until(self.run.operations.len());
            self.compare_stats("statistics", stats, None, comparison);
        }
        for (label, ..) in &self.run.checkpoints[self.checkpoints..] {
            comparison.count("checkpoints", false);
            comparison.notes.push(format!("the replay never reached the checkpoint {label}"));
        }
        if let Some(last) = &self.run.final_stats {
            self.expected = vec![0; STAT_COUNT];
            set_values(&mut self.expected, last);
            self.compare_stats("final statistics", stats, None, comparison);
        }
    }

    /// How statistics were compared, for a recording that begins late.
    pub(super) fn earlier_note(&self) -> Option<String> {
        self.earlier.as_ref().and_then(EarlierStats::note)
    }

    fn expect_operations_until(&mut self, end: usize) {
        for operation in &self.run.operations[self.operations..end] {
            set_values(&mut self.expected, &operation.stats);
        }
        self.operations = end;
    }

    fn compare_stats(&mut self, kind: &str, stats: &Stats, step: Option<usize>, comparison: &mut Comparison) {
        let mut found = stat_values(stats);
        if let Some(earlier) = &mut self.earlier {
            earlier.add_to(&mut found, &self.expected);
        }
        comparison.compare(kind, &self.expected, &found, step, || {
            let pairs = self.expected.iter().zip(&found).zip(stat_keys());
            let differing = pairs.into_iter().find(|((expected, found), _)| expected != found);
            differing.map_or_else(Default::default, |((expected, found), key)| {
                (key.clone(), expected.to_string(), found.to_string())
            })
        });
    }
}

/// Sets the values that changed.
fn set_values(values: &mut [i64], changes: &[StatChange]) {
    for change in changes {
        if let Some(value) = values.get_mut(change.key) {
            *value = change.value;
        }
    }
}

fn has_stats(run: &RecordedRun) -> bool {
    run.operations.iter().any(|operation| !operation.stats.is_empty())
}

fn placed(result: &AllocationResult) -> String {
    match result {
        AllocationResult::At(addr) => format!("{addr:#x}"),
        AllocationResult::OutOfMemory(text) => format!("out of memory ({text})"),
    }
}
