//! The borders between panels. The reader moves a border by the pointer or by keys, and the browser remembers
//! the sizes.

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
}

/// How far one press of a key moves a border.
const KEY_PX: f64 = 24.0;

impl SizedPanel {
    const ALL: [Self; 3] = [Self::Side, Self::Step, Self::Timeline];

    /// The panel's name in the CSS variable with its size, and in tests, and what its border sets.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Side => ("side", "Width of the column beside the figures"),
            Self::Step => ("step", "Height of the request's words"),
            Self::Timeline => ("timeline", "Height of memory over time"),
        }
    }

    /// The CSS variable with the panel's size.
    fn property(self) -> String {
        format!("--{}-size", self.names().0)
    }

    /// Whether the border is vertical. The panel is to the right of a vertical border, and above a horizontal
    /// one.
    fn is_upright(self) -> bool {
        matches!(self, Self::Side)
    }

    /// The smallest and the largest size that leave room for the rest of the page.
    fn limits_px(self) -> (f64, f64) {
        let (width, height) = browser::window_size();
        let (least, most) = match self {
            Self::Side => (300.0, width - 480.0),
            Self::Step => (96.0, height * 0.7),
            Self::Timeline => (100.0, height * 0.9),
        };
        (least, most.max(least))
    }

    /// The element of the panel, which is beside its border.
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
        let root = browser::root().and_then(|root| root.dyn_into::<HtmlElement>().ok());
        let Some(style) = root.map(|root| root.style()) else { return };
        let _ = match size_px {
            Some(size) => style.set_property(&self.property(), &format!("{size:.0}px")),
            None => style.remove_property(&self.property()).map(drop),
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

/// The border of a panel. Its element is the next sibling of the panel's element, or the previous one if the
/// border is vertical.
pub(crate) fn divider(panel: SizedPanel) -> AnyView {
    let border = Border { panel, size_px: RwSignal::new(0.0), node: NodeRef::new() };
    // The panel has a size only when the browser has laid out the page.
    let _ = browser::after_millis(100, move || border.measure());
    border.view()
}

/// A border with the size of its panel; a handle that is copied freely.
#[derive(Clone, Copy)]
struct Border {
    panel: SizedPanel,
    size_px: RwSignal<f64>,
    node: NodeRef<leptos::html::Div>,
}

impl Border {
    /// Reads the size of the panel from the page.
    fn measure(self) {
        // The panel may have left the page since.
        let node = self.node.try_get_untracked().flatten();
        let size = node.and_then(|divider| self.panel.size_px(&divider));
        let _ = self.size_px.try_set(size.unwrap_or(0.0));
    }

    /// Gives the panel a size, within its limits.
    fn resize(self, size_px: f64) {
        let (least, most) = self.panel.limits_px();
        let size_px = size_px.clamp(least, most);
        self.panel.set(Some(size_px));
        self.size_px.set(size_px);
    }

    fn remember(self) {
        self.panel.remember(Some(self.size_px.get_untracked()));
    }

    /// Gives the panel the size of the style sheet.
    fn reset(self) {
        self.panel.set(None);
        self.panel.remember(None);
        self.measure();
    }

    fn pointer_down(self, event: &ev::PointerEvent) {
        if let Some(divider) = self.node.get_untracked().filter(|_| event.button() == 0) {
            event.prevent_default();
            let _ = divider.set_pointer_capture(event.pointer_id());
            let _ = divider.focus();
        }
    }

    /// Moves the border to the pointer, while the pointer drags the border.
    fn pointer_moved(self, event: &ev::PointerEvent) {
        let divider = self.node.get_untracked();
        let divider = divider.filter(|divider| divider.has_pointer_capture(event.pointer_id()));
        if let Some(element) = divider.and_then(|divider| self.panel.element(&divider)) {
            let rect = element.get_bounding_client_rect();
            self.resize(if self.panel.is_upright() {
                rect.right() - f64::from(event.client_x())
            } else {
                f64::from(event.client_y()) - rect.top()
            });
        }
    }

    fn key(self, event: &ev::KeyboardEvent) {
        self.measure();
        let (least, most) = self.panel.limits_px();
        let now = self.size_px.get_untracked();
        let size = match (event.key().as_str(), self.panel.is_upright()) {
            ("ArrowLeft", true) | ("ArrowDown", false) => Some(now + KEY_PX),
            ("ArrowRight", true) | ("ArrowUp", false) => Some(now - KEY_PX),
            ("Home", _) => Some(least),
            ("End", _) => Some(most),
            ("Enter", _) => None,
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        match size {
            Some(size) => {
                self.resize(size);
                self.remember();
            }
            None => self.reset(),
        }
    }

    /// One end of the limits as the value of an ARIA attribute.
    fn limit(self, end: fn((f64, f64)) -> f64) -> Signal<String> {
        text(move || {
            self.size_px.track();
            format!("{:.0}", end(self.panel.limits_px()))
        })
    }

    fn view(self) -> AnyView {
        let panel = self.panel;
        view! {
            <div
                node_ref=self.node
                class=if panel.is_upright() { "divider is-upright" } else { "divider" }
                role="separator"
                tabindex="0"
                data-testid=format!("divide-{}", panel.names().0)
                aria-label=panel.names().1
                aria-orientation=if panel.is_upright() { "vertical" } else { "horizontal" }
                aria-valuemin=self.limit(|limits| limits.0)
                aria-valuemax=self.limit(|limits| limits.1)
                aria-valuenow=text(move || format!("{:.0}", self.size_px.get()))
                title="Drag, or use the arrow keys; Enter or a double click restores the default size"
                on:pointerdown=on(move |event: ev::PointerEvent| self.pointer_down(&event))
                on:pointermove=on(move |event: ev::PointerEvent| self.pointer_moved(&event))
                on:pointerup=on(move |_: ev::PointerEvent| self.remember())
                on:dblclick=on(move |_: ev::MouseEvent| self.reset())
                on:keydown=on(move |event: ev::KeyboardEvent| self.key(&event))
            ></div>
        }
        .into_any()
    }
}
