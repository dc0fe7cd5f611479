//! The largest value for each value of another option, or under each of several settings.

use std::fmt::Write as _;

use blockyard_answers::{FitBy, FitMapAnswer, FitMapOnGpu, FitMapRow, FitResult};
use blockyard_fit::{ConditionsSearch, Contradiction, Layout, Mesh, Probe, guess, search_guessed};
use blockyard_report::{FitCurve, FitReport};
use blockyard_rules::conf_text;

use super::answer::environment;
use super::curves::curve;
use super::json::{conditions, contradiction, ended, first_and_others, probe, sizes, values, varied, whole};
use super::layouts::{LayoutRunner, all_layouts, nodes, write_ranks};
use super::options::FitOptions;
use super::run_queue::{AnswerQueue, each};
use super::runs::{RunConditions, RunEnd, Runs};
use super::vary::{Set, Vary};
use super::{Reply, status, text};

/// The longest bar of the map.
const MAX_BAR_CHARS: u64 = 32;

/// The conditions of a search.
#[derive(Clone, Debug)]
enum ColumnConditions {
    Value(Set),
    Settings(String),
    Layout(Layout),
}

impl ColumnConditions {
    fn conditions(&self, conditions: &RunConditions) -> RunConditions {
        match self {
            Self::Value(set) => conditions.with(set.clone()),
            Self::Settings(conf) => conditions.under(conf),
            // The runs of the layout's ranks get the sizes of the layout.
            Self::Layout(_) => conditions.clone(),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Value(set) => set.value.to_string(),
            Self::Settings(conf) => conf_text(conf).to_owned(),
            Self::Layout(layout) => layout.to_string(),
        }
    }

    fn layout(&self) -> Option<&Layout> {
        match self {
            Self::Layout(layout) => Some(layout),
            Self::Value(_) | Self::Settings(_) => None,
        }
    }

    fn size(&self) -> Option<u64> {
        match self {
            Self::Value(set) => Some(set.value),
            Self::Settings(_) | Self::Layout(_) => None,
        }
    }
}

/// The columns of one GPU.
struct GpuColumns {
    conditions: RunConditions,
    columns: Vec<ConditionsSearch<ColumnConditions, RunEnd>>,
}

/// The largest value for each value of another option.
pub(super) fn by_values(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    vary: &Vary,
    other: &Vary,
) -> anyhow::Result<Reply> {
    let others: Vec<ColumnConditions> =
        other.values.iter().map(|value| ColumnConditions::Value(other.set(value))).collect();
    let json = if other.is_variable { FitBy::Variable(values(other)) } else { FitBy::Option(values(other)) };
    let question = MapQuestion { name: &other.name, json, ranks: None };
    ask(runs, conditions, vary, &others, &question)
}

/// The largest value under the run's own settings and under each of the given settings.
pub(super) fn by_settings(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    vary: &Vary,
    settings: &[String],
) -> anyhow::Result<Reply> {
    let own = runs.options.conf.clone().or_else(environment).unwrap_or_default();
    let mut all = vec![own];
    for conf in settings {
        if !all.contains(conf) {
            all.push(conf.clone());
        }
    }
    let others: Vec<ColumnConditions> = all.iter().cloned().map(ColumnConditions::Settings).collect();
    let json = FitBy::Settings { name: "conf".to_owned(), list: all };
    ask(runs, conditions, vary, &others, &MapQuestion { name: "settings", json, ranks: None })
}

/// The largest value for each layout of `world` ranks.
pub(super) fn by_layouts(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    vary: &Vary,
    mesh: &Mesh,
    world: u32,
) -> anyhow::Result<Reply> {
    let (world, per_node) = nodes(runs, world)?;
    let all = all_layouts(mesh, world)?;
    let list = all.iter().map(sizes).collect();
    let others: Vec<ColumnConditions> = all.into_iter().map(ColumnConditions::Layout).collect();
    let json = FitBy::Layouts { name: "mesh".to_owned(), list, ranks: world };
    let question = MapQuestion { name: "layout", json, ranks: Some((world, per_node)) };
    ask(runs, conditions, vary, &others, &question)
}

