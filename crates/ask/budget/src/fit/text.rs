//! The answers of `fit` for a person.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use blockyard_answers::{
    FitConditions, FitContradiction, FitContradictionKind, FitGrowth, FitGrowthKind, FitLargestOnGpu,
    FitPeaks, FitResult, FitRun,
};
use blockyard_dry_run::{EXACT, NonPytorchMemory};
use blockyard_gpus::left_for_pytorch_text;
use blockyard_record::{Bytes, grouped};

use super::map::MapText;
use super::runs::{counts_non_pytorch, expected, left};
use super::vary::Vary;
use super::{Question, RunRanks, layouts, on_gpus, settings};
use crate::growth::rounded;
use crate::safe_text;

/// The most lines of the program, and the most assumptions, that are shown; JSON has all.
const SHOWN_ROWS: usize = 6;

/// The answer to a question for people. `run_ranks` are the ranks that should run of each layout.
pub fn text(question: &Question, result: &FitResult, run_ranks: Option<&RunRanks>, is_quiet: bool) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = write(&mut text, question, result, run_ranks, is_quiet);
    text
}

fn write(
    text: &mut String,
    question: &Question,
    result: &FitResult,
    run_ranks: Option<&RunRanks>,
    is_quiet: bool,
) -> fmt::Result {
    match (result, question.vary()) {
        (FitResult::Largest(found), Some(vary)) => {
            let all: Vec<&FitLargestOnGpu> = on_gpus(&found.first, &found.others).collect();
            for answer in &all {
                writeln!(text, "{}", largest_sentence(vary, answer))?;
                if !is_quiet {
                    write_report(text, &vary.name, answer)?;
                }
            }
            if all.len() > 1 { write_gpus(text, vary, all) } else { Ok(()) }
        }
        (FitResult::Map(found), Some(vary)) => on_gpus(&found.first, &found.others)
            .try_for_each(|on_gpu| MapText { question, vary, on_gpu }.write(text, run_ranks, is_quiet)),
        (FitResult::Settings(found), _) => on_gpus(&found.first, &found.others)
            .try_for_each(|answer| settings::write(text, answer, is_quiet)),
        (FitResult::Layouts(found), _) => on_gpus(&found.first, &found.others)
            .try_for_each(|answer| layouts::write(text, answer, run_ranks, is_quiet)),
        (FitResult::Largest(_) | FitResult::Map(_), None) => Ok(()),
    }
}

/// The probe with a value.
pub(super) fn probe_of(probes: &[FitRun], value: Option<u64>) -> Option<&FitRun> {
    probes.iter().find(|probe| Some(probe.value) == value)
}

/// The largest value that fits and the smallest that does not, as far as they are known.
pub(super) fn known_text(probes: &[FitRun]) -> String {
    let values =
        |fits: bool| probes.iter().filter(move |probe| probe.run.fits == fits).map(|probe| probe.value);
    let low = values(true).max().map(|value| format!("{value} fits"));
    let high = values(false).min().map(|value| format!("{value} does not"));
    low.into_iter().chain(high).collect::<Vec<_>>().join(", ")
}

/// The probe of the largest value.
fn best(answer: &FitLargestOnGpu) -> Option<&FitRun> {
    probe_of(&answer.probes, answer.largest)
}

/// The most bytes that the run with the largest value may reserve; if no value fits, the run with the lowest
/// value.
fn limit_of(answer: &FitLargestOnGpu) -> Bytes {
    let probe = best(answer).or(answer.next.as_ref()).or(answer.probes.last());
    probe.map_or_else(|| expected(&answer.conditions), |probe| left(&answer.conditions, &probe.run))
}

