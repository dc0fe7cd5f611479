//! The largest value for each value of another option, under each of several settings, or for each layout.

use std::fmt::Write as _;

use blockyard_answers::{
    FitBy, FitContradictionKind, FitMapAnswer, FitMapOnGpu, FitMapRow, FitResult, FitRun, FitRunEnd,
};

use super::layouts::{LayoutRunner, RunRanks, all_layouts, nodes, sizes, write_ranks};
use super::run_queue::{AnswerQueue, each};
use super::runs::{RunConditions, Runs};
use super::text::{failed, known_text, limit, probe_of, write_on_gpu, write_proof};
use super::vary::{Set, Vary};
use super::{FitError, Question, all_settings, first_and_others};
use crate::{Layout, Mesh, Probe, SearchOutcome, guess, search_from};

/// The longest bar of the map.
const MAX_BAR_CHARS: u64 = 32;

/// The conditions of a search.
#[derive(Clone, Debug)]
enum ColumnConditions {
    Value(Set),
    Settings(String),
    Layout(Layout),
}

/// The search under one of the conditions.
struct Column<'a> {
    conditions: &'a ColumnConditions,
    found: SearchOutcome<FitRunEnd>,
}

/// The largest value for each value of another option.
pub(super) fn by_values(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    vary: &Vary,
    other: &Vary,
) -> Result<FitResult, FitError> {
    let columns: Vec<ColumnConditions> =
        other.values.iter().map(|value| ColumnConditions::Value(other.set(value))).collect();
    let values = other.values_answer();
    let by = if other.is_variable { FitBy::Variable(values) } else { FitBy::Option(values) };
    map(runs, conditions, vary, &columns, by, None)
}

/// The largest value under the run's own settings and under each of the given settings.
pub(super) fn by_settings(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    vary: &Vary,
    settings: &[String],
) -> Result<FitResult, FitError> {
    let list = all_settings(conditions.first().ok_or_else(FitError::no_gpu)?, settings);
    let columns: Vec<ColumnConditions> = list.iter().cloned().map(ColumnConditions::Settings).collect();
    map(runs, conditions, vary, &columns, FitBy::Settings { name: "conf".to_owned(), list }, None)
}

/// The largest value for each layout of `world` ranks.
pub(super) fn by_layouts(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    vary: &Vary,
    mesh: &Mesh,
    world: u32,
) -> Result<FitResult, FitError> {
    let per_node = nodes(runs.program, world)?;
    let all = all_layouts(mesh, world)?;
    let by = FitBy::Layouts { name: "mesh".to_owned(), list: all.iter().map(sizes).collect(), ranks: world };
    let columns: Vec<ColumnConditions> = all.into_iter().map(ColumnConditions::Layout).collect();
    map(runs, conditions, vary, &columns, by, Some((world, per_node)))
}

/// `ranks` says how many ranks a layout has, and how many of them a node has; `None` without layouts.
fn map(
    runs: &Runs<'_>,
    all_conditions: &[RunConditions],
    vary: &Vary,
    columns: &[ColumnConditions],
    by: FitBy,
    ranks: Option<(u32, u32)>,
) -> Result<FitResult, FitError> {
    let on_gpu = |conditions: &RunConditions, _before: &AnswerQueue<FitMapOnGpu>| {
        let runner = ranks.map(|(world, per_node)| LayoutRunner::new(runs, world, per_node));
        let probe = |column: &ColumnConditions, value: u64| match (column, &runner) {
            (ColumnConditions::Value(set), _) => runs.probe(&conditions.with(set.clone()), vary, value),
            (ColumnConditions::Settings(conf), _) => runs.probe(&conditions.under(conf), vary, value),
            // The runs of the layout's ranks get the sizes of the layout.
            (ColumnConditions::Layout(layout), Some(runner)) => runner.probe(conditions, layout, vary, value),
            (ColumnConditions::Layout(_), None) => runs.probe(conditions, vary, value),
        };
        let (values, limit) = (&vary.values, conditions.expected());
        let search = |column, before: &AnswerQueue<Column<'_>>| {
            let guess = before.read(|columns| {
                let before: Vec<(Option<u64>, &[Probe])> = columns
                    .iter()
                    .map(|column| (value_of(column.conditions), column.found.probes.as_slice()))
                    .filter(|(_, probes)| !probes.is_empty())
                    .collect();
                guess(values, limit, &before, value_of(column))
            });
            let found = search_from(values, limit, guess, |value| probe(column, value));
            Column { conditions: column, found }
        };
        let columns: Vec<&ColumnConditions> = columns.iter().collect();
        let columns = each(&columns, runs.queue.most(), |column, before| search(*column, before), is_last);
        let rows = columns.into_iter().map(|column| row(vary, column)).collect();
        FitMapOnGpu { conditions: conditions.terms.clone(), rows }
    };
    let is_ended = |answer: &FitMapOnGpu| error(answer, ranks.is_none()).is_some();
    let answers = each(all_conditions, runs.queue.most(), on_gpu, is_ended);
    let (first, others) = first_and_others(answers)?;
    Ok(FitResult::Map(Box::new(FitMapAnswer { vary: vary.answer(), by, first, others })))
}

