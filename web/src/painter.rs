//! Figures of many rectangles on the reader's GPU. A separate worker (`web/gpu`) draws them on a canvas of
//! the page, and the page's thread only sends the part to show.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{Array, Float32Array, Float64Array, Object, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;
use web_sys::{HtmlCanvasElement, Worker};

use crate::frames;
use crate::worker_program::WorkerProgram;

/// A report of the worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PainterReport {
    /// The canvas can be drawn on.
    Ready,
    /// A frame is shown.
    Frame,
    /// Nothing is drawn any more, for this reason.
    Failed(String),
}

/// A worker with a canvas. Dropping this value ends the worker.
#[derive(Debug)]
pub(crate) struct Painter {
    worker: Worker,
    /// Messages that wait until the worker is ready; `None` when it is.
    waiting: Rc<RefCell<Option<Vec<JsValue>>>>,
}

impl Painter {
    /// Hands the canvas over to a worker that runs this module; `None` if the browser cannot do that.
    pub(crate) fn new(
        program: &WorkerProgram,
        canvas: &HtmlCanvasElement,
        on_reply: impl Fn(PainterReport) + 'static,
    ) -> Option<Self> {
        let transfer = Reflect::get(canvas, &"transferControlToOffscreen".into()).ok()?;
        let offscreen = transfer.dyn_into::<js_sys::Function>().ok()?.call0(canvas).ok()?;
        let waiting = Rc::new(RefCell::new(Some(Vec::new())));
        let started = Rc::new(RefCell::new(None::<Worker>));
        let reply = Rc::new(on_reply);
        let (unsent, on_message, own_worker) = (waiting.clone(), reply.clone(), started.clone());
        let on_message = move |data: JsValue| {
            if let Some(is_frame) = data.as_bool() {
                on_message(if is_frame { PainterReport::Frame } else { PainterReport::Ready });
            } else if unsent.borrow().is_some() {
                // The first text says that the worker is ready: it gets the canvas, and then the messages
                // that have waited.
                let worker = own_worker.borrow().clone();
                let Some(worker) = worker else { return };
                let message = Object::new();
                let _ = Reflect::set(&message, &"canvas".into(), &offscreen);
                let _ = worker.post_message_with_transfer(&message, &Array::of1(&offscreen));
                for message in unsent.take().unwrap_or_default() {
                    let _ = worker.post_message(&message);
                }
            } else {
                on_message(PainterReport::Failed(data.as_string().unwrap_or_default()));
            }
        };
        let worker = program.start(on_message, move |why| reply(PainterReport::Failed(why)))?;
        started.replace(Some(worker.clone()));
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

    /// Draws other rectangles from now on.
    pub(crate) fn set_rects(&self, geometry: &[u32], colors: &[u32]) {
        self.send(&[
            ("geometry", Uint32Array::from(geometry).into()),
            ("colors", Uint32Array::from(colors).into()),
        ]);
    }

    /// Gives the same rectangles other indices into the palette.
    pub(crate) fn set_colors(&self, colors: &[u32]) {
        self.send(&[("colors", Uint32Array::from(colors).into())]);
    }

    /// Gives the palette other colors: four numbers from 0 to 1 for each (red, green, blue, opacity).
    pub(crate) fn set_palette(&self, palette: &[f32]) {
        self.send(&[("palette", Float32Array::from(palette).into())]);
    }

    /// Shows a part. `view` has the first and last step, the lowest and highest byte, the width and height in
    /// device pixels, and 1 if all but the chosen rectangles are pale. The `ranges` of the rectangles are
    /// drawn in their order.
    pub(crate) fn show(&self, view: [f64; 8], ranges: [Range<usize>; 3]) {
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
