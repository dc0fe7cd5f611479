//! The actions of the pointer and of the keyboard in the segment map.

use blockyard_figure::{
    Direction, MapView, Rect, RowHeight, Scene, Size, Target, TargetId, next_block, scroll_to, zoom_segment,
};
use blockyard_record::BlockId;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::figures::zoom_factor;
use crate::frames::{self, Slot};
use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::dissolve::Dissolve;
use crate::view::map::{block_at, target_text};
use crate::view::map_scroll::DrawnRows;
use crate::view::resize_drag::ResizeDrag;
use crate::view::stage::bytes_f64;
use crate::view::tip::Tip;

/// The parts of the map that its actions use; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct MapActions {
    pub(crate) session: Session,
    pub(crate) area: NodeRef<html::Div>,
    pub(crate) size: RwSignal<Size>,
    pub(crate) drawn: DrawnScene,
    pub(crate) tip: Tip,
    pub(crate) resize: ResizeDrag,
    pub(crate) dissolve: Dissolve,
    pub(crate) drawn_rows: StoredValue<Option<DrawnRows>>,
}

fn place(event: &web_sys::MouseEvent) -> (f32, f32) {
    surface::offset_px(event)
}

impl MapActions {
    /// The view that is drawn: the reader's view with the row height and pool names of the run. Reads
    /// signals.
    pub(crate) fn view(self) -> MapView {
        let run = self.session.run.get();
        let rows = RowHeight::fitting(run.most_segments, self.size.get().height_px);
        MapView { rows, pool_names: run.pool_names.clone(), ..self.session.figures().map_view.get() }
    }

    /// The reader has scrolled the rows.
    pub(crate) fn scrolled(self) {
        frames::plan(Slot::Scroll, move || {
            let Some(area) = self.area.get_untracked() else { return };
            let map_view = self.session.figures().map_view;
            let scroll_px = surface::in_figure(f64::from(area.scroll_top()));
            if map_view.with_untracked(|view| (view.scroll_px - scroll_px).abs() > 0.5) {
                map_view.update(|view| view.scroll_px = scroll_px);
            }
        });
    }

    fn set_hovered(self, target: Option<TargetId>) {
        let session = self.session;
        if session.figures().map_view.with_untracked(|view| view.hovered != target) {
            session.figures().map_view.update(|view| view.hovered = target);
        }
    }

    pub(crate) fn hover(self, event: &ev::PointerEvent) {
        if self.resize.moved(event) {
            return;
        }
        let (x, y) = place(event);
        let target = self.drawn.look(|scene| scene.hit(x, y).map(|target| target.what));
        // The panel beside the map describes the chosen block, and a tooltip would only cover the neighbors
        // of the block.
        let is_chosen = matches!(target, Some(TargetId::Block(block)) if self.session.figures().selected_now() == Some(block));
        let text = target.filter(|_| !is_chosen).and_then(|target| target_text(self.session, target));
        self.tip.show(text, event);
        frames::plan(Slot::Hover, move || self.set_hovered(target));
    }

    pub(crate) fn leave(self) {
        self.tip.hide();
        frames::plan(Slot::Hover, move || self.set_hovered(None));
    }

    pub(crate) fn click(self, event: &ev::MouseEvent) {
        let (x, y) = place(event);
        let session = self.session;
        // The second click of a double click zooms, and the browser sends a click at the end of a drag too.
        if event.detail() > 1 || self.resize.has_ended() {
            return;
        }
        let Some(block) = self.drawn.look(|scene| block_at(scene, x, y)) else {
            return session.figures().select(None);
        };
        self.tip.hide();
        let is_same = session.figures().selected_now() == Some(block);
        session.figures().select((!is_same).then_some(block));
    }

    pub(crate) fn zoom_in_at(self, event: &ev::MouseEvent) {
        self.zoom_at(place(event), 4.0);
    }

    pub(crate) fn wheel(self, event: &ev::WheelEvent) {
        if event.ctrl_key() || event.meta_key() {
            event.prevent_default();
            self.zoom_at(place(event), zoom_factor(event));
        }
    }

    fn zoom_at(self, place: (f32, f32), factor: f64) {
        let (session, size) = (self.session, self.size.get_untracked());
        let view = untrack(|| self.view());
        let target = self.drawn.look(|scene| scene.hit(place.0, place.1).map(|target| target.what));
        let zoom = session.with_state_now(|_, state| {
            let segment = match target? {
                TargetId::Block(block) => state.segment_of(block)?,
                TargetId::SmallBlocks { segment, .. } | TargetId::Segment(segment) => segment,
                _ => return None,
            };
            Some(zoom_segment(state, &view, segment, place.0, factor, size))
        });
        if let Some(Some(zoom)) = zoom
            && view.zoom != zoom
        {
            session.figures().map_view.update(|view| view.zoom = zoom);
        }
    }

