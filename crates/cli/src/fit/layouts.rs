//! Which layouts of ranks fit: a run of each, in which the ranks that differ run and the others are answered for.

mod asked;
mod text;

use blockyard_fit::{Layout, Mesh, Probe};
use blockyard_record::Bytes;
use serde_json::{Map, Value, json};

pub(super) use self::asked::{Asked, all_layouts, nodes};
pub(super) use self::text::ran;
use super::at_once::{Answers, each};
use super::json::{ended, fields, held, probe, terms, whole};
use super::runs::{Ended, Runs, Terms};
use super::{Reply, status};
use crate::dry_run::is_interrupted;

/// What is known of one GPU.
struct Answer {
    terms: Terms,
    world: u32,
    names: Vec<String>,
    layouts: Vec<Layout>,
    /// By layout; none where it was not run.
    found: Vec<Option<Result<Found, String>>>,
    is_stopped: bool,
}

/// What the runs of a layout say.
#[derive(Clone, Debug)]
struct Found {
    is_fitting: bool,
    /// The ranks that ran on a GPU without an end; `value` is the rank.
    ranks: Vec<Probe>,
    /// The same under the limit, where that had to be run.
    under_limit: Option<Vec<Probe>>,
}

impl Found {
    /// The ranks of the run that decides.
    fn deciding(&self) -> &[Probe] {
        self.under_limit.as_ref().filter(|_| self.is_fitting).unwrap_or(&self.ranks)
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
    all_terms: &[Terms],
    mesh: &Mesh,
    world: u32,
) -> anyhow::Result<Reply> {
    let (world, per_node) = nodes(runs, world)?;
    let all = all_layouts(mesh, world)?;
    let of_gpu = |terms: &Terms, _before: &Answers<Answer>| {
        let asked = Asked::new(runs, world, per_node);
        let ask = |layout: &Layout, _before: &Answers<Option<Result<Found, String>>>| match asked
            .ask(terms, layout)
        {
            Ok(found) => Some(Ok(found)),
            Err(Ended::Failed(error)) => Some(Err(error)),
            Err(Ended::Stopped) => None,
        };
        // After Ctrl-C each of the others ends at once.
        let found = each(&all, runs.at_once.wanted(), ask, |_found| false);
        Answer {
            terms: terms.clone(),
            world,
            names: mesh.names().map(str::to_owned).collect(),
            found,
            layouts: all.clone(),
            is_stopped: is_interrupted(),
        }
    };
    let answers = each(all_terms, runs.at_once.wanted(), of_gpu, |answer| answer.is_stopped);
    let mut out = String::new();
    for answer in &answers {
        text::write(&mut out, answer, runs.options)?;
    }
    let about = fields(json!({
        "question": "layouts",
        "others": answers.iter().skip(1).map(Answer::json).collect::<Vec<_>>(),
    }));
    let first = answers.first().map(Answer::json).unwrap_or_default();
    let is_found = answers.iter().all(|answer| answer.best().is_some());
    let stopped = answers.iter().any(|answer| answer.is_stopped).then_some(Ended::Stopped);
    let has_failed = answers.iter().flat_map(|answer| &answer.found).flatten().any(Result::is_err);
    let ended = stopped.or_else(|| (has_failed && !is_found).then(|| Ended::Failed(String::new())));
    Ok(Reply {
        text: out,
        json: whole(runs, [first, about]),
        status: status(ended.as_ref(), is_found),
        page: None,
    })
}

fn numbers(ranks: &[u32]) -> String {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    ranks.join(" and ")
}

impl Answer {
    /// Layouts that ran to an answer.
    fn answered(&self) -> impl Iterator<Item = (&Layout, &Found)> {
        let rows = self.layouts.iter().zip(&self.found);
        rows.filter_map(|(layout, found)| Some((layout, found.as_ref()?.as_ref().ok()?)))
    }

    /// The layout that fits with the least peak reserved of all ranks that ran; the first of several.
    fn best(&self) -> Option<(&Layout, &Found)> {
        self.answered().filter(|(_, found)| found.is_fitting).min_by_key(|(_, found)| found.peak_reserved())
    }

    fn json(&self) -> Map<String, Value> {
        let mut all = terms(&self.terms);
        let (_, stopped) = ended(self.is_stopped.then_some(&(0, Ended::Stopped)));
        all.extend(fields(json!({
            "ranks": self.world,
            "mesh": self.names,
            "best": self.best().map(|(layout, _)| sizes(layout)),
            "layouts": self.layouts.iter().zip(&self.found).map(|(layout, found)| row(layout, found.as_ref())).collect::<Vec<_>>(),
            "error": stopped,
        })));
        all
    }
}

pub(super) fn sizes(layout: &Layout) -> Value {
    let sizes: Map<String, Value> =
        layout.sizes().map(|(name, size)| (name.to_owned(), json!(size))).collect();
    Value::Object(sizes)
}

fn row(layout: &Layout, found: Option<&Result<Found, String>>) -> Value {
    let answered = found.and_then(|found| found.as_ref().ok());
    let ranks = |probes: &[Probe]| probes.iter().map(of_rank).collect::<Vec<_>>();
    json!({
        "layout": sizes(layout),
        "fits": answered.map(|found| found.is_fitting),
        "peak_allocated": answered.map(|found| found.most(|probe| probe.peak_allocated).get()),
        "peak_reserved": answered.map(|found| found.peak_reserved().get()),
        "exact": answered.map(Found::is_exact),
        "ranks": answered.map(|found| ranks(&found.ranks)),
        "under_limit": answered.and_then(|found| found.under_limit.as_deref()).map(ranks),
        "error": found.and_then(|found| found.as_ref().err()),
    })
}

fn of_rank(rank: &Probe) -> Value {
    let mut all = fields(probe(rank));
    all.remove("value");
    all.insert("rank".to_owned(), json!(rank.value));
    all.insert("holders".to_owned(), json!(held(&rank.holders)));
    Value::Object(all)
}
