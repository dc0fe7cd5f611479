//! A worker that draws rectangles on a canvas of the page, so that the page's thread only says which part is shown.
//!
//! A message is an object with some of these members, which are taken in this order: `canvas` (first of all, once), `geometry` with
//! `colors` (other rectangles), `colors` alone, `palette`, `view`. Each change is drawn with the next frame. Answers are `false` once
//! the canvas can be drawn on, `true` for each frame, and a text that says why nothing is drawn any more.

use std::cell::RefCell;
use std::ops::Range;

use blockyard_render::{CanvasPainter, PALETTE_SIZE, RectView};
use js_sys::{Float32Array, Float64Array, Function, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent, OffscreenCanvas};

#[derive(Default)]
struct Studio {
    painter: Option<CanvasPainter>,
    /// Messages that came before the canvas was open.
    waiting: Vec<JsValue>,
    /// What is shown, and which rectangles, one range over the other.
    view: Option<(RectView, [Range<u32>; 3])>,
    /// Whether a frame is asked for.
    is_planned: bool,
}

thread_local! {
    static STUDIO: RefCell<Studio> = RefCell::default();
}

fn scope() -> DedicatedWorkerGlobalScope {
    js_sys::global().unchecked_into()
}

fn say(answer: &JsValue) {
    let _ = scope().post_message(answer);
}

/// The canvas shows nothing more: why.
fn say_failed(why: &str) {
    say(&why.into());
}

/// Waits for a canvas; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let message = event.data();
        match Reflect::get(&message, &"canvas".into()).ok().and_then(|canvas| canvas.dyn_into().ok()) {
            Some(canvas) => spawn_local(open(canvas)),
            None => take(message),
        }
    });
    scope().set_onmessage(Some(listener.as_ref().unchecked_ref::<Function>()));
    listener.forget();
}

async fn open(canvas: OffscreenCanvas) {
    match CanvasPainter::open(canvas, say_failed).await {
        Ok(painter) => {
            let waiting = STUDIO.with_borrow_mut(|studio| {
                studio.painter = Some(painter);
                std::mem::take(&mut studio.waiting)
            });
            say(&JsValue::FALSE);
            waiting.into_iter().for_each(take);
        }
        Err(error) => say_failed(&error.to_string()),
    }
}

fn member<T: JsCast>(message: &JsValue, name: &str) -> Option<T> {
    Reflect::get(message, &name.into()).ok()?.dyn_into().ok()
}

fn take(message: JsValue) {
    let failed = STUDIO.with_borrow_mut(|studio| {
        let Some(painter) = &mut studio.painter else {
            studio.waiting.push(message);
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
            studio.view = view_of(&view.to_vec());
        }
        if !std::mem::replace(&mut studio.is_planned, true) {
            plan_frame();
        }
        None
    });
    if let Some(why) = failed {
        say_failed(&why);
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
    reason = "what is out of range is at an end"
)]
fn view_of(numbers: &[f64]) -> Option<(RectView, [Range<u32>; 3])> {
    let (view, ranges) = numbers.split_first_chunk()?;
    let [first_step, last_step, low, high, width, height, dims] = *view;
    let [reserved, thin, visible] = ranges.as_chunks::<2>().0 else { return None };
    let view = RectView {
        first_step,
        last_step,
        low,
        high,
        width_px: width as u32,
        height_px: height as u32,
        is_dimmed: dims > 0.0,
    };
    let range = |[start, end]: &[f64; 2]| *start as u32..*end as u32;
    Some((view, [range(reserved), range(thin), range(visible)]))
}

fn plan_frame() {
    let frame = Closure::once_into_js(|| {
        let drawn = STUDIO.with_borrow_mut(|studio| {
            studio.is_planned = false;
            let (view, ranges) = studio.view.as_ref()?;
            Some(studio.painter.as_mut()?.draw(view, ranges))
        });
        match drawn {
            Some(Ok(())) => say(&JsValue::TRUE),
            Some(Err(error)) => say_failed(&error.to_string()),
            None => {}
        }
    });
    let _ = scope().request_animation_frame(frame.unchecked_ref());
}
