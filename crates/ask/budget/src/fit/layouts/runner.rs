//! The runs of layouts: the ranks that differ run, and the stand-in answers for the others.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use blockyard_answers::{FitLayout, FitPeaks, FitRank, FitRunEnd};
use blockyard_dry_run::{PreloadedProcess, Program, Ranks, run_ranks};
use blockyard_record::Bytes;

use super::super::cache::key;
use super::super::runs::{RunConditions, Runs, probe as probe_of};
use super::super::vary::{Set, Vary};
use super::{numbers, sizes};
use crate::{Layout, Probe};

/// The runs of one GPU's layouts.
pub(in super::super) struct LayoutRunner<'a> {
    runs: &'a Runs<'a>,
    world: u32,
    per_node: u32,
    /// The process that has loaded the modules, once one is needed.
    preloaded: Mutex<Option<PreloadedProcess>>,
}

/// The runs of one layout.
struct LayoutRuns {
    fits: bool,
    /// The ranks that ran on a GPU on which everything fits.
    ranks: Vec<Probe>,
    /// The ranks that ran under the limit; `None` if that run was not needed.
    under_limit: Option<Vec<Probe>>,
}

impl<'a> LayoutRunner<'a> {
    pub(in super::super) fn new(runs: &'a Runs<'a>, world: u32, per_node: u32) -> Self {
        Self { runs, world, per_node, preloaded: Mutex::new(None) }
    }

    /// Whether a layout fits.
    pub(super) fn ask(&self, conditions: &RunConditions, layout: &Layout) -> FitLayout {
        let row = FitLayout { layout: sizes(layout), ..FitLayout::default() };
        match self.runs_of(conditions, layout) {
            Ok(LayoutRuns { fits, ranks, under_limit }) => {
                let deciding = under_limit.as_ref().filter(|_| fits).unwrap_or(&ranks);
                let most = |of: fn(&Probe) -> Bytes| Some(deciding.iter().map(of).max().unwrap_or_default());
                let answer = |probes: Vec<Probe>| probes.into_iter().map(FitRank::from).collect();
                FitLayout {
                    fits: Some(fits),
                    peak_allocated: most(|probe| probe.run.peak_allocated),
                    peak_reserved: most(|probe| probe.run.peak_reserved),
                    exact: Some(
                        ranks.iter().chain(under_limit.iter().flatten()).all(|probe| probe.run.exact),
                    ),
                    ranks: Some(answer(ranks)),
                    under_limit: under_limit.map(answer),
                    ..row
                }
            }
            Err(FitRunEnd::Failed(error)) => FitLayout { error: Some(error), ..row },
            Err(FitRunEnd::Stopped) => row,
        }
    }

    fn runs_of(&self, conditions: &RunConditions, layout: &Layout) -> Result<LayoutRuns, FitRunEnd> {
        let conditions = of_layout(conditions, layout);
        let ranks = self.rank_probes(&conditions.without_end(), layout)?;
        let all = |peak: fn(&Probe) -> Bytes| {
            ranks.iter().all(|probe| probe.run.fits && peak(probe) <= conditions.left(probe))
        };
        if all(|probe| probe.run.peak_reserved) {
            return Ok(LayoutRuns { fits: true, ranks, under_limit: None });
        }
        if !all(|probe| probe.run.peak_allocated) {
            return Ok(LayoutRuns { fits: false, ranks, under_limit: None });
        }
        // The allocated bytes would fit, so the allocator may get by with a release of cached segments: a run
        // under the limit decides.
        let under_limit = self.rank_probes(&conditions, layout)?;
        let fits = under_limit.iter().all(|probe| probe.run.fits);
        Ok(LayoutRuns { fits, ranks, under_limit: Some(under_limit) })
    }

    /// Runs a layout with a value under the limit. The probe has the peaks of the rank that takes most.
    pub(in super::super) fn probe(
        &self,
        conditions: &RunConditions,
        layout: &Layout,
        vary: &Vary,
        value: u64,
    ) -> Result<Probe, FitRunEnd> {
        let conditions = of_layout(conditions, layout).with(vary.set(value));
        Ok(together(value, self.rank_probes(&conditions, layout)?))
    }