/// The value of the other option.
fn value_of(conditions: &ColumnConditions) -> Option<u64> {
    match conditions {
        ColumnConditions::Value(set) => Some(set.value),
        ColumnConditions::Settings(_) | ColumnConditions::Layout(_) => None,
    }
}

/// Whether no further search begins after this column.
fn is_last(column: &Column<'_>) -> bool {
    match &column.found.failure {
        Some((_, FitRunEnd::Stopped)) => true,
        // Another layout may be one that the program takes.
        Some((_, FitRunEnd::Failed(_))) => !matches!(column.conditions, ColumnConditions::Layout(_)),
        None => false,
    }
}

fn row(vary: &Vary, column: Column<'_>) -> FitMapRow {
    let Column { conditions, found } = column;
    let (best, next) = found.proofs(&vary.values);
    let mut row = FitMapRow {
        largest: best.map(|best| best.value),
        next: next.map(FitRun::from),
        exact: found.failure.is_none() && best.into_iter().chain(next).all(|probe| probe.run.exact),
        probes: found.probes.iter().map(FitRun::from).collect(),
        contradictions: found.contradictions(),
        ..FitMapRow::default()
    };
    match conditions {
        ColumnConditions::Value(set) => row.value = Some(set.value),
        ColumnConditions::Settings(conf) => row.conf = Some(conf.clone()),
        ColumnConditions::Layout(layout) => row.layout = Some(sizes(layout)),
    }
    (row.failed_at, row.error) = found.failure.unzip();
    row
}

/// Why a search on a GPU ended without an answer: Ctrl-C, or else a run that failed, unless failures do not
/// count.
pub(super) fn error(on_gpu: &FitMapOnGpu, counts_failures: bool) -> Option<&FitRunEnd> {
    let all = || on_gpu.rows.iter().filter_map(|row| row.error.as_ref());
    let stopped = all().find(|end| **end == FitRunEnd::Stopped);
    if counts_failures { stopped.or_else(|| all().next()) } else { stopped }
}

/// The table of a map for people.
pub(super) struct MapText<'a> {
    pub(super) question: &'a Question,
    pub(super) vary: &'a Vary,
    pub(super) on_gpu: &'a FitMapOnGpu,
}

