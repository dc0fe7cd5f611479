//! The segment map: a row for each segment, in an element that scrolls.

use std::collections::BTreeSet;

use blockyard_figure::{RowHeight, Scene, TargetId, describe_target, segment_map, segment_map_height};
use blockyard_record::{BlockId, PoolId, counted};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::browser;
use crate::effect::effect;
use crate::frames::{self, Slot};
use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::figure::dissolve::Dissolve;
use crate::view::figure::gesture;
use crate::view::figure::map_actions::{MapActions, bytes_per_px};
use crate::view::figure::map_overview::map_overview;
use crate::view::figure::resize_drag::ResizeDrag;
use crate::view::figure::tip::Tip;
use crate::view::kit::{button, click, flag, on, text};

/// The height of the map that a few rows fill with high bars; with more rows the bars are lower.
const COMFORTABLE_PX: f32 = 260.0;
/// The part above the rows, and some room below them.
const HEADER_PX: f32 = 48.0;

pub(crate) fn map(session: Session) -> AnyView {
    frames::forget_with_view(&[Slot::Map, Slot::Hover, Slot::Scroll, Slot::Follow]);
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let (tip, drawn) = (Tip::new(), DrawnScene::new());
    let resize = ResizeDrag::new(session, drawn, tip, bytes_per_px);
    let actions = MapActions {
        session,
        resize,
        dissolve: Dissolve::new(session, Slot::Map, canvas),
        area,
        size: surface::size_of(area),
        drawn,
        tip,
        drawn_rows: StoredValue::new(None),
    };
    gesture::listen(area, move |gesture, at, event| actions.act(gesture, at, event));
    let height = Memo::new(move |_| {
        let changes = session.changes.get();
        let view = actions.view();
        session.with_state(|_, state| segment_map_height(state, &changes, &view)).unwrap_or(0.0)
    });
    effect(move || {
        if let Some(canvas) = canvas.get() {
            draw(actions, &canvas);
        }
    });
    // The map is as high as the most rows of the run, so that nothing moves while the run plays.
    let rows = text(move || {
        let most = session.run.get().most_segments.max(rows_now(session)).max(1);
        let row_px = RowHeight::fitting(most, COMFORTABLE_PX).row_px();
        format!(
            "--map-rows:{}px",
            surface::on_page(HEADER_PX + row_px * surface::pixels(frames::count(most)))
        )
    });
    view! {
        <section class="panel map" aria-label="Segments" style=rows>
            <div class="map-top">
                {toolbar(session)}
                {map_overview(actions)}
            </div>
            <div
                class=text(move || resize.class("scroller"))
                node_ref=area
                tabindex="0"
                role="application"
                aria-label=text(move || label(session))
                data-testid="map"
                on:scroll=on(move |_: ev::Event| actions.scrolled())
                on:keydown=on(move |event: ev::KeyboardEvent| actions.key(&event))
            >
                <canvas node_ref=canvas aria-hidden="true"></canvas>
                <div class="extent" style=text(move || format!("height:{}px", surface::on_page(height.get())))></div>
            </div>
            <p class="hint quiet" hidden=flag(move || hint(session).is_empty())>{text(move || hint(session))}</p>
            {tip.view()}
        </section>
    }
    .into_any()
}

/// How many rows the map has at this moment: more than the run's peak of segments if the run has reset its
/// peaks. Reads signals.
fn rows_now(session: Session) -> usize {
    let released = session.changes.get().released.len();
    session.with_state(|_, state| state.segments().count()).unwrap_or(0) + released
}

/// Draws the rows in sight. Reads signals.
fn draw(actions: MapActions, canvas: &HtmlCanvasElement) {
    let MapActions { session, size, .. } = actions;
    // A dissolve draws outside of this effect.
    session.appearance().version.track();
    let size = size.get();
    if size.width_px < 1.0 {
        return;
    }
    let changes = session.changes.get();
    let mut view = actions.view();
    view.scroll_px = actions.steady_scroll(&changes, &view, size);
    let scene = session.with_state(|run, state| {
        let mut scene = segment_map(state, &changes, &run.recording, &view, size);
        session.figures().color_blocks(&mut scene, state);
        scene
    });
    if let Some(scene) = scene {
        surface::fit(canvas, &scene);
        // The targets are those of the next picture, so that the pointer reaches a part at its final place.
        actions.drawn.keep(scene.clone());
        actions.dissolve.show(&view, scene);
    }
}

/// The map in a sentence, for screen readers. Reads signals.
fn label(session: Session) -> String {
    let counts = session.with_state(|_, state| {
        let pools: BTreeSet<PoolId> = state.segments().map(|segment| segment.pool_id).collect();
        (state.segments().count(), pools.len())
    });
    let (count, pools) = counts.unwrap_or_default();
    let segments = counted(count, "segment");
    let pools = if pools > 1 { format!(" in {pools} memory pools") } else { String::new() };
    format!(
        "Segment map, {segments}{pools}. Arrow keys move from block to block, Enter chooses, F frees, comma and full stop change the size."
    )
}

/// The words that say the effect of a click. Reads signals.
fn hint(session: Session) -> String {
    // Only the blocks of a workload can be freed by hand; in a recording and in a program's run, each free is
    // part of the run.
    let can_free = session.shows_text() && session.shown_program().is_none();
    if !can_free {
        return String::new();
    }
    if browser::is_touch() {
        return "Tap a block to choose it; drag its right end to change its size.".to_owned();
    }
    "Click a block to choose it, F frees it; drag its right end, or press comma and full stop, to change its size."
        .to_owned()
}

fn toolbar(session: Session) -> AnyView {
    let summary = text(move || {
        let summary = session.with_state(|_, state| {
            let segments = counted(state.segments().count(), "segment");
            format!("{segments}, {} reserved", state.breakdown().reserved())
        });
        summary.unwrap_or_default()
    });
    let is_zoomed = Memo::new(move |_| session.figures().map_view.with(|view| view.zoom.is_some()));
    view! {
        <div class="head">
            <h2>"Segments"</h2>
            <span class="quiet" data-testid="segments-summary">{summary}</span>
            <span class="spacer"></span>
            <span hidden=flag(move || !is_zoomed.get())>
                {button("", "zoom-out", "Whole segments", "Show whole segments again (0, double click)", click(move || session.figures().map_view.update(|view| view.zoom = None)))}
            </span>
        </div>
    }
    .into_any()
}

/// The block at a place of the map.
pub(crate) fn block_at(scene: &Scene, x_px: f32, y_px: f32) -> Option<BlockId> {
    match scene.hit(x_px, y_px)?.what {
        TargetId::Block(block) => Some(block),
        _ => None,
    }
}

/// The target in words, at the moment under the cursor.
pub(crate) fn target_text(session: Session, target: TargetId) -> Option<String> {
    session.with_state_now(|run, state| describe_target(target, state, &run.recording)).flatten()
}
