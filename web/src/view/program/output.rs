//! The output of the program before and after the cursor, how the program ended, and which numbers are
//! estimated.

use blockyard_record::counted;
use blockyard_rules::Release;
use leptos::prelude::*;

use crate::effect::effect;
use crate::messages::sentence;
use crate::program::{DEFAULT_GPU, DERIVED_NUMBERS};
use crate::program::{ProgramEnd, ProgramResult, ProgramStatus};
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::kit::{flag, text};
use crate::view::program::ended;

pub(crate) fn output(session: Session) -> AnyView {
    let printed = session.program().printed;
    // The output of a program that runs, or that was stopped, has no cursor, since the figures show a run
    // before. All of this output counts as printed. While the reader has not chosen a moment, no output
    // counts as later: the figures open at the peak, and the program ran to its end.
    let steps = Memo::new(move |_| {
        let steps = last_run(session).map(|_| session.player.with(|player| player.steps))?;
        (session.program().opened_at.get() != Some(steps)).then_some(steps)
    });
    effect(move || {
        let opened_at = session.program().opened_at;
        let steps = session.player.with(|player| player.steps);
        if opened_at.get_untracked().is_some_and(|opened_at| opened_at != steps) {
            opened_at.set(None);
        }
    });
    let part = move |is_before: bool| {
        let steps = steps.get();
        printed.with(|pieces| {
            let wanted =
                pieces.iter().filter(|piece| steps.is_none_or(|steps| piece.steps <= steps) == is_before);
            wanted.map(|piece| piece.text.as_str()).collect::<String>()
        })
    };
    let traceback = move || {
        let result = last_run(session)?;
        let traceback = result.details.traceback.clone().filter(|text| !text.is_empty())?;
        Some(view! { <pre class="traceback" data-testid="traceback">{traceback}</pre> }.into_any())
    };
    let is_silent = flag(move || {
        printed.with(Vec::is_empty)
            && session.program().status.with(|status| *status == ProgramStatus::Idle)
            && session.shown_program().is_none()
    });
    view! {
        <section class="panel output" aria-label="Output" hidden=is_silent>
            <div class="bar">
                <h2>"Output"</h2>
                <span class="quiet" role="status" data-testid="program-status">{text(move || status(session))}</span>
                <span class="spacer"></span>
                <span class="quiet" hidden=flag(move || part(false).is_empty())>"Grey: printed after this moment"</span>
            </div>
            {ended::ended(session)}
            <div class="scrolls" tabindex="0" role="group" aria-label="What the program printed">
                <pre data-testid="program-output"><span data-testid="printed">{text(move || part(true))}</span><span class="later" data-testid="printed-later">{text(move || part(false))}</span></pre>
                {traceback}
                {remarks(session)}
                {comparison(session)}
            </div>
        </section>
    }
    .into_any()
}

/// The run whose figures are shown, unless a later one runs or was stopped. Reads signals.
pub(super) fn last_run(session: Session) -> Option<PtrEq<ProgramResult>> {
    let is_idle = session.program().status.with(|status| *status == ProgramStatus::Idle);
    session.shown_program().filter(|_| is_idle)
}

fn status(session: Session) -> String {
    match session.program().status.get() {
        ProgramStatus::Running => running(session),
        ProgramStatus::Idle => {
            let Some(result) = session.shown_program() else { return String::new() };
            let steps = counted(result.run.recording.step_count(), "request");
            let is_old = session.program().input.with(|input| *input != result.input);
            let end = end_text(&result.end());
            let old = if is_old { "; the program has changed since" } else { "" };
            let further = match result.details.further_devices {
                0 => String::new(),
                more => format!("; only the first GPU is drawn, {more} more had memory too"),
            };
            let other = session.program().before.get().map(|before| compared_peaks(&before, &result));
            let other = other.unwrap_or_default();
            format!("{end}: {steps} to the allocator{further}{old}.{other}")
        }
        status => status.text(),
    }
}

/// How the program ended.
fn end_text(end: &ProgramEnd) -> String {
    let at = |line: u32| if line == 0 { String::new() } else { format!(" at line {line}") };
    match end {
        ProgramEnd::Finished => "Finished".to_owned(),
        ProgramEnd::OutOfMemory(line) => format!("Ended by an exception, out of memory{}", at(*line)),
        ProgramEnd::Exception(line) => format!("Ended by an exception{}", at(*line)),
        ProgramEnd::Status(status) => format!("Ended with status {status}"),
    }
}

/// The time for which the program has been running, and the number of lines that it printed, in words.
fn running(session: Session) -> String {
    let seconds = session.program().seconds.get();
    let lines: usize = session
        .program()
        .printed
        .with(|pieces| pieces.iter().map(|piece| piece.text.matches('\n').count()).sum());
    match (seconds, lines) {
        (0, _) => "Running".to_owned(),
        (seconds, 0) => format!("Running for {seconds} s"),
        (seconds, lines) => format!("Running for {seconds} s, {} printed", counted(lines, "line")),
    }
}

