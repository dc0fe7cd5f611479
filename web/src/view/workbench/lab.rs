//! The panel of questions about the run that is shown.

mod autopsy;
mod figures;
mod growth;
mod parts;
mod search;
mod trial;
mod verdict;
mod what_if;

pub(crate) use parts::{figure, line_to_copy};
pub(crate) use trial::{helps, trial};
pub(crate) use verdict::copy_summary;
pub(crate) use what_if::completions;

use blockyard_lab::QuestionKind;
use blockyard_record::grouped;
use blockyard_replay::Progress;
use blockyard_replay::job::OpenedRecording;
use leptos::prelude::*;

use crate::lab::{Answers, sections};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, click, flag, text};

/// The verdict, and below it the other questions in the order in which a reader asks them.
pub(crate) fn lab(session: Session) -> AnyView {
    let is_first = Memo::new(move |_| stands_first(session));
    view! {
        <div class="lab pad" data-testid="lab">
            {about_host(session)}
            {move || (!is_first.get()).then(|| verdict::verdict(session))}
            {move || (!session.live().shows_steps()).then(|| details(session))}
        </div>
    }
    .into_any()
}

/// What a reader may ask after the verdict: closed until the reader or a link asks.
fn details(session: Session) -> AnyView {
    let kind = session.lab().kind;
    let is_wanted = RwSignal::new(false);
    let is_open = Memo::new(move |_| is_wanted.get() || kind.get() != QuestionKind::Verdict);
    let toggle = click(move || {
        let is_opened = !is_open.get_untracked();
        is_wanted.set(is_opened);
        if !is_opened {
            kind.set(QuestionKind::Verdict);
        }
    });
    let content = move || {
        is_open.get().then(|| {
            let sections = sections().map(|kind| section(session, kind, is_wanted)).collect::<Vec<_>>();
            view! {
                {autopsy::in_the_way(session)}
                {parts::implied_limit(session)}
                <div class="questions" role="group" aria-label="Questions">{sections}</div>
                {parts::notes(session)}
            }
        })
    };
    view! {
        <button
            type="button"
            class="unfold"
            data-testid="lab-details"
            aria-expanded=text(move || is_open.get().to_string())
            on:click=toggle
        >
            "Details: other settings, what grows, another file"
        </button>
        {content}
    }
    .into_any()
}

/// Whether the verdict is above everything else: in one column, the panel of the answers lies below all
/// figures. Reads signals.
fn stands_first(session: Session) -> bool {
    session.appearance().is_narrow.get()
        && session.navigation().place.get() == Place::Workbench
        && session.shows_recording()
}

/// The verdict about an opened file, where it is above everything else.
pub(crate) fn verdict_first(session: Session) -> AnyView {
    let is_first = Memo::new(move |_| stands_first(session));
    let content = move || {
        is_first
            .get()
            .then(|| view! { <div class="panel pad lab">{verdict::verdict(session)}</div> }.into_any())
    };
    view! { {content} }.into_any()
}

/// A question that can be unfolded, with its fields and its answer. `is_wanted` keeps the details open.
fn section(session: Session, kind: QuestionKind, is_wanted: RwSignal<bool>) -> AnyView {
    let lab = session.lab();
    let is_chosen = Memo::new(move |_| lab.kind.get() == kind);
    let choose = click(move || {
        is_wanted.set(true);
        if is_chosen.get_untracked() {
            return lab.kind.set(QuestionKind::Verdict);
        }
        lab.kind.set(kind);
        if !untrack(|| has_answer(session, kind)) && kind != QuestionKind::WhatIf {
            session.lab().ask();
        }
    });
    let body = move || {
        if !is_chosen.get() {
            return ().into_any();
        }
        let asked = match kind {
            QuestionKind::WhatIf => what_if::form(session),
            QuestionKind::Diff => growth::second_file(session),
            // The answers to these questions depend neither on the device nor on a limit.
            QuestionKind::Bound | QuestionKind::Leaks | QuestionKind::Verdict | QuestionKind::Autopsy => {
                ().into_any()
            }
            QuestionKind::Search | QuestionKind::CompareAllocators => parts::conditions(session),
        };
        view! {
            <div class="question-body">
                {asked}
                {working(session, kind)}
                {failure_view(session, kind)}
                {answer(session, kind)}
            </div>
        }
        .into_any()
    };
    view! {
        <div class="question">
            <h3>
                <button
                    type="button"
                    class="unfold"
                    data-testid=format!("lab-{}", kind.name())
                    aria-expanded=text(move || is_chosen.get().to_string())
                    on:click=choose
                >
                    {kind.title()}
                </button>
            </h3>
            {body}
        </div>
    }
    .into_any()
}

