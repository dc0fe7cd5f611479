//! The run before and after a change on one scale, and buttons that try changes which would have prevented an
//! out of memory.

use blockyard_figure::{ComparedCurve, ComparedTimelines, CurvePart, compared_timelines};
use blockyard_lab::{
    Change, ChangeKind, Outcome, QuestionKind, Row, VerdictAnswer, VerdictKind, context_and_libraries,
    is_drivers_pool,
};
use blockyard_record::{Bytes, grouped};
use blockyard_rules::conf_text;
use blockyard_workload::Request;
use leptos::prelude::*;

use super::parts::{figure_over_requests, first_oom, hypothesis};
use crate::browser;
use crate::lab::{Cell, Trial};
use crate::messages::sentence;
use crate::navigation::Place;
use crate::numbers::grouped_signed;
use crate::session::Session;
use crate::view::kit::{button, click, flag, text};
use crate::view::program::memory_need;

const HEIGHT_PX: f32 = 240.0;

fn curve(row: &Row) -> ComparedCurve {
    let Some(outcome) = row.outcome_at_lowest() else { return ComparedCurve::default() };
    let parts = outcome.timeline.iter().map(|part| CurvePart {
        until: part.until,
        allocated: part.allocated,
        reserved: part.reserved,
    });
    ComparedCurve { parts: parts.collect(), oom: outcome.first_oom.as_ref().map(|first| first.request) }
}

/// Two timelines on one scale.
pub(super) fn compared(session: Session, before: &Row, after: &Row, requests: u64) -> AnyView {
    let label = format!("Reserved memory over {requests} requests, before and after");
    // If only bounds of the limit are known, the curves are those of the lower bound.
    let limit = after.limit.map(|limit| (limit.low, limit.high));
    let timelines = ComparedTimelines { before: curve(before), after: curve(after), requests, limit };
    figure_over_requests(session, "lab-timelines", label, (requests, HEIGHT_PX), move |part, size| {
        compared_timelines(&timelines, part, size)
    })
}

/// The request that went out of memory, or the words that this depends on the limit.
fn out_of_memory(row: &Row, outcome: &Outcome) -> String {
    row.dependence().unwrap_or_else(|| first_oom(outcome))
}

/// A table of the values before and after, with their differences.
pub(super) fn deltas(before: &Row, after: &Row) -> AnyView {
    let (Some(old), Some(new)) = (before.outcome_at_lowest(), after.outcome_at_lowest()) else {
        return ().into_any();
    };
    // Peaks of a run that ended earlier are not a saving.
    let ends = |outcome: &Outcome| outcome.first_oom.as_ref().map(|first| first.request);
    let is_same_end = ends(old) == ends(new);
    let sizes = |name: &str, old: Bytes, new: Bytes| {
        // Peaks are far below 2^63 bytes, so the difference does not overflow.
        let change = new.signed().saturating_sub(old.signed());
        (
            name.to_owned(),
            old.to_string(),
            new.to_string(),
            (change != 0 && is_same_end).then(|| Cell::Change(change).shown()),
        )
    };
    let counts = |name: &str, old: u64, new: u64| {
        let change =
            i64::try_from(new).unwrap_or(i64::MAX).saturating_sub(i64::try_from(old).unwrap_or(i64::MAX));
        let words = (change != 0 && is_same_end).then(|| {
            let sign = if change > 0 { "+" } else { "" };
            format!("{sign}{}", grouped_signed(change))
        });
        (name.to_owned(), grouped(old), grouped(new), words)
    };
    let rows = [
        sizes("peak reserved", old.peak_reserved, new.peak_reserved),
        sizes("peak allocated", old.peak_allocated, new.peak_allocated),
        counts("device calls", old.device_calls(), new.device_calls()),
        counts("retries", old.alloc_retries, new.alloc_retries),
        ("out of memory".to_owned(), out_of_memory(before, old), out_of_memory(after, new), None),
    ];
    // Without a difference there is no column for it.
    let has_change = rows.iter().any(|(.., change)| change.is_some());
    let head = has_change.then(|| view! { <th scope="col" class="number">"difference"</th> });
    let rows = rows.map(|(name, old, new, change)| {
        let change = has_change.then(|| view! { <td class="number change">{change}</td> });
        view! {
            <tr>
                <th scope="row">{name}</th>
                <td class="number">{old}</td>
                <td class="number">{new}</td>
                {change}
            </tr>
        }
        .into_any()
    });
    view! {
        <table class="answer deltas" data-testid="lab-deltas">
            <thead><tr><td></td><th scope="col" class="number">"as it was"</th><th scope="col" class="number">"changed"</th>{head}</tr></thead>
            <tbody>{rows.into_iter().collect::<Vec<_>>()}</tbody>
        </table>
        {other_end(ends(old), ends(new), after)}
    }
    .into_any()
}

