//! The largest batch that fits: a button below a run that went out of memory, and the answer.

use leptos::prelude::*;

use crate::messages::sentence;
use crate::program::BatchVariant;
use crate::session::Session;
use crate::view::kit::{self, button, click, flag, text};

/// The button and the answer; empty where the program does not say how large its batch is.
pub(super) fn batch(session: Session) -> AnyView {
    let program = session.program();
    let is_possible = Memo::new(move |_| program.batch_of_shown().is_some());
    let running = Memo::new(move |_| program.batch_of_shown().and_then(|search| search.running));
    let is_open = move || {
        let search = program.batch_of_shown();
        search.is_some_and(|search| search.variants.iter().any(|variant| variant.found.is_none()))
    };
    let can_begin = Memo::new(move |_| running.get().is_none() && is_open());
    let words = text(move || {
        running.get().map_or_else(String::new, |(size, seconds)| {
            format!("The program runs with a batch of {size} for {seconds} s.")
        })
    });
    let title = "Runs the program with smaller batches on this GPU until the largest that fits is known";
    view! {
        <div class="batch" data-testid="batch" hidden=flag(move || !is_possible.get())>
            <span hidden=flag(move || !can_begin.get())>
                {button("", "batch-find", "How large a batch fits?", title, click(move || program.find_batch()))}
            </span>
            {kit::running(["batch-running", "batch-cancel"], flag(move || running.with(Option::is_none)), words, click(move || program.cancel_batch()))}
            {move || answers(session)}
        </div>
    }
    .into_any()
}

/// The answers so far. Reads signals.
fn answers(session: Session) -> Vec<AnyView> {
    let Some(search) = session.program().batch_of_shown() else { return Vec::new() };
    let answer = |variant: &BatchVariant| {
        let words = sentence(&search.text(variant)?);
        let size = variant.found.clone()?.ok().flatten().map(|probe| probe.value);
        let show = size.map(|size| {
            let input = search.input(variant, size);
            let act = click(move || session.program().show_trial(input.clone()));
            let title = "Runs the program with this batch in place of the run that is shown";
            view! { " "{button("link", "batch-show", "Show this run", title, act)} }
        });
        Some(view! { <p data-testid="batch-answer"><strong>{words}</strong>{show}</p> }.into_any())
    };
    search.variants.iter().filter_map(answer).collect()
}
