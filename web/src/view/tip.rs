//! The tooltip beside the pointer.

use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::browser;
use crate::view::kit::{flag, text};

/// A tooltip that follows the pointer; a handle that is copied freely. It never changes the layout of the page.
#[derive(Clone, Copy)]
pub(crate) struct Tip(RwSignal<Option<(String, f64, f64)>>);

impl Tip {
    pub(crate) fn new() -> Self {
        Self(RwSignal::new(None))
    }

    pub(crate) fn show(self, text: Option<String>, event: &MouseEvent) {
        let now = text.map(|text| (text, f64::from(event.client_x()), f64::from(event.client_y())));
        if self.0.try_with_untracked(|before| *before != now) == Some(true) {
            self.0.set(now);
        }
    }

    pub(crate) fn hide(self) {
        if self.0.try_with_untracked(Option::is_some) == Some(true) {
            self.0.set(None);
        }
    }

    pub(crate) fn view(self) -> AnyView {
        let words = text(move || {
            self.0.with(|tip| tip.as_ref().map(|(text, _, _)| text.clone()).unwrap_or_default())
        });
        // The tooltip is on the side of the pointer where there is more room.
        let style = text(move || {
            let (x, y) = self.0.with(|tip| tip.as_ref().map_or((0.0, 0.0), |(_, x, y)| (*x, *y)));
            let (width, height) = browser::window_size();
            let across = if x > width / 2.0 {
                format!("right:{}px", width - x + 12.0)
            } else {
                format!("left:{}px", x + 12.0)
            };
            let along = if y > height / 2.0 {
                format!("bottom:{}px", height - y + 12.0)
            } else {
                format!("top:{}px", y + 16.0)
            };
            format!("{across};{along}")
        });
        view! {
            <div class="tooltip" role="status" aria-live="off" data-testid="tooltip" hidden=flag(move || self.0.with(Option::is_none)) style=style>
                {words}
            </div>
        }
        .into_any()
    }
}
