//! Which layouts of ranks fit: a run of each layout, in which the ranks that differ run, and the stand-in
//! answers for the others.

mod runner;
mod text;

use blockyard_answers::{FitLayout, FitLayoutsAnswer, FitLayoutsOnGpu, FitRank, FitResult};
use blockyard_fit::{Layout, Mesh, Probe};
use blockyard_record::Bytes;

pub(super) use self::runner::{LayoutRunner, all_layouts, nodes};
pub(super) use self::text::write_ranks;
use super::json::{conditions, ended, first_and_others, held, run, sizes, whole};
use super::run_queue::{AnswerQueue, each};
use super::runs::{RunConditions, RunEnd, Runs};
use super::{Reply, status};
use crate::dry_run::is_interrupted;

/// The answer about one GPU.
struct LayoutsOnGpu {
    conditions: RunConditions,
    world: u32,
    names: Vec<String>,
    layouts: Vec<Layout>,
    /// The runs of each layout, in the order of the layouts; `None` if the layout was not run.
    found: Vec<Option<Result<LayoutRuns, String>>>,
    is_stopped: bool,
}

/// The runs of one layout.
#[derive(Clone, Debug)]
struct LayoutRuns {
    fits: bool,
    /// The ranks that ran on a GPU on which everything fits; `value` is the rank.
    ranks: Vec<Probe>,
    /// The ranks that ran under the limit; `None` if that run was not needed.
    under_limit: Option<Vec<Probe>>,
}

impl LayoutRuns {
    /// The ranks of the run that decides whether the layout fits.
    fn deciding(&self) -> &[Probe] {
        self.under_limit.as_ref().filter(|_| self.fits).unwrap_or(&self.ranks)
    }

    fn most(&self, of: impl Fn(&Probe) -> Bytes) -> Bytes {
        self.deciding().iter().map(of).max().unwrap_or_default()
    }

    fn peak_reserved(&self) -> Bytes {
        self.most(|probe| probe.peak_reserved)
    }

    fn is_exact(&self) -> bool {
        self.ranks.iter().chain(self.under_limit.iter().flatten()).all(|probe| probe.is_exact)
    }
}

pub(super) fn layouts(
    runs: &Runs<'_>,
    all_conditions: &[RunConditions],
    mesh: &Mesh,
    world: u32,
) -> anyhow::Result<Reply> {
    let (world, per_node) = nodes(runs, world)?;
    let all = all_layouts(mesh, world)?;
    let of_gpu = |conditions: &RunConditions, _before: &AnswerQueue<LayoutsOnGpu>| {
        let runner = LayoutRunner::new(runs, world, per_node);
        let ask = |layout: &Layout, _before: &AnswerQueue<Option<Result<LayoutRuns, String>>>| match runner
            .ask(conditions, layout)
        {
            Ok(found) => Some(Ok(found)),
            Err(RunEnd::Failed(error)) => Some(Err(error)),
            Err(RunEnd::Stopped) => None,
        };
        // After Ctrl-C each of the other runs ends at once.
        let found = each(&all, runs.queue.most(), ask, |_found| false);
        LayoutsOnGpu {
            conditions: conditions.clone(),
            world,
            names: mesh.names().map(str::to_owned).collect(),
            found,
            layouts: all.clone(),
            is_stopped: is_interrupted(),
        }
    };
    let answers = each(all_conditions, runs.queue.most(), of_gpu, |answer| answer.is_stopped);
    let mut out = String::new();
    for answer in &answers {
        text::write(&mut out, answer, runs.options)?;
    }
    let (first, others) = first_and_others(&answers, LayoutsOnGpu::json)?;
    let result = FitResult::Layouts(Box::new(FitLayoutsAnswer { first, others }));
    let is_found = answers.iter().all(|answer| answer.best().is_some());
    let stopped = answers.iter().any(|answer| answer.is_stopped).then_some(RunEnd::Stopped);
    let has_failed = answers.iter().flat_map(|answer| &answer.found).flatten().any(Result::is_err);
    let ended = stopped.or_else(|| (has_failed && !is_found).then(|| RunEnd::Failed(String::new())));
    Ok(Reply { text: out, json: whole(runs, result), status: status(ended.as_ref(), is_found), page: None })
}

fn numbers(ranks: &[u32]) -> String {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    ranks.join(" and ")
}

impl LayoutsOnGpu {
    /// The layouts whose runs gave an answer.
    fn answered(&self) -> impl Iterator<Item = (&Layout, &LayoutRuns)> {
        let rows = self.layouts.iter().zip(&self.found);
        rows.filter_map(|(layout, found)| Some((layout, found.as_ref()?.as_ref().ok()?)))
    }

    /// The layout that fits with the least peak reserved of all ranks that ran; the first of several.
    fn best(&self) -> Option<(&Layout, &LayoutRuns)> {
        self.answered().filter(|(_, found)| found.fits).min_by_key(|(_, found)| found.peak_reserved())
    }

    fn json(&self) -> FitLayoutsOnGpu {
        let (_, error) = ended(self.is_stopped.then_some(&(0, RunEnd::Stopped)));
        FitLayoutsOnGpu {
            conditions: conditions(&self.conditions),
            ranks: self.world,
            mesh: self.names.clone(),
            best: self.best().map(|(layout, _)| sizes(layout)),
            layouts: self
                .layouts
                .iter()
                .zip(&self.found)
                .map(|(layout, found)| row(layout, found.as_ref()))
                .collect(),
            error,
        }
    }
}

fn row(layout: &Layout, found: Option<&Result<LayoutRuns, String>>) -> FitLayout {
    let answered = found.and_then(|found| found.as_ref().ok());
    let ranks = |probes: &[Probe]| probes.iter().map(rank_answer).collect::<Vec<_>>();
    FitLayout {
        layout: sizes(layout),
        fits: answered.map(|found| found.fits),
        peak_allocated: answered.map(|found| found.most(|probe| probe.peak_allocated).get()),
        peak_reserved: answered.map(|found| found.peak_reserved().get()),
        exact: answered.map(LayoutRuns::is_exact),
        ranks: answered.map(|found| ranks(&found.ranks)),
        under_limit: answered.and_then(|found| found.under_limit.as_deref()).map(ranks),
        error: found.and_then(|found| found.as_ref().err().cloned()),
    }
}

fn rank_answer(rank: &Probe) -> FitRank {
    FitRank { rank: rank.value, holders: held(&rank.holders), run: run(rank) }
}
