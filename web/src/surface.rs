//! Canvases that have the size of their container, and the conversion between pixels of the page and of
//! figures.
//!
//! A pixel of a figure is a pixel of the page, or more if the page's letters are larger
//! ([`browser::text_scale`]).

use blockyard_figure::{Scene, Size};
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{HtmlCanvasElement, MouseEvent, ResizeObserver, ResizeObserverEntry};

use crate::browser;
use crate::effect::effect;
use crate::session::Session;

/// The size of the element's content in pixels of a figure. The signal follows the element's size, and is
/// zero until the element is laid out.
pub(crate) fn size_of(node: NodeRef<html::Div>) -> RwSignal<Size> {
    let size = RwSignal::new(Size::default());
    effect(move || {
        let Some(element) = node.get() else { return };
        let callback = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
            let Some(entry) = entries.iter().last() else { return };
            let content = entry.unchecked_into::<ResizeObserverEntry>().content_rect();
            let scale = browser::text_scale();
            let now = Size::new(pixels(content.width() / scale), pixels(content.height() / scale));
            // The element may have been removed from the page, and its signal with it.
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

/// The last scene that was drawn, in which handlers look up the target under the pointer; a handle that is
/// copied freely.
#[derive(Clone, Copy)]
pub(crate) struct DrawnScene(StoredValue<Scene, LocalStorage>);

impl DrawnScene {
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

/// The place of the pointer in the figure, in its pixels from its top left corner.
pub(crate) fn offset_px(event: &MouseEvent) -> (f32, f32) {
    let scale = browser::text_scale();
    (pixels(f64::from(event.offset_x()) / scale), pixels(f64::from(event.offset_y()) / scale))
}

/// The length on the page, in its pixels, of a length in a figure.
pub(crate) fn on_page(length_px: f32) -> f64 {
    f64::from(length_px) * browser::text_scale()
}

/// The length in a figure, in its pixels, of a length on the page.
pub(crate) fn in_figure(length_px: f64) -> f32 {
    pixels(length_px / browser::text_scale())
}

/// Keeps a canvas drawn: the scene of this size is made again when the size or a signal that `scene` reads
/// changes.
pub(crate) fn keep_drawn(
    session: Session,
    canvas: NodeRef<html::Canvas>,
    size: RwSignal<Size>,
    scene: impl Fn(Size) -> Option<Scene> + 'static,
) {
    effect(move || {
        let (Some(canvas), size) = (canvas.get(), size.get()) else { return };
        if let Some(scene) = Some(size).filter(|size| size.width_px >= 1.0).and_then(&scene) {
            show(session, &canvas, &scene);
        }
    });
}

/// Draws the scene in the page's present colors on the canvas, which gets its height. Reads signals.
pub(crate) fn show(session: Session, canvas: &HtmlCanvasElement, scene: &Scene) {
    fit(canvas, scene);
    session.appearance().draw(canvas, scene);
}

/// Gives the canvas element the height of the scene, as a whole number of device pixels, so that nothing is
/// blurred.
pub(crate) fn fit(canvas: &HtmlCanvasElement, scene: &Scene) {
    let ratio = browser::pixel_ratio();
    let height = (on_page(scene.height_px) * ratio).round() / ratio;
    let _ = web_sys::HtmlElement::style(canvas).set_property("height", &format!("{height}px"));
}