/// The largest value that fits a GPU, in a sentence without a full stop.
pub fn largest_sentence(vary: &Vary, answer: &FitLargestOnGpu) -> String {
    let (name, values) = (&vary.name, &vary.values);
    let limit = limit(&answer.conditions);
    if let (Some(value), Some(error)) = (answer.failed_at, &answer.error) {
        let (why, known) = (error.why_text(), known_text(&answer.probes));
        let known = if known.is_empty() { "nothing is known yet" } else { &known };
        return format!("no answer for {limit}: the run with {name} {value} {why}\n  until then: {known}");
    }
    match (answer.largest, &answer.next) {
        (Some(largest), Some(next)) => format!(
            "{name} {largest} is the largest of {values} that fits {limit}; {} runs out of memory{}",
            next.value,
            failed(&next.run)
        ),
        (Some(largest), None) => {
            format!("{name} {largest}, the highest of {values}, fits {limit}")
        }
        (None, next) => format!(
            "no {name} of {values} fits {limit}: the lowest runs out of memory{}",
            next.as_ref().map(|next| failed(&next.run)).unwrap_or_default()
        ),
    }
}

/// The limit with its GPU in words, or the GPU alone.
pub(super) fn limit(terms: &FitConditions) -> String {
    let (most, gpu) = (terms.limit, &terms.gpu.name);
    if counts_non_pytorch(terms) {
        format!("{gpu} ({most}, less the non-PyTorch memory)")
    } else {
        format!("{most} of {gpu}")
    }
}

/// The request at which a run ran out of memory, in words.
pub(super) fn failed(run: &FitPeaks) -> String {
    let Some(failed) = &run.failed else { return String::new() };
    let at = failed.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    let below = if failed.is_of_other_thread { ", in a thread that this line waits for" } else { "" };
    let bytes = Some(failed.bytes).filter(|bytes| *bytes > Bytes::ZERO);
    let bytes = bytes.map(|bytes| format!(", which asks for {bytes}")).unwrap_or_default();
    format!("{at}{below}{bytes}")
}

/// Writes the report of one GPU, after the sentence.
fn write_report(text: &mut String, name: &str, answer: &FitLargestOnGpu) -> fmt::Result {
    write_safe(text, name, answer)?;
    write_table(text, &answer.probes)?;
    write_contradictions(text, &answer.contradictions)?;
    write_needs(text, answer)?;
    write_growth(text, answer)?;
    write_settings(text, answer)?;
    write_advice(text, answer)?;
    write_certainty(text, answer)
}

fn write_safe(text: &mut String, name: &str, answer: &FitLargestOnGpu) -> fmt::Result {
    if answer.largest.is_none() {
        return Ok(());
    }
    let safe = probe_of(&answer.probes, answer.safe);
    let safe = safe.map(|probe| (probe.value, probe.run.peak_reserved));
    writeln!(text, "  {}", safe_text(name, safe, limit_of(answer), answer.conditions.limit))
}

fn write_table(text: &mut String, probes: &[FitRun]) -> fmt::Result {
    if probes.is_empty() {
        return Ok(());
    }
    writeln!(text, "  {:>8}  {:>14}  {:>14}", "value", "peak allocated", "peak reserved")?;
    let mut probes: Vec<&FitRun> = probes.iter().collect();
    probes.sort_by_key(|probe| probe.value);
    for FitRun { value, run } in probes {
        let result = if run.fits { "fits" } else { "runs out of memory; the peaks are those until then" };
        let (allocated, reserved) = (run.peak_allocated, run.peak_reserved);
        writeln!(text, "  {value:>8}  {allocated:>14}  {reserved:>14}  {result}")?;
    }
    Ok(())
}

/// Writes the runs that contradict the growth of memory with the value: the first of each kind, and the
/// number of the others.
fn write_contradictions(text: &mut String, all: &[FitContradiction]) -> fmt::Result {
    let mut first: Vec<(FitContradiction, usize)> = Vec::new();
    for found in all {
        match first.iter_mut().find(|(known, _)| known.kind == found.kind) {
            Some((_, more)) => *more += 1,
            None => first.push((*found, 0)),
        }
    }
    for (FitContradiction { kind, value, larger }, more) in first {
        let more = if more == 0 { String::new() } else { format!(" ({more} more like this)") };
        let sentence = match kind {
            FitContradictionKind::Fits => format!(
                "memory does not grow with the value: {value} does not fit and {larger} fits{more}; values \
                 that did not run may differ, too"
            ),
            FitContradictionKind::Allocated => format!(
                "the peak allocated of {larger} is lower than the peak of {value}{more}: values that did \
                 not run may contradict the answer"
            ),
            FitContradictionKind::Reserved => format!(
                "the peak reserved of {larger} is lower than the peak of {value}{more}: near the limit \
                 cached segments are released, and a value above the answer may fit"
            ),
        };
        writeln!(text, "  {sentence}")?;
    }
    Ok(())
}

