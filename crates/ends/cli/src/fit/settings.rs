//! Which settings of the allocator fit: each is replayed over the recorded requests of one run, and two runs
//! prove what the replays say.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use anyhow::Context;
use blockyard_answers::{
    FitOom, FitReplay, FitReplayResult, FitResult, FitSetting, FitSettingsAnswer, FitSettingsOnGpu,
};
use blockyard_fit::Probe;
use blockyard_lab::{Conditions, LimitedRun, Row, Run};
use blockyard_record::{Bytes, grouped};
use blockyard_rules::{Release, conf_text};

use super::answer::environment;
use super::json::{conditions, first_and_others, probe, whole};
use super::run_queue::{AnswerQueue, each};
use super::runs::{RunConditions, RunEnd, Runs};
use super::{Reply, status, text};
use crate::dry_run::is_interrupted;

/// The limits of a replay, as a sentence.
const ESTIMATE: &str = "a replay has the requests of one run without a limit: the replay does not follow a program that asks for other sizes under other settings, or by how \
     much memory is left, and segments have the addresses that the replay gives them";

/// The answer about one GPU.
struct SettingsOnGpu {
    conditions: RunConditions,
    /// How many requests were replayed.
    requests: usize,
    /// The run's own settings, then the named settings.
    rows: Vec<Setting>,
    /// The index in `rows` of the settings that pass with the least peak reserved.
    best: Option<usize>,
    notes: Vec<String>,
    ended: Option<RunEnd>,
}

/// Settings, with their replay and their run.
struct Setting {
    conf: String,
    replayed: Result<ReplayResult, String>,
    /// A run of the program under these settings and the limit.
    run: Option<Probe>,
}

/// The result of the replays, for the device that needs the most memory.
#[derive(Clone, Debug, Default)]
struct ReplayResult {
    is_fitting: bool,
    peak_allocated: Bytes,
    peak_reserved: Bytes,
    /// The request that ran out of memory: its number, counted from 1, and its bytes.
    first_oom: Option<(u64, Bytes)>,
    warnings: Vec<String>,
}

pub(super) fn settings(
    runs: &Runs<'_>,
    all_conditions: &[RunConditions],
    settings: &[String],
) -> anyhow::Result<Reply> {
    let ask =
        |conditions: &RunConditions, _before: &AnswerQueue<SettingsOnGpu>| answer(runs, conditions, settings);
    let answers = each(all_conditions, runs.queue.most(), ask, |answer| answer.ended.is_some());
    let mut text = String::new();
    for answer in &answers {
        answer.write(&mut text, runs.options.quiet)?;
    }
    let (first, others) = first_and_others(&answers, SettingsOnGpu::json)?;
    let result = FitResult::Settings(Box::new(FitSettingsAnswer { first, others }));
    let is_found = answers.iter().all(|answer| answer.best.is_some());
    let ended = answers.iter().find_map(|answer| answer.ended.as_ref());
    Ok(Reply { text, json: whole(runs, result), status: status(ended, is_found), page: None })
}

fn answer(runs: &Runs<'_>, conditions: &RunConditions, settings: &[String]) -> SettingsOnGpu {
    let own = conditions.conf.clone().or_else(environment).unwrap_or_default();
    let mut all = vec![own];
    for conf in settings {
        if !all.contains(conf) {
            all.push(conf.clone());
        }
    }
    let mut answer = SettingsOnGpu {
        conditions: conditions.clone(),
        requests: 0,
        rows: Vec::new(),
        best: None,
        notes: Vec::new(),
        ended: None,
    };
    if let Err(ended) = fill(runs, &mut answer, &all) {
        answer.ended = Some(ended);
    }
    answer
}

