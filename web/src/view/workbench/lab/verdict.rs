//! The verdict about the run that is shown, in the order in which a reader asks.

use std::collections::BTreeMap;

use blockyard_figure::steps_at_allocation;
use blockyard_gpus::GpuProfile;
use blockyard_lab::{
    Conditions, Finding, FindingTopic, Fix, HoldingLine, MomentName, QuestionKind, SearchResult, Verdict,
    VerdictAnswer, VerdictKind, VerdictMoment,
};
use blockyard_record::{Bytes, Recording, StackId, counted, grouped, shortened_path};
use blockyard_rules::{conf_text, shell_line};
use leptos::prelude::*;

use super::parts::{conditions_text, first_oom, given_text, hypothesis, line_to_copy};
use super::trial::{change_button, program_cause, trial};
use super::{failure_view, working};
use crate::browser;
use crate::lab::Answers;
use crate::messages::sentence;
use crate::program::{DEFAULT_GPU, fit_command};
use crate::session::Session;
use crate::view::figure::holders::{holding_table, line_swatch};
use crate::view::kit::{button, click, flag, text};
use crate::view::program::again;
use crate::view::workbench::live;
use crate::view::workbench::ranks::verdict_is_about;

/// At most this many lines that hold memory are listed.
const MAX_LINES: usize = 5;

/// The verdict about the run that is shown, or the button that asks for it.
pub(super) fn verdict(session: Session) -> AnyView {
    let found = Memo::new(move |_| {
        session.lab().answers().and_then(|answers| {
            let searched = answers.searched().cloned();
            Some((answers.verdict?, answers.verdict_for, searched))
        })
    });
    let is_busy = Memo::new(move |_| {
        session.lab().work.with(|work| work.as_ref().is_some_and(|work| work.kind == QuestionKind::Verdict))
    });
    let rank = Memo::new(move |_| verdict_is_about(session));
    // A question under other conditions makes the verdict again.
    let is_old =
        Memo::new(move |_| session.lab().work.with(Option::is_some) && session.lab().is_verdict_old());
    let is_live = Memo::new(move |_| session.live().shows_steps());
    let content = move || match found.get() {
        _ if is_live.get() => live::forecast(session),
        Some((found, conditions, searched)) => answer(session, &found, &conditions, searched.as_deref()),
        None if is_busy.get() => ().into_any(),
        None => {
            let ask = click(move || session.lab().ask_verdict());
            button("primary", "lab-verdict", "What happened in this run?", "", ask)
        }
    };
    view! {
        <section class="run-verdict" aria-label="Verdict" aria-live="polite" data-testid="run-verdict">
            <p class="quiet" data-testid="verdict-rank" hidden=flag(move || rank.with(String::is_empty))>
                {text(move || rank.get())}
            </p>
            {working(session, QuestionKind::Verdict)}
            <div class:is-old=flag(move || is_old.get())>{content}</div>
            {failure_view(session, QuestionKind::Verdict)}
        </section>
    }
    .into_any()
}

fn answer(
    session: Session,
    verdict: &Verdict,
    under: &Conditions,
    searched: Option<&SearchResult>,
) -> AnyView {
    let found = &verdict.answer;
    let given = untrack(|| given_text(session, under));
    let class = match found.kind {
        // Under conditions that the reader gave, a failure is a hypothesis and not a failure of the run.
        _ if given.is_some() => "headline is-doubtful",
        VerdictKind::Fits => "headline is-right",
        VerdictKind::Grows => "headline is-doubtful",
        VerdictKind::Leak | VerdictKind::OutOfMemory => "headline is-wrong",
        VerdictKind::StateOnly | VerdictKind::NotReplayed => "headline",
    };
    let notes = session
        .lab()
        .answers()
        .and_then(|answers| answers.run(session.lab().asked_device()).map(|run| run.notes.clone()));
    let notes = notes.unwrap_or_default();
    // If no plain setting helps, the search of settings may have found one.
    let searched = searched.filter(|_| found.setting.is_none());
    let best = searched.and_then(|searched| searched.rows.get(searched.best?));
    let setting = found.setting.as_ref().or(best.map(|row| &row.conditions.conf));
    let parts = found.sections().map(|(about, findings)| {
        // The notes on the run are below the answers, since they apply to all questions.
        let of_this = findings.into_iter().filter(|finding| !notes.contains(&finding.text));
        let mut items: Vec<AnyView> =
            of_this.enumerate().map(|(index, finding)| item(session, found, finding, index == 0)).collect();
        let is_passes = about == FindingTopic::Helps;
        if let Some(searched) = searched.filter(|_| is_passes) {
            items.push(view! { <li>{sentence(&searched.sentence)}</li> }.into_any());
        }
        let held = (about == FindingTopic::Certainty).then(|| held(session, found));
        let copied = setting.filter(|_| is_passes);
        let copied = copied.map(|conf| line_to_copy("verdict-line", shell_line(conf)));
        let title =
            (!items.is_empty()).then(|| view! { <h3>{about.title()}</h3><ul>{items}</ul> }.into_any());
        view! { {title}{copied}{held} }.into_any()
    });
    // A list of the program that grows is the cause, however the cached memory lies when a request fails.
    let cause = given.is_none().then(|| untrack(|| program_cause(session))).flatten();
    let headline = match given {
        Some(given) => sentence(&format!("with {given}: {}", found.headline)),
        None => sentence(&found.headline),
    };
    let (headline, failure) = match cause {
        Some(cause) => (sentence(&cause), Some(headline)),
        None => (headline, None),
    };
    let failure = failure.map(|words| view! { <p>{with_code(session, &words)}</p> });
    let copy = click(move || copy_summary(session));
    view! {
        <p class=class data-testid="verdict-headline">{with_code(session, &headline)}</p>
        {failure}
        {asked(session)}
        {hypothesis(session, under)}
        {fixes(session, verdict)}
        {again(session, found)}
        <div class="cluster">{button("", "copy-summary", "Copy summary", COPY_TITLE, copy)}</div>
        {parts.collect::<Vec<_>>()}
        {command(session)}
    }
    .into_any()
}