fn write_needs(text: &mut String, answer: &FitLargestOnGpu) -> fmt::Result {
    let Some(FitRun { value, run }) = &answer.needs else { return Ok(()) };
    let limit = limit_of(answer);
    let over = |bytes: Bytes| bytes.saturating_sub(limit);
    write!(
        text,
        "  without a limit {value} allocates {} and reserves {} at most: ",
        run.peak_allocated, run.peak_reserved
    )?;
    if run.peak_allocated > limit {
        writeln!(
            text,
            "{} to {} more are needed, since cached segments may be released",
            over(run.peak_allocated),
            over(run.peak_reserved)
        )
    } else {
        writeln!(
            text,
            "the allocated bytes would fit; up to {} more are needed for segments that are not full",
            over(run.peak_reserved)
        )
    }
}

fn write_growth(text: &mut String, answer: &FitLargestOnGpu) -> fmt::Result {
    if let Some(growth) = &answer.growth {
        writeln!(text, "  the peak allocated is {}", growth_text(growth))?;
    }
    if let Some(largest) = answer.largest.filter(|_| !answer.sites.is_empty()) {
        writeln!(text, "  lines that hold the peak at {largest}:")?;
        for site in answer.sites.iter().take(SHOWN_ROWS) {
            let rule = site.growth.as_ref().map_or_else(|| "no rule was found".to_owned(), growth_text);
            writeln!(text, "    {:>10}  {}: {rule}", site.bytes, site.what)?;
        }
    }
    Ok(())
}

fn growth_text(growth: &FitGrowth) -> String {
    let rule = match growth.kind {
        FitGrowthKind::Constant => "constant".to_owned(),
        FitGrowthKind::Linear => format!("linear, {} for each unit", slope_text(growth.slope)),
        FitGrowthKind::Quadratic => format!(
            "quadratic, {} for each squared unit and {} for each unit",
            slope_text(growth.square),
            slope_text(growth.slope)
        ),
    };
    let values: Vec<String> = growth.values.iter().map(u64::to_string).collect();
    let off = if growth.exact { "exactly".to_owned() } else { format!("within {}", growth.residual) };
    format!("{rule} ({off}, over {})", values.join(", "))
}

fn slope_text(bytes: f64) -> String {
    let size = Bytes::new(rounded(bytes.abs()));
    if bytes < -0.5 { format!("-{size}") } else { size.to_string() }
}

fn write_settings(text: &mut String, answer: &FitLargestOnGpu) -> fmt::Result {
    for setting in &answer.settings {
        let result = if setting.fits { "fits" } else { "runs out of memory too" };
        write!(text, "  with {}={} {} {result}", setting.variable, setting.conf, setting.value)?;
        match setting.largest {
            Some(largest) => writeln!(text, "; the largest is {largest}")?,
            None => writeln!(text)?,
        }
    }
    Ok(())
}

/// Writes the advice, which was not run: the bytes that each piece of advice is about, beside the bytes that
/// the next value lacks.
fn write_advice(text: &mut String, answer: &FitLargestOnGpu) -> fmt::Result {
    let (Some(largest), Some(advice), Some(_)) = (answer.largest, &answer.advice, &answer.next) else {
        return Ok(());
    };
    if advice.is_empty() {
        return Ok(());
    }
    write!(
        text,
        "  changes of the program, which were not tried, with the bytes of {largest} that each is about"
    )?;
    let limit = limit_of(answer);
    match answer.needs.as_ref().map(|needs| needs.run.peak_reserved.saturating_sub(limit)) {
        Some(lacking) if lacking > Bytes::ZERO => {
            writeln!(text, " (the next value lacks at most {lacking}):")?;
        }
        _ => writeln!(text, ":")?,
    }
    for row in advice {
        writeln!(text, "    {:>10}  {}", row.bytes, row.what)?;
    }
    Ok(())
}