    /// The results of the ranks of a layout; kept results are used.
    fn rank_probes(&self, conditions: &RunConditions, layout: &Layout) -> Result<Vec<Probe>, FitRunEnd> {
        let asked = match &self.runs.program.run_ranks {
            Some(ranks) => ranks.of(self.world),
            None => layout.distinct_ranks(self.world),
        };
        let key =
            key(self.runs, conditions, &(self.world, self.per_node, &asked, &self.runs.program.preload));
        let known: Vec<Probe> =
            asked.iter().filter_map(|rank| self.runs.cache.find(key, u64::from(*rank))).collect();
        // A rank that ended because another rank failed has no probe: the rank that ran out of memory
        // decides.
        if known.len() == asked.len() || known.iter().any(|probe| !probe.run.fits) {
            self.runs.counts.known.fetch_add(1, Ordering::Relaxed);
            return Ok(known);
        }
        let permit = self.runs.queue.wait();
        let is_stopped = || self.runs.caller.is_stopped();
        if is_stopped() {
            return Err(FitRunEnd::Stopped);
        }
        self.runs.show(&format!("rank {}", numbers(&asked)), conditions);
        let ranks =
            Ranks::new(self.world / self.per_node, self.per_node, &asked).map_err(FitRunEnd::failed)?;
        let program = self.runs.program(conditions);
        let output = self.runs.file("output");
        let output = |rank: u32| output.with_extension(rank.to_string());
        let devices = program.devices.max(self.per_node);
        let program = Program { devices, ..program };
        let preloaded = self.preloaded(&program, &ranks)?;
        let rank_program = |rank: u32| Program {
            preloaded: preloaded.clone(),
            output: Some(output(rank)),
            ..program.clone()
        };
        let report = run_ranks(&ranks, None, rank_program, self.runs.torch, self.runs.prepared, is_stopped)
            .map_err(FitRunEnd::failed)?;
        if is_stopped() {
            return Err(FitRunEnd::Stopped);
        }
        permit.took(report.ranks.iter().map(|rank| rank.report.host_peak.get()).sum());
        let mut probes = Vec::new();
        let mut error = None;
        let mut files = Vec::new();
        for rank in &report.ranks {
            match probe_of(&rank.report, &conditions.gpu, &output(rank.rank)) {
                Ok(found) => probes.push(Probe { value: u64::from(rank.rank), ..found }),
                // A rank that was ended because another rank failed is not an error.
                Err(what) if report.first_failed.is_none_or(|failed| failed == rank.rank) => {
                    error = Some(what);
                }
                Err(_) => {}
            }
            files.extend(rank.report.files.iter().cloned());
            let _ = std::fs::remove_file(output(rank.rank));
        }
        if let Some(error) = error {
            return Err(FitRunEnd::Failed(error));
        }
        self.runs.counts.made.fetch_add(1, Ordering::Relaxed);
        files.sort();
        files.dedup();
        for probe in &probes {
            self.runs.cache.add(key, probe, &files).map_err(FitRunEnd::failed)?;
        }
        Ok(probes)
    }

    /// The process that has loaded the modules; `None` if no modules are named.
    fn preloaded(&self, program: &Program, ranks: &Ranks) -> Result<Option<PreloadedProcess>, FitRunEnd> {
        let modules = &self.runs.program.preload;
        if modules.is_empty() {
            return Ok(None);
        }
        let mut preloaded = self.preloaded.lock().unwrap_or_else(PoisonError::into_inner);
        if preloaded.is_none() {
            let mut program = program.clone();
            // The number of threads is read when modules are loaded.
            program.environment.extend(ranks.environment(0, 0));
            let started = PreloadedProcess::load(&program, modules, self.runs.torch, self.runs.prepared);
            *preloaded = Some(started.map_err(FitRunEnd::failed)?);
        }
        Ok(preloaded.clone())
    }
}

/// The conditions with the sizes of a layout.
fn of_layout(conditions: &RunConditions, layout: &Layout) -> RunConditions {
    let mut conditions = conditions.clone();
    let set = |(name, value): (&str, u64)| Set { name: name.to_owned(), is_variable: false, value };
    conditions.sets.extend(layout.sizes().map(set));
    conditions
}

/// The ranks of one run as one probe: the peaks of the rank with the largest, and the first rank that ran out
/// of memory. A rank that ended because another rank failed has smaller peaks.
fn together(value: u64, ranks: Vec<Probe>) -> Probe {
    let exact = ranks.iter().all(|rank| rank.run.exact);
    let peak_allocated = ranks.iter().map(|rank| rank.run.peak_allocated).max().unwrap_or_default();
    let failed = ranks.iter().find(|rank| !rank.run.fits).map(|rank| {
        let mut failed = rank.run.failed.clone().unwrap_or_default();
        let at = failed.at.map_or_else(String::new, |at| format!("{at} "));
        failed.at = Some(format!("{at}in rank {}", rank.value));
        failed
    });
    let mut notes: Vec<String> = ranks.iter().flat_map(|rank| rank.run.notes.clone()).collect();
    let mut remarks: Vec<String> = ranks.iter().flat_map(|rank| rank.run.remarks.clone()).collect();
    for list in [&mut notes, &mut remarks] {
        list.sort();
        list.dedup();
    }
    // `rev` makes `max_by_key` return the first of several ranks with equal peaks.
    let mut largest = ranks.into_iter().rev().max_by_key(|rank| rank.run.peak_reserved).unwrap_or_default();
    largest.value = value;
    let fits = failed.is_none();
    largest.run = FitPeaks { fits, peak_allocated, exact, failed, notes, remarks, ..largest.run };
    largest
}

#[cfg(test)]
mod tests {
    use blockyard_answers::FitFailedRequest;

    use super::*;

    #[test]
    fn ranks_count_as_the_one_that_takes_most() {
        let rank =
            |rank, is_fitting, bytes| Probe::of(rank, is_fitting, Bytes::new(bytes), Bytes::new(2 * bytes));
        let found = together(8, vec![rank(0, true, 10), rank(21, true, 30), rank(63, true, 20)]);
        assert_eq!((found.value, found.run.fits, &found.run.failed), (8, true, &None));
        assert_eq!((found.run.peak_allocated, found.run.peak_reserved), (Bytes::new(30), Bytes::new(60)));
        let mut last = rank(63, false, 5);
        last.run.failed = Some(FitFailedRequest {
            bytes: Bytes::new(7),
            at: Some("a.py:3".to_owned()),
            is_of_other_thread: false,
        });
        last.run.notes = vec!["one".to_owned()];
        let found = together(9, vec![rank(0, true, 10), last]);
        assert_eq!((found.run.fits, found.run.notes), (false, vec!["one".to_owned()]));
        assert_eq!(found.run.failed.and_then(|failed| failed.at).as_deref(), Some("a.py:3 in rank 63"));
    }
}