impl MapText<'_> {
    pub(super) fn write(
        &self,
        text: &mut String,
        run_ranks: Option<&RunRanks>,
        is_quiet: bool,
    ) -> std::fmt::Result {
        let (vary, name, rows) = (self.vary, self.question.by_name(), &self.on_gpu.rows);
        let terms = &self.on_gpu.conditions;
        writeln!(
            text,
            "the largest {} of {} that fits {}, by {name}:",
            vary.name,
            vary.values,
            limit(terms)
        )?;
        let names: Vec<String> = rows.iter().map(|row| self.question.row_name(row)).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0).max(name.len());
        let value = vary.name.len().max(6);
        writeln!(
            text,
            "  {name:>width$}  {:>value$}  {:>14}  {:>14}",
            vary.name, "peak allocated", "peak reserved"
        )?;
        let most = rows.iter().filter_map(|row| row.largest).max().unwrap_or(1).max(1);
        let mut lines: Vec<(&FitMapRow, &String)> = rows.iter().zip(&names).collect();
        // The layout with the largest value, the first of several.
        let best_layout = lines.iter().rev().filter(|(row, _)| row.layout.is_some() && row.largest.is_some());
        let best_layout = best_layout.max_by_key(|(row, _)| row.largest).map(|(_, name)| *name);
        if let Some(layout) = best_layout {
            // Layouts have no order.
            lines.sort_by_key(|(row, _)| std::cmp::Reverse(row.largest));
            writeln!(text, "  the largest of all has {layout}")?;
        }
        for (row, name) in lines {
            write_row(text, vary, row, (&format!("{name:>width$}"), value, most))?;
        }
        if is_quiet {
            return Ok(());
        }
        if best_layout.is_some() {
            write_ranks(text, run_ranks, rows.iter().filter_map(|row| row.layout.as_ref()))?;
        }
        self.write_contradictions(text)?;
        let best = rows.iter().filter_map(|row| probe_of(&row.probes, row.largest));
        let best = best.clone().max_by_key(|best| best.run.peak_reserved);
        write_on_gpu(text, terms, best.map(|best| &best.run))?;
        let proofs =
            rows.iter().flat_map(|row| probe_of(&row.probes, row.largest).into_iter().chain(&row.next));
        let proofs: Vec<_> = proofs.map(|probe| &probe.run).collect();
        let is_exact = error(self.on_gpu, false).is_none() && proofs.iter().all(|run| run.exact);
        write_proof(text, &proofs, is_exact)
    }

    /// Writes where memory does not grow with the value, or the largest value grows with the other option.
    fn write_contradictions(&self, text: &mut String) -> std::fmt::Result {
        let rows = &self.on_gpu.rows;
        for row in rows {
            let name = self.question.row_name(row);
            if row.contradictions.iter().any(|found| found.kind == FitContradictionKind::Fits) {
                writeln!(
                    text,
                    "  {name}: memory does not grow with the value: one value does not fit and a larger value fits"
                )?;
            } else if !row.contradictions.is_empty() {
                writeln!(
                    text,
                    "  {name}: a peak is lower than the peak of a smaller value: a value above the answer may fit"
                )?;
            }
        }
        let sized = || rows.iter().filter_map(|row| Some((row.value?, row)));
        for ((value, row), (other, after)) in sized().zip(sized().skip(1)) {
            if after.largest > row.largest && after.error.is_none() {
                writeln!(text, "  {other} takes less than {value}: a larger {} fits", self.vary.name)?;
            }
        }
        Ok(())
    }
}

/// The end with the first line of its error, which says how the program ended, and the last line that names
/// an exception; warnings may follow such a line.
fn short(end: &FitRunEnd) -> FitRunEnd {
    let FitRunEnd::Failed(error) = end else { return end.clone() };
    let first = error.lines().next().unwrap_or_default();
    let more = || error.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
    match more().filter(|line| line.contains("Error: ")).last().or_else(|| more().last()) {
        Some(last) => FitRunEnd::Failed(format!("{first}: {last}")),
        None => FitRunEnd::failed(first),
    }
}

/// A row of the table; `most` is the largest value of all rows.
fn write_row(
    text: &mut String,
    vary: &Vary,
    row: &FitMapRow,
    (name, width, most): (&str, usize, u64),
) -> std::fmt::Result {
    if let (Some(value), Some(error)) = (row.failed_at, &row.error) {
        let why = if row.layout.is_some() { short(error) } else { error.clone() }.why_text();
        let known = known_text(&row.probes);
        let known = if known.is_empty() { String::new() } else { format!(" ({known})") };
        return writeln!(text, "  {name}  {:>width$}  the run with {} {value} {why}{known}", "?", vary.name);
    }
    let next = row.next.as_ref().map(|next| format!("{} runs out{}", next.value, failed(&next.run)));
    let Some(best) = probe_of(&row.probes, row.largest) else {
        return writeln!(text, "  {name}  {:>width$}  {}", "none", next.unwrap_or_default());
    };
    let bar =
        "#".repeat(usize::try_from((best.value.saturating_mul(MAX_BAR_CHARS) / most).max(1)).unwrap_or(1));
    let next = next.unwrap_or_else(|| "the highest".to_owned());
    let (allocated, reserved) = (best.run.peak_allocated, best.run.peak_reserved);
    writeln!(text, "  {name}  {:>width$}  {allocated:>14}  {reserved:>14}  {bar} {next}", best.value)
}
