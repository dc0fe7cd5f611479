//! Questions of the lab: how long an answer takes, natively and in a tab.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use blockyard_e2e::{GpuChoice, Page, Window};
use blockyard_lab::{Conditions, Run, autopsy, candidates, search};
use blockyard_measure::{ReportRow, Section, alternate};
use blockyard_record::Bytes;
use serde_json::json;

use super::BenchContext;
use crate::cores::pin;
use crate::suite::{find, recording};

/// A recording that has goals: the most seconds that 64 settings may take.
struct Goals {
    recording: &'static str,
    /// The goal natively, on two cores.
    native: f64,
    /// The goal in a tab.
    tab: f64,
}

const GOALS: [Goals; 2] = [
    Goals { recording: "gpt2_varlen", native: 0.25, tab: 1.0 },
    Goals { recording: "llama_generate", native: 2.5, tab: 8.0 },
];
const SETTINGS: u32 = 64;
/// The most seconds that an autopsy may take.
const AUTOPSY_SECONDS: f64 = 2.0;
/// The page's own search, timed in the page: the seconds until the first rows and until the answer, and how
/// many settings it tried.
const SEARCH_IN_PAGE: &str = "
    const at = id => document.querySelector(`[data-testid='${id}']`);
    const begun = performance.now();
    at(at('search-sentence') ? 'lab-ask' : 'lab-search').click();
    let first = 0, settings = 0;
    while (!settings || !at('search-sentence')) {
        const said = at('answer-search')?.textContent.match(/([0-9]+) of ([0-9]+) settings/);
        if (said && !first && Number(said[1]) > 1) first = performance.now() - begun;
        if (said) settings = Number(said[2]);
        if (performance.now() - begun > 25000) throw new Error('no answer: ' + at('lab').textContent);
        await new Promise(done => setTimeout(done, 4));
    }
    return [first / 1e3, (performance.now() - begun) / 1e3, settings];";

/// Seconds until a question is answered, on all cores.
///
/// # Errors
///
/// When a recording cannot be read or replayed, or the page does not answer.
pub(super) fn lab(context: &BenchContext) -> Result<Section> {
    // A search starts a thread for each core that it may use.
    pin(&context.cores)?;
    let mut section = Section::new("lab", "Questions of the lab", "s", ["Blockyard", "in a tab"]);
    let page = context.workspace.join("dist/index.html").is_file();
    if !page {
        section
            .notes
            .push("the tab is left out: there is no page in dist/; `cargo xtask build` makes it".to_owned());
    }
    for goals in GOALS {
        let name = goals.recording;
        let (Some(recorded), Some(file)) =
            (recording(&context.workspace, name)?, find(&context.workspace, name))
        else {
            section.notes.push(format!("{name} is left out: its recording is not there"));
            continue;
        };
        let run = Run::from_recorded(&recorded, &mut |_| ControlFlow::Continue(()))?;
        searches(context, &mut section, &goals, &run, page.then_some(&*file))?;
        autopsies(context, &mut section, name, &run)?;
    }
    section.notes.push(format!(
        "{} cores; reading the file is not counted, but for a tab's first answer, for which each worker reads it",
        context.cores.len()
    ));
    pin(context.cores.get(..1).unwrap_or_default())?;
    Ok(section)
}

