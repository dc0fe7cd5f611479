//! Frees a block that is dragged out of the figure and dropped on a marked area, which nobody does by
//! accident.

use blockyard_figure::TargetId;
use blockyard_record::{BlockId, BlockState};
use leptos::html;
use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::session::Session;
use crate::view::kit::{flag, text};

/// A press becomes a drag when the pointer has moved farther than this.
const MIN_PX: f64 = 8.0;

/// The block that is being dragged.
#[derive(Clone, Debug, PartialEq)]
struct BlockDrag {
    block: BlockId,
    name: String,
    /// Where the pointer went down, in the window.
    start_px: (f64, f64),
    /// Whether the pointer has moved by more than [`MIN_PX`].
    has_moved: bool,
    /// Whether the pointer is over the area where the block is freed.
    is_over: bool,
}

/// The drag and the area where a block is dropped; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Drag {
    session: Session,
    dragged: RwSignal<Option<BlockDrag>>,
    drop_area: NodeRef<html::Div>,
}

impl Drag {
    pub(crate) fn new(session: Session) -> Self {
        Self { session, dragged: RwSignal::new(None), drop_area: NodeRef::new() }
    }

    /// The pointer went down on `target`. Only an allocated block of a workload can be dragged. Returns
    /// whether the block follows the pointer now.
    pub(crate) fn down(self, event: &MouseEvent, target: Option<TargetId>) -> bool {
        let Some(TargetId::Block(block)) = target else { return false };
        if !untrack(|| self.session.shows_text()) {
            return false;
        }
        let name = self.session.with_state_now(|run, state| {
            let found = state.block(block).filter(|found| found.state == BlockState::Allocated)?;
            let named = found.allocation.and_then(|allocation| run.recording.name(allocation));
            Some(named.map_or_else(|| format!("block #{block}"), str::to_owned))
        });
        let Some(Some(name)) = name else { return false };
        let start_px = (f64::from(event.client_x()), f64::from(event.client_y()));
        self.dragged.set(Some(BlockDrag { block, name, start_px, has_moved: false, is_over: false }));
        true
    }

    /// The block follows the pointer.
    pub(crate) fn hold(self, event: &MouseEvent) {
        let Some(before) = self.dragged.get_untracked() else { return };
        let (x, y) = (f64::from(event.client_x()), f64::from(event.client_y()));
        let is_far = (x - before.start_px.0).hypot(y - before.start_px.1) > MIN_PX;
        if !before.has_moved && !is_far {
            return;
        }
        let after = BlockDrag { has_moved: true, is_over: self.is_over(x, y), ..before.clone() };
        if after != before {
            self.dragged.set(Some(after));
        }
    }

    fn is_over(self, x: f64, y: f64) -> bool {
        let rect = self.drop_area.get_untracked().map(|area| area.get_bounding_client_rect());
        rect.is_some_and(|rect| {
            (rect.left()..rect.right()).contains(&x) && (rect.top()..rect.bottom()).contains(&y)
        })
    }

    /// The pointer went up. If it is over the drop area, the block is freed.
    pub(crate) fn drop_at(self, event: &MouseEvent) {
        self.hold(event);
        let Some(dragged) = self.dragged.get_untracked() else { return };
        self.cancel();
        if dragged.is_over {
            self.session.workload().free_block(dragged.block);
        }
    }

    pub(crate) fn cancel(self) {
        if self.dragged.with_untracked(Option::is_some) {
            self.dragged.set(None);
        }
    }

    /// The area that a block is dropped on, shown while a block is dragged.
    pub(crate) fn view(self) -> AnyView {
        let is_hidden = flag(move || {
            self.dragged.with(|dragged| !dragged.as_ref().is_some_and(|dragged| dragged.has_moved))
        });
        let words = text(move || {
            let name = self.dragged.with(|dragged| dragged.as_ref().map(|dragged| dragged.name.clone()));
            name.map(|name| format!("Drop {name} here to free it")).unwrap_or_default()
        });
        let class = text(move || {
            let is_over =
                self.dragged.with(|dragged| dragged.as_ref().is_some_and(|dragged| dragged.is_over));
            if is_over { "drop-free is-over" } else { "drop-free" }.to_owned()
        });
        view! {
            <div class=class node_ref=self.drop_area data-testid="drop-free" aria-hidden="true" hidden=is_hidden>{words}</div>
        }
        .into_any()
    }
}
