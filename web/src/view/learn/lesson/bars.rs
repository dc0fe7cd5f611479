//! Bars below a card's figure, to one scale: the memory of several ranks, or of the program without a change.

use blockyard_lessons::{MemoryBar, PlayedCard};
use blockyard_record::{Bytes, Recording};
use blockyard_workload::Workload;
use leptos::prelude::*;

use crate::lessons::training_sums;
use crate::program::CATEGORIES;
use crate::view::kit::flag;

/// The words beside a bar, and its bytes by category.
pub(super) type Bar = (String, [Bytes; CATEGORIES.len()]);

/// The bars of a card. `run` returns a run of the lesson by its index.
pub(super) fn of_card<'a>(
    cards: &[PlayedCard],
    card: usize,
    run: impl Fn(usize) -> Option<(&'a Workload, &'a Recording)>,
) -> Vec<Bar> {
    let beside = cards.get(card).map(|card| card.beside.as_slice()).unwrap_or_default();
    let bar = |bar: &MemoryBar| {
        let (workload, recording) = run(bar.run)?;
        let last = bar.step.checked_sub(1).and_then(|last| recording.step(last));
        let state = recording.state_at(last.map_or(0, |step| step.end)).ok()?;
        Some((bar.name.clone(), training_sums(workload, recording, &state)))
    };
    beside.iter().filter_map(bar).collect()
}

fn sum((_, bytes): &Bar) -> Bytes {
    bytes.iter().copied().sum()
}

/// The bars in their order, each with its allocated bytes.
pub(super) fn bars(of: Memo<Vec<Bar>>) -> AnyView {
    let rows = move || {
        let bars = of.get();
        let most = bars.iter().map(sum).max().unwrap_or_default();
        let row = |bar: &Bar| {
            let part = |class: String, bytes: Bytes| {
                view! { <span class=class style=format!("flex-grow:{}", bytes.get())></span> }.into_any()
            };
            let parts = bar.1.iter().enumerate().filter(|(_, bytes)| !bytes.is_zero());
            let parts = parts.map(|(index, bytes)| part(format!("category-{index}"), *bytes));
            let rest = part(String::new(), most.saturating_sub(sum(bar)));
            let parts = parts.chain([rest]).collect::<Vec<_>>();
            view! {
                <li>
                    <span>{bar.0.clone()}</span>
                    <div class="bar-to-scale" aria-hidden="true">{parts}</div>
                    <b class="value">{sum(bar).to_string()}</b>
                </li>
            }
            .into_any()
        };
        bars.iter().map(row).collect::<Vec<_>>()
    };
    let is_none = flag(move || of.with(Vec::is_empty));
    view! {
        <ul class="beside-bars" aria-label="Allocated bytes beside each other" data-testid="beside-bars" hidden=is_none>
            {rows}
        </ul>
    }
    .into_any()
}