const COPY_TITLE: &str = "Copies the verdict as plain text, for a chat";

/// The command that finds what fits, for a file: the page has no program to run.
fn command(session: Session) -> Option<AnyView> {
    let opened = untrack(|| session.shown_recording())?;
    let recording = &opened.run.recording;
    let file = program_file(recording);
    let stands_for = match file {
        Some(_) => "batch-size stands for the option of your program",
        None => "train.py and batch-size stand for your program and its option",
    };
    let file = file.as_deref().unwrap_or("train.py");
    let line = fit_command(file, None, gpu_of(recording.capacity()), "");
    Some(
        view! {
            <h3>"Will another batch fit?"</h3>
            <p class="quiet">{format!("With the program, and without a GPU, this command says so; {stands_for}:")}</p>
            {line_to_copy("verdict-fit", line)}
        }
        .into_any(),
    )
}

/// Copies the verdict about the shown run as plain text.
pub(crate) fn copy_summary(session: Session) {
    let Some(answers) = untrack(|| session.lab().answers()) else { return };
    let Some(found) = &answers.verdict else { return };
    // Of several devices the name of the run says which.
    let run = answers.run(session.lab().asked_device()).filter(|_| answers.runs.len() > 1);
    let name = run.map_or_else(|| untrack(|| session.navigation().heading()), |run| run.name.clone());
    browser::copy(&found.summary(&name));
    session.show_note("The summary is copied.");
}

/// The file in which the program began: of the program's own files, the outermost one of most stacks. `None`
/// where all frames are libraries', and for a notebook.
fn program_file(recording: &Recording) -> Option<String> {
    let stacks = recording.stacks();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for stack in (0_u32..).take(stacks.len()).map(StackId::new) {
        let mut frames = stacks.frames(stack).rev().map(|frame| stacks.frame(frame));
        let own = frames.find(|frame| frame.is_of_python_file() && !frame.is_of_library());
        if let Some(frame) = own {
            *counts.entry(frame.filename).or_default() += 1;
        }
    }
    let (file, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (!file.contains("ipykernel")).then(|| shortened_path(file).to_owned())
}

/// The smallest GPU with this memory.
fn gpu_of(capacity: Bytes) -> &'static str {
    let smallest = GpuProfile::ALL.iter().rev().find(|gpu| gpu.total_memory >= capacity);
    smallest.map_or(DEFAULT_GPU, |gpu| gpu.id)
}

/// The changes that help, the best one first: a proved one is a button that tries it, and one of the code is an
/// estimate. Below them the run before and after the one that was tried last; empty for a run without a failure.
fn fixes(session: Session, verdict: &Verdict) -> AnyView {
    if verdict.autopsy.is_none() {
        return ().into_any();
    }
    let fixes = verdict.fixes();
    let is_empty = fixes.is_empty();
    let mut places = 0..;
    let rows = fixes.iter().map(|fix| {
        let words = sentence(&fix.sentence());
        match fix {
            Fix::Change(change) => {
                let button = change_button(session, places.next().unwrap_or(0), change);
                view! { <li>{button}" "{with_code(session, &words)}</li> }.into_any()
            }
            Fix::Code(_) | Fix::Advice(_) => {
                view! { <li data-testid="verdict-code-fix">{with_code(session, &words)}</li> }.into_any()
            }
        }
    });
    view! {
        <ol class="fixes" aria-label="What helps">{rows.collect::<Vec<_>>()}</ol>
        {is_empty.then_some("Nothing that was tried helps.")}
        {trial(session)}
    }
    .into_any()
}

