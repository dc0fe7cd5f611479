//! Which layouts of ranks fit: a run of each layout, in which the ranks that differ run, and the stand-in
//! answers for the others.

mod runner;
mod text;

use std::collections::BTreeMap;
use std::str::FromStr;

use blockyard_answers::{FitLayout, FitLayoutsOnGpu, FitRank, FitRunEnd};
use thiserror::Error;

pub(super) use self::runner::LayoutRunner;
pub(super) use self::text::{layout_text, write, write_ranks};
use super::FitError;
use super::run_queue::{AnswerQueue, each};
use super::runs::{FitProgram, RunConditions, Runs};
use crate::{Layout, Mesh};

/// How many ranks a node has if no option says how many.
const PER_NODE: u32 = 8;

/// The ranks that run of each layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRanks {
    /// All ranks.
    All,
    /// These ranks, ascending.
    These(Vec<u32>),
}

/// A text that names no ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write ranks separated by commas, as 0,8,63, or all")]
pub struct RunRanksError;

impl FromStr for RunRanks {
    type Err = RunRanksError;

    fn from_str(text: &str) -> Result<Self, RunRanksError> {
        if text.trim() == "all" {
            return Ok(Self::All);
        }
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_error| RunRanksError);
        let mut ranks = text.split(',').map(number).collect::<Result<Vec<u32>, _>>()?;
        ranks.sort_unstable();
        ranks.dedup();
        Ok(Self::These(ranks))
    }
}

impl RunRanks {
    /// The ranks of a program with `world` ranks.
    fn of(&self, world: u32) -> Vec<u32> {
        match self {
            Self::All => (0..world).collect(),
            Self::These(ranks) => ranks.clone(),
        }
    }
}

/// How many of `world` ranks a node has.
pub(super) fn nodes(program: &FitProgram, world: u32) -> Result<u32, FitError> {
    let wrong = |text: String| Err(FitError::Question(text));
    let usual = if world.is_multiple_of(PER_NODE) || world > 2 * PER_NODE { PER_NODE } else { world };
    let per_node = program.per_node.unwrap_or(usual);
    if !world.is_multiple_of(per_node) {
        let say = ": say with --nproc-per-node how many ranks a node has";
        let say = if program.per_node.is_none() { say } else { "" };
        return wrong(format!("{world} ranks do not fill nodes of {per_node}{say}"));
    }
    let ranks = program.run_ranks.as_ref().map(|ranks| ranks.of(world)).unwrap_or_default();
    match ranks.into_iter().find(|rank| *rank >= world) {
        Some(rank) => {
            let last = world.saturating_sub(1);
            wrong(format!("no rank {rank} exists: the ranks are 0 to {last}"))
        }
        None => Ok(per_node),
    }
}

/// The layouts of `world` ranks.
pub(super) fn all_layouts(mesh: &Mesh, world: u32) -> Result<Vec<Layout>, FitError> {
    let all = mesh.layouts(u64::from(world));
    let none = || FitError::Question(format!("no layout of the mesh has {world} ranks"));
    if all.is_empty() { Err(none()) } else { Ok(all) }
}

/// How many ranks each dimension of a layout has.
pub(super) fn sizes(layout: &Layout) -> BTreeMap<String, u64> {
    layout.sizes().map(|(name, size)| (name.to_owned(), size)).collect()
}

/// Which layouts of `world` ranks fit each GPU.
pub(super) fn layouts(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    mesh: &Mesh,
    world: u32,
) -> Result<Vec<FitLayoutsOnGpu>, FitError> {
    let per_node = nodes(runs.program, world)?;
    let all = all_layouts(mesh, world)?;
    let on_gpu = |conditions: &RunConditions, _before: &AnswerQueue<FitLayoutsOnGpu>| {
        let runner = LayoutRunner::new(runs, world, per_node);
        let ask = |layout: &Layout, _before: &AnswerQueue<_>| runner.ask(conditions, layout);
        // After Ctrl-C each of the other runs ends at once.
        let layouts = each(&all, runs.queue.most(), ask, |_row| false);
        FitLayoutsOnGpu {
            conditions: conditions.terms.clone(),
            ranks: world,
            mesh: mesh.names().map(str::to_owned).collect(),
            best: best(&layouts).map(|best| best.layout.clone()),
            layouts,
            error: runs.caller.is_stopped().then_some(FitRunEnd::Stopped),
        }
    };
    Ok(each(conditions, runs.queue.most(), on_gpu, |answer| answer.error.is_some()))
}

/// The layout that fits with the least peak reserved of all ranks that ran; the first of several.
fn best(layouts: &[FitLayout]) -> Option<&FitLayout> {
    layouts.iter().filter(|row| row.fits == Some(true)).min_by_key(|row| row.peak_reserved)
}

/// The ranks of the run that decides whether a layout fits.
fn deciding(row: &FitLayout) -> &[FitRank] {
    let under_limit = row.under_limit.as_ref().filter(|_| row.fits == Some(true));
    under_limit.or(row.ranks.as_ref()).map(Vec::as_slice).unwrap_or_default()
}

fn numbers(ranks: &[u32]) -> String {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    blockyard_record::joined(&ranks)
}
