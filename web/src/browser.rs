//! The page's calls of the browser. None of them panics; a call that fails has no effect or returns `None`.
//!
//! The listeners for an element's size, for dropped files and for the color scheme, and the access to
//! storage, are about a hundred lines here, in `surface.rs`, in `view.rs` and in `view/messages.rs`.
//! `leptos-use` 0.20 has them too, and its three functions for them bring 37 more crates with them, each of
//! which every build of the page would pay for. So these lines are ours.

use js_sys::{Array, ArrayBuffer, Function, Promise, Reflect, Uint8Array};
use leptos::prelude::{SetValue as _, StoredValue, UpdateValue as _};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, BlobPropertyBag, Document, Element, EventTarget, HtmlElement, MediaQueryList, Response, Storage,
    Url, Window,
};

/// The window; `None` in a worker.
pub(crate) fn window() -> Option<Window> {
    web_sys::window()
}

pub(crate) fn document() -> Option<Document> {
    window()?.document()
}

/// `?key=value#hash` of a page that was exported as one file. The browser's address of such a page says
/// nothing, so the attribute `data-address` of its root element takes the place of the address.
fn own_address() -> Option<String> {
    root()?.get_attribute("data-address")
}

/// Whether the page was exported as one file.
pub(crate) fn is_one_file() -> bool {
    own_address().is_some()
}

/// The value of a key in the page's address: `?key=value`.
pub(crate) fn query(key: &str) -> Option<String> {
    let search = match own_address() {
        Some(address) => address.split('#').next().unwrap_or_default().to_owned(),
        None => window()?.location().search().ok()?,
    };
    web_sys::UrlSearchParams::new_with_str(&search).ok()?.get(key)
}

/// The hash of the page's address, with its `#` if the browser has one there.
pub(crate) fn hash() -> String {
    let hash = window().and_then(|window| window.location().hash().ok()).unwrap_or_default();
    let first = || own_address().and_then(|address| Some(address.split_once('#')?.1.to_owned()));
    if hash.is_empty() { first().unwrap_or_default() } else { hash }
}

/// The page's address without its query and its hash.
pub(crate) fn address() -> String {
    let whole = window().and_then(|window| window.location().href().ok()).unwrap_or_default();
    whole.split(['#', '?']).next().unwrap_or_default().to_owned()
}

/// Sets the hash of the page's address: as a new entry of the browser's history if `is_new`, and otherwise in
/// the present entry.
pub(crate) fn set_hash(hash: &str, is_new: bool) {
    let Some(window) = window() else { return };
    let search = window.location().search().unwrap_or_default();
    let path = window.location().pathname().unwrap_or_default();
    let address = if hash.is_empty() { format!("{path}{search}") } else { format!("{path}{search}#{hash}") };
    if let Ok(history) = window.history() {
        // A page in a frame may not be allowed to write the address. It works without one.
        let _ = if is_new {
            history.push_state_with_url(&JsValue::NULL, "", Some(&address))
        } else {
            history.replace_state_with_url(&JsValue::NULL, "", Some(&address))
        };
    }
}

/// Whether the reader's system asks for reduced motion.
pub(crate) fn is_motion_reduced() -> bool {
    media("(prefers-reduced-motion: reduce)").is_some_and(|list| list.matches())
}

/// Whether the page is laid out for paper now.
pub(crate) fn is_printing() -> bool {
    media("print").is_some_and(|list| list.matches())
}

/// Whether the system replaces the page's colors by a few of its own (forced colors).
pub(crate) fn is_contrast_forced() -> bool {
    media("(forced-colors: active)").is_some_and(|list| list.matches())
}

/// Moves the focus to the element with this id.
pub(crate) fn focus(id: &str) {
    let element = document().and_then(|document| document.get_element_by_id(id));
    if let Some(element) = element.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
        let _ = element.focus();
    }
}

/// Moves the focus to the first element that matches and can be seen.
pub(crate) fn focus_first(css: &str) {
    let Some(found) = document().and_then(|document| document.query_selector_all(css).ok()) else { return };
    for index in 0..found.length() {
        let element = found.item(index).and_then(|node| node.dyn_into::<HtmlElement>().ok());
        if let Some(element) = element.filter(|element| element.offset_width() > 0) {
            let _ = element.focus();
            return;
        }
    }
}

