//! The report for a person.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use blockyard_fit::{Contradiction, Growth, GrowthKind, Probe, memory_fraction};
use blockyard_record::{Bytes, grouped};

use super::answer::Answer;
use super::options::Vary;
use super::runs::{Ended, Runs};
use crate::dry_run::EXACT;

/// So many lines of the program, and so many assumptions, are shown; JSON has all.
const SHOWN: usize = 6;

/// The answer in a sentence.
pub(super) fn sentence(vary: &Vary, answer: &Answer) -> String {
    let (name, values) = (&vary.name, &vary.values);
    let limit = if answer.terms.limit.is_some() {
        format!("{} of {}", answer.limit, answer.terms.gpu.name)
    } else {
        format!("{} ({})", answer.terms.gpu.name, answer.limit)
    };
    if let Some((value, ended)) = &answer.found.ended {
        let why = match ended {
            Ended::Stopped => "was stopped".to_owned(),
            Ended::Failed(error) => format!("failed: {error}"),
        };
        let low = answer.found.largest_fitting().map(|probe| format!("{} fits", probe.value));
        let high = answer.found.smallest_failing().map(|probe| format!("{} does not", probe.value));
        let known: Vec<String> = low.into_iter().chain(high).collect();
        let known = if known.is_empty() { "nothing is known yet".to_owned() } else { known.join(", ") };
        return format!("no answer for {limit}: the run with {name} {value} {why}\n  until then: {known}");
    }
    match (answer.largest, &answer.next) {
        (Some(largest), Some(next)) => format!(
            "{name} {largest} is the largest of {values} that fits {limit}; {} runs out of memory{}",
            next.value,
            failed(next)
        ),
        (Some(largest), None) => {
            format!("{name} {largest}, the highest of {values}, fits {limit}")
        }
        (None, next) => format!(
            "no {name} of {values} fits {limit}: the lowest runs out of memory{}",
            next.as_ref().map(failed).unwrap_or_default()
        ),
    }
}

fn failed(probe: &Probe) -> String {
    let Some(failed) = &probe.failed else { return String::new() };
    let at = failed.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    let below = if failed.is_below { ", in a thread that this line waits for" } else { "" };
    let bytes = if failed.bytes == Bytes::ZERO {
        String::new()
    } else {
        format!(", which asks for {}", failed.bytes)
    };
    format!("{at}{below}{bytes}")
}

/// The report of one GPU.
pub(super) fn report(runs: &Runs<'_>, answer: &Answer) -> Result<String, fmt::Error> {
    let mut text = sentence(&runs.options.vary, answer) + "\n";
    table(&mut text, answer)?;
    contradictions(&mut text, &answer.contradictions)?;
    needs(&mut text, answer)?;
    grows(&mut text, answer)?;
    settings(&mut text, answer)?;
    advice(&mut text, answer)?;
    sure(&mut text, answer)?;
    Ok(text)
}

fn table(text: &mut String, answer: &Answer) -> fmt::Result {
    if answer.found.probes.is_empty() {
        return Ok(());
    }
    writeln!(text, "  {:>8}  {:>14}  {:>14}", "value", "peak allocated", "peak reserved")?;
    let mut probes: Vec<&Probe> = answer.found.probes.iter().collect();
    probes.sort_by_key(|probe| probe.value);
    for probe in probes {
        let verdict =
            if probe.is_fitting { "fits" } else { "runs out of memory; the peaks are those until then" };
        let (allocated, reserved) = (probe.peak_allocated.to_string(), probe.peak_reserved.to_string());
        writeln!(text, "  {:>8}  {allocated:>14}  {reserved:>14}  {verdict}", probe.value)?;
    }
    Ok(())
}

/// What contradicts that memory grows with the value: the first of each kind, and how many more there are.
fn contradictions(text: &mut String, all: &[Contradiction]) -> fmt::Result {
    let mut first: Vec<(Contradiction, usize)> = Vec::new();
    for found in all {
        let is_alike = |known: &Contradiction| std::mem::discriminant(known) == std::mem::discriminant(found);
        match first.iter_mut().find(|(known, _)| is_alike(known)) {
            Some((_, more)) => *more += 1,
            None => first.push((*found, 0)),
        }
    }
    for (found, more) in first {
        let more = if more == 0 { String::new() } else { format!(" ({more} more like this)") };
        let sentence = match found {
            Contradiction::Fits { value, larger } => format!(
                "memory does not grow with the value: {value} does not fit and {larger} does{more}; values that were not run may differ, too"
            ),
            Contradiction::Allocated { value, larger } => format!(
                "the peak allocated of {larger} is below that of {value}{more}: values that were not run may contradict the answer"
            ),
            Contradiction::Reserved { value, larger } => format!(
                "the peak reserved of {larger} is below that of {value}{more}: near the limit cached segments are released, and a value above the answer may still fit"
            ),
        };
        writeln!(text, "  {sentence}")?;
    }
    Ok(())
}

fn needs(text: &mut String, answer: &Answer) -> fmt::Result {
    let Some(needs) = &answer.needs else { return Ok(()) };
    let over = |bytes: Bytes| bytes.saturating_sub(answer.limit);
    write!(
        text,
        "  without a limit {} allocates {} and reserves {} at most: ",
        needs.value, needs.peak_allocated, needs.peak_reserved
    )?;
    if needs.peak_allocated > answer.limit {
        writeln!(
            text,
            "it needs {} to {} more, since cached segments may be released",
            over(needs.peak_allocated),
            over(needs.peak_reserved)
        )
    } else {
        writeln!(
            text,
            "what is allocated would fit; up to {} more are needed for segments that cannot be filled",
            over(needs.peak_reserved)
        )
    }
}