/// The result of the last question of "What if", since the headline is about the run's own settings.
fn asked(session: Session) -> AnyView {
    let words = Memo::new(move |_| asked_text(&session.lab().answers()?));
    let show = click(move || {
        session.lab().kind.set(QuestionKind::WhatIf);
        let _ = browser::after_millis(0, || browser::scroll_into_sight("[data-testid=answer-what-if]"));
    });
    view! {
        <p class="asked-words" data-testid="verdict-asked" hidden=flag(move || words.with(Option::is_none))>
            {text(move || words.get().unwrap_or_default())}
            " "{button("link", "verdict-asked-show", "Show it", "Shows the answer of \u{201c}What if\u{201d}", show)}
        </p>
    }
    .into_any()
}

/// The answer to the last question of "What if" as sentences; `None` if the answer has the conditions of the
/// headline, or if the question was refused.
fn asked_text(answers: &Answers) -> Option<String> {
    let row = answers.what_if.first()?.rows.first()?;
    let outcome = row.outcome_at_lowest().filter(|_| row.conditions != answers.verdict_for)?;
    let most = outcome.peak_reserved.max(row.outcome_at_highest()?.peak_reserved);
    let result = match row.dependence() {
        Some(depends) => depends,
        None if !row.fits() => format!("out of memory at {}", first_oom(outcome)),
        None if row.ends_at_failure => {
            format!("the request that failed passes, peak {most} reserved until there")
        }
        None => format!("fits, peak {most} reserved"),
    };
    Some(format!(
        "As asked in \u{201c}What if\u{201d}, with {}: {result}. The headline is about the run with its own settings.",
        conditions_text(row)
    ))
}

/// A sentence with links to its moments and to the row of its setting.
fn item(session: Session, found: &VerdictAnswer, finding: &Finding, is_first: bool) -> AnyView {
    let words = with_code(session, &sentence(&finding.text));
    // The moment of the whole verdict has one link. Where growth is the cause, the first line that grows has links.
    let has_growth = matches!(found.kind, VerdictKind::Leak | VerdictKind::Grows);
    let moments = finding.moments.iter().filter(|moment| match finding.about {
        FindingTopic::Happened => is_first || !is_of_verdict(moment),
        FindingTopic::Grows => is_first && has_growth && !is_of_verdict(moment),
        _ => !is_of_verdict(moment),
    });
    let moments = moments.map(|moment| moment_link(session, *moment, finding.line.clone()));
    // Settings that do not help have no link. Settings that help after a failure have a button above; a setting
    // whose help depends on the limit is shown at both of its ends.
    let is_asked = match finding.about {
        FindingTopic::Helps => found.cause.is_none(),
        FindingTopic::DependsOnLimit => true,
        _ => false,
    };
    let setting = finding.settings.first().filter(|_| is_asked).map(|conf| {
        let name = conf_text(conf).to_owned();
        let conf = conf.clone();
        let ask = click(move || {
            session.lab().conf.set(conf.clone());
            ask_what_if(session);
        });
        let title = "Shows the run under this setting beside its own";
        view! { " "{button("chip mono", "verdict-setting", name, title, ask)} }.into_any()
    });
    let links: Vec<AnyView> = moments.chain(setting).collect();
    view! { <li>{words}{links}</li> }.into_any()
}

/// Whether this is the moment that the whole verdict is about.
fn is_of_verdict(moment: &VerdictMoment) -> bool {
    matches!(moment.name, MomentName::Failure | MomentName::Peak)
}

/// Asks about the run under the conditions in the panel's fields, and scrolls to the answer, which is far
/// below the verdict.
fn ask_what_if(session: Session) {
    session.lab().open(QuestionKind::WhatIf);
    session.lab().ask();
}

