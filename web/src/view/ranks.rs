//! Several recordings that were opened together, one for each rank: small timelines on one scale.

use blockyard_figure::{Size, timeline_small};
use blockyard_record::Bytes;
use leptos::html;
use leptos::prelude::*;

use crate::files::show_rank;
use crate::session::{Rank, Session, Source};
use crate::surface;
use crate::view::kit::{click, effect, text};

/// The strip of ranks; empty for fewer than two.
pub(crate) fn ranks(session: Session) -> AnyView {
    let content = move || {
        let ranks = session.ranks.get();
        if ranks.len() < 2 {
            return None;
        }
        // All timelines share one scale: equal bytes have the same height, and equal counts of steps the same width.
        let top = ranks.iter().map(|rank| rank.opened.run.series.peaks().1).max().unwrap_or_default();
        let steps = ranks.iter().map(|rank| rank.opened.run.series.step_count()).max().unwrap_or_default();
        let rows: Vec<AnyView> = ranks.into_iter().map(|rank| row(session, rank, top, steps)).collect();
        let label = format!("Ranks: {} timelines on one scale", rows.len());
        Some(
            view! { <section class="panel ranks" aria-label=label data-testid="ranks">{rows}</section> }
                .into_any(),
        )
    };
    view! { {content} }.into_any()
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
        session.draw(&canvas, &scene);
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
            on:click=click(move || show_rank(session, &rank))>
            <span class="name">{name}</span>
            <div class="canvas-box" node_ref=area><canvas node_ref=canvas aria-hidden="true"></canvas></div>
            <span class="peak">{allocated.to_string()}</span>
        </button>
    }
    .into_any()
}
