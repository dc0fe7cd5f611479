//! The end of a block under the pointer: dragging it changes the size of the tensor in it.

use blockyard_figure::{Point, Rect, Scene, TargetId};
use blockyard_record::BlockId;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{MouseEvent, PointerEvent};

use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::figure::tip::Tip;

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
}

impl ResizeDrag {
    pub(crate) fn new(
        session: Session,
        drawn: DrawnScene,
        tip: Tip,
        bytes_per_px: fn(Session, &Scene, BlockId, &Rect) -> Option<f64>,
    ) -> Self {
        Self { session, drawn, tip, bytes_per_px, is_near: RwSignal::new(false) }
    }

    /// The block whose end is near the pointer, and the bytes of a pixel of the page there.
    fn found(self, at: Point, event: &MouseEvent) -> Option<(BlockId, f64)> {
        if !untrack(|| self.session.shows_text()) {
            return None;
        }
        let (x, y) = (at.x_px, at.y_px);
        let is_finger = event.unchecked_ref::<PointerEvent>().pointer_type() == "touch";
        let near = if is_finger { NEAR_FINGER_PX } else { NEAR_PX };
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
    pub(crate) fn down(self, at: Point, event: &MouseEvent) -> bool {
        let found = self.found(at, event);
        found.is_some_and(|(block, bytes_per_px)| {
            self.session.workload().begin_resize(block, f64::from(event.client_x()), bytes_per_px)
        })
    }

    /// The end follows the pointer.
    pub(crate) fn hold(self, event: &MouseEvent) {
        if self.session.workload().resizing.with_untracked(Option::is_some) {
            let words = self.session.workload().resize_to(f64::from(event.client_x()), event.shift_key());
            self.tip.show(words, event);
        }
    }

    /// The pointer went up, and the end stays where it is.
    pub(crate) fn drop_at(self, event: &MouseEvent) {
        if self.session.workload().resizing.with_untracked(Option::is_some) {
            self.session.workload().resize_to(f64::from(event.client_x()), event.shift_key());
            self.tip.hide();
            self.session.workload().end_resize();
        }
    }

    /// The pointer moves without a button: near an end it shows that the end can be dragged.
    pub(crate) fn look(self, at: Point, event: &MouseEvent) {
        let is_near = self.found(at, event).is_some();
        if self.is_near.get_untracked() != is_near {
            self.is_near.set(is_near);
        }
    }

    /// The browser took the pointer away.
    pub(crate) fn cancel(self) {
        self.tip.hide();
        self.session.workload().cancel_resize();
    }

    /// A class of the figure's element: the pointer shows that an end can be dragged. Reads signals.
    pub(crate) fn class(self, other: &str) -> String {
        let is_dragged = self.session.workload().resizing.with(Option::is_some);
        if self.is_near.get() || is_dragged { format!("{other} on-edge") } else { other.to_owned() }
    }
}
