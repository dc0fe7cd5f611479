//! The runs of layouts: the ranks that differ run, and the stand-in answers for the others.

use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use blockyard_dry_run::{PreloadedProcess, Program, Ranks, run_ranks};
use blockyard_fit::{Layout, Mesh, Probe};

use super::super::cache::key;
use super::super::runs::{RunConditions, RunEnd, Runs, probe as probe_of};
use super::super::vary::{Set, Vary};
use super::{LayoutRuns, numbers};
use crate::dry_run::is_interrupted;

/// How many ranks a node has if no option says how many.
const PER_NODE: u32 = 8;

/// The number of all ranks and of the ranks of a node; an error if the ranks do not fill the nodes.
pub(in super::super) fn nodes(runs: &Runs<'_>, world: u32) -> anyhow::Result<(u32, u32)> {
    let per_node = match runs.options.nproc_per_node {
        Some(per_node) => u32::from(per_node),
        None if world.is_multiple_of(PER_NODE) => PER_NODE,
        None if world <= 2 * PER_NODE => world,
        None => {
            bail!(
                "{world} ranks do not fill nodes of {PER_NODE}: say with --nproc-per-node how many ranks a node has"
            )
        }
    };
    if !world.is_multiple_of(per_node) {
        bail!("{world} ranks do not fill nodes of {per_node}");
    }
    let ranks = runs.options.run_ranks.as_ref().map(|ranks| ranks.of(world)).unwrap_or_default();
    if let Some(rank) = ranks.into_iter().find(|rank| *rank >= world) {
        bail!("no rank {rank} exists: the ranks are 0 to {}", world.saturating_sub(1));
    }
    Ok((world, per_node))
}

/// The layouts of `world` ranks.
pub(in super::super) fn all_layouts(mesh: &Mesh, world: u32) -> anyhow::Result<Vec<Layout>> {
    let all = mesh.layouts(u64::from(world));
    if all.is_empty() {
        bail!("no layout of the mesh has {world} ranks");
    }
    Ok(all)
}

/// The runs of one GPU's layouts.
pub(in super::super) struct LayoutRunner<'a> {
    runs: &'a Runs<'a>,
    world: u32,
    per_node: u32,
    /// The process that has loaded the modules, once one is needed.
    preloaded: Mutex<Option<PreloadedProcess>>,
}

impl<'a> LayoutRunner<'a> {
    pub(in super::super) fn new(runs: &'a Runs<'a>, world: u32, per_node: u32) -> Self {
        Self { runs, world, per_node, preloaded: Mutex::new(None) }
    }

    /// Whether a layout fits.
    pub(super) fn ask(&self, conditions: &RunConditions, layout: &Layout) -> Result<LayoutRuns, RunEnd> {
        let conditions = of_layout(conditions, layout);
        let ranks = self.rank_probes(&conditions.without_end(), layout)?;
        let all = |is: &dyn Fn(&Probe) -> bool| ranks.iter().all(is);
        if all(&|probe| probe.fits && probe.peak_reserved <= conditions.left(probe)) {
            return Ok(LayoutRuns { fits: true, ranks, under_limit: None });
        }
        if !all(&|probe| probe.fits && probe.peak_allocated <= conditions.left(probe)) {
            return Ok(LayoutRuns { fits: false, ranks, under_limit: None });
        }
        // The allocated bytes would fit, so the allocator may get by with a release of cached segments: a run
        // under the limit decides.
        let under_limit = self.rank_probes(&conditions, layout)?;
        let is_fitting = under_limit.iter().all(|probe| probe.fits);
        Ok(LayoutRuns { fits: is_fitting, ranks, under_limit: Some(under_limit) })
    }

    /// Runs a layout with a value under the limit. The probe has the peaks of the rank that takes most.
    pub(in super::super) fn probe(
        &self,
        conditions: &RunConditions,
        layout: &Layout,
        vary: &Vary,
        value: u64,
    ) -> Result<Probe, RunEnd> {
        let conditions = of_layout(conditions, layout).with(vary.set(value));
        Ok(together(value, self.rank_probes(&conditions, layout)?))
    }

