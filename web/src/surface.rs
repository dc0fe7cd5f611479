//! Canvases that follow the size of their box.

use crate::view::kit::effect;
use blockyard_figure::{Scene, Size};
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{HtmlCanvasElement, MouseEvent, ResizeObserver, ResizeObserverEntry};

use crate::browser;

/// The size of the box's content in the figure's pixels, kept up to date; zero until it is laid out.
///
/// A figure's pixel is a pixel of the page, or more where the page's letters are larger.
pub(crate) fn size_of(node: NodeRef<html::Div>) -> RwSignal<Size> {
    let size = RwSignal::new(Size::default());
    effect(move || {
        let Some(element) = node.get() else { return };
        let callback = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
            let Some(entry) = entries.iter().last() else { return };
            let content = entry.unchecked_into::<ResizeObserverEntry>().content_rect();
            let scale = browser::text_scale();
            let now = Size::new(pixels(content.width() / scale), pixels(content.height() / scale));
            // The box may be gone from the page by now, and its signal with it.
            if size.try_get_untracked().is_some_and(|before| before != now) {
                size.set(now);
            }
        });
        if let Ok(observer) = ResizeObserver::new(callback.as_ref().unchecked_ref()) {
            observer.observe(&element);
            let observer = StoredValue::new_local(observer);
            on_cleanup(move || {
                observer.try_with_value(ResizeObserver::disconnect);
            });
        }
        callback.forget();
    });
    size
}

#[expect(clippy::cast_possible_truncation, reason = "pixels need no more than 24 bits")]
pub(crate) fn pixels(length: f64) -> f32 {
    length as f32
}

/// The last drawn scene, for pointers to be looked up in.
#[derive(Clone, Copy)]
pub(crate) struct Drawn(StoredValue<Scene, LocalStorage>);

impl Drawn {
    pub(crate) fn new() -> Self {
        Self(StoredValue::new_local(Scene::default()))
    }

    pub(crate) fn keep(self, scene: Scene) {
        self.0.set_value(scene);
    }

    pub(crate) fn look<T>(self, look: impl FnOnce(&Scene) -> T) -> T {
        self.0.with_value(look)
    }
}

/// Where the pointer is in the figure, from its top left corner.
pub(crate) fn offset_px(event: &MouseEvent) -> (f32, f32) {
    let scale = browser::text_scale();
    (pixels(f64::from(event.offset_x()) / scale), pixels(f64::from(event.offset_y()) / scale))
}

/// A length of a figure on the page.
pub(crate) fn on_page(length_px: f32) -> f64 {
    f64::from(length_px) * browser::text_scale()
}

/// A length of the page in a figure.
pub(crate) fn in_figure(length_px: f64) -> f32 {
    pixels(length_px / browser::text_scale())
}

/// Gives the canvas the scene's size on the page: whole pixels of the screen, so that nothing is blurred.
pub(crate) fn fit(canvas: &HtmlCanvasElement, scene: &Scene) {
    let ratio = browser::pixel_ratio();
    let height = (on_page(scene.height_px) * ratio).round() / ratio;
    let _ = web_sys::HtmlElement::style(canvas).set_property("height", &format!("{height}px"));
}
