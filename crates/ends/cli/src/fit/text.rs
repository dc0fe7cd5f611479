//! The report for a person.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use blockyard_dry_run::NonPytorchMemory;
use blockyard_fit::{Contradiction, Growth, GrowthKind, HolderBytes, Probe, memory_fraction};
use blockyard_gpus::non_pytorch_measured_text;
use blockyard_record::{Bytes, grouped};

use super::answer::LargestOnGpu;
use super::runs::{RunConditions, RunEnd};
use super::vary::Vary;
use crate::dry_run::{EXACT, write_non_pytorch};

/// The most lines of the program, and the most assumptions, that are shown; JSON has all.
const SHOWN_ROWS: usize = 6;

/// The answer in a sentence.
pub(super) fn sentence(vary: &Vary, answer: &LargestOnGpu) -> String {
    let (name, values) = (&vary.name, &vary.values);
    let limit = limit(&answer.conditions);
    if let Some((value, ended)) = &answer.found.failure {
        let why = match ended {
            RunEnd::Stopped => "was stopped".to_owned(),
            RunEnd::Failed(error) => format!("failed: {error}"),
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

/// The limit with its GPU in words, or the GPU alone.
pub(super) fn limit(conditions: &RunConditions) -> String {
    let most = conditions.most();
    if conditions.limit.is_some() {
        format!("{most} of {}", conditions.gpu.name)
    } else if conditions.counts_non_pytorch() {
        format!("{} ({most}, less the non-PyTorch memory)", conditions.gpu.name)
    } else {
        format!("{} ({most})", conditions.gpu.name)
    }
}

/// The request at which a probe ran out of memory, in words.
pub(super) fn failed(probe: &Probe) -> String {
    let Some(failed) = &probe.failed else { return String::new() };
    let at = failed.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    let below = if failed.is_of_other_thread { ", in a thread that this line waits for" } else { "" };
    let bytes = if failed.bytes == Bytes::ZERO {
        String::new()
    } else {
        format!(", which asks for {}", failed.bytes)
    };
    format!("{at}{below}{bytes}")
}

/// The report of one GPU.
pub(super) fn report(vary: &Vary, answer: &LargestOnGpu) -> Result<String, fmt::Error> {
    let mut text = sentence(vary, answer) + "\n";
    write_table(&mut text, answer)?;
    write_contradictions(&mut text, &answer.contradictions)?;
    write_needs(&mut text, answer)?;
    write_growth(&mut text, answer)?;
    write_settings(&mut text, answer)?;
    write_advice(&mut text, answer)?;
    write_certainty(&mut text, answer)?;
    Ok(text)
}

fn write_table(text: &mut String, answer: &LargestOnGpu) -> fmt::Result {
    if answer.found.probes.is_empty() {
        return Ok(());
    }
    writeln!(text, "  {:>8}  {:>14}  {:>14}", "value", "peak allocated", "peak reserved")?;
    let mut probes: Vec<&Probe> = answer.found.probes.iter().collect();
    probes.sort_by_key(|probe| probe.value);
    for probe in probes {
        let result = if probe.fits { "fits" } else { "runs out of memory; the peaks are those until then" };
        let (allocated, reserved) = (probe.peak_allocated.to_string(), probe.peak_reserved.to_string());
        writeln!(text, "  {:>8}  {allocated:>14}  {reserved:>14}  {result}", probe.value)?;
    }
    Ok(())
}

/// Writes the runs that contradict the growth of memory with the value: the first of each kind, and the
/// number of the others.
fn write_contradictions(text: &mut String, all: &[Contradiction]) -> fmt::Result {
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
                "memory does not grow with the value: {value} does not fit and {larger} fits{more}; values \
                 that did not run may differ, too"
            ),
            Contradiction::Allocated { value, larger } => format!(
                "the peak allocated of {larger} is lower than the peak of {value}{more}: values that did \
                 not run may contradict the answer"
            ),
            Contradiction::Reserved { value, larger } => format!(
                "the peak reserved of {larger} is lower than the peak of {value}{more}: near the limit \
                 cached segments are released, and a value above the answer may fit"
            ),
        };
        writeln!(text, "  {sentence}")?;
    }
    Ok(())
}