/// The change of the peaks by other settings, as a separate sentence.
fn compared_peaks(before: &ProgramResult, now: &ProgramResult) -> String {
    let reserved = |result: &ProgramResult| result.run.series.peak_bytes(&result.run.recording).1;
    let (old, new) = (&before.input, &now.input);
    let named = |what: &str, text: &str, none: &str| match text.trim() {
        "" => none.to_owned(),
        text => format!("{what}{text}"),
    };
    let other = [
        (old.gpu != new.gpu).then(|| format!("GPU {}", old.gpu)),
        (old.capacity != new.capacity).then(|| named("memory of ", &old.capacity, "all memory of the GPU")),
        (old.conf != new.conf).then(|| named("", &old.conf, "the default settings")),
        (old.release != new.release).then(|| format!("PyTorch {}", old.release)),
        (old.arguments != new.arguments).then(|| named("arguments ", &old.arguments, "no arguments")),
    ];
    let other: Vec<String> = other.into_iter().flatten().collect();
    if other.is_empty() {
        return String::new();
    }
    let failed = match before.details.status {
        0 => "",
        _ if before.run.has_failed() => ", until it ran out of memory",
        _ => ", until it ended with an error",
    };
    format!(
        " Reserved at most: {}; with {} it was {}{failed}.",
        reserved(now),
        other.join(", "),
        reserved(before)
    )
}

/// Notes on the run and estimated numbers, each with its line.
fn remarks(session: Session) -> AnyView {
    let lines = move || {
        let Some(result) = last_run(session) else { return Vec::new() };
        let at = |line: u32| if line == 0 { String::new() } else { format!("Line {line}: ") };
        let notes =
            result.details.notes.iter().map(|note| {
                view! { <li>{format!("{}{}", at(note.line), sentence(&note.text))}</li> }.into_any()
            });
        let estimates = result.details.estimates.iter().map(|estimate| {
            let words = format!("{}{}: {}", at(estimate.line), estimate.operator, sentence(&estimate.reason));
            view! { <li class="estimated"><strong>"Estimated. "</strong>{words}</li> }.into_any()
        });
        notes.chain(estimates).collect::<Vec<_>>()
    };
    let is_proved = move || session.shown_program().is_some_and(|result| result.input.gpu == DEFAULT_GPU);
    let derived = flag(move || session.shown_program().is_none() || is_proved());
    view! {
        <p class="estimated" hidden=derived>
            {sentence(DERIVED_NUMBERS)}
        </p>
        <ul class="remarks" data-testid="remarks">{lines}</ul>
    }
    .into_any()
}

/// For an example program: each printed line beside the line that PyTorch printed on an H200.
fn comparison(session: Session) -> AnyView {
    let content = move || {
        let result = session.shown_program()?;
        let conf = result.input.conf.trim();
        let recorded =
            session.program().recorded_texts.get().into_iter().find(|(known, _)| *known == conf)?.1;
        let is_as_recorded = result.input.gpu == DEFAULT_GPU
            && result.input.release == Release::OF_RECORDED_OPERATORS
            && result.input.capacity.trim().is_empty();
        if !is_as_recorded || session.program().status.with(|status| *status != ProgramStatus::Idle) {
            return None;
        }
        let ours: String =
            session.program().printed.with(|pieces| pieces.iter().map(|piece| piece.text.as_str()).collect());
        Some(comparison_view(&recorded, &ours))
    };
    view! { {content} }.into_any()
}

fn comparison_view(recorded: &str, ours: &str) -> AnyView {
    let count = recorded.lines().count().max(ours.lines().count());
    let line_of = |text: &str, index: usize| text.lines().nth(index).unwrap_or_default().to_owned();
    let rows: Vec<_> = (0..count).map(|index| (line_of(recorded, index), line_of(ours, index))).collect();
    let equal = rows.iter().filter(|(recorded, ours)| recorded == ours).count();
    let headline = format!("{equal} of {count} lines are what an H200 printed");
    let class = if equal == count { "headline" } else { "headline differs" };
    let rows = rows.into_iter().map(|(recorded, ours)| {
        let mark = if recorded == ours { "✓ equal" } else { "✗ differs" };
        view! { <tr><td>{mark}</td><td>{recorded}</td><td>{ours}</td></tr> }.into_any()
    });
    view! {
        <details class="comparison" data-testid="comparison">
            <summary class=class>{headline}</summary>
            <div class="scrolls">
                <table>
                    <thead><tr><th></th><th>"An H200 printed"</th><th>"This page printed"</th></tr></thead>
                    <tbody>{rows.collect::<Vec<_>>()}</tbody>
                </table>
            </div>
        </details>
    }
    .into_any()
}