fn fill(runs: &Runs<'_>, answer: &mut SettingsOnGpu, all: &[String]) -> Result<(), RunEnd> {
    let conditions = answer.conditions.clone();
    let (recorded, requests) = runs.record(&conditions.without_end())?;
    if !recorded.fits {
        return Err(RunEnd::Failed(format!(
            "the program runs out of memory on a GPU with {} too{}",
            conditions.without_end().gpu.total_memory,
            text::failed(&recorded)
        )));
    }
    let failed = |error: anyhow::Error| RunEnd::Failed(format!("the requests of the run: {error:#}"));
    let devices = read(runs, &requests).map_err(failed)?;
    answer.requests = devices.iter().map(|run| run.requests().len()).sum();
    // Notes about an assumed capacity are left out, because the capacity is given.
    let notes = devices.iter().flat_map(|run| run.notes().to_vec());
    answer.notes =
        notes.filter(|note| !note.starts_with("a snapshot does not say how much memory")).collect();
    // A limit is a part of the whole GPU. Without a limit, the device is smaller by the non-PyTorch memory of
    // the recorded run.
    let capacity = if conditions.counts_non_pytorch() {
        conditions.left(&recorded)
    } else {
        conditions.gpu.total_memory
    };
    answer.notes.extend(recorded.notes);
    for conf in all {
        runs.bar.set_message(format!("replays {conf}"));
        let replayed = replay(runs, &devices, &conditions, capacity, conf)?;
        answer.rows.push(Setting { conf: conf.clone(), replayed, run: None });
    }
    let passing = answer.rows.iter().enumerate().filter_map(|(at, row)| {
        let replayed = row.replayed.as_ref().ok().filter(|replayed| replayed.is_fitting)?;
        Some((replayed.peak_reserved, at))
    });
    answer.best = passing.min().map(|(_, at)| at);
    for at in [Some(0), answer.best].into_iter().flatten() {
        if let Some(row) = answer.rows.get_mut(at).filter(|row| row.run.is_none()) {
            row.run = Some(runs.plain(&conditions.under(&row.conf))?);
        }
    }
    Ok(())
}

fn read(runs: &Runs<'_>, requests: &std::path::Path) -> anyhow::Result<Vec<Run>> {
    let bytes = std::fs::read(requests).context("the run wrote no snapshot")?;
    let mut go_on =
        |_progress| if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    Ok(Run::read(&runs.options.file.display().to_string(), &bytes, &mut go_on)?)
}