fn write_needs(text: &mut String, answer: &LargestOnGpu) -> fmt::Result {
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
            "{} to {} more are needed, since cached segments may be released",
            over(needs.peak_allocated),
            over(needs.peak_reserved)
        )
    } else {
        writeln!(
            text,
            "the allocated bytes would fit; up to {} more are needed for segments that are not full",
            over(needs.peak_reserved)
        )
    }
}

fn write_growth(text: &mut String, answer: &LargestOnGpu) -> fmt::Result {
    if let Some(growth) = &answer.peak {
        writeln!(text, "  the peak allocated is {}", growth_text(growth))?;
    }
    if let Some(best) = answer.best().filter(|_| !answer.sites.is_empty()) {
        writeln!(text, "  lines that hold the peak at {}:", best.value)?;
        for site in answer.sites.iter().take(SHOWN_ROWS) {
            let rule = site.growth.as_ref().map_or_else(|| "no rule was found".to_owned(), growth_text);
            writeln!(text, "    {:>10}  {}: {rule}", site.bytes.to_string(), site.what)?;
        }
    }
    Ok(())
}

fn growth_text(growth: &Growth) -> String {
    let rule = match growth.kind {
        GrowthKind::Constant => "constant".to_owned(),
        GrowthKind::Linear => format!("linear, {} for each unit", signed(growth.slope)),
        GrowthKind::Quadratic => format!(
            "quadratic, {} for each squared unit and {} for each unit",
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

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, and without its sign")]
fn signed(bytes: f64) -> String {
    let size = Bytes::new(bytes.abs().round() as u64);
    if bytes < -0.5 { format!("-{size}") } else { size.to_string() }
}

fn write_settings(text: &mut String, answer: &LargestOnGpu) -> fmt::Result {
    for setting in &answer.settings {
        let result = if setting.is_fitting { "fits" } else { "runs out of memory too" };
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
fn write_advice(text: &mut String, answer: &LargestOnGpu) -> fmt::Result {
    let Some(best) = answer.best().filter(|_| answer.next.is_some()) else { return Ok(()) };
    let rows = advices(best);
    if rows.is_empty() {
        return Ok(());
    }
    write!(
        text,
        "  changes of the program, which were not tried, with the bytes of {} that each is about",
        best.value
    )?;
    match answer.needs.as_ref().map(|needs| needs.peak_reserved.saturating_sub(answer.limit)) {
        Some(lacking) if lacking > Bytes::ZERO => {
            writeln!(text, " (the next value lacks at most {lacking}):")?;
        }
        _ => writeln!(text, ":")?,
    }
    for Advice { bytes, what } in rows {
        writeln!(text, "    {:>10}  {what}", bytes.to_string())?;
    }
    Ok(())
}

/// A change of the program, with the bytes that the change is about.
pub(super) struct Advice {
    pub(super) bytes: Bytes,
    pub(super) what: &'static str,
}

/// Changes of a program, each with the bytes that it is about at the peak of the last iteration; by
/// descending bytes.
pub(super) fn advices(best: &Probe) -> Vec<Advice> {
    // The first words of the names of holders that each change is about.
    let about: [(&[&str], &str); 4] = [
        (
            &["freed between"],
            "activations and temporaries: activation checkpointing, or a smaller batch with more steps of accumulation",
        ),
        (&["optimizer states"], "optimizer states: an optimizer with states of 8 bits, or on the host"),
        (&["gradients"], "gradients: an optimizer step inside of backward, which frees each gradient"),
        (
            &["parameters", "gradients", "optimizer states"],
            "parameters, gradients and optimizer states: sharding over ranks, by FSDP or ZeRO",
        ),
    ];
    let bytes = |starts: &[&str]| -> Bytes {
        let is_about = |held: &&HolderBytes| starts.iter().any(|start| held.what.starts_with(start));
        best.holders.iter().filter(is_about).fold(Bytes::ZERO, |sum, held| sum.saturating_add(held.bytes))
    };
    let rows = about.into_iter().map(|(starts, what)| Advice { bytes: bytes(starts), what });
    let mut rows: Vec<Advice> = rows.filter(|row| row.bytes > Bytes::ZERO).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    rows
}

fn write_certainty(text: &mut String, answer: &LargestOnGpu) -> fmt::Result {
    write_on_gpu(text, &answer.conditions, answer.best())?;
    if answer.best().is_some_and(|best| best.is_steady == Some(false)) {
        writeln!(
            text,
            "  the last two steps of the largest value are not equal: more steps may take more memory"
        )?;
    }
    let proofs: Vec<&Probe> = answer.best().into_iter().chain(&answer.next).collect();
    write_proof(text, &proofs, answer.is_exact())
}

/// Writes how the limit is set on a GPU, and the non-PyTorch memory of the best run.
pub(super) fn write_on_gpu(
    text: &mut String,
    conditions: &RunConditions,
    best: Option<&Probe>,
) -> fmt::Result {
    let total = conditions.gpu.total_memory;
    if let Some(fraction) = conditions.limit.and_then(|limit| memory_fraction(limit, total)) {
        writeln!(
            text,
            "  the limit on the GPU itself: torch.cuda.set_per_process_memory_fraction({fraction:?})"
        )?;
    }
    let Some(best) = best else { return Ok(()) };
    let non_pytorch = NonPytorchMemory {
        parts: best.non_pytorch.iter().map(|held| (held.what.clone(), held.bytes)).collect(),
        unknown: best.non_pytorch_unknown.clone(),
    };
    write_non_pytorch(text, "on the GPU", &non_pytorch, best.peak_reserved)?;
    if conditions.counts_non_pytorch() {
        writeln!(
            text,
            "  {} of the GPU's {total} are left for PyTorch: each run leaves out the non-PyTorch memory of \
             the CUDA context and libraries ({})",
            conditions.left(best),
            non_pytorch_measured_text(conditions.gpu.name)
        )?;
    }
    let all = best.peak_reserved.saturating_add(non_pytorch.bytes());
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
pub(super) fn write_proof(text: &mut String, proofs: &[&Probe], is_exact: bool) -> fmt::Result {
    let remarks: BTreeSet<&String> = proofs.iter().flat_map(|probe| &probe.remarks).collect();
    for remark in remarks {
        writeln!(text, "  {remark}")?;
    }
    if is_exact {
        return writeln!(text, "{EXACT}");
    }
    let notes: BTreeSet<&String> = proofs.iter().flat_map(|probe| &probe.notes).collect();
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

/// The text for several GPUs: the largest value of each, and the smallest GPU with the highest value.
pub(super) fn gpus(vary: &Vary, answers: &[LargestOnGpu]) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let mut sorted: Vec<&LargestOnGpu> = answers.iter().collect();
    sorted.sort_by_key(|answer| answer.limit);
    writeln!(text, "the largest {} of {} by GPU:", vary.name, vary.values)?;
    for answer in &sorted {
        let largest = match (answer.largest, answer.is_ended()) {
            (_, true) => "not known".to_owned(),
            (Some(largest), false) => largest.to_string(),
            (None, false) => "none".to_owned(),
        };
        writeln!(text, "  {:>8}  {} ({})", largest, answer.conditions.gpu.name, answer.limit)?;
    }
    for value in [vary.values.low(), vary.values.high()] {
        if let Some(answer) = sorted.iter().find(|answer| answer.largest.is_some_and(|most| most >= value)) {
            writeln!(text, "  the smallest GPU that fits {value}: {}", answer.conditions.gpu.name)?;
        }
    }
    Ok(text)
}