/// A sentence about runs that end at different requests, or at the bounds of a limit, which says how to read
/// their numbers.
fn other_end(before: Option<u64>, after: Option<u64>, row: &Row) -> AnyView {
    let bound = row.limit.filter(|limit| limit.low != limit.high);
    let bound = bound
        .map(|limit| format!("These numbers are those under the lower bound of the limit, {}.", limit.low));
    let ends = (before != after).then(|| {
        let end = |request: Option<u64>| {
            request.map_or("at its last request".to_owned(), |request| {
                format!("at request {}", grouped(request))
            })
        };
        format!(
            "As it was the run ends {}, with the change {}: their peaks cannot be compared.",
            end(before),
            end(after)
        )
    });
    let is_drivers_pool = is_drivers_pool(&row.conditions.conf);
    let in_use = (is_drivers_pool && row.limit.is_some()).then(|| {
        "Under cudaMallocAsync a memory fraction limits the bytes in use and not those that the driver's pool keeps: more than the limit \
         may be reserved."
            .to_owned()
    });
    [ends, bound, in_use]
        .into_iter()
        .flatten()
        .map(|words| view! { <p class="quiet" data-testid="lab-ends">{words}</p> }.into_any())
        .collect::<Vec<_>>()
        .into_any()
}

/// The change that was tried last, with the run before and after it; empty if none was tried.
pub(crate) fn trial(session: Session) -> AnyView {
    let tried = Memo::new(move |_| session.lab().answers().and_then(|answers| answers.trial));
    let content = move || tried.get().map(|trial| trial_view(session, &trial));
    view! { {content} }.into_any()
}

/// The words about a run in which all requests pass, which proves more if the recorded run went on after the
/// failure than if its recording ends at the failure.
fn passes_text(session: Session, trial: &Trial) -> String {
    let verdict = untrack(|| session.lab().answers()).and_then(|answers| answers.verdict);
    let is_growing = |found: &&VerdictAnswer| matches!(found.kind, VerdictKind::Leak | VerdictKind::Grows);
    let found = verdict.as_ref().map(|verdict| &verdict.answer).filter(is_growing);
    let mut findings = found.into_iter().flat_map(|found| &found.findings);
    let grows = findings.find_map(|finding| finding.line.clone());
    let is_program = untrack(|| session.shown_program()).is_some();
    let again = trial.change.as_ref().filter(|_| is_program).map(|change| match change {
        ChangeKind::Setting(conf) if conf.is_empty() => "the default settings".to_owned(),
        ChangeKind::Setting(conf) => conf.clone(),
        ChangeKind::Limit(limit) => format!("at least {} of memory for PyTorch", limit.enough_text()),
        _ => "this change in its code".to_owned(),
    });
    sentence(&trial.after.passes_sentence(grows.as_deref(), again.as_deref()).replace('`', ""))
}

