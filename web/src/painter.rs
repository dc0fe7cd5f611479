//! Figures of many rectangles on the reader's GPU. A separate worker (`web/gpu`) draws them on a canvas of
//! the page, and the page's thread only sends the part to show.

use std::ops::Range;

use js_sys::{Array, Float32Array, Float64Array, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::frames;
use crate::workers::{GPU, PageWorker, WorkerMessage, WorkerModule, object};

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
pub(crate) struct Painter(PageWorker);

impl Painter {
    /// Hands the canvas over to a worker; `None` if the browser cannot do that.
    pub(crate) fn new(
        canvas: &HtmlCanvasElement,
        on_reply: impl Fn(PainterReport) + 'static,
    ) -> Option<Self> {
        let transfer = Reflect::get(canvas, &"transferControlToOffscreen".into()).ok()?;
        let offscreen = transfer.dyn_into::<js_sys::Function>().ok()?.call0(canvas).ok()?;
        let worker = GPU.with(WorkerModule::start)?;
        let worker = worker.listen_with(
            |data, then| then(Ok(data)),
            move |message| match message {
                WorkerMessage::Ready => {}
                WorkerMessage::Failed(why) => on_reply(PainterReport::Failed(why)),
                WorkerMessage::Reply(data) => on_reply(match data.as_bool() {
                    Some(true) => PainterReport::Frame,
                    Some(false) => PainterReport::Ready,
                    None => PainterReport::Failed(data.as_string().unwrap_or_default()),
                }),
            },
        );
        worker.send_and_move(&object(&[("canvas", offscreen.clone())]), &Array::of1(&offscreen));
        Some(Self(worker))
    }

    fn send(&self, members: &[(&str, JsValue)]) {
        self.0.send(&object(members));
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
