//! The largest value for each value of another option, or under each of several settings.

use std::fmt::Write as _;

use blockyard_fit::{Column, Contradiction, Probe, map};
use serde_json::{Map, Value, json};

use super::answer::environment;
use super::json::{contradiction, ended, fields, probe, terms, varied, whole};
use super::runs::{Ended, Runs, Terms};
use super::vary::{Set, Vary};
use super::{Reply, each, status, text};

/// The longest bar of the map.
const WIDTH: u64 = 32;

/// What a search is under.
#[derive(Clone, Debug)]
enum Other {
    Value(Set),
    Settings(String),
}

impl Other {
    fn terms(&self, terms: &Terms) -> Terms {
        match self {
            Self::Value(set) => terms.with(set.clone()),
            Self::Settings(conf) => terms.under(conf),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Value(set) => set.value.to_string(),
            Self::Settings(conf) if conf.is_empty() => "no settings".to_owned(),
            Self::Settings(conf) => conf.clone(),
        }
    }

    fn size(&self) -> Option<u64> {
        match self {
            Self::Value(set) => Some(set.value),
            Self::Settings(_) => None,
        }
    }
}

/// The columns of one GPU.
struct ByOther {
    terms: Terms,
    columns: Vec<Column<Other, Ended>>,
}

/// The largest value for each of another option.
pub(super) fn by_values(
    runs: &Runs<'_>,
    terms: &[Terms],
    vary: &Vary,
    other: &Vary,
) -> anyhow::Result<Reply> {
    let others: Vec<Other> = other.values.iter().map(|value| Other::Value(other.set(value))).collect();
    ask(runs, terms, vary, &others, &other.name, &varied(other))
}

/// The largest value under the own settings and under each of these.
pub(super) fn by_settings(
    runs: &Runs<'_>,
    terms: &[Terms],
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
    let others: Vec<Other> = all.iter().cloned().map(Other::Settings).collect();
    ask(runs, terms, vary, &others, "settings", &json!({"name": "conf", "kind": "settings", "list": all}))
}

fn ask(
    runs: &Runs<'_>,
    all_terms: &[Terms],
    vary: &Vary,
    others: &[Other],
    name: &str,
    by: &Value,
) -> anyhow::Result<Reply> {
    let of_gpu = |terms: &Terms| {
        let probe = |other: &Other, value| runs.probe(&other.terms(terms), vary, value);
        let columns = map(&vary.values, terms.most(), others, Other::size, probe);
        ByOther { terms: terms.clone(), columns }
    };
    let answers = each(all_terms, of_gpu, |answer: &ByOther| answer.ended().is_some());
    let mut text = String::new();
    for answer in &answers {
        answer.write(&mut text, vary, name, runs.options.quiet)?;
    }
    let rows = |answer: &ByOther| {
        let mut all = terms(&answer.terms);
        let rows = answer.columns.iter().map(|column| Value::Object(row(vary, column)));
        all.insert("rows".to_owned(), rows.collect());
        all
    };
    let about = fields(json!({
        "question": "map",
        "vary": varied(vary),
        "by": by,
        "others": answers.iter().skip(1).map(rows).collect::<Vec<_>>(),
    }));
    let first = answers.first().map(rows).unwrap_or_default();
    let is_found = answers
        .iter()
        .all(|answer| answer.columns.iter().any(|column| column.found.largest(&vary.values).is_some()));
    let ended = answers.iter().find_map(ByOther::ended);
    Ok(Reply { text, json: whole(runs, [first, about]), status: status(ended, is_found) })
}

/// The run of the largest value, and that of the next one, which does not fit: of the lowest where none fits.
fn proofs<'a>(vary: &Vary, column: &'a Column<Other, Ended>) -> (Option<&'a Probe>, Option<&'a Probe>) {
    let of = |value: u64| column.found.probes.iter().find(|probe| probe.value == value);
    let best = column.found.largest(&vary.values).and_then(of);
    let next = match best {
        Some(best) => vary.values.above(best.value).and_then(of),
        None => of(vary.values.low()).filter(|probe| !probe.is_fitting),
    };
    (best, next)
}