fn grows(text: &mut String, answer: &Answer) -> fmt::Result {
    if let Some(growth) = &answer.peak {
        writeln!(text, "  the peak allocated is {}", words(growth))?;
    }
    if let Some(best) = answer.best().filter(|_| !answer.sites.is_empty()) {
        writeln!(text, "  lines that hold the peak at {}:", best.value)?;
        for site in answer.sites.iter().take(SHOWN) {
            let rule = site.growth.as_ref().map_or_else(|| "by no rule that was found".to_owned(), words);
            writeln!(text, "    {:>10}  {}: {rule}", site.bytes.to_string(), site.what)?;
        }
    }
    Ok(())
}

fn words(growth: &Growth) -> String {
    let rule = match growth.kind {
        GrowthKind::Constant => "constant".to_owned(),
        GrowthKind::Linear => format!("linear, {} for each more", signed(growth.slope)),
        GrowthKind::Quadratic => format!(
            "quadratic, {} for each square and {} for each more",
            signed(growth.square),
            signed(growth.slope)
        ),
    };
    let values: Vec<String> = growth.values.iter().map(u64::to_string).collect();
    let off = if growth.is_exact {
        "exactly".to_owned()
    } else {
        format!("within {}", Bytes::new(growth.residual))
    };
    format!("{rule} ({off}, over {})", values.join(", "))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, and without its sign")]
fn signed(bytes: f64) -> String {
    let size = Bytes::new(bytes.abs().round() as u64);
    if bytes < -0.5 { format!("-{size}") } else { size.to_string() }
}

fn settings(text: &mut String, answer: &Answer) -> fmt::Result {
    for setting in &answer.settings {
        let verdict = if setting.is_fitting { "fits" } else { "runs out of memory too" };
        write!(text, "  with PYTORCH_CUDA_ALLOC_CONF={} {} {verdict}", setting.conf, setting.value)?;
        match setting.largest {
            Some(largest) => writeln!(text, "; the largest is {largest}")?,
            None => writeln!(text)?,
        }
    }
    Ok(())
}

/// What was not run: the bytes that each advice is about.
fn advice(text: &mut String, answer: &Answer) -> fmt::Result {
    let Some(best) = answer.best().filter(|_| answer.next.is_some()) else { return Ok(()) };
    let bytes =
        |start: &str| best.holders.iter().find(|held| held.what.starts_with(start)).map(|held| held.bytes);
    let about = [
        ("freed between", "activation checkpointing is about activations and temporaries"),
        ("optimizer states", "an optimizer with smaller states (8 bits, or on the host) is about its states"),
    ];
    let rows: Vec<String> = about
        .iter()
        .filter_map(|(start, advice)| Some(format!("{:>10}  {advice}", bytes(start)?.to_string())))
        .collect();
    if !rows.is_empty() {
        writeln!(text, "  not tried, with the bytes at {} that each is about:", best.value)?;
        for row in rows {
            writeln!(text, "    {row}")?;
        }
    }
    Ok(())
}

fn sure(text: &mut String, answer: &Answer) -> fmt::Result {
    if let Some(limit) = answer.terms.limit
        && let Some(fraction) = memory_fraction(limit, answer.terms.gpu.total_memory)
    {
        writeln!(
            text,
            "  the limit on the GPU itself: torch.cuda.set_per_process_memory_fraction({fraction:?})"
        )?;
    } else {
        writeln!(text, "  the driver's own context takes some hundred MB of a GPU, which are not counted")?;
    }
    if answer.best().is_some_and(|best| best.is_steady == Some(false)) {
        writeln!(text, "  the last two steps of the largest are not equal: more steps may take more")?;
    }
    let proofs: Vec<&Probe> = answer.best().into_iter().chain(&answer.next).collect();
    let remarks: BTreeSet<&String> = proofs.iter().flat_map(|probe| &probe.remarks).collect();
    for remark in remarks {
        writeln!(text, "  {remark}")?;
    }
    if answer.is_exact() {
        return writeln!(text, "{EXACT}");
    }
    let notes: BTreeSet<&String> = proofs.iter().flat_map(|probe| &probe.notes).collect();
    if !notes.is_empty() {
        writeln!(text, "  an estimate, because:")?;
        for note in notes.iter().take(SHOWN) {
            writeln!(text, "    {note}")?;
        }
        if notes.len() > SHOWN {
            writeln!(text, "    and {} more, in the JSON", grouped((notes.len() - SHOWN) as u64))?;
        }
    }
    Ok(())
}

/// Several GPUs: the largest value of each, and the smallest GPU for the highest.
pub(super) fn gpus(vary: &Vary, answers: &[Answer]) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let mut sorted: Vec<&Answer> = answers.iter().collect();
    sorted.sort_by_key(|answer| answer.limit);
    writeln!(text, "the largest {} of {} by GPU:", vary.name, vary.values)?;
    for answer in &sorted {
        let largest = match (answer.largest, answer.is_ended()) {
            (_, true) => "not known".to_owned(),
            (Some(largest), false) => largest.to_string(),
            (None, false) => "none".to_owned(),
        };
        writeln!(text, "  {:>8}  {} ({})", largest, answer.terms.gpu.name, answer.limit)?;
    }
    for value in [vary.values.low(), vary.values.high()] {
        if let Some(answer) = sorted.iter().find(|answer| answer.largest.is_some_and(|most| most >= value)) {
            writeln!(text, "  the smallest of them that fits {value}: {}", answer.terms.gpu.name)?;
        }
    }
    Ok(text)
}
