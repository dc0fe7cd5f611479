//! The tooltip beside the pointer.

use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::browser;
use crate::view::kit::{flag, text};

/// The distance of a tooltip from the pointer, across and along.
const GAP_PX: f64 = 24.0;
/// The room that a tooltip needs above the pointer.
const ABOVE_PX: f64 = 260.0;

/// A tooltip that follows the pointer; a handle that is copied freely. It never changes the layout of the
/// page.
#[derive(Clone, Copy)]
pub(crate) struct Tip {
    shown: RwSignal<Option<(String, f64, f64)>>,
    /// Where the pointer was last.
    place: StoredValue<(f64, f64)>,
}

impl Tip {
    pub(crate) fn new() -> Self {
        Self { shown: RwSignal::new(None), place: StoredValue::new((0.0, 0.0)) }
    }

    pub(crate) fn show(self, text: Option<String>, event: &MouseEvent) {
        let _ = self.place.try_set_value((f64::from(event.client_x()), f64::from(event.client_y())));
        self.say(text);
    }

    /// Shows another text at the last place of the pointer, since the figure under the pointer changed
    /// without a move.
    pub(crate) fn say(self, text: Option<String>) {
        let Some((x, y)) = self.place.try_get_value() else { return };
        let now = text.map(|text| (text, x, y));
        if self.shown.try_with_untracked(|before| *before != now) == Some(true) {
            self.shown.set(now);
        }
    }

    pub(crate) fn hide(self) {
        if self.shown.try_with_untracked(Option::is_some) == Some(true) {
            self.shown.set(None);
        }
    }

    pub(crate) fn view(self) -> AnyView {
        let words = text(move || {
            self.shown.with(|tip| tip.as_ref().map(|(text, _, _)| text.clone()).unwrap_or_default())
        });
        // The tooltip is beside the pointer, on the side with more room, and above it where there is room: data
        // lie below more often. A gap keeps what is near the pointer in sight.
        let style = text(move || {
            let (x, y) = self.shown.with(|tip| tip.as_ref().map_or((0.0, 0.0), |(_, x, y)| (*x, *y)));
            let (width, height) = browser::window_size();
            let across = if x > width / 2.0 {
                format!("right:{}px", width - x + GAP_PX)
            } else {
                format!("left:{}px", x + GAP_PX)
            };
            let along = if y > ABOVE_PX.min(height / 2.0) {
                format!("bottom:{}px", height - y + GAP_PX)
            } else {
                format!("top:{}px", y + GAP_PX)
            };
            format!("{across};{along}")
        });
        view! {
            <div class="tooltip" role="status" aria-live="off" data-testid="tooltip" hidden=flag(move || self.shown.with(Option::is_none)) style=style>
                {words}
            </div>
        }
        .into_any()
    }
}