/// The question: the option, settings or layouts for which the largest value is searched.
struct MapQuestion<'a> {
    name: &'a str,
    json: FitBy,
    /// How many ranks a layout has, and how many of them a node has; `None` without layouts.
    ranks: Option<(u32, u32)>,
}

fn ask(
    runs: &Runs<'_>,
    all_conditions: &[RunConditions],
    vary: &Vary,
    others: &[ColumnConditions],
    question: &MapQuestion<'_>,
) -> anyhow::Result<Reply> {
    let of_gpu = |conditions: &RunConditions, _before: &AnswerQueue<GpuColumns>| {
        let runner = question.ranks.map(|(world, per_node)| LayoutRunner::new(runs, world, per_node));
        let probe = |other: &ColumnConditions, value: u64| match (other, &runner) {
            (ColumnConditions::Layout(layout), Some(runner)) => runner.probe(conditions, layout, vary, value),
            _ => runs.probe(&other.conditions(conditions), vary, value),
        };
        let (values, limit) = (&vary.values, conditions.expected());
        let search = |other: &ColumnConditions,
                      before: &AnswerQueue<ConditionsSearch<ColumnConditions, RunEnd>>| {
            let guess = before.read(|columns| {
                let before: Vec<(Option<u64>, &[Probe])> = columns
                    .iter()
                    .map(|column| (column.conditions.size(), column.found.probes.as_slice()))
                    .filter(|(_, probes)| !probes.is_empty())
                    .collect();
                guess(values, limit, &before, other.size())
            });
            let found = search_guessed(values, limit, guess, |value| probe(other, value));
            ConditionsSearch { conditions: other.clone(), found }
        };
        GpuColumns {
            conditions: conditions.clone(),
            columns: each(others, runs.queue.most(), search, is_last),
        }
    };
    let is_ended = |answer: &GpuColumns| answer.columns.iter().any(is_last);
    let answers = each(all_conditions, runs.queue.most(), of_gpu, is_ended);
    let mut text = String::new();
    for answer in &answers {
        answer.write(&mut text, vary, question.name, runs.options)?;
    }
    let rows = |answer: &GpuColumns| FitMapOnGpu {
        conditions: conditions(&answer.conditions),
        rows: answer.columns.iter().map(|column| row(vary, column)).collect(),
    };
    let (first, others) = first_and_others(&answers, rows)?;
    let json = FitMapAnswer { vary: varied(vary), by: question.json.clone(), first, others };
    let is_found = answers
        .iter()
        .all(|answer| answer.columns.iter().any(|column| column.found.largest(&vary.values).is_some()));
    // A layout that the program does not take has no answer; other layouts do.
    let ended = answers.iter().find_map(|answer| answer.ended(!is_found || question.ranks.is_none()));
    let page = FitReport {
        varied: vary.name.clone(),
        headline: format!("the largest {} of {}, by {}", vary.name, vary.values, question.name),
        curves: answers.iter().flat_map(|answer| answer.curves(vary, question, answers.len() > 1)).collect(),
        ..FitReport::default()
    };
    let status = status(ended, is_found);
    Ok(Reply { text, json: whole(runs, FitResult::Map(Box::new(json))), status, page: Some(page) })
}

/// Whether no further search begins after this column.
fn is_last(column: &ConditionsSearch<ColumnConditions, RunEnd>) -> bool {
    match &column.found.failure {
        Some((_, RunEnd::Stopped)) => true,
        // Another layout may be one that the program takes.
        Some((_, RunEnd::Failed(_))) => !matches!(column.conditions, ColumnConditions::Layout(_)),
        None => false,
    }
}

/// The run of the largest value, and the run of the next value, which does not fit; if no value fits, the run
/// of the lowest value.
fn proofs<'a>(
    vary: &Vary,
    column: &'a ConditionsSearch<ColumnConditions, RunEnd>,
) -> (Option<&'a Probe>, Option<&'a Probe>) {
    let of = |value: u64| column.found.probes.iter().find(|probe| probe.value == value);
    let best = column.found.largest(&vary.values).and_then(of);
    let next = match best {
        Some(best) => vary.values.above(best.value).and_then(of),
        None => of(vary.values.low()).filter(|probe| !probe.fits),
    };
    (best, next)
}