fn trial_view(session: Session, trial: &Trial) -> AnyView {
    let (result_class, result) = match (trial.after.outcome_at_lowest(), &trial.after.outcome) {
        _ if trial.after.fits() => ("verdict is-right", passes_text(session, trial)),
        _ if trial.after.depends_on_limit() => {
            ("verdict is-wrong", sentence(&trial.after.dependence().unwrap_or_default()))
        }
        (Some(outcome), _) => ("verdict is-wrong", format!("Out of memory at {}.", first_oom(outcome))),
        (None, Err(why)) => ("error", sentence(&why.to_string())),
        (None, Ok(_)) => ("", String::new()),
    };
    let can_apply = untrack(|| session.shows_text() && session.navigation().place.get() == Place::Workbench);
    let is_edit = |change: &ChangeKind| {
        !matches!(change, ChangeKind::DefaultPool | ChangeKind::OneStream | ChangeKind::Synchronize)
    };
    let apply = trial.change.clone().filter(|change| can_apply && is_edit(change)).map(|change| {
        let act = click(move || session.lab().apply_change(&change));
        button("primary", "trial-apply", "Change the workload so", "Undo (Ctrl+Z) takes it back", act)
    });
    // The trial is often out of sight.
    let _ = browser::after_millis(0, || browser::scroll_into_sight(".run-verdict [data-testid=trial]"));
    view! {
        <section class="trial" aria-label="Before and after" data-testid="trial">
            <h3>{trial.title.clone()}</h3>
            <p class=result_class>{result}</p>
            {compared(session, &trial.before, &trial.after, trial.requests)}
            {deltas(&trial.before, &trial.after)}
            {apply}
            {button("link", "trial-close", "Close", "", click(move || session.lab().forget_trial()))}
        </section>
    }
    .into_any()
}

/// Buttons that try changes which would have prevented the first out of memory of the run.
pub(crate) fn helps(session: Session) -> AnyView {
    let is_failed = Memo::new(move |_| session.lab().fails_now());
    let found = Memo::new(move |_| session.lab().answers().and_then(|answers| answers.autopsy));
    let content = move || {
        if !is_failed.get() {
            return None;
        }
        let Some(found) = found.get() else {
            let ask = click(move || session.lab().ask_autopsy());
            let is_busy = session
                .lab()
                .work
                .with(|work| work.as_ref().is_some_and(|work| work.kind == QuestionKind::Autopsy));
            return Some(if is_busy {
                super::working(session, QuestionKind::Autopsy)
            } else {
                button(
                    "",
                    "ask-helps",
                    "What would have helped?",
                    "Tries settings, frees and sizes, each by a replay",
                    ask,
                )
            });
        };
        let autopsy = (*found).as_ref()?;
        let step = session.player.with(|player| player.steps);
        // Requests of a program's snapshot have other numbers than the steps.
        let is_numbered_by_step = untrack(|| session.shown_program()).is_none();
        if usize::try_from(autopsy.failure.request.request) != Ok(step) && is_numbered_by_step {
            let first = usize::try_from(autopsy.failure.request.request).unwrap_or(0);
            let seek = click(move || session.dispatch(blockyard_figure::PlayerAction::SeekStep(first)));
            return Some(button("link", "first-failure", "Go to the first request that failed", "", seek));
        }
        Some(
            view! {
                {leak_view(session)}
                {hypothesis(session, &autopsy.conditions)}
                <p>{sentence(&autopsy.failure.sentence)}</p>
                {change_buttons(session, &autopsy.failure.changes)}
                {memory_need(session)}
            }
            .into_any(),
        )
    };
    view! {
        <section class="helps" aria-label="What would have helped" data-testid="helps" hidden=flag(move || !is_failed.get())>
            {content}
            {move || is_failed.get().then(|| trial(session))}
        </section>
    }
    .into_any()
}

