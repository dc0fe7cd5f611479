//! The strip above the rows of the map: all segments side by side, with a lens around those whose rows are in
//! sight.

use blockyard_figure::MapOverview;
use blockyard_record::BlockId;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::effect::effect;
use crate::surface;
use crate::view::figure::map_actions::{MapActions, whole};
use crate::view::kit::{flag, on, text};

/// The strip is hidden for fewer segments than this, whose rows are all in sight.
const MIN_SEGMENTS: usize = 5;

/// The least width of the lens, so that it can be seen.
const MIN_LENS_PX: f32 = 6.0;

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
    let session = actions.session;
    let canvas = NodeRef::<html::Canvas>::new();
    let strip = OverviewStrip {
        actions,
        node: NodeRef::new(),
        overview: Memo::new(move |_| actions.overview()),
        scroll_px: Memo::new(move |_| session.figures().map_view.with(|view| view.scroll_px)),
    };
    let selected = Memo::new(move |_| session.figures().selected());
    effect(move || {
        if let Some(canvas) = canvas.get() {
            strip.draw(&canvas, selected.get());
        }
    });
    view! {
        <div
            class="map-overview"
            node_ref=strip.node
            role="slider"
            tabindex="0"
            data-testid="map-overview"
            aria-label="Rows in sight, of all segments"
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=text(move || strip.percent())
            aria-valuetext=text(move || strip.shown_text())
            title="All reserved memory, each segment as wide as its bytes. The frame is around the rows in sight: click or drag to scroll there"
            hidden=flag(move || session.run.get().most_segments < MIN_SEGMENTS)
            on:pointerdown=on(move |event: ev::PointerEvent| strip.pointer_down(&event))
            on:pointermove=on(move |event: ev::PointerEvent| strip.pointer_moved(&event))
            on:keydown=on(move |event: ev::KeyboardEvent| actions.scroll_by_key(&event))
        >
            <canvas node_ref=canvas aria-hidden="true"></canvas>
            <div class="lens" style=text(move || strip.lens_style())></div>
        </div>
    }
    .into_any()
}

/// The strip and how far the rows are scrolled; a handle that is copied freely.
#[derive(Clone, Copy)]
struct OverviewStrip {
    actions: MapActions,
    node: NodeRef<html::Div>,
    overview: Memo<Option<MapOverview>>,
    scroll_px: Memo<f32>,
}

impl OverviewStrip {
    /// Draws the strip with the changes of the step under the cursor. Reads signals.
    fn draw(self, canvas: &HtmlCanvasElement, selected: Option<BlockId>) {
        let MapActions { session, size, .. } = self.actions;
        let Some(overview) = self.overview.get().filter(|_| size.get().width_px >= 1.0) else { return };
        let changes = session.changes.get();
        let scene = session.with_state(|_, state| overview.scene(state, &changes, selected));
        if let Some(scene) = scene {
            surface::show(session, canvas, &scene);
        }
    }

    /// Calls `read` with the strip and with how far the rows are scrolled. Reads signals.
    fn with<T>(self, read: impl FnOnce(&MapOverview, f32) -> T) -> Option<T> {
        let scroll_px = self.scroll_px.get();
        self.overview.with(|overview| overview.as_ref().map(|overview| read(overview, scroll_px)))
    }

    fn lens_style(self) -> String {
        let lens_px = self.with(MapOverview::lens_px);
        lens_px.map_or_else(String::new, |(left, right)| {
            let width = (right - left).max(MIN_LENS_PX);
            format!("left:{}px;width:{}px", surface::on_page(left), surface::on_page(width))
        })
    }

    fn shown_text(self) -> String {
        self.with(MapOverview::text).unwrap_or_default()
    }

    fn percent(self) -> String {
        format!("{:.0}", self.with(MapOverview::scrolled_share).unwrap_or(0.0) * 100.0)
    }

    fn pointer_down(self, event: &ev::PointerEvent) {
        if let Some(strip) = self.node.get_untracked().filter(|_| event.button() == 0) {
            event.prevent_default();
            let _ = strip.set_pointer_capture(event.pointer_id());
            let _ = strip.focus();
            self.scroll_to_pointer(event);
        }
    }

    fn pointer_moved(self, event: &ev::PointerEvent) {
        let strip = self.node.get_untracked();
        if strip.is_some_and(|strip| strip.has_pointer_capture(event.pointer_id())) {
            self.scroll_to_pointer(event);
        }
    }

    fn scroll_to_pointer(self, event: &ev::PointerEvent) {
        let (x_px, _) = surface::offset_px(event);
        let scroll_px = self.overview.with_untracked(|overview| Some(overview.as_ref()?.scroll_px_at(x_px)));
        if let Some(scroll_px) = scroll_px {
            self.actions.scroll_to(scroll_px);
        }
    }
}
