//! The terms with their names in PyTorch's API and their present values. Pointing at a term lights it up in
//! the figures.

use blockyard_figure::Term;
use blockyard_record::{Bytes, MemoryState};
use leptos::ev;
use leptos::prelude::*;

use crate::run::Run;
use crate::session::Session;
use crate::view::kit::{flag, on, text};

fn value(term: Term, state: &MemoryState) -> Bytes {
    let breakdown = state.breakdown();
    let peak = |count: i64| Bytes::new(u64::try_from(count).unwrap_or(0));
    match term {
        Term::Allocated => breakdown.allocated(),
        Term::Reserved => breakdown.reserved(),
        Term::Cached => breakdown.cached,
        Term::Free => breakdown.free,
        Term::Requested => breakdown.requested,
        Term::Rounding => breakdown.rounding,
        Term::Pending => breakdown.pending,
        Term::MaxAllocated => peak(state.stats().allocated_bytes.all.peak),
        Term::MaxReserved => peak(state.stats().reserved_bytes.all.peak),
    }
}

pub(crate) fn term_row(session: Session, terms: &'static [Term]) -> AnyView {
    let entries = terms.iter().map(|term| entry(session, *term)).collect::<Vec<_>>();
    let meaning = text(move || match session.figures().lit.get() {
        Some(term) => format!("{}: {}", term.name(), term.meaning()),
        None => "Point at a term, or go to it with the Tab key: it lights up wherever it is.".to_owned(),
    });
    view! {
        <section class="terms" aria-label="Terms">
            <ul>{entries}</ul>
            <p class="meaning quiet" data-testid="meaning">{meaning}</p>
        </section>
    }
    .into_any()
}

/// The terms of the workbench's row.
const COMPACT: &[Term] =
    &[Term::Allocated, Term::Reserved, Term::Cached, Term::Free, Term::MaxAllocated, Term::MaxReserved];

/// The terms in one row, with their meanings as tooltips.
pub(crate) fn compact(session: Session) -> AnyView {
    let entries = COMPACT.iter().map(|term| row_entry(session, *term)).collect::<Vec<_>>();
    view! { <ul class="terms is-compact" aria-label="Terms">{entries}</ul> }.into_any()
}

/// Whether the file does not say how much memory the device has.
fn is_capacity_open(run: &Run) -> bool {
    run.recording.known_capacity().is_none()
}

/// The term's number at the moment under the cursor. Reads signals.
fn number(session: Session, term: Term) -> String {
    let is_least = term == Term::Free && session.run.with(|run| is_capacity_open(run));
    let bytes = session.with_state(|_, state| value(term, state));
    let non_pytorch = session.lessons().non_pytorch().filter(|_| term == Term::Free);
    let non_pytorch = non_pytorch.map_or(Bytes::ZERO, |non_pytorch| non_pytorch.size);
    let bytes = bytes.map(|bytes| bytes.saturating_sub(non_pytorch).to_string()).unwrap_or_default();
    // At a failure the number is exact, since the allocator's report of the failure has the free bytes.
    if is_least && !session.lab().fails_now() { format!("at least {bytes}") } else { bytes }
}

/// Whether the term has no number: without a known capacity and without a failure, the free bytes of the
/// device are not known.
fn is_unknown(session: Session, term: Term) -> Signal<bool> {
    flag(move || term == Term::Free && session.run.with(|run| is_capacity_open(run) && !run.has_failed()))
}

fn light(session: Session, term: Option<Term>) {
    session.figures().lit.set(term);
}

fn words(session: Session, term: Term) -> AnyView {
    view! {
        <span class="word">{term.name()}</span>
        <code>{term.api().replace('_', "_\u{200b}")}</code>
        <span class="value">{text(move || number(session, term))}</span>
    }
    .into_any()
}

/// A term that lights up under the pointer and with the focus.
fn entry(session: Session, term: Term) -> AnyView {
    view! {
        <li hidden=is_unknown(session, term)>
            <button
                type="button"
                class="term-card"
                style=format!("--term:var({})", term.role().css_variable())
                data-testid=id_of(term)
                title=term.meaning()
                on:pointerenter=on(move |_: ev::PointerEvent| light(session, Some(term)))
                on:pointerleave=on(move |_: ev::PointerEvent| light(session, None))
                on:focus=on(move |_: ev::FocusEvent| light(session, Some(term)))
                on:blur=on(move |_: ev::FocusEvent| light(session, None))
            >
                {words(session, term)}
            </button>
        </li>
    }
    .into_any()
}

/// A term of the workbench's row, which nothing can be done with.
fn row_entry(session: Session, term: Term) -> AnyView {
    view! {
        <li hidden=is_unknown(session, term)>
            <div
                class="term-card"
                style=format!("--term:var({})", term.role().css_variable())
                data-testid=id_of(term)
                title=term.meaning()
                on:pointerenter=on(move |_: ev::PointerEvent| light(session, Some(term)))
                on:pointerleave=on(move |_: ev::PointerEvent| light(session, None))
            >
                {words(session, term)}
            </div>
        </li>
    }
    .into_any()
}

fn id_of(term: Term) -> String {
    format!("term-{}", term.name().replace(' ', "-"))
}
