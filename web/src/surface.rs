//! Canvases that follow the size of their box.

use crate::view::kit::effect;
use blockyard_figure::{Scene, Size};
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{HtmlCanvasElement, ResizeObserver, ResizeObserverEntry};

/// The size of the box's content, kept up to date; zero until it is laid out.
pub(crate) fn size_of(node: NodeRef<html::Div>) -> RwSignal<Size> {
    let size = RwSignal::new(Size::default());
    effect(move || {
        let Some(element) = node.get() else { return };
        let callback = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
            let Some(entry) = entries.iter().last() else { return };
            let content = entry.unchecked_into::<ResizeObserverEntry>().content_rect();
            let now = Size::new(pixels(content.width()), pixels(content.height()));
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

/// Gives the canvas the scene's size on the page.
pub(crate) fn fit(canvas: &HtmlCanvasElement, scene: &Scene) {
    let _ = web_sys::HtmlElement::style(canvas).set_property("height", &format!("{}px", scene.height_px));
}