fn has_answer(session: Session, kind: QuestionKind) -> bool {
    let answers = session.lab().answers();
    answers.is_some_and(|answers| answers_of_kind(answers, kind) != Answers::default())
}

fn answer(session: Session, kind: QuestionKind) -> AnyView {
    // The memo changes only with the answers of this kind, so that answers to other questions build no view
    // again.
    let of_kind = Memo::new(move |_| session.lab().answers().map(|answers| answers_of_kind(answers, kind)));
    let is_refused = Memo::new(move |_| failure_of(session, kind).is_some());
    let content = move || {
        let answers = of_kind.get()?;
        // A reader would take an earlier answer for the answer to the question that failed.
        if is_refused.get() {
            return None;
        }
        match kind {
            QuestionKind::WhatIf => Some(what_if::answers(session, &answers.what_if)),
            QuestionKind::Search => answers.search.as_ref().map(|found| search::search(session, found)),
            QuestionKind::Bound => answers.bound.as_ref().map(|bound| figures::bound(session, bound)),
            QuestionKind::CompareAllocators => {
                answers.compare.as_ref().map(|rows| search::compared(session, rows))
            }
            QuestionKind::Leaks => answers.leaks.as_ref().map(|leaks| growth::leaks(session, leaks)),
            QuestionKind::Diff => answers.diff.as_ref().map(|(name, diff)| growth::diff(session, name, diff)),
            // The verdict is above the questions, and contains the autopsy.
            QuestionKind::Verdict | QuestionKind::Autopsy => None,
        }
    };
    view! { {content} }.into_any()
}

fn answers_of_kind(answers: Answers, kind: QuestionKind) -> Answers {
    let mut kept = Answers::default();
    match kind {
        QuestionKind::WhatIf => kept.what_if = answers.what_if,
        QuestionKind::Search => kept.search = answers.search,
        QuestionKind::Autopsy => kept.autopsy = answers.autopsy,
        QuestionKind::Bound => kept.bound = answers.bound,
        QuestionKind::CompareAllocators => kept.compare = answers.compare,
        QuestionKind::Leaks => kept.leaks = answers.leaks,
        QuestionKind::Diff => kept.diff = answers.diff,
        QuestionKind::Verdict => kept.verdict = answers.verdict,
    }
    kept
}

/// Says that answers are about a GPU, while the figures show host memory.
fn about_host(session: Session) -> AnyView {
    let shows_host = move || {
        let opened = session.shown_recording();
        opened.is_some_and(|opened| opened.run.opened.as_ref().is_some_and(OpenedRecording::shows_host))
    };
    view! {
        <p class="quiet" data-testid="lab-host" hidden=flag(move || !shows_host())>
            "The figures show host (pinned) memory, which another allocator than that of a GPU hands out. Questions are answered for the GPU."
        </p>
    }
    .into_any()
}

/// The progress of a question of one kind while a worker answers it.
fn working(session: Session, kind: QuestionKind) -> AnyView {
    let all = session.lab().work;
    let work = Memo::new(move |_| all.get().filter(|work| work.kind == kind));
    let words = text(move || {
        work.with(|work| work.as_ref().map(|work| progress(&work.progress)).unwrap_or_default())
    });
    let progress_now = move || work.get().map(|work| work.progress).unwrap_or_default();
    let done = text(move || progress_now().done.to_string());
    let total = text(move || progress_now().total.max(1).to_string());
    view! {
        <p class="cluster" data-testid="lab-work" role="status" hidden=flag(move || work.with(Option::is_none))>
            <progress value=done max=total aria-label="Progress"></progress>
            <span class="quiet">{words}</span>
            {button("", "lab-cancel", "Cancel", "", click(move || session.lab().cancel()))}
        </p>
    }
    .into_any()
}

fn progress(progress: &Progress) -> String {
    match (progress.phase.as_str(), progress.total) {
        ("", _) => "asking".to_owned(),
        (phase, 0) => phase.to_owned(),
        (phase, total) => format!("{phase}, {} of {}", grouped(progress.done), grouped(total)),
    }
}

/// Why the last question has no answer, where it is of this kind.
fn failure_of(session: Session, kind: QuestionKind) -> Option<String> {
    let failed = session.lab().answers()?.failed?;
    (failed.0 == kind).then_some(failed.1)
}

fn failure_view(session: Session, kind: QuestionKind) -> AnyView {
    // An error that the field of the settings shows already is not repeated.
    let is_said =
        move |why: &String| kind == QuestionKind::WhatIf && what_if::refusal(session).as_ref() == Some(why);
    let why = Memo::new(move |_| failure_of(session, kind).filter(|why| !is_said(why)));
    view! {
        <p class="error" role="alert" data-testid="lab-error" hidden=flag(move || why.with(Option::is_none))>
            {text(move || why.get().unwrap_or_default())}
        </p>
    }
    .into_any()
}
