//! The verdict: what the run that is shown came to, in the order in which a reader asks.

use blockyard_lab::{About, Finding, HoldingLine, Verdict, VerdictKind};
use blockyard_record::{Bytes, counted};
use leptos::prelude::*;

use super::parts::line_to_copy;
use super::{failed, working};
use crate::commands::sentence;
use crate::lab::QuestionKind;
use crate::session::Session;
use crate::view::holders::holding_table;
use crate::view::kit::{button, click};

/// At most this many lines that hold memory are listed.
const MOST_LINES: usize = 10;

/// The verdict about the run that is shown, or the button that asks for it.
pub(super) fn verdict(session: Session) -> AnyView {
    let found = Memo::new(move |_| session.answers().and_then(|answers| answers.verdict));
    let is_busy = Memo::new(move |_| {
        session.lab.work.with(|work| work.as_ref().is_some_and(|work| work.kind == QuestionKind::Verdict))
    });
    let content = move || match found.get() {
        Some(found) => answer(session, &found),
        None if is_busy.get() => working(session, QuestionKind::Verdict),
        None => {
            let ask = click(move || session.ask_verdict());
            button("primary", "lab-verdict", "What does this run come to?", "", ask)
        }
    };
    view! {
        <section class="run-verdict" aria-label="Verdict" aria-live="polite" data-testid="run-verdict">
            {content}
            {failed(session, QuestionKind::Verdict)}
        </section>
    }
    .into_any()
}

fn answer(session: Session, found: &Verdict) -> AnyView {
    let class = if found.kind == VerdictKind::Fits { "headline is-right" } else { "headline is-wrong" };
    let notes =
        session.answers().and_then(|answers| answers.run(session.lab_device()).map(|run| run.notes.clone()));
    let notes = notes.unwrap_or_default();
    let parts = About::ALL.map(|about| {
        // The notes on the run stand below, for all questions.
        let of_this =
            found.findings.iter().filter(|finding| finding.about == about && !notes.contains(&finding.text));
        let items: Vec<AnyView> = of_this.map(|finding| item(session, finding, found.moment)).collect();
        let held = (about == About::Sure).then(|| held(&found.held, found.kind));
        let copied = (about == About::Passes).then_some(found.setting.as_ref()).flatten();
        let copied =
            copied.map(|conf| line_to_copy("verdict-line", format!("export PYTORCH_CUDA_ALLOC_CONF={conf}")));
        let title =
            (!items.is_empty()).then(|| view! { <h3>{about.title()}</h3><ul>{items}</ul> }.into_any());
        view! { {title}{copied}{held} }.into_any()
    });
    view! {
        <p class=class data-testid="verdict-headline">{with_code(&sentence(&found.headline))}</p>
        {parts.into_iter().collect::<Vec<_>>()}
    }
    .into_any()
}

/// A sentence; one about the moment of the verdict leads there.
fn item(session: Session, finding: &Finding, moment: u64) -> AnyView {
    let words = with_code(&sentence(&finding.text));
    let link = (finding.about == About::Happened && finding.request == Some(moment)).then(|| {
        button(
            "link",
            "verdict-moment",
            "Show",
            "Moves the cursor to this moment",
            click(move || session.seek_opening_moment()),
        )
    });
    view! { <li>{words}" "{link}</li> }.into_any()
}

/// The lines that held the memory, each with its bytes.
fn held(held: &[HoldingLine], kind: VerdictKind) -> AnyView {
    if held.is_empty() {
        return ().into_any();
    }
    let row = |bytes: Bytes, blocks: u64, what: String| {
        let blocks = counted(usize::try_from(blocks).unwrap_or(usize::MAX), "block");
        (bytes, view! { <code>{what}</code>" "<span class="quiet">{blocks}</span> }.into_any())
    };
    let mut rows: Vec<(Bytes, AnyView)> =
        held.iter().take(MOST_LINES).map(|line| row(line.bytes, line.blocks, line.line.clone())).collect();
    let rest = held.get(MOST_LINES..).unwrap_or_default();
    if !rest.is_empty() {
        let (bytes, blocks) =
            (rest.iter().map(|line| line.bytes).sum(), rest.iter().map(|line| line.blocks).sum());
        rows.push(row(bytes, blocks, counted(rest.len(), "more line")));
    }
    let when = if kind == VerdictKind::Fits { "at the peak" } else { "at the failure" };
    view! {
        <h3>{format!("What held the memory {when}")}</h3>
        {holding_table("verdict-held", rows)}
    }
    .into_any()
}

/// A sentence with the lines of the program, which stand between backticks, as code.
fn with_code(text: &str) -> AnyView {
    let parts = text.split('`').enumerate().map(|(place, part)| {
        let part = part.to_owned();
        if place % 2 == 1 { view! { <code>{part}</code> }.into_any() } else { part.into_any() }
    });
    parts.collect::<Vec<_>>().into_any()
}
