//! Which settings of the allocator fit: each is replayed over the recorded requests of one run, and two runs
//! prove what the replays say.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use blockyard_answers::{
    FitOom, FitReplay, FitReplayResult, FitRun, FitRunEnd, FitSetting, FitSettingsOnGpu,
};
use blockyard_lab::{Conditions, LimitedRun, Row, Run};
use blockyard_record::{Bytes, grouped, with_causes};
use blockyard_rules::{AllocatorConfig, Release, conf_text};

use super::all_settings;
use super::run_queue::{AnswerQueue, each};
use super::runs::{RunConditions, Runs, counts_non_pytorch};
use super::text::{failed, limit, write_on_gpu};

/// The limits of a replay, as a sentence.
const ESTIMATE: &str = "a replay has the requests of one run without a limit: the replay does not follow a program that asks for other sizes under other settings, or by how \
     much memory is left, and segments have the addresses that the replay gives them";

/// Which settings fit each GPU: the run's own, and the named settings.
pub(super) fn settings(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    settings: &[String],
) -> Vec<FitSettingsOnGpu> {
    let ask = |conditions: &RunConditions, _before: &AnswerQueue<_>| {
        let mut answer =
            FitSettingsOnGpu { conditions: conditions.terms.clone(), ..FitSettingsOnGpu::default() };
        if let Err(end) = fill(runs, conditions, &mut answer, &all_settings(conditions, settings)) {
            answer.error = Some(end);
        }
        answer
    };
    each(conditions, runs.queue.most(), ask, |answer| answer.error.is_some())
}

fn fill(
    runs: &Runs<'_>,
    conditions: &RunConditions,
    answer: &mut FitSettingsOnGpu,
    all: &[String],
) -> Result<(), FitRunEnd> {
    let without_end = conditions.without_end();
    let (recorded, requests) = runs.record(&without_end)?;
    if !recorded.run.fits {
        return Err(FitRunEnd::Failed(format!(
            "the program runs out of memory on a GPU with {} too{}",
            without_end.gpu.total_memory,
            failed(&recorded.run)
        )));
    }
    let devices = read(runs, &requests)
        .map_err(|error| FitRunEnd::Failed(format!("the requests of the run: {error}")))?;
    answer.requests = devices.iter().map(Run::request_count).sum();
    answer.notes = devices.iter().flat_map(Run::notes_with_capacity).collect();
    // A limit is a part of the whole GPU. Without a limit, the device is smaller by the non-PyTorch memory of
    // the recorded run.
    let capacity = if counts_non_pytorch(&conditions.terms) {
        conditions.left(&recorded)
    } else {
        conditions.gpu.total_memory
    };
    answer.notes.extend(recorded.run.notes);
    for conf in all {
        let config = AllocatorConfig::parse(conf, release_of(runs)).ok();
        let pair = config.and_then(|config| config.warning_about_pair());
        if let Some(warning) = pair.filter(|warning| !answer.notes.iter().any(|note| note == warning)) {
            answer.notes.push(warning.to_owned());
        }
        runs.caller.show(format!("replays {conf}"));
        let result = replay(runs, &devices, conditions, capacity, conf)?;
        answer.settings.push(FitSetting { conf: conf.clone(), result, run: None });
    }
    let passing = answer.settings.iter().enumerate().filter_map(|(at, row)| match &row.result {
        FitReplay::Replayed(replayed) if replayed.fits => Some((replayed.peak_reserved, at)),
        _ => None,
    });
    let best = passing.min().map(|(_, at)| at);
    answer.best = best.and_then(|best| Some(answer.settings.get(best)?.conf.clone()));
    for at in [Some(0), best].into_iter().flatten() {
        if let Some(row) = answer.settings.get_mut(at).filter(|row| row.run.is_none()) {
            row.run = Some(FitRun::from(&runs.plain(&conditions.under(&row.conf))?));
        }
    }
    Ok(())
}

/// The requests of each device; an error as a sentence, with its reasons.
fn read(runs: &Runs<'_>, requests: &Path) -> Result<Vec<Run>, String> {
    let bytes = std::fs::read(requests).map_err(|error| format!("the run wrote no snapshot: {error}"))?;
    let name = runs.program.file.display().to_string();
    Run::read(&name, &bytes, &mut |_progress| go_on(runs)).map_err(|error| with_causes(&error))
}