/// Why the shown program ran out of memory, where one of its lists is the cause. Reads signals.
pub(super) fn program_cause(session: Session) -> Option<String> {
    let program = session.shown_program()?;
    let cause = program.details.cause.as_ref()?;
    let line = if cause.line == 0 { String::new() } else { format!("line {}: ", cause.line) };
    Some(line + &cause.text)
}

/// What grows, before the changes of one request, which do not include the memory that earlier iterations
/// kept: the list that the program's own end names, or else the leak that the verdict found.
fn leak_view(session: Session) -> AnyView {
    let words = text(move || {
        let cause = program_cause(session);
        let verdict = session.lab().answers().and_then(|answers| answers.verdict);
        let is_leak = |found: &VerdictAnswer| matches!(found.kind, VerdictKind::Leak | VerdictKind::Grows);
        let leak = verdict.filter(|found| is_leak(&found.answer)).map(|found| found.answer.headline.clone());
        sentence(&cause.or(leak).unwrap_or_default()).replace('`', "")
    });
    let is_none = flag(move || words.with(String::is_empty));
    view! { <p class="cause" data-testid="step-leak" hidden=is_none>{words}</p> }.into_any()
}

/// The names of the tensors of these requests, counted from 1; words for those without a name.
fn tensors_text(session: Session, requests: &[u64], earlier: usize) -> String {
    let run = session.run.get_untracked();
    let name = |request: &u64| {
        let step = usize::try_from(*request).ok()?.checked_sub(1)?;
        match run.request(step)? {
            Request::Allocate { tensor, .. } => {
                run.workload.tensor_name(*tensor).map(std::borrow::Cow::into_owned)
            }
            _ => None,
        }
    };
    let names: Option<Vec<String>> = requests.iter().take(2).map(name).collect();
    match (names.as_deref(), requests.len().saturating_add(earlier)) {
        (Some([one]), 1) => one.clone(),
        (Some([one, two]), 2) => format!("{one} and {two}"),
        (Some([one, ..]), count) => format!("{one} and {} more", count.saturating_sub(1)),
        (_, 1) => "one tensor".to_owned(),
        (_, count) => format!("{count} tensors"),
    }
}

/// A button that tries a change of which a replay proved that it helps.
pub(super) fn change_button(session: Session, place: usize, change: &Change) -> AnyView {
    let title = sentence(&change.sentence);
    let label = match &change.kind {
        ChangeKind::Setting(conf) => conf_text(conf).to_owned(),
        ChangeKind::FreeTensors { requests, earlier, bytes } => {
            format!("free {} before ({bytes})", tensors_text(session, requests, earlier.len()))
        }
        // The memory of a program's GPU is typed with the CUDA context and libraries, which a recording's
        // limit does not have.
        ChangeKind::Limit(limit) if untrack(|| session.shown_program()).is_some() => {
            let all = limit.saturating_add(context_and_libraries());
            format!("a GPU of {} in all", all.enough_text())
        }
        ChangeKind::Limit(limit) => format!("{} of memory", limit.enough_text()),
        ChangeKind::DefaultPool => "no separate pools".to_owned(),
        ChangeKind::OneStream => "one stream".to_owned(),
        ChangeKind::Synchronize => "synchronize before".to_owned(),
    };
    let (kind, heading) = (change.kind.clone(), title.clone());
    let try_it = click(move || session.lab().try_change(&kind, heading.clone()));
    button("chip", format!("try-change-{place}"), label, title, try_it)
}

/// A button for each change of which a replay proved that it helps.
fn change_buttons(session: Session, changes: &[Change]) -> AnyView {
    let buttons = changes.iter().enumerate().map(|(place, change)| change_button(session, place, change));
    let none = changes.is_empty().then_some("Nothing that was tried helps.");
    view! {
        <div class="cluster" role="group" aria-label="What would have helped">
            <span class="quiet">{if changes.is_empty() { "" } else { "A replay passes with:" }}</span>
            {buttons.collect::<Vec<_>>()}
            {none}
        </div>
    }
    .into_any()
}
