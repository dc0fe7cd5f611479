//! The end of a block under the pointer: dragging it changes the size of the tensor in it.

use blockyard_figure::{Rect, Scene, TargetId};
use blockyard_record::BlockId;
use leptos::ev;
use leptos::prelude::*;

use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::kit::capture;
use crate::view::tip::Tip;

/// The pointer takes hold of the end of a block from this distance.
const NEAR_PX: f32 = 5.0;
/// The distance for a finger, which is less exact.
const NEAR_FINGER_PX: f32 = 16.0;

/// The handlers that drag the ends of blocks in one figure; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct ResizeDrag {
    session: Session,
    drawn: DrawnScene,
    tip: Tip,
    /// How many bytes a pixel of the figure is at a block.
    bytes_per_px: fn(Session, &Scene, BlockId, &Rect) -> Option<f64>,
    /// Whether the pointer is on the end of a block that can be dragged.
    is_near: RwSignal<bool>,
    /// Whether the click that follows belongs to a drag.
    has_ended: StoredValue<bool>,
}

impl ResizeDrag {
    pub(crate) fn new(
        session: Session,
        drawn: DrawnScene,
        tip: Tip,
        bytes_per_px: fn(Session, &Scene, BlockId, &Rect) -> Option<f64>,
    ) -> Self {
        Self {
            session,
            drawn,
            tip,
            bytes_per_px,
            is_near: RwSignal::new(false),
            has_ended: StoredValue::new(false),
        }
    }

    /// The block whose end is near the pointer, and the bytes of a pixel of the page there.
    fn found(self, event: &ev::PointerEvent) -> Option<(BlockId, f64)> {
        if !untrack(|| self.session.shows_text()) {
            return None;
        }
        let (x, y) = surface::offset_px(event);
        let near = if event.pointer_type() == "touch" { NEAR_FINGER_PX } else { NEAR_PX };
        let (block, bytes) = self.drawn.look(|scene| {
            let ends = scene.targets.iter().filter_map(|target| match target.what {
                TargetId::Block(block) if (target.rect.y_px..target.rect.bottom_px()).contains(&y) => {
                    // At most half of a narrow block takes hold, so that the other half can be clicked.
                    let reach = near.min(target.rect.width_px / 2.0).max(2.0);
                    let away = x - target.rect.right_px();
                    (-reach..=near).contains(&away).then_some((block, target.rect, away.abs()))
                }
                _ => None,
            });
            let ends = ends.filter(|(block, ..)| self.session.workload().can_resize(*block));
            let (block, rect, _) = ends.min_by(|(.., one), (.., other)| one.total_cmp(other))?;
            Some((block, (self.bytes_per_px)(self.session, scene, block, &rect)?))
        })?;
        // The page may show the figure enlarged.
        Some((block, bytes / surface::on_page(1.0)))
    }

    /// The pointer went down. Returns whether it took hold of an end.
    pub(crate) fn down(self, event: &ev::PointerEvent) -> bool {
        self.has_ended.set_value(false);
        if event.button() != 0 {
            return false;
        }
        let Some((block, bytes_per_px)) = self.found(event) else { return false };
        if !self.session.workload().begin_resize(block, f64::from(event.client_x()), bytes_per_px) {
            return false;
        }
        event.prevent_default();
        capture(event);
        true
    }

    /// The pointer moved. Returns whether an end is dragged.
    pub(crate) fn moved(self, event: &ev::PointerEvent) -> bool {
        if self.session.workload().resizing.with_untracked(Option::is_some) {
            let words = self.session.workload().resize_to(f64::from(event.client_x()), event.shift_key());
            self.tip.show(words, event);
            return true;
        }
        let is_near = event.buttons() == 0 && self.found(event).is_some();
        if self.is_near.get_untracked() != is_near {
            self.is_near.set(is_near);
        }
        false
    }

    /// The pointer went up. Returns whether an end was dragged.
    pub(crate) fn up(self, event: &ev::PointerEvent) -> bool {
        if self.session.workload().resizing.with_untracked(Option::is_none) {
            return false;
        }
        self.session.workload().resize_to(f64::from(event.client_x()), event.shift_key());
        self.tip.hide();
        let is_changed = self.session.workload().end_resize();
        self.has_ended.set_value(is_changed);
        is_changed
    }

    /// The browser took the pointer away.
    pub(crate) fn cancel(self) {
        self.tip.hide();
        self.session.workload().cancel_resize();
    }

    /// Whether a drag has just ended. The browser sends a click after the drag, which must be ignored.
    pub(crate) fn has_ended(self) -> bool {
        self.has_ended.try_update_value(std::mem::take) == Some(true)
    }

    /// A class of the figure's element: the pointer shows that an end can be dragged. Reads signals.
    pub(crate) fn class(self, other: &str) -> String {
        let is_dragged = self.session.workload().resizing.with(Option::is_some);
        if self.is_near.get() || is_dragged { format!("{other} on-edge") } else { other.to_owned() }
    }
}
