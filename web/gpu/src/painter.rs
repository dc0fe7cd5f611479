//! A worker that draws rectangles on a canvas of the page. The page's thread only sends which part is shown.
//!
//! A message is an object with some of these members, which are applied in this order: `canvas` (in the first
//! message only), `geometry` with `colors` (other rectangles), `colors` alone, `palette`, `view`. Each change
//! is drawn with the next frame. Replies are `false` when the canvas can be drawn on, `true` for each frame,
//! and a text with the error after which nothing is drawn.

use std::cell::RefCell;
use std::ops::Range;

use blockyard_render::{CanvasPainter, PALETTE_SIZE, RectView};
use js_sys::{Float32Array, Float64Array, Function, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent, OffscreenCanvas};

#[derive(Default)]
struct PainterState {
    painter: Option<CanvasPainter>,
    /// Messages that came before the canvas was open.
    waiting: Vec<JsValue>,
    /// The part that is shown, and three ranges of rectangles, in the order in which they are drawn.
    view: Option<(RectView, [Range<u32>; 3])>,
    /// Whether a frame is already requested.
    is_planned: bool,
}

thread_local! {
    static STATE: RefCell<PainterState> = RefCell::default();
}

fn scope() -> DedicatedWorkerGlobalScope {
    js_sys::global().unchecked_into()
}

fn post(answer: &JsValue) {
    let _ = scope().post_message(answer);
}

/// Reports the error after which nothing is drawn any more.
fn post_error(why: &str) {
    post(&why.into());
}

/// Waits for a canvas; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let message = event.data();
        match Reflect::get(&message, &"canvas".into()).ok().and_then(|canvas| canvas.dyn_into().ok()) {
            Some(canvas) => spawn_local(open(canvas)),
            None => apply(message),
        }
    });
    scope().set_onmessage(Some(listener.as_ref().unchecked_ref::<Function>()));
    listener.forget();
}

async fn open(canvas: OffscreenCanvas) {
    match CanvasPainter::open(canvas, post_error).await {
        Ok(painter) => {
            let waiting = STATE.with_borrow_mut(|state| {
                state.painter = Some(painter);
                std::mem::take(&mut state.waiting)
            });
            post(&JsValue::FALSE);
            waiting.into_iter().for_each(apply);
        }
        Err(error) => post_error(&error.to_string()),
    }
}

fn member<T: JsCast>(message: &JsValue, name: &str) -> Option<T> {
    Reflect::get(message, &name.into()).ok()?.dyn_into().ok()
}

fn apply(message: JsValue) {
    let failed = STATE.with_borrow_mut(|state| {
        let Some(painter) = &mut state.painter else {
            state.waiting.push(message);
            return None;
        };
        let colors: Option<Uint32Array> = member(&message, "colors");
        let geometry: Option<Uint32Array> = member(&message, "geometry");
        match (geometry, colors) {
            (Some(geometry), Some(colors)) => {
                if let Err(error) = painter.set_rects(&geometry.to_vec(), &colors.to_vec()) {
                    return Some(error.to_string());
                }
            }
            (None, Some(colors)) => painter.set_colors(&colors.to_vec()),
            _ => {}
        }
        if let Some(palette) = member::<Float32Array>(&message, "palette") {
            painter.set_palette(&palette_of(&palette.to_vec()));
        }
        if let Some(view) = member::<Float64Array>(&message, "view") {
            state.view = view_of(&view.to_vec());
        }
        if !std::mem::replace(&mut state.is_planned, true) {
            plan_frame();
        }
        None
    });
    if let Some(why) = failed {
        post_error(&why);
    }
}

fn palette_of(parts: &[f32]) -> [[f32; 4]; PALETTE_SIZE] {
    let mut palette = [[0.0; 4]; PALETTE_SIZE];
    for (color, parts) in palette.iter_mut().zip(parts.as_chunks::<4>().0) {
        *color = *parts;
    }
    palette
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, and a range that is too long ends with the rectangles"
)]
fn view_of(numbers: &[f64]) -> Option<(RectView, [Range<u32>; 3])> {
    let (view, ranges) = numbers.split_first_chunk()?;
    let [first_step, last_step, low, high, width, height, dims, pixel_ratio] = *view;
    let [reserved, thin, visible] = ranges.as_chunks::<2>().0 else { return None };
    let view = RectView {
        first_step,
        last_step,
        low,
        high,
        width_px: width as u32,
        height_px: height as u32,
        is_dimmed: dims > 0.0,
        pixel_ratio,
    };
    let range = |[start, end]: &[f64; 2]| *start as u32..*end as u32;
    Some((view, [range(reserved), range(thin), range(visible)]))
}

fn plan_frame() {
    let frame = Closure::once_into_js(|| {
        let drawn = STATE.with_borrow_mut(|state| {
            state.is_planned = false;
            let (view, ranges) = state.view.as_ref()?;
            Some(state.painter.as_mut()?.draw(view, ranges))
        });
        match drawn {
            Some(Ok(())) => post(&JsValue::TRUE),
            Some(Err(error)) => post_error(&error.to_string()),
            None => {}
        }
    });
    let _ = scope().request_animation_frame(frame.unchecked_ref());
}
