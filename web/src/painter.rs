//! Figures of many rectangles on the reader's GPU: a worker of its own (`web/gpu`) draws them on a canvas that was handed over, and
//! the page's thread only says which part is shown.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{Array, Float32Array, Float64Array, Object, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;
use web_sys::{HtmlCanvasElement, Worker};

use crate::frames;
use crate::worker_program::WorkerProgram;

/// What the painter reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Painted {
    /// The canvas can be drawn on.
    Ready,
    /// A frame is shown.
    Frame,
    /// Nothing is drawn any more: why.
    Failed(String),
}

/// A worker with a canvas. It ends with this value.
#[derive(Debug)]
pub(crate) struct Painter {
    worker: Worker,
    /// Messages that wait for its program.
    waiting: Rc<RefCell<Option<Vec<JsValue>>>>,
}

impl Painter {
    /// Hands the canvas over to a worker of this program; `None` where the browser has no such workers.
    pub(crate) fn new(
        program: &WorkerProgram,
        canvas: &HtmlCanvasElement,
        on_reply: impl Fn(Painted) + 'static,
    ) -> Option<Self> {
        let transfer = Reflect::get(canvas, &"transferControlToOffscreen".into()).ok()?;
        let offscreen = transfer.dyn_into::<js_sys::Function>().ok()?.call0(canvas).ok()?;
        let waiting = Rc::new(RefCell::new(Some(Vec::new())));
        let speaker = Rc::new(RefCell::new(None::<Worker>));
        let reply = Rc::new(on_reply);
        let (unsent, on_message, own) = (waiting.clone(), reply.clone(), speaker.clone());
        let on_message = move |data: JsValue| {
            if let Some(is_frame) = data.as_bool() {
                on_message(if is_frame { Painted::Frame } else { Painted::Ready });
            } else if unsent.borrow().is_some() {
                // Its greeting.
                let worker = own.borrow().clone();
                let Some(worker) = worker else { return };
                let message = Object::new();
                let _ = Reflect::set(&message, &"canvas".into(), &offscreen);
                let _ = worker.post_message_with_transfer(&message, &Array::of1(&offscreen));
                for message in unsent.take().unwrap_or_default() {
                    let _ = worker.post_message(&message);
                }
            } else {
                on_message(Painted::Failed(data.as_string().unwrap_or_default()));
            }
        };
        let worker = program.start(on_message, move |why| reply(Painted::Failed(why)))?;
        speaker.replace(Some(worker.clone()));
        Some(Self { worker, waiting })
    }

    fn send(&self, members: &[(&str, JsValue)]) {
        let message = Object::new();
        for (name, value) in members {
            let _ = Reflect::set(&message, &(*name).into(), value);
        }
        match self.waiting.borrow_mut().as_mut() {
            Some(waiting) => waiting.push(message.into()),
            None => {
                let _ = self.worker.post_message(&message);
            }
        }
    }

    /// Other rectangles.
    pub(crate) fn set_rects(&self, geometry: &[u32], colors: &[u32]) {
        self.send(&[
            ("geometry", Uint32Array::from(geometry).into()),
            ("colors", Uint32Array::from(colors).into()),
        ]);
    }

    /// Other colors for the same rectangles.
    pub(crate) fn set_colors(&self, colors: &[u32]) {
        self.send(&[("colors", Uint32Array::from(colors).into())]);
    }

    /// Other values for the colors.
    pub(crate) fn set_palette(&self, palette: &[f32]) {
        self.send(&[("palette", Float32Array::from(palette).into())]);
    }

    /// Shows a part: first and last step, lowest and highest byte, width and height in pixels, whether all but chosen ones are pale
    /// (1); then these ranges of the rectangles, one over the other.
    pub(crate) fn show(&self, view: [f64; 7], ranges: [Range<usize>; 3]) {
        let ends = ranges.into_iter().flat_map(|range| [range.start, range.end].map(frames::count));
        let numbers: Vec<f64> = view.into_iter().chain(ends).collect();
        self.send(&[("view", Float64Array::from(numbers.as_slice()).into())]);
    }
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.worker.terminate();
    }
}
