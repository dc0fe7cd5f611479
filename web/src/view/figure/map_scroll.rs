//! Keeps the rows in sight of the segment map in place while steps add and remove rows above them.

use blockyard_figure::{Changes, MapAnchor, MapView, Size};
use leptos::prelude::*;

use crate::frames::{self, Slot};
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::surface;
use crate::view::figure::map_actions::{MapActions, whole};

/// The last drawing of the map: its run, how far the rows were scrolled, and which segments were in sight.
#[derive(Clone)]
pub(crate) struct DrawnRows {
    run: PtrEq<Run>,
    scroll_px: f32,
    anchor: MapAnchor,
}

impl MapActions {
    /// How far the rows have to be scrolled, in pixels of the figure, so that the segments in sight stay
    /// where they were drawn last. If the reader has scrolled since, that position is kept.
    pub(crate) fn steady_scroll(self, changes: &Changes, view: &MapView, size: Size) -> f32 {
        let session = self.session;
        let run = session.run.get();
        let before = self.drawn_rows.get_value();
        let is_other_run = before.as_ref().is_some_and(|before| before.run != run && view.scroll_px < 0.5);
        let is_still = |before: &DrawnRows| (before.scroll_px - view.scroll_px).abs() < 0.5;
        let anchor = before.filter(is_still);
        let found = session.with_state(|_, state| {
            let scroll_px = match &anchor {
                Some(before) => before.anchor.scroll_px(state, changes, view, size),
                None => view.scroll_px,
            };
            let steady = MapView { scroll_px, ..view.clone() };
            (scroll_px, MapAnchor::of(state, changes, &steady, size))
        });
        let Some((scroll_px, anchor)) = found else { return view.scroll_px };
        self.drawn_rows.set_value(Some(DrawnRows { run, scroll_px: view.scroll_px, anchor }));
        if is_other_run || (scroll_px - view.scroll_px).abs() > 0.5 {
            // The rows are scrolled in the next frame, because the effects of this change first have to give
            // the content its new height.
            let area = self.area;
            frames::plan(Slot::Follow, move || {
                if let Some(area) = area.get_untracked() {
                    area.set_scroll_top(whole(surface::on_page(scroll_px)));
                }
            });
        }
        scroll_px
    }
}