/// If a button inside of an element that matches has the focus, removes the focus, so that keys go to the
/// page and not to the button.
pub(crate) fn leave_button(css: &str) {
    let Some(focused) = document().and_then(|document| document.active_element()) else { return };
    if focused.tag_name() == "BUTTON"
        && focused.closest(css).ok().flatten().is_some()
        && let Ok(button) = focused.dyn_into::<HtmlElement>()
    {
        let _ = button.blur();
    }
}

/// Whether an element of the document fills the whole screen.
pub(crate) fn is_whole_screen(document: &Document) -> bool {
    document.fullscreen_element().is_some()
}

/// Asks for the whole screen, with Escape as a key of the page. Where the browser refuses that, the page keeps
/// its window, and Escape leaves the whole screen.
pub(crate) fn ask_for_whole_screen() {
    let Some(root) = root() else { return };
    let keyboard = window().and_then(|window| Reflect::get(&window.navigator(), &"keyboard".into()).ok());
    if let Some((keyboard, lock)) = keyboard.and_then(|it| Some((it.clone(), method(&it, "lock")?))) {
        let _ = lock.call1(&keyboard, &js_sys::Array::of1(&"Escape".into()));
    }
    let asked = method(&root, "requestFullscreen").and_then(|ask| ask.call0(&root).ok());
    if let Some(promise) = asked.and_then(|asked| asked.dyn_into::<js_sys::Promise>().ok()) {
        wasm_bindgen_futures::spawn_local(async move {
            let _ = JsFuture::from(promise).await;
        });
    }
}

/// The first element that matches; `None` also if the browser does not know the selector.
pub(crate) fn find(css: &str) -> Option<Element> {
    document()?.query_selector(css).ok()?
}

/// The root element of the page.
pub(crate) fn root() -> Option<Element> {
    document()?.document_element()
}

/// The element that an event came from.
pub(crate) fn target_of(event: &web_sys::Event) -> Option<Element> {
    event.target()?.dyn_into().ok()
}

pub(crate) fn scroll_to(css: &str) {
    if let Some(element) = find(css) {
        element.scroll_into_view();
    }
}

/// Of the elements that match, the last whose upper edge is above this part of the window's height.
pub(crate) fn last_above(css: &str, part: f64) -> Option<Element> {
    let line = window_size().1 * part;
    let found = document()?.query_selector_all(css).ok()?;
    let elements = (0..found.length()).rev().filter_map(|index| found.get(index)?.dyn_into::<Element>().ok());
    elements.into_iter().find(|element| element.get_bounding_client_rect().top() < line)
}

/// Scrolls as little as brings the first element that matches into the window.
pub(crate) fn scroll_into_sight(css: &str) {
    if let Some(element) = find(css) {
        let options = web_sys::ScrollIntoViewOptions::new();
        options.set_block(web_sys::ScrollLogicalPosition::Nearest);
        element.scroll_into_view_with_scroll_into_view_options(&options);
    }
}

/// Opens the browser's dialog for printing.
pub(crate) fn print() {
    if let Some(window) = window() {
        let _ = window.print();
    }
}

pub(crate) fn scroll_to_top() {
    if let Some(window) = window() {
        window.scroll_to_with_x_and_y(0.0, 0.0);
    }
}

/// Milliseconds since the page was opened.
pub(crate) fn now_millis() -> f64 {
    window().and_then(|window| window.performance()).map_or(0.0, |performance| performance.now())
}

/// The number of the day, as the days of the world's clock are counted.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a day of this century")]
pub(crate) fn today() -> u64 {
    (js_sys::Date::now() / 86_400_000.0) as u64
}

/// A number by chance.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^52")]
pub(crate) fn random() -> u64 {
    (js_sys::Math::random() * 2_f64.powi(52)) as u64
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
    listen_to_all(target, &[name], Box::new(move |event| handler(event.unchecked_into())));
}

/// Whether a finger points.
pub(crate) fn is_touch() -> bool {
    media("(pointer: coarse)").is_some_and(|list| list.matches())
}

/// Calls `handler` as [`listen`] does, for the events of all elements inside the target, including events
/// that do not bubble.
pub(crate) fn listen_within<E: JsCast + 'static>(
    target: &EventTarget,
    name: &str,
    mut handler: impl FnMut(E) + 'static,
) {
    let closure = Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| handler(event.unchecked_into()));
    let callback = closure.as_ref().unchecked_ref();
    let _ = target.add_event_listener_with_callback_and_bool(name, callback, true);
    closure.forget();
}