fn replay(
    runs: &Runs<'_>,
    devices: &[Run],
    conditions: &RunConditions,
    capacity: Bytes,
    conf: &str,
) -> Result<Result<ReplayResult, String>, RunEnd> {
    let conditions = Conditions {
        conf: conf.to_owned(),
        capacity: Some(capacity),
        limit: conditions.limit,
        release: Some(Release::nearest(&runs.torch.version)),
    };
    let mut whole = ReplayResult { is_fitting: true, ..ReplayResult::default() };
    for run in devices {
        let mut go_on =
            |_done: usize| if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let row = LimitedRun::of(run, &conditions, &mut go_on)
            .and_then(|limited| limited.row(conf, 0, &mut go_on))
            .map_err(|_cancelled| RunEnd::Stopped)?;
        match add(&mut whole, &row) {
            Ok(()) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(whole))
}

/// Adds the outcome of one device.
fn add(whole: &mut ReplayResult, row: &Row) -> Result<(), String> {
    let outcome = row.outcome.as_ref().map_err(ToString::to_string)?;
    whole.is_fitting &= row.fits();
    whole.peak_allocated = whole.peak_allocated.max(outcome.peak_allocated);
    whole.peak_reserved = whole.peak_reserved.max(outcome.peak_reserved);
    if whole.first_oom.is_none() {
        whole.first_oom = outcome.first_oom.as_ref().map(|oom| (oom.request, oom.size));
    }
    whole.warnings.extend(outcome.warnings.iter().cloned());
    Ok(())
}

/// A sentence that compares a run of the program with its replay.
fn proof(run: &Probe, replayed: &ReplayResult) -> String {
    if !run.fits {
        return format!("a run: runs out of memory{}", text::failed(run));
    }
    let (reserved, replayed_peak) = (run.peak_reserved, replayed.peak_reserved);
    let beside = match (replayed.is_fitting, reserved.cmp(&replayed_peak)) {
        (false, _) => String::new(),
        (_, std::cmp::Ordering::Equal) => " (equal)".to_owned(),
        (_, std::cmp::Ordering::Less) => format!(" ({} less)", replayed_peak.saturating_sub(reserved)),
        (_, std::cmp::Ordering::Greater) => format!(" ({} more)", reserved.saturating_sub(replayed_peak)),
    };
    format!("a run: fits, peak reserved {reserved}{beside}")
}

impl SettingsOnGpu {
    fn write(&self, text: &mut String, is_quiet: bool) -> std::fmt::Result {
        let limit = text::limit(&self.conditions);
        if self.rows.is_empty() {
            let why = self.ended.as_ref().map_or_else(String::new, said);
            return writeln!(text, "no answer for {limit}: the run {why}");
        }
        match self.best.and_then(|best| self.rows.get(best)) {
            Some(best) => {
                let best = conf_text(&best.conf);
                writeln!(text, "under {best} the run passes in {limit} with the least peak reserved")?;
            }
            None => writeln!(text, "no setting passes in {limit}")?,
        }
        if is_quiet {
            return Ok(());
        }
        writeln!(text, "  {} requests of one run without a limit, replayed:", grouped(self.requests as u64))?;
        let width = self.rows.iter().map(|row| conf_text(&row.conf).len()).max().unwrap_or(0);
        writeln!(text, "  {:width$}  {:>14}  {:>14}", "", "peak allocated", "peak reserved")?;
        for row in &self.rows {
            let conf = conf_text(&row.conf);
            match &row.replayed {
                Err(error) => writeln!(text, "  {conf:width$}  {error}")?,
                Ok(replayed) => {
                    let result = match replayed.first_oom {
                        None => "fits".to_owned(),
                        Some((request, bytes)) => {
                            format!("runs out of memory at request {} ({bytes})", grouped(request))
                        }
                    };
                    let run = row.run.as_ref().map(|run| format!("; {}", proof(run, replayed)));
                    let allocated = replayed.peak_allocated.to_string();
                    let reserved = replayed.peak_reserved.to_string();
                    let run = run.unwrap_or_default();
                    writeln!(text, "  {conf:width$}  {allocated:>14}  {reserved:>14}  {result}{run}")?;
                }
            }
        }
        for row in &self.rows {
            for warning in row.replayed.iter().flat_map(|replayed| &replayed.warnings) {
                writeln!(text, "  {}: {warning}", conf_text(&row.conf))?;
            }
        }
        if let Some(ended) = &self.ended {
            writeln!(text, "  the run that proves the replay {}", said(ended))?;
        }
        let best = self.best.and_then(|best| self.rows.get(best)?.run.as_ref());
        text::write_on_gpu(text, &self.conditions, best)?;
        writeln!(text, "  replays are estimates: {ESTIMATE}")?;
        for note in &self.notes {
            writeln!(text, "    {note}")?;
        }
        Ok(())
    }

    fn json(&self) -> FitSettingsOnGpu {
        FitSettingsOnGpu {
            conditions: conditions(&self.conditions),
            requests: self.requests as u64,
            best: self.best.and_then(|best| Some(self.rows.get(best)?.conf.clone())),
            settings: self.rows.iter().map(Setting::json).collect(),
            notes: self.notes.clone(),
            error: self.ended.as_ref().map(said),
        }
    }
}

impl Setting {
    fn json(&self) -> FitSetting {
        let result = match &self.replayed {
            Err(error) => FitReplay::Failed { error: error.clone() },
            Ok(replayed) => FitReplay::Replayed(FitReplayResult {
                fits: replayed.is_fitting,
                peak_allocated: replayed.peak_allocated.get(),
                peak_reserved: replayed.peak_reserved.get(),
                first_oom: replayed.first_oom.map(|(request, bytes)| FitOom { request, bytes: bytes.get() }),
                warnings: replayed.warnings.clone(),
            }),
        };
        FitSetting { conf: self.conf.clone(), result, run: self.run.as_ref().map(probe) }
    }
}

fn said(ended: &RunEnd) -> String {
    match ended {
        RunEnd::Stopped => "was stopped".to_owned(),
        RunEnd::Failed(error) => format!("failed: {error}"),
    }
}
