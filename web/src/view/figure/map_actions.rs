//! The actions of the pointer and of the keyboard in the segment map.

use std::collections::BTreeSet;

use blockyard_figure::{
    Direction, MapView, Point, Rect, RowHeight, Scene, SegmentZoom, Size, Target, TargetId, next_block,
    pan_segment, scroll_to, zoom_segment,
};
use blockyard_record::{AllocationId, BlockId, counted};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::figures::Pick;
use crate::frames::{self, Slot};
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::figure::dissolve::Dissolve;
use crate::view::figure::gesture::Gesture;
use crate::view::figure::map::{block_at, target_text};
use crate::view::figure::map_scroll::DrawnRows;
use crate::view::figure::resize_drag::ResizeDrag;
use crate::view::figure::stage::bytes_f64;
use crate::view::figure::tip::Tip;

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

    /// Does what the gesture means. Returns whether the map changed.
    pub(crate) fn act(self, gesture: Gesture, at: Point, event: &MouseEvent) -> bool {
        match gesture {
            Gesture::Hover => self.hover(at, event),
            Gesture::Leave => self.leave(),
            Gesture::Begin => return false,
            Gesture::Grab { .. } => return self.resize.down(at, event),
            Gesture::Hold => self.resize.hold(event),
            Gesture::Drop => self.resize.drop_at(event),
            Gesture::Cancel => self.resize.cancel(),
            Gesture::Zoom(factor) => return self.zoom_at(at, factor),
            Gesture::Pan(by) => return self.pan(by),
            Gesture::Brush(from) | Gesture::Brushed(from) => self.choose_between(from, at),
            Gesture::Choose => self.choose_at(at),
            Gesture::Whole => self.session.figures().show_whole(),
        }
        true
    }

    fn hover(self, at: Point, event: &MouseEvent) {
        self.resize.look(at, event);
        let target = self.drawn.look(|scene| scene.hit(at.x_px, at.y_px).map(|target| target.what));
        // The panel beside the map describes the chosen block, and a tooltip would only cover the neighbors
        // of the block.
        let is_chosen = matches!(target, Some(TargetId::Block(block)) if self.session.figures().selected_now() == Some(block));
        let text = target.filter(|_| !is_chosen).and_then(|target| target_text(self.session, target));
        self.tip.show(text, event);
        frames::plan(Slot::Hover, move || self.set_hovered(target));
    }

    fn leave(self) {
        self.tip.hide();
        frames::plan(Slot::Hover, move || self.set_hovered(None));
    }

    fn choose_at(self, at: Point) {
        let session = self.session;
        let Some(block) = self.drawn.look(|scene| block_at(scene, at.x_px, at.y_px)) else {
            return session.figures().select(None);
        };
        self.tip.hide();
        let is_same = session.figures().selected_now() == Some(block);
        session.figures().select((!is_same).then_some(block));
    }

    /// Chooses the allocations of the blocks between two corners.
    fn choose_between(self, one: Point, other: Point) {
        let (left, top) = (one.x_px.min(other.x_px), one.y_px.min(other.y_px));
        let (width, height) = ((one.x_px - other.x_px).abs(), (one.y_px - other.y_px).abs());
        let brushed = Rect::new(left, top, width.max(1.0), height.max(1.0));
        let is_brushed = |target: &&Target| target.rect.overlaps(&brushed);
        let blocks: Vec<BlockId> = self.drawn.look(|scene| {
            let targets = scene.targets.iter().filter(is_brushed);
            targets
                .filter_map(
                    |target| if let TargetId::Block(block) = target.what { Some(block) } else { None },
                )
                .collect()
        });
        let ids: BTreeSet<AllocationId> = self
            .session
            .with_state_now(|_, state| {
                blocks.iter().filter_map(|block| state.block(*block)?.allocation).collect()
            })
            .unwrap_or_default();
        let Some(columns) = untrack(|| self.session.figures().columns()) else { return };
        let mut rows: Vec<usize> = ids.iter().filter_map(|id| columns.allocations.row(*id)).collect();
        rows.sort_unstable();
        let picked = (!rows.is_empty())
            .then(|| PtrEq::new(Pick { title: counted(rows.len(), "brushed block"), rows }));
        self.session.figures().show_picked(picked, ids.into_iter().collect());
    }

    /// Scrolls the rows, and moves the shown part of an enlarged segment.
    fn pan(self, by: Point) -> bool {
        let mut is_moved = false;
        if let Some(area) = self.area.get_untracked() {
            let before = area.scroll_top();
            area.set_scroll_top(before - whole(surface::on_page(by.y_px)));
            is_moved = area.scroll_top() != before;
        }
        let view = untrack(|| self.view());
        let part = -f64::from(by.x_px / self.size.get_untracked().width_px.max(1.0));
        let moved = self.session.with_state_now(|_, state| pan_segment(state, &view, part));
        self.set_zoom(&view, moved.flatten()) || is_moved
    }

    /// Shows another part of a segment. Returns whether it is another one.
    fn set_zoom(self, view: &MapView, zoom: Option<SegmentZoom>) -> bool {
        let is_other = view.zoom != zoom;
        if is_other {
            self.tip.hide();
            self.session.figures().map_view.update(|view| view.zoom = zoom);
        }
        is_other
    }

    /// Zooms the segment at this place. Beside the bars the wheel scrolls the rows.
    fn zoom_at(self, at: Point, factor: f64) -> bool {
        let (session, size) = (self.session, self.size.get_untracked());
        let view = untrack(|| self.view());
        let target = self.drawn.look(|scene| scene.hit(at.x_px, at.y_px).map(|target| target.what));
        let zoom = session.with_state_now(|_, state| {
            let segment = match target? {
                TargetId::Block(block) => state.segment_of(block)?,
                TargetId::SmallBlocks { segment, .. } | TargetId::Segment(segment) => segment,
                _ => return None,
            };
            Some(zoom_segment(state, &view, segment, at.x_px, factor, size))
        });
        zoom.flatten().is_some_and(|zoom| self.set_zoom(&view, zoom))
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
            "0" => return self.session.figures().show_whole(),
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
            Some(target.rect.center())
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