/// Calls `handler` for each event of any of these names, as long as the page lives.
pub(crate) fn listen_to_all(target: &EventTarget, names: &[&str], handler: Box<dyn FnMut(JsValue)>) {
    let closure = Closure::wrap(handler);
    for name in names {
        // If the listener cannot be added, a control has no effect. Nothing can be done about that here.
        let _ = target.add_event_listener_with_callback(name, closure.as_ref().unchecked_ref());
    }
    closure.forget();
}

/// The action as a JavaScript function, which may be called once.
pub(crate) fn once(action: Box<dyn FnOnce()>) -> Function {
    Closure::once_into_js(action).unchecked_into()
}

/// Calls `action` once after this many milliseconds. The returned timer is for [`cancel`].
pub(crate) fn after_millis(millis: i32, action: impl FnOnce() + 'static) -> Option<i32> {
    let callback = once(Box::new(action));
    window()?.set_timeout_with_callback_and_timeout_and_arguments_0(&callback, millis).ok()
}

/// One action that waits; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Delay(StoredValue<Option<i32>>);

impl Delay {
    pub(crate) fn new() -> Self {
        Self(StoredValue::new(None))
    }

    /// Calls `action` after this many milliseconds, in place of the action that waits.
    pub(crate) fn start(self, millis: i32, action: impl FnOnce() + 'static) {
        self.cancel();
        self.0.set_value(after_millis(millis, action));
    }

    /// Drops the action that waits. Returns whether there was one, or one that has been done.
    pub(crate) fn cancel(self) -> bool {
        let timer = self.0.try_update_value(Option::take).flatten();
        cancel(timer);
        timer.is_some()
    }
}

/// Calls `tick` after each second, with the number of seconds that have passed, until it returns false.
pub(crate) fn each_second(tick: impl FnMut(u32) -> bool + 'static) {
    tick_after(1, Box::new(tick));
}

fn tick_after(seconds: u32, mut tick: Box<dyn FnMut(u32) -> bool>) {
    let _ = after_millis(1000, move || {
        if tick(seconds) {
            tick_after(seconds + 1, tick);
        }
    });
}

/// Cancels a timer of [`after_millis`], if it has not ended.
fn cancel(timer: Option<i32>) {
    if let (Some(window), Some(timer)) = (window(), timer) {
        window.clear_timeout_with_handle(timer);
    }
}

pub(crate) fn media(query: &str) -> Option<MediaQueryList> {
    window()?.match_media(query).ok()?
}

/// The size of the page's letters divided by the size that figures are laid out for. Figures are drawn larger
/// by this factor.
pub(crate) fn text_scale() -> f64 {
    let size = root().and_then(|root| style_of(&root, "font-size"));
    let size = size.and_then(|size| size.trim_end_matches("px").parse::<f64>().ok());
    size.map_or(1.0, |size| size / FIGURE_TEXT_PX).clamp(0.5, 5.0)
}

/// Device pixels per pixel of a figure.
pub(crate) fn canvas_ratio() -> f64 {
    pixel_ratio() * text_scale()
}

/// The size of the page's letters for which figures are laid out.
const FIGURE_TEXT_PX: f64 = 13.0;

/// The value that the page's style gives to a property of the element.
pub(crate) fn style_of(element: &Element, property: &str) -> Option<String> {
    window()?.get_computed_style(element).ok()??.get_property_value(property).ok()
}

/// The width and the height of the window.
pub(crate) fn window_size() -> (f64, f64) {
    let size = window().and_then(|window| {
        Some((window.inner_width().ok()?.as_f64()?, window.inner_height().ok()?.as_f64()?))
    });
    size.unwrap_or((1000.0, 800.0))
}

fn storage() -> Option<Storage> {
    // Reading the property throws where the reader has forbidden storage.
    window()?.local_storage().ok()?
}

/// The value that was remembered under the key.
pub(crate) fn recall(key: &str) -> Option<String> {
    storage()?.get_item(key).ok()?
}

/// Remembers a value for the next visit, if the browser lets us.
pub(crate) fn remember(key: &str, value: &str) {
    if let Some(storage) = storage() {
        let _ = storage.set_item(key, value);
    }
}

