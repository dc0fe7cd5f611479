//! The borders between panels. The reader moves a border by the pointer or by keys, and the browser remembers the sizes.

use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use crate::browser;
use crate::view::kit::{on, text};

/// A panel whose size the reader sets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SizedPanel {
    /// The column beside the figures.
    Side,
    /// The step's words, over the tabs.
    Step,
    /// The figure of memory over time.
    Timeline,
    /// The figure of allocations over time.
    Lifetimes,
    /// The segment map of a recording.
    Map,
}

/// How far one press of a key moves a border.
const KEY_PX: f64 = 24.0;

impl SizedPanel {
    const ALL: [Self; 5] = [Self::Side, Self::Step, Self::Timeline, Self::Lifetimes, Self::Map];

    /// The CSS variable with the panel's size.
    fn property(self) -> &'static str {
        match self {
            Self::Side => "--side-size",
            Self::Step => "--step-size",
            Self::Timeline => "--timeline-size",
            Self::Lifetimes => "--lifetimes-size",
            Self::Map => "--map-size",
        }
    }

    fn id(self) -> &'static str {
        match self {
            Self::Side => "divide-side",
            Self::Step => "divide-step",
            Self::Timeline => "divide-timeline",
            Self::Lifetimes => "divide-lifetimes",
            Self::Map => "divide-map",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Side => "Width of the column beside the figures",
            Self::Step => "Height of the step's words",
            Self::Timeline => "Height of memory over time",
            Self::Lifetimes => "Height of allocations over time",
            Self::Map => "Height of the segments",
        }
    }

    /// Whether the border is vertical. The panel is to the right of a vertical border, and above a horizontal one.
    fn is_upright(self) -> bool {
        matches!(self, Self::Side)
    }

    /// The smallest and the largest size that leave room for the rest of the page.
    fn limits_px(self) -> (f64, f64) {
        let (width, height) = browser::window_size();
        let (least, most) = match self {
            Self::Side => (300.0, width - 480.0),
            Self::Step => (96.0, height * 0.7),
            Self::Timeline | Self::Lifetimes | Self::Map => (100.0, height * 0.9),
        };
        (least, most.max(least))
    }

    /// The element of the panel, which stands beside its border.
    fn element(self, divider: &Element) -> Option<Element> {
        if self.is_upright() { divider.next_element_sibling() } else { divider.previous_element_sibling() }
    }

    fn size_px(self, divider: &Element) -> Option<f64> {
        let rect = self.element(divider)?.get_bounding_client_rect();
        Some(if self.is_upright() { rect.width() } else { rect.height() })
    }

    fn key(self) -> String {
        format!("blockyard{}", self.property())
    }

    /// Sets the size of the panel; `None` restores the size of the style sheet.
    fn set(self, size_px: Option<f64>) {
        let root = browser::document().and_then(|document| document.document_element());
        let Some(style) = root.and_then(|root| root.dyn_into::<HtmlElement>().ok()).map(|root| root.style())
        else {
            return;
        };
        let _ = match size_px {
            Some(size) => style.set_property(self.property(), &format!("{size:.0}px")),
            None => style.remove_property(self.property()).map(drop),
        };
    }

    fn remember(self, size_px: Option<f64>) {
        match size_px {
            Some(size) => browser::remember(&self.key(), &format!("{size:.0}")),
            None => browser::forget(&self.key()),
        }
    }
}

/// Gives all panels the sizes that the browser remembers.
pub(crate) fn recall() {
    for panel in SizedPanel::ALL {
        let size = browser::recall(&panel.key()).and_then(|text| text.parse::<f64>().ok());
        if let Some(size) = size.filter(|size| size.is_finite()) {
            let (least, most) = panel.limits_px();
            panel.set(Some(size.clamp(least, most)));
        }
    }
}

/// The border of a panel. It stands behind the panel, or before a panel to its right.
pub(crate) fn divider(panel: SizedPanel) -> AnyView {
    let now = RwSignal::new(0.0_f64);
    let node = NodeRef::<leptos::html::Div>::new();
    let measure = move || {
        let size = node.get_untracked().and_then(|divider| panel.size_px(&divider));
        let _ = now.try_set(size.unwrap_or(0.0));
    };
    // Once the page is laid out.
    let _ = browser::after_millis(100, measure);
    let put = move |size_px: f64| {
        let (least, most) = panel.limits_px();
        let size_px = size_px.clamp(least, most);
        panel.set(Some(size_px));
        now.set(size_px);
    };
    let down = on(move |event: ev::PointerEvent| {
        if let Some(divider) = node.get_untracked().filter(|_| event.button() == 0) {
            event.prevent_default();
            let _ = divider.set_pointer_capture(event.pointer_id());
            let _ = divider.focus();
        }
    });
    let moved = on(move |event: ev::PointerEvent| {
        let divider = node.get_untracked().filter(|divider| divider.has_pointer_capture(event.pointer_id()));
        if let Some(rect) = divider.and_then(|divider| panel.element(&divider)) {
            let rect = rect.get_bounding_client_rect();
            put(if panel.is_upright() {
                rect.right() - f64::from(event.client_x())
            } else {
                f64::from(event.client_y()) - rect.top()
            });
        }
    });
    let up = on(move |_: ev::PointerEvent| panel.remember(Some(now.get_untracked())));
    let reset = move || {
        panel.set(None);
        panel.remember(None);
        measure();
    };
    let key = on(move |event: ev::KeyboardEvent| {
        measure();
        let (least, most) = panel.limits_px();
        let size = match (event.key().as_str(), panel.is_upright()) {
            ("ArrowLeft", true) | ("ArrowDown", false) => now.get_untracked() + KEY_PX,
            ("ArrowRight", true) | ("ArrowUp", false) => now.get_untracked() - KEY_PX,
            ("Home", _) => least,
            ("End", _) => most,
            ("Enter", _) => {
                event.prevent_default();
                event.stop_propagation();
                return reset();
            }
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        put(size);
        panel.remember(Some(now.get_untracked()));
    });
    let limits = move |end: fn((f64, f64)) -> f64| {
        text(move || {
            now.track();
            format!("{:.0}", end(panel.limits_px()))
        })
    };
    view! {
        <div
            node_ref=node
            class=if panel.is_upright() { "divider is-upright" } else { "divider" }
            role="separator"
            tabindex="0"
            data-testid=panel.id()
            aria-label=panel.label()
            aria-orientation=if panel.is_upright() { "vertical" } else { "horizontal" }
            aria-valuemin=limits(|limits| limits.0)
            aria-valuemax=limits(|limits| limits.1)
            aria-valuenow=text(move || format!("{:.0}", now.get()))
            title="Drag, or use the arrow keys; Enter or a double click restores the default size"
            on:pointerdown=down
            on:pointermove=moved
            on:pointerup=up
            on:dblclick=on(move |_: ev::MouseEvent| reset())
            on:keydown=key
        ></div>
    }
    .into_any()
}