    /// The results of the ranks of a layout; kept results are used.
    fn rank_probes(&self, conditions: &RunConditions, layout: &Layout) -> Result<Vec<Probe>, RunEnd> {
        let asked = match &self.runs.options.run_ranks {
            Some(ranks) => ranks.of(self.world),
            None => layout.distinct_ranks(self.world),
        };
        let key =
            key(self.runs, conditions, &(self.world, self.per_node, &asked, &self.runs.options.preload));
        let known: Vec<Probe> =
            asked.iter().filter_map(|rank| self.runs.cache.find(key, u64::from(*rank))).collect();
        // A rank that ended because another rank failed has no probe: the rank that ran out of memory
        // decides.
        if known.len() == asked.len() || known.iter().any(|probe| !probe.fits) {
            self.runs.cached_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return Ok(known);
        }
        let permit = self.runs.queue.wait();
        if is_interrupted() {
            return Err(RunEnd::Stopped);
        }
        self.runs.say(&format!("rank {}", numbers(&asked)), conditions);
        let failed = |error: String| RunEnd::Failed(error);
        let ranks = Ranks::new(self.world / self.per_node, self.per_node, &asked)
            .map_err(|error| failed(error.to_string()))?;
        let program = self.runs.program(conditions).map_err(|error| failed(format!("{error:#}")))?;
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
        let report =
            run_ranks(&ranks, None, rank_program, &self.runs.torch, &self.runs.prepared, is_interrupted)
                .map_err(|error| failed(error.to_string()))?;
        if is_interrupted() {
            return Err(RunEnd::Stopped);
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
            return Err(RunEnd::Failed(error));
        }
        self.runs.made_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        files.sort();
        files.dedup();
        for probe in &probes {
            self.runs.cache.add(key, probe, &files).map_err(|error| failed(format!("{error:#}")))?;
        }
        Ok(probes)
    }

    /// The process that has loaded the modules; `None` if no modules are named.
    fn preloaded(&self, program: &Program, ranks: &Ranks) -> Result<Option<PreloadedProcess>, RunEnd> {
        let modules = &self.runs.options.preload;
        if modules.is_empty() {
            return Ok(None);
        }
        let mut preloaded = self.preloaded.lock().unwrap_or_else(PoisonError::into_inner);
        if preloaded.is_none() {
            let mut program = program.clone();
            // The number of threads is read when modules are loaded.
            program.environment.extend(ranks.environment(0, 0));
            let started = PreloadedProcess::load(&program, modules, &self.runs.torch, &self.runs.prepared);
            *preloaded = Some(started.map_err(|error| RunEnd::Failed(error.to_string()))?);
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
    let is_exact = ranks.iter().all(|rank| rank.is_exact);
    let peak_allocated = ranks.iter().map(|rank| rank.peak_allocated).max().unwrap_or_default();
    let failed = ranks.iter().find(|rank| !rank.fits).map(|rank| {
        let mut failed = rank.failed.clone().unwrap_or_default();
        let at = failed.at.map_or_else(String::new, |at| format!("{at} "));
        failed.at = Some(format!("{at}in rank {}", rank.value));
        failed
    });
    let is_fitting = failed.is_none();
    let mut notes: Vec<String> = ranks.iter().flat_map(|rank| rank.notes.clone()).collect();
    let mut remarks: Vec<String> = ranks.iter().flat_map(|rank| rank.remarks.clone()).collect();
    for list in [&mut notes, &mut remarks] {
        list.sort();
        list.dedup();
    }
    // `rev` makes `max_by_key` return the first of several ranks with equal peaks.
    let largest = ranks.into_iter().rev().max_by_key(|rank| rank.peak_reserved).unwrap_or_default();
    Probe { value, fits: is_fitting, peak_allocated, is_exact, failed, notes, remarks, ..largest }
}

#[cfg(test)]
mod tests {
    use blockyard_fit::ProbeOom;
    use blockyard_record::Bytes;

    use super::*;

    #[test]
    fn ranks_count_as_the_one_that_takes_most() {
        let rank =
            |rank, is_fitting, bytes| Probe::of(rank, is_fitting, Bytes::new(bytes), Bytes::new(2 * bytes));
        let found = together(8, vec![rank(0, true, 10), rank(21, true, 30), rank(63, true, 20)]);
        assert_eq!((found.value, found.fits, found.failed), (8, true, None));
        assert_eq!((found.peak_allocated, found.peak_reserved), (Bytes::new(30), Bytes::new(60)));
        let mut last = rank(63, false, 5);
        last.failed =
            Some(ProbeOom { bytes: Bytes::new(7), at: Some("a.py:3".to_owned()), is_of_other_thread: false });
        last.notes = vec!["one".to_owned()];
        let found = together(9, vec![rank(0, true, 10), last]);
        assert_eq!((found.fits, found.notes), (false, vec!["one".to_owned()]));
        assert_eq!(found.failed.and_then(|failed| failed.at).as_deref(), Some("a.py:3 in rank 63"));
    }
}
