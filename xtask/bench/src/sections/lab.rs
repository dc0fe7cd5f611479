//! Questions of the lab: how long an answer takes.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context, Result};
use blockyard_lab::{Conditions, Run, autopsy, candidates, search};
use blockyard_measure::{ReportRow, Section, alternate};
use blockyard_record::Bytes;

use super::BenchContext;
use crate::cores::pin;
use crate::suite::recording;

/// The recordings that have goals, with the most seconds that 64 settings may take on two cores.
const GOALS: [(&str, f64); 2] = [("gpt2_varlen", 0.25), ("llama_generate", 2.5)];
const SETTINGS: usize = 64;
/// The most seconds that an autopsy may take.
const AUTOPSY_SECONDS: f64 = 2.0;

/// Seconds until a question is answered, on all cores.
///
/// # Errors
///
/// When a recording cannot be read or replayed.
pub(super) fn lab(context: &BenchContext) -> Result<Section> {
    // A search starts a thread for each core that it may use.
    pin(&context.cores)?;
    let mut section = Section::new("lab", "Questions of the lab", "s", ["Blockyard"]);
    for (name, goal) in GOALS {
        let Some(recorded) = recording(&context.workspace, name)? else {
            section.notes.push(format!("{name} is left out: its recording is not there"));
            continue;
        };
        let run = Run::from_recorded(&recorded, &mut |_| ControlFlow::Continue(()))?;
        let own = run.conditions();
        let settings = settings(&run, &own);
        let requests = run.requests().len();
        let searched = seconds(context.rounds, || {
            search(&run, &own, &settings, &mut |_| ControlFlow::Continue(()))?;
            Ok(())
        })?;
        let row = ReportRow::new(format!("{name}, {SETTINGS} settings"), requests, &[searched]);
        section.notes.push(verdict(&row, goal));
        section.rows.push(row);
        // The recording fits its device; under three quarters of its peak it does not.
        let peak = search(&run, &own, &[], &mut |_| ControlFlow::Continue(()))?;
        let peak = peak.baseline.answered().context("the recording cannot be replayed")?.peak_allocated;
        let limited = own.and_limit(Bytes::new(peak.get() / 4 * 3));
        let explained = seconds(context.rounds, || {
            autopsy(&run, &limited, &mut |_| ControlFlow::Continue(()))?.context("the run fits")?;
            Ok(())
        })?;
        let row = ReportRow::new(format!("{name}, autopsy"), requests, &[explained]);
        section.notes.push(verdict(&row, AUTOPSY_SECONDS));
        section.rows.push(row);
    }
    section.notes.push(format!(
        "{} cores; reading the file is not counted; an autopsy is of the run under three quarters of its peak",
        context.cores.len()
    ));
    pin(context.cores.get(..1).unwrap_or_default())?;
    Ok(section)
}

/// As many settings as the goal names: the candidates, then further limits on splitting.
fn settings(run: &Run, own: &Conditions) -> Vec<String> {
    let mut settings = candidates(run, own);
    let more = (0..).map(|step| format!("max_split_size_mb:{}", 40 + 8 * step));
    let missing = SETTINGS.saturating_sub(settings.len());
    settings.extend(more.take(missing));
    settings.truncate(SETTINGS);
    settings
}

fn seconds(rounds: usize, mut question: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let nanos = alternate(rounds, 1, 1, &mut [()], |(), times| {
        let begun = Instant::now();
        for _ in 0..times {
            question()?;
        }
        anyhow::Ok(begun.elapsed())
    })?;
    Ok(nanos.into_iter().flatten().map(|nanos| nanos / 1e9).collect())
}

fn verdict(row: &ReportRow, goal: f64) -> String {
    let median = row.values.first().copied().flatten().map_or(f64::INFINITY, |value| value.median);
    let met = if median <= goal { "met" } else { "NOT met" };
    format!("goal of {}: at most {goal} s; {median:.2} s: {met}", row.name)
}