fn searches(
    context: &BenchContext,
    section: &mut Section,
    goals: &Goals,
    run: &Run,
    file: Option<&Path>,
) -> Result<()> {
    let own = run.conditions();
    let settings = settings(run, &own);
    let native = seconds(context.rounds, || {
        search(run, &own, &settings, &mut |_| ControlFlow::Continue(()))?;
        Ok(())
    })?;
    let mut tab = Vec::new();
    if let Some(file) = file {
        let answers = in_a_tab(file, context.rounds)?;
        let first = answers.first().context("a benchmark has rounds")?;
        section.notes.push(format!(
            "{}, in a tab: the first answer, with starting the workers and reading the file, {:.2} s for {} settings, and its \
             first rows after {:.2} s",
            goals.recording, first.all, first.settings, first.rows
        ));
        // The page tries the settings that it finds sensible, some fewer than the goal names, so the time is
        // scaled.
        let scaled =
            |answer: &TabAnswer| answer.all / f64::from(answer.settings.max(1)) * f64::from(SETTINGS);
        tab = answers.iter().skip(1).map(scaled).collect();
    }
    let row = ReportRow::new(
        format!("{}, {SETTINGS} settings", goals.recording),
        run.requests().len(),
        &[native, tab],
    );
    section.notes.extend(goal_sentence(&row, 0, goals.native));
    section.notes.extend(goal_sentence(&row, 1, goals.tab));
    section.rows.push(row);
    Ok(())
}

struct TabAnswer {
    rows: f64,
    all: f64,
    settings: u32,
}

/// The page's search on a file: the first answer, then one for each round.
fn in_a_tab(file: &Path, rounds: usize) -> Result<Vec<TabAnswer>> {
    let page = Page::blank(Window::default(), GpuChoice::None)?;
    page.goto("/#preset=fragmentation")?;
    page.wait_for("main")?;
    page.upload("[data-testid='file']", file)?;
    page.wait_text("[data-testid='headline']", "identical")?;
    page.click("[data-testid='tab-lab']")?;
    let answer = |_| {
        let said = page.execute_async(SEARCH_IN_PAGE, &[json!(null)])?;
        let number = |place: usize| said[place].as_f64().context("the page returned no time");
        let settings = said[2].as_u64().context("the page returned no count")?;
        Ok(TabAnswer { rows: number(0)?, all: number(1)?, settings: u32::try_from(settings)? })
    };
    (0..=rounds).map(answer).collect()
}

/// Autopsies of runs that fail in their first part, and where the most memory is live.
fn autopsies(context: &BenchContext, section: &mut Section, name: &str, run: &Run) -> Result<()> {
    let own = run.conditions();
    let peak = search(run, &own, &[], &mut |_| ControlFlow::Continue(()))?;
    let peak = peak.baseline.outcome_at_lowest().context("the recording cannot be replayed")?.peak_allocated;
    for limit in [peak.get() / 4 * 3, peak.get().saturating_sub(1)] {
        let limited = own.and_limit(Bytes::new(limit));
        let mut failed = 0;
        let explained = seconds(context.rounds, || {
            let found =
                autopsy(run, &limited, &mut |_| ControlFlow::Continue(()))?.context("the run fits")?;
            failed = found.failure.request.request;
            Ok(())
        })?;
        let row = ReportRow::new(
            format!("{name}, autopsy of request {failed}"),
            run.requests().len(),
            &[explained],
        );
        section.notes.extend(goal_sentence(&row, 0, AUTOPSY_SECONDS));
        section.rows.push(row);
    }
    Ok(())
}

/// As many settings as the goal names: the candidates, then further limits on splitting.
fn settings(run: &Run, own: &Conditions) -> Vec<String> {
    let mut settings = candidates(run, own);
    let more = (0..).map(|step| format!("max_split_size_mb:{}", 40 + 8 * step));
    let missing = (SETTINGS as usize).saturating_sub(settings.len());
    settings.extend(more.take(missing));
    settings.truncate(SETTINGS as usize);
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

/// A sentence that says whether a contender meets a goal; `None` if it does not take part.
fn goal_sentence(row: &ReportRow, contender: usize, goal: f64) -> Option<String> {
    let median = row.values.get(contender).copied().flatten()?.median;
    let met = if median <= goal { "met" } else { "NOT met" };
    let place = if contender == 0 { "" } else { ", in a tab" };
    Some(format!("goal of {}{place}: at most {goal} s; {median:.2} s: {met}", row.name))
}
