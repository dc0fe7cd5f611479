//! The strip above the rows of the map: all segments side by side, with a lens around those whose rows are in sight.

use blockyard_figure::MapOverview;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::surface;
use crate::view::kit::{effect, flag, on, text};
use crate::view::map_actions::{MapActions, whole};

/// The strip is hidden for fewer segments than this, whose rows are all in sight.
const LEAST_SEGMENTS: usize = 5;

/// The least width of the lens, so that it can be seen.
const LEAST_LENS_PX: f32 = 6.0;

impl MapActions {
    /// The strip for the present rows of the map. Reads signals.
    fn overview(self) -> Option<MapOverview> {
        let session = self.session;
        let changes = session.changes.get();
        let (view, size) = (self.view(), self.size.get());
        session.with_state(|run, state| {
            let most_reserved = run.series.peak_bytes(&run.recording).1;
            MapOverview::new(state, &changes, &view, most_reserved, size)
        })
    }

    /// Scrolls the rows, and with them the lens.
    fn scroll_to(self, scroll_px: f32) {
        if let Some(area) = self.area.get_untracked() {
            area.set_scroll_top(whole(surface::on_page(scroll_px)));
        }
    }

    /// Scrolls by a row, by a page, or to an end.
    fn scroll_by_key(self, event: &ev::KeyboardEvent) {
        let Some(area) = self.area.get_untracked() else { return };
        let row = whole(surface::on_page(untrack(|| self.view()).rows.row_px()));
        let page = (area.client_height() - 2 * row).max(row);
        let by = match event.key().as_str() {
            "ArrowLeft" | "ArrowUp" => -row,
            "ArrowRight" | "ArrowDown" => row,
            "PageUp" => -page,
            "PageDown" => page,
            "Home" => -area.scroll_top(),
            "End" => area.scroll_height(),
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        area.set_scroll_top(area.scroll_top() + by);
    }
}

pub(crate) fn map_overview(actions: MapActions) -> AnyView {
    let MapActions { session, size, .. } = actions;
    let canvas = NodeRef::<html::Canvas>::new();
    let strip = NodeRef::<html::Div>::new();
    let overview = Memo::new(move |_| actions.overview());
    let selected = Memo::new(move |_| session.selected());
    effect(move || {
        let (Some(canvas), Some(overview)) = (canvas.get(), overview.get()) else { return };
        if size.get().width_px < 1.0 {
            return;
        }
        let changes = session.changes.get();
        let scene = session.with_state(|_, state| overview.scene(state, &changes, selected.get()));
        if let Some(scene) = scene {
            surface::fit(&canvas, &scene);
            session.draw(&canvas, &scene);
        }
    });
    let scroll_px = Memo::new(move |_| session.map_view.with(|view| view.scroll_px));
    let lens = text(move || {
        let Some((left, right)) = overview.with(|overview| Some(overview.as_ref()?.lens_px(scroll_px.get())))
        else {
            return String::new();
        };
        let width = (right - left).max(LEAST_LENS_PX);
        format!("left:{}px;width:{}px", surface::on_page(left), surface::on_page(width))
    });
    let words = text(move || {
        overview
            .with(|overview| overview.as_ref().map(|overview| overview.text(scroll_px.get())))
            .unwrap_or_default()
    });
    let percent = text(move || {
        let share = overview
            .with(|overview| overview.as_ref().map(|overview| overview.scrolled_share(scroll_px.get())));
        format!("{:.0}", share.unwrap_or(0.0) * 100.0)
    });
    let go = move |event: &ev::PointerEvent| {
        let (x_px, _) = surface::offset_px(event);
        let scroll_px = overview.with_untracked(|overview| Some(overview.as_ref()?.scroll_px_at(x_px)));
        if let Some(scroll_px) = scroll_px {
            actions.scroll_to(scroll_px);
        }
    };
    let down = on(move |event: ev::PointerEvent| {
        if let Some(strip) = strip.get_untracked().filter(|_| event.button() == 0) {
            event.prevent_default();
            let _ = strip.set_pointer_capture(event.pointer_id());
            let _ = strip.focus();
            go(&event);
        }
    });
    let moved = on(move |event: ev::PointerEvent| {
        if strip.get_untracked().is_some_and(|strip| strip.has_pointer_capture(event.pointer_id())) {
            go(&event);
        }
    });
    view! {
        <div
            class="map-overview"
            node_ref=strip
            role="slider"
            tabindex="0"
            data-testid="map-overview"
            aria-label="Rows in sight, of all segments"
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=percent
            aria-valuetext=words
            title="All reserved memory, each segment as wide as its bytes. The frame is around the rows in sight: click or drag to scroll there"
            hidden=flag(move || session.run.get().most_segments < LEAST_SEGMENTS)
            on:pointerdown=down
            on:pointermove=moved
            on:keydown=on(move |event: ev::KeyboardEvent| actions.scroll_by_key(&event))
        >
            <canvas node_ref=canvas aria-hidden="true"></canvas>
            <div class="lens" style=lens></div>
        </div>
    }
    .into_any()
}
