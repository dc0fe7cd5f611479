//! The reader's own GPU: whether the browser has an adapter, and whether figures are drawn on it.
//!
//! The code that uses the GPU is in a separate module (`web/gpu`).

use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::browser;

pub(crate) use blockyard_worker::jobs::Adapter;

/// Words in the descriptions of software adapters. Not every browser marks these adapters as fallbacks.
const SOFTWARE: [&str; 3] = ["swiftshader", "llvmpipe", "basic render"];

/// Whether figures are drawn on the reader's GPU. A software adapter is not used, because it draws slower
/// than the page's own grid. With `?painter=any` in the address, every adapter is used.
pub(crate) async fn can_paint() -> bool {
    let Some(adapter) = adapter().await.ok().filter(JsValue::is_object) else { return false };
    let member = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).unwrap_or_default();
    let info = member(&adapter, "info");
    let texts = if info.is_object() {
        ["vendor", "architecture", "device", "description"].map(|name| member(&info, name).as_string())
    } else {
        [const { None }; 4]
    };
    let names_software = texts.into_iter().flatten().any(|text| {
        let text = text.to_lowercase();
        SOFTWARE.iter().any(|software| text.contains(software))
    });
    let is_fallback =
        [&info, &adapter].into_iter().any(|of| of.is_object() && member(of, "isFallbackAdapter").is_truthy());
    takes_any() || !(names_software || is_fallback)
}

/// Whether the address asks for drawing on any adapter, even a software adapter.
pub(crate) fn takes_any() -> bool {
    browser::query("painter").is_some_and(|painter| painter == "any")
}

/// The adapter that the browser prefers, if there is one.
async fn adapter() -> Result<JsValue, JsValue> {
    let window = browser::window().ok_or(JsValue::UNDEFINED)?;
    let gpu = Reflect::get(&window.navigator(), &"gpu".into())?;
    let ask: Function = Reflect::get(&gpu, &"requestAdapter".into())?.dyn_into()?;
    JsFuture::from(ask.call0(&gpu)?.dyn_into::<Promise>()?).await
}

/// The state of the reader's GPU, as far as the page knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum GpuState {
    /// The browser was not asked yet.
    #[default]
    Unknown,
    /// No adapter can be used, for this reason.
    Absent(String),
    /// The browser has an adapter, which is not open.
    Present,
    /// The adapter is open.
    Open(Adapter),
}

/// Asks the browser for an adapter, without opening it.
pub(crate) async fn ask() -> GpuState {
    let gpu = browser::window().and_then(|window| Reflect::get(&window.navigator(), &"gpu".into()).ok());
    if !gpu.is_some_and(|gpu| gpu.is_object()) {
        return GpuState::Absent("this browser has no WebGPU".to_owned());
    }
    match adapter().await {
        Ok(adapter) if adapter.is_object() => GpuState::Present,
        _ => GpuState::Absent("this browser has no adapter for WebGPU".to_owned()),
    }
}