/// Deletes the value that was remembered under the key.
pub(crate) fn forget(key: &str) {
    if let Some(storage) = storage() {
        let _ = storage.remove_item(key);
    }
}

/// Keeps a value for a reload of this tab, or deletes it.
pub(crate) fn keep_in_tab(key: &str, value: Option<&str>) {
    if let Some(storage) = window().and_then(|window| window.session_storage().ok()?) {
        let _ = match value {
            Some(value) => storage.set_item(key, value),
            None => storage.remove_item(key),
        };
    }
}

/// The value that this tab kept under the key.
pub(crate) fn kept_in_tab(key: &str) -> Option<String> {
    window()?.session_storage().ok()??.get_item(key).ok()?
}

/// Whether text is typed into the element, so that the page must not use the keys.
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

async fn fetch(address: &str) -> Option<Response> {
    let response = JsFuture::from(window()?.fetch_with_str(address)).await.ok()?;
    response.dyn_into().ok().filter(Response::ok)
}

/// Waits for this many milliseconds.
pub(crate) async fn pause(millis: i32) {
    let promise = Promise::new(&mut |resolve, _reject| {
        // The page always has a window; without a window, the promise would stay pending.
        let _timer = window()
            .map(|window| window.set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, millis));
    });
    // This promise is never rejected.
    let _waited = JsFuture::from(promise).await;
}

/// The bytes at an address of the page.
pub(crate) async fn fetch_bytes(address: &str) -> Option<ArrayBuffer> {
    let response = fetch(address).await?;
    JsFuture::from(response.array_buffer().ok()?).await.ok()?.dyn_into().ok()
}

/// The content at an address of the page, which the browser keeps outside of the page's memory.
pub(crate) async fn fetch_blob(address: &str) -> Option<Blob> {
    let response = fetch(address).await?;
    JsFuture::from(response.blob().ok()?).await.ok()?.dyn_into().ok()
}

/// The bytes as a file without a name.
pub(crate) fn blob_of(bytes: &[u8]) -> Option<Blob> {
    Blob::new_with_u8_array_sequence(&Array::of1(&Uint8Array::from(bytes))).ok()
}

/// The address of a file that `blockyard open` or an export has put beside the page.
pub(crate) fn address_beside(name: &str) -> String {
    format!("open/{}", String::from(js_sys::encode_uri_component(name)))
}

/// The bytes at an address of the page, as [`fetch_bytes`] gets them. `on_bytes` is called with the number of
/// bytes that have arrived.
pub(crate) async fn fetch_with_progress(address: &str, mut on_bytes: impl FnMut(f64)) -> Option<ArrayBuffer> {
    let response = fetch(address).await?;
    let body = Reflect::get(&response, &"body".into()).ok()?;
    let reader = method(&body, "getReader")?.call0(&body).ok()?;
    let read = method(&reader, "read")?;
    let chunks = Array::new();
    let mut bytes = 0.0;
    loop {
        let promise = read.call0(&reader).ok()?.dyn_into::<Promise>().ok()?;
        let part = JsFuture::from(promise).await.ok()?;
        if Reflect::get(&part, &"done".into()).ok()?.is_truthy() {
            break;
        }
        let chunk = Reflect::get(&part, &"value".into()).ok()?.dyn_into::<Uint8Array>().ok()?;
        bytes += f64::from(chunk.length());
        chunks.push(&chunk);
        on_bytes(bytes);
    }
    let blob = Blob::new_with_u8_array_sequence(&chunks).ok()?;
    JsFuture::from(blob.array_buffer()).await.ok()?.dyn_into().ok()
}

fn method(object: &JsValue, name: &str) -> Option<Function> {
    Reflect::get(object, &name.into()).ok()?.dyn_into().ok()
}

/// Writes a text in the focused field in place of its selection, as if it were typed, so that the field's own
/// undo takes it back.
pub(crate) fn insert_text(text: &str) {
    let Some(document) = document() else { return };
    if let Some(command) = method(&document, "execCommand") {
        let _ = command.call3(&document, &"insertText".into(), &false.into(), &text.into());
    }
}

/// The text at an address of the page.
pub(crate) async fn fetch_text(address: &str) -> Option<String> {
    let response = fetch(address).await?;
    JsFuture::from(response.text().ok()?).await.ok()?.as_string()
}