/// Moves the cursor to a moment, and marks the blocks of a line.
fn moment_link(session: Session, moment: VerdictMoment, line: Option<String>) -> AnyView {
    let words = match (moment.name, moment.step) {
        (name, Some(step)) if !is_of_verdict(&moment) => {
            format!("Show {} (iteration {})", name.text(), grouped(step))
        }
        (name, _) => format!("Show {}", name.text()),
    };
    let id = match moment.name {
        MomentName::Failure | MomentName::Peak => "verdict-moment",
        MomentName::FirstKept => "verdict-first-kept",
        MomentName::LastKept => "verdict-last-kept",
        MomentName::FirstHeld => "verdict-first-held",
        MomentName::LastHeld => "verdict-last-held",
    };
    let title = moment_title(moment, line.as_deref());
    let show = click(move || session.lab().show_moment(moment, line.as_deref()));
    view! { " "{button("link", id, words, title, show)} }.into_any()
}

fn moment_title(moment: VerdictMoment, line: Option<&str>) -> String {
    let request = grouped(moment.request);
    match line {
        Some(line) => format!("Moves the cursor to request {request} and marks the blocks of {line}"),
        None => format!("Moves the cursor to request {request}"),
    }
}

/// The lines that held the memory, each with its bytes. A click on a line shows its blocks.
fn held(session: Session, found: &VerdictAnswer) -> AnyView {
    let held = &found.held;
    if held.is_empty() {
        return ().into_any();
    }
    let of_run =
        found.findings.iter().flat_map(|finding| &finding.moments).find(|moment| is_of_verdict(moment));
    let row = |line: &HoldingLine| {
        let blocks = blocks_text(line.blocks);
        let (name, words) = (line.line.clone(), line.text());
        let swatch = line_swatch(session, name.clone());
        let words = match of_run.or_else(|| line.moments.last()).copied() {
            Some(moment) => {
                let title = moment_title(moment, Some(&name));
                let show = click(move || session.lab().show_moment(moment, Some(&name)));
                button("link mono", "verdict-holder", words, title, show)
            }
            None => view! { <code>{words}</code> }.into_any(),
        };
        (line.bytes, view! { {swatch}{words}" "<span class="quiet">{blocks}</span> }.into_any())
    };
    let mut rows: Vec<(Bytes, AnyView)> = held.iter().take(MAX_LINES).map(row).collect();
    let rest = held.get(MAX_LINES..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes = rest.iter().map(|line| line.bytes).sum();
        let words = counted(rest.len(), "more line");
        let blocks = blocks_text(rest.iter().map(|line| line.blocks).sum());
        rows.push((bytes, view! { {words}" "<span class="quiet">{blocks}</span> }.into_any()));
    }
    let when = if found.cause.is_none() { "at the peak" } else { "at the failure" };
    let other = other_peak(session, found)
        .map(|words| view! { <p class="quiet" data-testid="verdict-other-peak">{words}</p> }.into_any());
    view! {
        <h3>{format!("What held the memory {when}")}</h3>
        {other}
        {holding_table("verdict-held", rows)}
    }
    .into_any()
}

fn blocks_text(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "block")
}

/// The sentence about a replay whose peak is at another moment than the peak of the figures: both moments,
/// and the reason. `None` if both moments are the same.
fn other_peak(session: Session, found: &VerdictAnswer) -> Option<String> {
    let run = session.run.get_untracked();
    let is_text = untrack(|| session.shows_text());
    let mut moments = found.findings.iter().flat_map(|finding| &finding.moments);
    let peak = moments.find(|moment| moment.name == MomentName::Peak).filter(|_| !is_text)?;
    let replayed = steps_at_allocation(&run.recording, peak.allocations_after)?;
    let recorded = run.series.peak_steps(&run.recording).0;
    (replayed != recorded).then(|| {
        format!(
            "This is the replay's peak, after request {}. The peak of the run itself, with which the figures and \u{201c}Who holds it\u{201d} open, is \
             after request {}: the replay does not have all addresses of the run, so that other remainders stay with blocks.",
            grouped(replayed as u64),
            grouped(recorded as u64)
        )
    })
}

/// A sentence with the lines of the program, which are between backticks, as code. A line of the program in
/// the editor is a link to that line.
fn with_code(session: Session, text: &str) -> AnyView {
    let is_program = untrack(|| session.shown_program()).is_some();
    let parts = text.split('`').enumerate().map(|(index, part)| {
        let line = part.strip_prefix("program.py:").and_then(|line| line.parse().ok());
        let part = part.to_owned();
        match line.filter(|_| is_program) {
            _ if index % 2 == 0 => part.into_any(),
            Some(line) => {
                let go = click(move || session.program().go_to_line(line));
                let title = "Moves the cursor to the next request of this line";
                button("link", "verdict-line-link", format!("line {line}"), title, go)
            }
            None => view! { <code>{part}</code> }.into_any(),
        }
    });
    parts.collect::<Vec<_>>().into_any()
}