fn go_on(runs: &Runs<'_>) -> ControlFlow<()> {
    if runs.caller.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn release_of(runs: &Runs<'_>) -> Release {
    Release::nearest(&runs.torch.version)
}

fn replay(
    runs: &Runs<'_>,
    devices: &[Run],
    conditions: &RunConditions,
    capacity: Bytes,
    conf: &str,
) -> Result<FitReplay, FitRunEnd> {
    let conditions = Conditions {
        conf: conf.to_owned(),
        capacity: Some(capacity),
        limit: conditions.limit(),
        release: Some(release_of(runs)),
    };
    let mut whole = FitReplayResult { fits: true, ..FitReplayResult::default() };
    for run in devices {
        let mut on_done = |_done: usize| go_on(runs);
        let row = LimitedRun::of(run, &conditions, &mut on_done)
            .and_then(|limited| limited.row(conf, 0, &mut on_done))
            .map_err(|_cancelled| FitRunEnd::Stopped)?;
        if let Err(error) = add(&mut whole, &row) {
            return Ok(FitReplay::Failed { error });
        }
    }
    Ok(FitReplay::Replayed(whole))
}

/// Adds the outcome of one device.
fn add(whole: &mut FitReplayResult, row: &Row) -> Result<(), String> {
    let outcome = row.outcome.as_ref().map_err(ToString::to_string)?;
    whole.fits &= row.fits();
    whole.peak_allocated = whole.peak_allocated.max(outcome.peak_allocated);
    whole.peak_reserved = whole.peak_reserved.max(outcome.peak_reserved);
    if whole.first_oom.is_none() {
        let oom = outcome.first_oom.as_ref();
        whole.first_oom = oom.map(|oom| FitOom { request: oom.request, bytes: oom.size });
    }
    whole.warnings.extend(outcome.warnings.iter().cloned());
    Ok(())
}

/// A sentence that compares a run of the program with its replay.
fn proof(run: &FitRun, replayed: &FitReplayResult) -> String {
    let run = &run.run;
    if !run.fits {
        return format!("a run: runs out of memory{}", failed(run));
    }
    let (reserved, replayed_peak) = (run.peak_reserved, replayed.peak_reserved);
    let beside = match (replayed.fits, reserved.cmp(&replayed_peak)) {
        (false, _) => String::new(),
        (_, std::cmp::Ordering::Equal) => " (equal)".to_owned(),
        (_, std::cmp::Ordering::Less) => format!(" ({} less)", replayed_peak.saturating_sub(reserved)),
        (_, std::cmp::Ordering::Greater) => format!(" ({} more)", reserved.saturating_sub(replayed_peak)),
    };
    format!("a run: fits, peak reserved {reserved}{beside}")
}

/// Writes the answer about one GPU for people.
pub(super) fn write(text: &mut String, answer: &FitSettingsOnGpu, is_quiet: bool) -> std::fmt::Result {
    let limit = limit(&answer.conditions);
    if answer.settings.is_empty() {
        let why = answer.error.as_ref().map(FitRunEnd::why_text).unwrap_or_default();
        return writeln!(text, "no answer for {limit}: the run {why}");
    }
    match &answer.best {
        Some(best) => {
            let best = conf_text(best);
            writeln!(text, "under {best} the run passes in {limit} with the least peak reserved")?;
        }
        None => writeln!(text, "no setting passes in {limit}")?,
    }
    if is_quiet {
        return Ok(());
    }
    writeln!(text, "  {} requests of one run without a limit, replayed:", grouped(answer.requests))?;
    write_table(text, &answer.settings)?;
    if let Some(end) = &answer.error {
        writeln!(text, "  the run that proves the replay {}", end.why_text())?;
    }
    let best = answer.settings.iter().find(|row| Some(&row.conf) == answer.best.as_ref());
    write_on_gpu(text, &answer.conditions, best.and_then(|best| Some(&best.run.as_ref()?.run)))?;
    writeln!(text, "  replays are estimates: {ESTIMATE}")?;
    for note in &answer.notes {
        writeln!(text, "    {note}")?;
    }
    Ok(())
}

fn write_table(text: &mut String, rows: &[FitSetting]) -> std::fmt::Result {
    let width = rows.iter().map(|row| conf_text(&row.conf).len()).max().unwrap_or(0);
    writeln!(text, "  {:width$}  {:>14}  {:>14}", "", "peak allocated", "peak reserved")?;
    for row in rows {
        let conf = conf_text(&row.conf);
        match &row.result {
            FitReplay::Failed { error } => writeln!(text, "  {conf:width$}  {error}")?,
            FitReplay::Replayed(replayed) => {
                let result = replayed.first_oom.map_or_else(
                    || "fits".to_owned(),
                    |oom| format!("runs out of memory at request {} ({})", grouped(oom.request), oom.bytes),
                );
                let run = row.run.as_ref().map(|run| format!("; {}", proof(run, replayed)));
                let run = run.unwrap_or_default();
                let (allocated, reserved) = (replayed.peak_allocated, replayed.peak_reserved);
                writeln!(text, "  {conf:width$}  {allocated:>14}  {reserved:>14}  {result}{run}")?;
            }
        }
    }
    for row in rows {
        if let FitReplay::Replayed(replayed) = &row.result {
            for warning in &replayed.warnings {
                writeln!(text, "  {}: {warning}", conf_text(&row.conf))?;
            }
        }
    }
    Ok(())
}