fn row(vary: &Vary, column: &ConditionsSearch<ColumnConditions, RunEnd>) -> FitMapRow {
    let (best, next) = proofs(vary, column);
    let (failed_at, error) = ended(column.found.failure.as_ref());
    let mut row = FitMapRow {
        largest: best.map(|best| best.value),
        next: next.map(probe),
        exact: column.found.failure.is_none() && best.into_iter().chain(next).all(|probe| probe.is_exact),
        probes: column.found.probes.iter().map(probe).collect(),
        contradictions: column.found.contradictions().iter().map(contradiction).collect(),
        failed_at,
        error,
        ..FitMapRow::default()
    };
    match &column.conditions {
        ColumnConditions::Value(set) => row.value = Some(set.value),
        ColumnConditions::Settings(conf) => row.conf = Some(conf.clone()),
        ColumnConditions::Layout(layout) => row.layout = Some(sizes(layout)),
    }
    row
}

impl GpuColumns {
    /// Why a search ended without an answer: Ctrl-C, or else a run that failed, unless failures do not count.
    fn ended(&self, counts_failures: bool) -> Option<&RunEnd> {
        let all =
            || self.columns.iter().filter_map(|column| column.found.failure.as_ref()).map(|(_, ended)| ended);
        let stopped = all().find(|ended| matches!(ended, RunEnd::Stopped));
        if counts_failures { stopped.or_else(|| all().next()) } else { stopped }
    }

    fn write(&self, text: &mut String, vary: &Vary, name: &str, options: &FitOptions) -> std::fmt::Result {
        let limit = text::limit(&self.conditions);
        writeln!(text, "the largest {} of {} that fits {limit}, by {name}:", vary.name, vary.values)?;
        let best = self.best_layout(vary);
        let names: Vec<String> = self.columns.iter().map(|column| column.conditions.name()).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0).max(name.len());
        let value = vary.name.len().max(6);
        writeln!(
            text,
            "  {name:>width$}  {:>value$}  {:>14}  {:>14}",
            vary.name, "peak allocated", "peak reserved"
        )?;
        let all = || self.columns.iter().filter_map(|column| column.found.largest(&vary.values));
        let most = all().max().unwrap_or(1).max(1);
        let mut lines: Vec<(&ConditionsSearch<ColumnConditions, RunEnd>, &String)> =
            self.columns.iter().zip(&names).collect();
        if let Some((_, layout)) = &best {
            // Layouts have no order.
            lines.sort_by_key(|(column, _)| std::cmp::Reverse(column.found.largest(&vary.values)));
            writeln!(text, "  the largest of all has {layout}")?;
        }
        for (column, name) in lines {
            write_row(text, vary, column, (&format!("{name:>width$}"), value, most))?;
        }
        if options.quiet {
            return Ok(());
        }
        if best.is_some() {
            write_ranks(
                text,
                options.run_ranks.as_ref(),
                self.columns.iter().filter_map(|column| column.conditions.layout()),
            )?;
        }
        self.write_contradictions(text, vary)?;
        let best = self.columns.iter().filter_map(|column| proofs(vary, column).0);
        text::write_on_gpu(text, &self.conditions, best.max_by_key(|best| best.peak_reserved))?;
        let all = || self.columns.iter().map(|column| proofs(vary, column));
        let proofs: Vec<&Probe> = all().flat_map(|(best, next)| best.into_iter().chain(next)).collect();
        let is_exact = self.ended(false).is_none() && proofs.iter().all(|probe| probe.is_exact);
        text::write_proof(text, &proofs, is_exact)
    }

    /// A line for each search.
    fn curves(&self, vary: &Vary, question: &MapQuestion<'_>, has_gpus: bool) -> Vec<FitCurve> {
        let of = |column: &ConditionsSearch<ColumnConditions, RunEnd>| {
            let name = match &column.conditions {
                ColumnConditions::Value(set) => format!("{} {}", question.name, set.value),
                other => other.name(),
            };
            let name = if has_gpus { format!("{name}, {}", self.conditions.gpu.name) } else { name };
            curve(&name, &self.conditions, column.found.largest(&vary.values), &column.found.probes)
        };
        self.columns.iter().map(of).collect()
    }

    /// The layout with the largest value, the first of several, and the value.
    fn best_layout(&self, vary: &Vary) -> Option<(u64, &Layout)> {
        let of = |column: &ConditionsSearch<ColumnConditions, RunEnd>| column.found.largest(&vary.values);
        let layouts = self.columns.iter().rev();
        layouts
            .filter_map(|column| Some((of(column)?, column.conditions.layout()?)))
            .max_by_key(|(most, _)| *most)
    }

    /// Writes where memory does not grow with the value, or the largest value grows with the other option.
    fn write_contradictions(&self, text: &mut String, vary: &Vary) -> std::fmt::Result {
        for column in &self.columns {
            let found = column.found.contradictions();
            let fits = found.iter().filter(|found| matches!(found, Contradiction::Fits { .. })).count();
            let name = column.conditions.name();
            if fits > 0 {
                writeln!(
                    text,
                    "  {name}: memory does not grow with the value: one value does not fit and a larger value fits"
                )?;
            } else if !found.is_empty() {
                writeln!(
                    text,
                    "  {name}: a peak is lower than the peak of a smaller value: a value above the answer may fit"
                )?;
            }
        }
        let sized = || self.columns.iter().filter(|column| column.conditions.size().is_some());
        for (one, other) in sized().zip(sized().skip(1)) {
            let of = |column: &ConditionsSearch<ColumnConditions, RunEnd>| column.found.largest(&vary.values);
            if of(other) > of(one) && other.found.failure.is_none() {
                writeln!(
                    text,
                    "  {} takes less than {}: a larger {} fits",
                    other.conditions.name(),
                    one.conditions.name(),
                    vary.name
                )?;
            }
        }
        Ok(())
    }
}

