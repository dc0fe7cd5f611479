//! Several recordings that were opened together, one for each rank: small timelines on one scale.

use blockyard_figure::{Size, timeline_small};
use blockyard_record::Bytes;
use leptos::html;
use leptos::prelude::*;

use crate::files::Rank;
use crate::files::deciding_rank;
use crate::session::{Session, Source};
use crate::surface;
use crate::view::kit::{click, effect, text};

/// The strip of ranks; empty for fewer than two.
pub(crate) fn ranks(session: Session) -> AnyView {
    let content = move || {
        let ranks = session.files().ranks.get();
        if ranks.len() < 2 {
            return None;
        }
        // All timelines share one scale: equal bytes have the same height, and equal counts of steps the same width.
        let top = ranks.iter().map(|rank| rank.opened.run.series.peaks().1).max().unwrap_or_default();
        let steps = ranks.iter().map(|rank| rank.opened.run.series.step_count()).max().unwrap_or_default();
        let words = summary(&ranks);
        let rows: Vec<AnyView> = ranks.into_iter().map(|rank| row(session, rank, top, steps)).collect();
        let label = format!("Ranks: {} timelines on one scale", rows.len());
        Some(
            view! { <section class="panel" aria-label=label data-testid="ranks">
                <p class="ranks-summary" data-testid="ranks-summary">{words}</p>
                <div class="ranks">{rows}</div>
            </section> }
            .into_any(),
        )
    };
    view! { {content} }.into_any()
}

/// Which ranks ran out of memory, and where most is allocated.
fn summary(ranks: &[Rank]) -> String {
    let peak = |rank: &Rank| rank.opened.run.series.peaks().0;
    let name = |rank: &Rank| rank.opened.name.clone();
    let failed: Vec<String> = ranks.iter().filter(|rank| rank.has_failed()).map(name).collect();
    let failed =
        if failed.is_empty() { String::new() } else { format!("Out of memory: {}. ", failed.join(", ")) };
    let (Some(largest), Some(smallest)) =
        (ranks.iter().rev().max_by_key(|rank| peak(rank)), ranks.iter().min_by_key(|rank| peak(rank)))
    else {
        return failed;
    };
    if peak(largest) == peak(smallest) {
        return format!("{failed}All {} ranks have {} allocated at their peaks.", ranks.len(), peak(largest));
    }
    format!(
        "{failed}Most is allocated on {}: {} at its peak; least on {}: {}.",
        name(largest),
        peak(largest),
        name(smallest),
        peak(smallest)
    )
}

/// Which of several ranks the verdict is about; empty where one file is open. Reads signals.
pub(crate) fn verdict_is_about(session: Session) -> String {
    let (ranks, shown) = (session.files().ranks.get(), session.shown_recording());
    let Some(rank) = ranks.iter().find(|rank| ranks.len() > 1 && Some(&rank.opened) == shown.as_ref()) else {
        return String::new();
    };
    let decides = deciding_rank(&ranks).is_some_and(|decides| decides.opened == rank.opened);
    let why = match (rank.has_failed(), decides) {
        (true, _) => ", which ran out of memory",
        (false, true) => ", where most is allocated",
        (false, false) => "",
    };
    format!("About {}{why}, one of {} ranks.", rank.opened.name, ranks.len())
}

fn row(session: Session, rank: Rank, top: Bytes, steps: usize) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let run = rank.opened.run.clone();
    let drawn = run.clone();
    effect(move || {
        let (Some(canvas), Size { width_px, height_px }) = (canvas.get(), size.get()) else { return };
        if width_px < 1.0 {
            return;
        }
        let size = Size::new(width_px, height_px);
        let scene = timeline_small(&drawn.series, &drawn.recording, top, steps, size);
        surface::fit(&canvas, &scene);
        session.appearance().draw(&canvas, &scene);
    });
    let (allocated, reserved) = run.series.peaks();
    let name = rank.opened.name.clone();
    let of = rank.opened.clone();
    let is_shown = text(move || {
        let is_shown =
            session.source.with(|source| matches!(source, Source::Recording(shown) if *shown == of));
        is_shown.to_string()
    });
    let title = format!("{name}: at most {allocated} allocated, {reserved} reserved. Click to show it.");
    view! {
        <button type="button" class="rank" aria-pressed=is_shown title=title
            on:click=click(move || session.files().show_rank(&rank))>
            <span class="name">{name}</span>
            <div class="canvas-box" node_ref=area><canvas node_ref=canvas aria-hidden="true"></canvas></div>
            <span class="peak">{allocated.to_string()}</span>
        </button>
    }
    .into_any()
}