fn write_certainty(text: &mut String, answer: &FitLargestOnGpu) -> fmt::Result {
    let best = best(answer).map(|best| &best.run);
    write_on_gpu(text, &answer.conditions, best)?;
    if best.is_some_and(|best| best.steady == Some(false)) {
        writeln!(
            text,
            "  the last two steps of the largest value are not equal: more steps may take more memory"
        )?;
    }
    let proofs: Vec<&FitPeaks> = best.into_iter().chain(answer.next.as_ref().map(|next| &next.run)).collect();
    write_proof(text, &proofs, answer.exact)
}

/// Writes how the limit is set on a GPU, and the non-PyTorch memory of the best run.
pub(super) fn write_on_gpu(text: &mut String, terms: &FitConditions, best: Option<&FitPeaks>) -> fmt::Result {
    let total = terms.gpu.total;
    if let Some(fraction) = terms.fraction {
        writeln!(
            text,
            "  the limit on the GPU itself: torch.cuda.set_per_process_memory_fraction({fraction:?})"
        )?;
    }
    let Some(best) = best else { return Ok(()) };
    let non_pytorch = NonPytorchMemory {
        parts: best.non_pytorch.iter().map(|held| (held.what.clone(), held.bytes)).collect(),
        unknown: best.unknown_non_pytorch.clone(),
    };
    let reserved = best.peak_reserved;
    for sentence in non_pytorch.sentences("on the GPU", reserved) {
        writeln!(text, "  {sentence}")?;
    }
    if counts_non_pytorch(terms) {
        writeln!(text, "  {}", left_for_pytorch_text(left(terms, best), total, &terms.gpu.name))?;
    }
    let all = reserved.saturating_add(non_pytorch.bytes());
    if all > total {
        let left = total.saturating_sub(non_pytorch.bytes());
        writeln!(
            text,
            "  the GPU has {} less: ask again with --limit {}",
            all.saturating_sub(total),
            left.get()
        )?;
    }
    Ok(())
}

/// Writes what the runs that prove an answer assumed.
pub(super) fn write_proof(text: &mut String, proofs: &[&FitPeaks], is_exact: bool) -> fmt::Result {
    let remarks: BTreeSet<&String> = proofs.iter().flat_map(|run| &run.remarks).collect();
    for remark in remarks {
        writeln!(text, "  {remark}")?;
    }
    if is_exact {
        return writeln!(text, "  {EXACT}");
    }
    let notes: BTreeSet<&String> = proofs.iter().flat_map(|run| &run.notes).collect();
    if !notes.is_empty() {
        writeln!(text, "  an estimate, because:")?;
        for note in notes.iter().take(SHOWN_ROWS) {
            writeln!(text, "    {note}")?;
        }
        if notes.len() > SHOWN_ROWS {
            writeln!(text, "    and {} more, in the JSON", grouped((notes.len() - SHOWN_ROWS) as u64))?;
        }
    }
    Ok(())
}

/// Writes the largest value of each of several GPUs, and the smallest GPU with the highest value.
fn write_gpus(text: &mut String, vary: &Vary, mut answers: Vec<&FitLargestOnGpu>) -> fmt::Result {
    answers.sort_by_key(|answer| limit_of(answer));
    writeln!(text, "the largest {} of {} by GPU:", vary.name, vary.values)?;
    for answer in &answers {
        let largest = match (answer.largest, &answer.error) {
            (_, Some(_)) => "not known".to_owned(),
            (Some(largest), None) => largest.to_string(),
            (None, None) => "none".to_owned(),
        };
        writeln!(text, "  {largest:>8}  {} ({})", answer.conditions.gpu.name, limit_of(answer))?;
    }
    for value in [vary.values.low(), vary.values.high()] {
        if let Some(answer) = answers.iter().find(|answer| answer.largest.is_some_and(|most| most >= value)) {
            writeln!(text, "  the smallest GPU that fits {value}: {}", answer.conditions.gpu.name)?;
        }
    }
    Ok(())
}