/// The first line of an error, which says how the program ended, and the last line that names an exception;
/// warnings may follow such a line.
fn short(error: &str) -> String {
    let first = error.lines().next().unwrap_or_default();
    let more = || error.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
    match more().filter(|line| line.contains("Error: ")).last().or_else(|| more().last()) {
        Some(last) => format!("{first}: {last}"),
        None => first.to_owned(),
    }
}

/// A row of the table; `most` is the largest value of all rows.
fn write_row(
    text: &mut String,
    vary: &Vary,
    column: &ConditionsSearch<ColumnConditions, RunEnd>,
    (name, width, most): (&str, usize, u64),
) -> std::fmt::Result {
    if let Some((value, ended)) = &column.found.failure {
        let why = match ended {
            RunEnd::Stopped => "was stopped".to_owned(),
            RunEnd::Failed(error) if column.conditions.layout().is_some() => {
                format!("failed: {}", short(error))
            }
            RunEnd::Failed(error) => format!("failed: {error}"),
        };
        let low = column.found.largest_fitting().map(|probe| format!("{} fits", probe.value));
        let high = column.found.smallest_failing().map(|probe| format!("{} does not", probe.value));
        let known: Vec<String> = low.into_iter().chain(high).collect();
        let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        return writeln!(text, "  {name}  {:>width$}  the run with {} {value} {why}{known}", "?", vary.name);
    }
    let (best, next) = proofs(vary, column);
    let next = next.map(|next| format!("{} runs out{}", next.value, text::failed(next)));
    let Some(best) = best else {
        return writeln!(text, "  {name}  {:>width$}  {}", "none", next.unwrap_or_default());
    };
    let bar =
        "#".repeat(usize::try_from((best.value.saturating_mul(MAX_BAR_CHARS) / most).max(1)).unwrap_or(1));
    let next = next.unwrap_or_else(|| "the highest".to_owned());
    let (allocated, reserved) = (best.peak_allocated.to_string(), best.peak_reserved.to_string());
    writeln!(text, "  {name}  {:>width$}  {allocated:>14}  {reserved:>14}  {bar} {next}", best.value)
}