/// The whole address of a file of the page. A worker needs it, because relative addresses do not work in a
/// worker that was started from a blob.
pub(crate) fn page_address(file: &str) -> String {
    let base = document().and_then(|document| document.base_uri().ok()?).unwrap_or_default();
    Url::new_with_base(file, &base).map_or_else(|_| file.to_owned(), |url| url.href())
}

/// Fetches a script of the page and returns an address from which a worker loads the script without the
/// network.
pub(crate) async fn blob_url(address: &str) -> Option<String> {
    let text = JsFuture::from(fetch(address).await?.text().ok()?).await.ok()?;
    if is_one_file() {
        // A page in one file has no origin, and workers of such a page cannot load blobs.
        let text = String::from(js_sys::encode_uri_component(&text.as_string()?));
        return Some(format!("data:text/javascript;charset=utf-8,{text}"));
    }
    url_of(&text, "text/javascript")
}

#[wasm_bindgen]
extern "C" {
    /// The browser's stream that unpacks, with a readable and a writable side. `web_sys` has it only among what is
    /// not stable yet.
    type DecompressionStream;
    #[wasm_bindgen(constructor, catch)]
    fn new(format: &str) -> Result<DecompressionStream, JsValue>;
}

/// An address from which a worker loads the script of these bytes.
pub(crate) fn script_url(bytes: &ArrayBuffer) -> Option<String> {
    url_of(&Uint8Array::new(bytes), "text/javascript")
}

/// The content of a file that gzip has compressed. A server may have unpacked the file on its way.
pub(crate) async fn unpacked(file: &ArrayBuffer) -> Option<ArrayBuffer> {
    let bytes = Uint8Array::new(file);
    if bytes.subarray(0, 2).to_vec() != [0x1f, 0x8b] {
        return Some(file.clone());
    }
    let stream = DecompressionStream::new("gzip").ok()?;
    let packed = Blob::new_with_u8_array_sequence(&Array::of1(&bytes)).ok()?.stream();
    let unpacked = packed.pipe_through(stream.unchecked_ref());
    let response = Response::new_with_opt_readable_stream(Some(&unpacked)).ok()?;
    JsFuture::from(response.array_buffer().ok()?).await.ok()?.dyn_into().ok()
}

fn url_of(content: &JsValue, kind: &str) -> Option<String> {
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_buffer_source_sequence_and_options(&Array::of1(content), &options).ok()?;
    Url::create_object_url_with_blob(&blob).ok()
}

/// Lets the browser save the text as a file.
pub(crate) fn download(name: &str, text: &str, kind: &str) {
    if let Some(url) = url_of(&text.into(), kind) {
        download_url(name, &url);
        // The browser reads the text after this function has returned.
        let _ = after_millis(10_000, move || {
            let _ = Url::revoke_object_url(&url);
        });
    }
}

/// Lets the browser save the content of an address as a file.
pub(crate) fn download_url(name: &str, url: &str) {
    let link =
        document().and_then(|document| document.create_element("a").ok()?.dyn_into::<HtmlElement>().ok());
    if let Some(link) = link {
        let _ = link.set_attribute("href", url);
        let _ = link.set_attribute("download", name);
        link.click();
    }
}

/// Selects the whole text of the field that got the focus.
pub(crate) fn select_all(event: &web_sys::Event) {
    let field = target_of(event).and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok());
    if let Some(field) = field {
        field.select();
    }
}

/// Sends the height of this page to the page whose frame it is in.
pub(crate) fn post_height(height_px: f64) {
    let Some(parent) = window().and_then(|window| window.parent().ok().flatten()) else { return };
    let message = js_sys::Object::new();
    let _ = js_sys::Reflect::set(&message, &"type".into(), &"blockyard:height".into());
    let _ = js_sys::Reflect::set(&message, &"height".into(), &height_px.into());
    // The height is not a secret, so it goes to an outer page of any origin.
    let _ = parent.post_message(&message, "*");
}

/// How many threads the machine runs at the same time, at least 1.
pub(crate) fn cores() -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate"
    )]
    let count = window().map_or(1.0, |window| window.navigator().hardware_concurrency()) as usize;
    count.max(1)
}

/// Whether the `<details>` element that an event came from is open.
pub(crate) fn is_details_open(event: &web_sys::Event) -> bool {
    let details = target_of(event).and_then(|target| target.dyn_into::<web_sys::HtmlDetailsElement>().ok());
    details.is_some_and(|details| details.open())
}
