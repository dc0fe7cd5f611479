//! The few things that the page asks of the browser, without a way to panic.

use js_sys::Function;
use wasm_bindgen::prelude::*;
use web_sys::{Document, Element, EventTarget, HtmlElement, MediaQueryList, Storage, Window};

/// The window; none in a worker.
pub(crate) fn window() -> Option<Window> {
    web_sys::window()
}

pub(crate) fn document() -> Option<Document> {
    window()?.document()
}

/// Milliseconds since the page was opened.
pub(crate) fn now_millis() -> f64 {
    window().and_then(|window| window.performance()).map_or(0.0, |performance| performance.now())
}

/// Device pixels per CSS pixel.
pub(crate) fn pixel_ratio() -> f64 {
    window().map_or(1.0, |window| window.device_pixel_ratio()).clamp(0.5, 4.0)
}

/// Calls `handler` for each event of this name, as long as the page lives.
pub(crate) fn listen<E: JsCast + 'static>(
    target: &EventTarget,
    name: &str,
    mut handler: impl FnMut(E) + 'static,
) {
    listen_to_any(target, name, Box::new(move |event| handler(event.unchecked_into())));
}

fn listen_to_any(target: &EventTarget, name: &str, handler: Box<dyn FnMut(JsValue)>) {
    let closure = Closure::wrap(handler);
    // A listener that cannot be added leaves a control without effect; there is nothing to do about it here.
    let _ = target.add_event_listener_with_callback(name, closure.as_ref().unchecked_ref());
    closure.forget();
}

/// The action as a function of the browser that is called once.
pub(crate) fn once(action: Box<dyn FnOnce()>) -> Function {
    Closure::once_into_js(action).unchecked_into()
}

/// Calls `action` once after this many milliseconds; the number cancels it.
pub(crate) fn after_millis(millis: i32, action: impl FnOnce() + 'static) -> Option<i32> {
    let callback = once(Box::new(action));
    window()?.set_timeout_with_callback_and_timeout_and_arguments_0(&callback, millis).ok()
}

/// Cancels what [`after_millis`] planned.
pub(crate) fn cancel(timer: Option<i32>) {
    if let (Some(window), Some(timer)) = (window(), timer) {
        window.clear_timeout_with_handle(timer);
    }
}

pub(crate) fn media(query: &str) -> Option<MediaQueryList> {
    window()?.match_media(query).ok()?
}

fn storage() -> Option<Storage> {
    // Reading the property throws where the reader has forbidden storage.
    window()?.local_storage().ok()?
}

/// What was remembered under the key.
pub(crate) fn recall(key: &str) -> Option<String> {
    storage()?.get_item(key).ok()?
}

/// Remembers a value for the next visit, if the browser lets us.
pub(crate) fn remember(key: &str, value: &str) {
    if let Some(storage) = storage() {
        let _ = storage.set_item(key, value);
    }
}

/// Whether the element takes typed text, so that keys belong to it.
pub(crate) fn is_text_field(element: &Element) -> bool {
    match element.tag_name().as_str() {
        "TEXTAREA" | "SELECT" => true,
        "INPUT" => !matches!(
            element.get_attribute("type").as_deref(),
            Some("range" | "checkbox" | "radio" | "button" | "file" | "submit")
        ),
        _ => element.dyn_ref::<HtmlElement>().is_some_and(HtmlElement::is_content_editable),
    }
}

/// Puts text on the clipboard.
pub(crate) fn copy(text: &str) {
    if let Some(window) = window() {
        let _ = window.navigator().clipboard().write_text(text);
    }
}