fn row(vary: &Vary, column: &Column<Other, Ended>) -> Map<String, Value> {
    let (best, next) = proofs(vary, column);
    let (failed_at, error) = ended(column.found.ended.as_ref());
    let contradictions: Vec<Contradiction> = column.found.contradictions();
    let mut row = fields(json!({
        "largest": best.map(|best| best.value),
        "next": next.map(probe),
        "exact": column.found.ended.is_none() && best.into_iter().chain(next).all(|probe| probe.is_exact),
        "probes": column.found.probes.iter().map(probe).collect::<Vec<_>>(),
        "contradictions": contradictions.iter().map(contradiction).collect::<Vec<_>>(),
        "failed_at": failed_at,
        "error": error,
    }));
    let (name, value) = match &column.other {
        Other::Value(set) => ("value", json!(set.value)),
        Other::Settings(conf) => ("conf", json!(conf)),
    };
    row.insert(name.to_owned(), value);
    row
}

impl ByOther {
    fn ended(&self) -> Option<&Ended> {
        self.columns.iter().find_map(|column| column.found.ended.as_ref().map(|(_, ended)| ended))
    }

    fn write(&self, text: &mut String, vary: &Vary, name: &str, is_quiet: bool) -> std::fmt::Result {
        let limit = text::limit(&self.terms);
        writeln!(text, "the largest {} of {} that fits {limit}, by {name}:", vary.name, vary.values)?;
        let names: Vec<String> = self.columns.iter().map(|column| column.other.name()).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0).max(name.len());
        let value = vary.name.len().max(6);
        writeln!(
            text,
            "  {name:>width$}  {:>value$}  {:>14}  {:>14}",
            vary.name, "peak allocated", "peak reserved"
        )?;
        let all = || self.columns.iter().filter_map(|column| column.found.largest(&vary.values));
        let most = all().max().unwrap_or(1).max(1);
        for (column, name) in self.columns.iter().zip(&names) {
            line(text, vary, column, (&format!("{name:>width$}"), value, most))?;
        }
        if is_quiet {
            return Ok(());
        }
        self.contradictions(text, vary)?;
        text::on_gpu(text, &self.terms)?;
        let all = || self.columns.iter().map(|column| proofs(vary, column));
        let proofs: Vec<&Probe> = all().flat_map(|(best, next)| best.into_iter().chain(next)).collect();
        let is_exact = self.ended().is_none() && proofs.iter().all(|probe| probe.is_exact);
        text::proved(text, &proofs, is_exact)
    }

    /// Where memory does not grow with the value, or the largest value grows with the other.
    fn contradictions(&self, text: &mut String, vary: &Vary) -> std::fmt::Result {
        for column in &self.columns {
            let found = column.found.contradictions();
            let fits = found.iter().filter(|found| matches!(found, Contradiction::Fits { .. })).count();
            let name = column.other.name();
            if fits > 0 {
                writeln!(
                    text,
                    "  {name}: memory does not grow with the value: one that was run does not fit and a larger one does"
                )?;
            } else if !found.is_empty() {
                writeln!(
                    text,
                    "  {name}: a peak is below that of a smaller value: a value above the answer may still fit"
                )?;
            }
        }
        let sized = || self.columns.iter().filter(|column| column.other.size().is_some());
        for (one, other) in sized().zip(sized().skip(1)) {
            let of = |column: &Column<Other, Ended>| column.found.largest(&vary.values);
            if of(other) > of(one) && other.found.ended.is_none() {
                writeln!(
                    text,
                    "  {} takes less than {}: a larger {} fits",
                    other.other.name(),
                    one.other.name(),
                    vary.name
                )?;
            }
        }
        Ok(())
    }
}

/// A row of the table; `most` is the largest value of all rows.
fn line(
    text: &mut String,
    vary: &Vary,
    column: &Column<Other, Ended>,
    (name, width, most): (&str, usize, u64),
) -> std::fmt::Result {
    if let Some((value, ended)) = &column.found.ended {
        let why = match ended {
            Ended::Stopped => "was stopped".to_owned(),
            Ended::Failed(error) => format!("failed: {error}"),
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
    let bar = "#".repeat(usize::try_from((best.value.saturating_mul(WIDTH) / most).max(1)).unwrap_or(1));
    let next = next.unwrap_or_else(|| "the highest".to_owned());
    let (allocated, reserved) = (best.peak_allocated.to_string(), best.peak_reserved.to_string());
    writeln!(text, "  {name}  {:>width$}  {allocated:>14}  {reserved:>14}  {bar} {next}", best.value)
}
