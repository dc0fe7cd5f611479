//! `blockyard what-if`: the run under other settings, as text and as JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use blockyard_answers::{
    ComparedOutcome, FirstDifference, ReplayedOutcome, SettingOutcome, SettingResult, WhatIfAnswer,
};
use blockyard_lab::{Conditions, Outcome, Row, Run, what_if as ask};
use blockyard_record::grouped;
use blockyard_rules::conf_text;

use super::{FileOptions, QuestionReply, WhatIfQuestion, add_notes, ask_files, requests_sentence, table};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

const SAMPLES: usize = 256;

pub(crate) fn what_if(options: &FileOptions<WhatIfQuestion>) -> anyhow::Result<ExitCode> {
    if options.question.timeline && !options.json {
        bail!("--timeline needs --json");
    }
    ask_files(options, answer)
}

pub(super) fn answer(run: &Run, bar: &Bar, options: &WhatIfQuestion) -> anyhow::Result<QuestionReply> {
    let own = options.conditions.of_run(run);
    let conditions: Vec<Conditions> = if options.conf.is_empty() {
        vec![own.clone()]
    } else {
        options.conf.iter().map(|conf| own.and_conf(conf)).collect()
    };
    let samples = if options.timeline { SAMPLES } else { 0 };
    let found = ask(run, &conditions, samples, &mut |progress| bar.report(&progress))?;
    let status = found.rows.iter().map(status).max().unwrap_or(ExitStatus::Positive);
    let rows = found.rows.iter().zip(&found.differences);
    let limit = run.limit_under(&own);
    let settings = rows.clone().map(|(row, difference)| ComparedOutcome {
        outcome: row_json(row, run),
        first_difference: difference.clone(),
    });
    let json = WhatIfAnswer {
        requests: run.request_count(),
        limit,
        baseline: row_json(&found.baseline, run),
        settings: settings.collect(),
        notes: found.notes.clone(),
    };
    let mut text = format!("{}\n", requests_sentence(run, limit));
    let mut lines = vec![heading(), cells("own settings", &found.baseline)];
    lines.extend(found.rows.iter().map(|row| cells(&settings_name(row), row)));
    text.push_str(&table(&lines));
    for (row, difference) in rows {
        explain(&mut text, row, difference.as_ref());
    }
    add_notes(&mut text, &found.notes);
    Ok(QuestionReply { json: json.into(), text, status })
}

fn status(row: &Row) -> ExitStatus {
    match &row.outcome {
        Err(_) => ExitStatus::Failed,
        Ok(_) if !row.fits() => ExitStatus::Negative,
        Ok(_) => ExitStatus::Positive,
    }
}

/// The settings of a row, with the release where the question names one.
fn settings_name(row: &Row) -> String {
    let conf = conf_text(&row.conditions.conf);
    row.conditions.release.map_or_else(|| conf.to_owned(), |release| format!("{conf}, PyTorch {release}"))
}

/// A row as JSON: the numbers are those at the lower bound of the limit.
pub(crate) fn row_json(row: &Row, run: &Run) -> SettingOutcome {
    // The field `capacity` already has a limit that comes from the capacity.
    let limit = row.limit.filter(|limit| !limit.is_capacity());
    SettingOutcome {
        conf: row.conditions.conf.clone(),
        release: row.conditions.release_of(run).to_string(),
        capacity: row.conditions.capacity_of(run),
        limit: limit.map(|limit| limit.low),
        result: match &row.outcome {
            Err(error) => SettingResult::Failed { error: error.to_string() },
            Ok(outcome) => SettingResult::Replayed(Box::new(outcome_json(outcome, row))),
        },
    }
}

fn outcome_json(outcome: &Outcome, row: &Row) -> ReplayedOutcome {
    let timeline = outcome.timeline.iter();
    ReplayedOutcome {
        peak_allocated: outcome.peak_allocated,
        peak_reserved: outcome.peak_reserved,
        device_allocs: outcome.device_allocs,
        device_frees: outcome.device_frees,
        alloc_retries: outcome.alloc_retries,
        ooms: outcome.ooms,
        ooms_at_high: row.outcome_at_highest().map(|at_high| at_high.ooms),
        peak_reserved_at_high: row.outcome_at_highest().map(|at_high| at_high.peak_reserved),
        first_oom: outcome.first_oom.clone(),
        timeline: timeline.map(|at| (at.until, at.allocated, at.reserved)).collect(),
        warnings: outcome.warnings.clone(),
    }
}

pub(crate) fn heading() -> Vec<String> {
    ["settings", "peak reserved", "peak allocated", "device allocs", "frees", "retries", "out of memory"]
        .map(str::to_owned)
        .to_vec()
}

pub(crate) fn cells(name: &str, row: &Row) -> Vec<String> {
    match &row.outcome {
        Err(error) => vec![name.to_owned(), format!("error: {error}")],
        Ok(outcome) => vec![
            name.to_owned(),
            grouped(outcome.peak_reserved.get()),
            grouped(outcome.peak_allocated.get()),
            grouped(outcome.device_allocs),
            grouped(outcome.device_frees),
            grouped(outcome.alloc_retries),
            row.dependence().unwrap_or_else(|| first_oom(outcome)),
        ],
    }
}

fn first_oom(outcome: &Outcome) -> String {
    outcome
        .first_oom
        .as_ref()
        .map_or_else(|| "no".to_owned(), |oom| format!("request {} ({})", grouped(oom.request), oom.size))
}

fn explain(text: &mut String, row: &Row, difference: Option<&FirstDifference>) {
    let name = settings_name(row);
    match difference {
        Some(difference) => {
            let _ = writeln!(text, "  {name}: first differs at request {}", grouped(difference.request));
            let _ = writeln!(text, "    own settings: {}", difference.baseline);
            let _ = writeln!(text, "    here:         {}", difference.other);
        }
        None if row.outcome.is_ok() => {
            let _ = writeln!(text, "  {name}: every event is the same");
        }
        None => {}
    }
    for warning in row.outcome_at_lowest().into_iter().flat_map(|outcome| &outcome.warnings) {
        let _ = writeln!(text, "  {name}: warning: {warning}");
    }
}