    fn reveal(self, block: BlockId) {
        let session = self.session;
        let changes = session.changes.get_untracked();
        let view = untrack(|| self.view());
        let size = self.size.get_untracked();
        let scroll_px = session.with_state_now(|_, state| scroll_to(state, &changes, &view, block, size));
        if let (Some(area), Some(scroll_px)) = (self.area.get_untracked(), scroll_px)
            && (scroll_px - view.scroll_px).abs() > 0.5
        {
            // The rows are scrolled in the next frame, because the effects of this change first have to give
            // the content its new height.
            frames::plan(Slot::Follow, move || area.set_scroll_top(whole(surface::on_page(scroll_px))));
        }
    }

    pub(crate) fn key(self, event: &ev::KeyboardEvent) {
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        let direction = match event.key().as_str() {
            "ArrowLeft" => Direction::Left,
            "ArrowRight" => Direction::Right,
            "ArrowUp" => Direction::Up,
            "ArrowDown" => Direction::Down,
            "Home" => Direction::Home,
            "End" => Direction::End,
            "Enter" => return self.choose(event),
            "+" | "=" => return self.zoom_by_key(event, KEY_ZOOM),
            "-" | "_" => return self.zoom_by_key(event, 1.0 / KEY_ZOOM),
            _ => return,
        };
        if event.shift_key() {
            return;
        }
        event.prevent_default();
        event.stop_propagation();
        let session = self.session;
        let view = untrack(|| self.view());
        let from = match view.hovered {
            Some(TargetId::Block(block)) => Some(block),
            _ => view.selected,
        };
        let next = session.with_state_now(|_, state| next_block(state, &view, from, direction)).flatten();
        if let Some(block) = next {
            self.set_hovered(Some(TargetId::Block(block)));
            self.reveal(block);
            session.announce(target_text(session, TargetId::Block(block)).unwrap_or_default());
        }
    }

    /// Zooms at the middle of the block that the arrow keys are on, or else of the chosen block.
    fn zoom_by_key(self, event: &ev::KeyboardEvent, factor: f64) {
        let Some(block) = self.session.figures().block_in_hand() else { return };
        let place = self.drawn.look(|scene| {
            let target = scene.targets.iter().rev().find(|target| target.what == TargetId::Block(block))?;
            let center = target.rect.center();
            Some((center.x_px, center.y_px))
        });
        if let Some(place) = place {
            event.prevent_default();
            event.stop_propagation();
            self.zoom_at(place, factor);
        }
    }

    fn choose(self, event: &ev::KeyboardEvent) {
        let session = self.session;
        if let Some(TargetId::Block(block)) = session.figures().map_view.with_untracked(|view| view.hovered) {
            event.prevent_default();
            let is_same = session.figures().selected_now() == Some(block);
            session.figures().select((!is_same).then_some(block));
        }
    }
}

/// How many bytes a pixel is in the row of a block: the bytes of the segment that the row shows, divided by
/// the width of its bar. `None` where the block's end cannot be dragged.
pub(crate) fn bytes_per_px(session: Session, scene: &Scene, block: BlockId, rect: &Rect) -> Option<f64> {
    let zoom = session.figures().map_view.with_untracked(|view| view.zoom);
    let (shown, is_whole) = session
        .with_state_now(|_, state| {
            let segment = state.segment_of(block)?;
            let info = state.segments().find(|info| info.id == segment)?;
            let found = state.block(block)?;
            let end = found.addr.offset_from(info.addr).saturating_add(found.size);
            Some(match zoom.filter(|zoom| zoom.segment == segment) {
                // An end that the row does not show cannot be dragged.
                Some(zoom) => (zoom.to.saturating_sub(zoom.from), end <= zoom.to),
                None => (info.size, true),
            })
        })
        .flatten()?;
    let is_in_row = |target: &&Target| {
        let is_block = matches!(target.what, TargetId::Block(_) | TargetId::SmallBlocks { .. });
        is_block && (target.rect.y_px - rect.y_px).abs() < 1.0
    };
    let row = scene.targets.iter().filter(is_in_row).map(|target| target.rect);
    let ends = row.map(|rect| (rect.x_px, rect.right_px()));
    let (left, right) = ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
    (is_whole && right - left >= 1.0).then(|| bytes_f64(shown) / f64::from(right - left))
}

/// How far one press of a key zooms.
const KEY_ZOOM: f64 = 2.0;

#[expect(clippy::cast_possible_truncation, reason = "a scroll position is far below 2^31")]
pub(crate) fn whole(length_px: f64) -> i32 {
    length_px.round() as i32
}
