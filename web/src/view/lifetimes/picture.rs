//! The picture of a grid, made in slices of the page's time. Until a new one is ready, the last one is shown moved and stretched, so
//! that a frame costs the page little however much is drawn.

use std::ops::Range;
use std::sync::Arc;

use blockyard_figure::{AddressMap, Allocations, Grid, GridKind, GridPaint, GridView, Groups, Rect};
use blockyard_record::Recording;
use wasm_bindgen::prelude::*;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

use crate::browser;
use crate::frames::count;
use crate::ptr_eq::PtrEq;

/// Columns that are drawn, or turned into pixels, between two looks at the clock.
const SLICE: usize = 8;
const BAND: usize = 32;

/// What is to be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) kind: GridKind,
    pub(super) view: GridView,
    /// In pixels of the screen.
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The colors of allocations.
pub(super) struct Look {
    pub(super) groups: PtrEq<Groups>,
    /// For each place of the legend its color, and the same pale.
    pub(super) colors: Vec<[[u8; 4]; 2]>,
    /// Which rows are chosen, if any is: the others are pale.
    pub(super) marked: Option<Vec<bool>>,
    pub(super) reserved: [u8; 4],
    pub(super) small: [u8; 4],
    pub(super) ground: [u8; 4],
}

impl Look {
    fn of_row(&self, row: usize) -> [u8; 4] {
        let is_pale = self.marked.as_ref().is_some_and(|marked| !marked.get(row).copied().unwrap_or(false));
        let colors = self.colors.get(self.groups.place(row));
        colors.map_or([128; 4], |[own, pale]| if is_pale { *pale } else { *own })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Some columns are drawn, which stand for the ones between them.
    Coarse,
    /// The grid becomes pixels, up to this column.
    Painting(usize),
    /// The columns between are drawn.
    Fine,
    Done,
}

/// What became of a slice of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) has_more: bool,
    /// Whether another picture is shown, or the grid is complete.
    pub(super) is_new: bool,
}

/// A grid that is drawn, and the pictures of it.
pub(super) struct Picture {
    /// Whose allocations.
    recording: Option<Arc<Recording>>,
    /// What the reader wants to see.
    wanted: Option<Shown>,
    /// What the grid shows.
    drawn: Option<Shown>,
    grid: Option<Grid>,
    stage: Stage,
    front: Option<HtmlCanvasElement>,
    /// What the front picture shows.
    front_of: Option<Shown>,
    back: Option<HtmlCanvasElement>,
}

impl Picture {
    pub(super) const fn new() -> Self {
        Self {
            recording: None,
            wanted: None,
            drawn: None,
            grid: None,
            stage: Stage::Done,
            front: None,
            front_of: None,
            back: None,
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self { front: self.front.take(), back: self.back.take(), ..Self::new() };
    }

    /// The grid of what is wanted; nothing while it still shows something else.
    pub(super) fn grid(&self) -> Option<&Grid> {
        self.grid.as_ref().filter(|_| self.drawn == self.wanted)
    }

    /// Wants another part to be shown. A first look that is under way is finished, so that there is a new picture every few frames
    /// however fast the part changes.
    pub(super) fn want(
        &mut self,
        wanted: Option<Shown>,
        recording: &Arc<Recording>,
        allocations: &Allocations,
    ) {
        if !self.recording.as_ref().is_some_and(|recording_of| Arc::ptr_eq(recording_of, recording)) {
            self.clear();
            self.recording = Some(recording.clone());
        }
        self.wanted = wanted;
        let is_other = |shown: Option<Shown>| {
            shown.map(|shown| (shown.kind, shown.width, shown.height))
                != wanted.map(|wanted| (wanted.kind, wanted.width, wanted.height))
        };
        if is_other(self.front_of) {
            self.front_of = None;
        }
        let is_first_look = match self.stage {
            Stage::Coarse => true,
            Stage::Painting(_) => self.grid.as_ref().is_some_and(|grid| !grid.is_done()),
            Stage::Fine | Stage::Done => false,
        };
        if !is_first_look || is_other(self.drawn) {
            self.begin(allocations);
        }
    }

    fn begin(&mut self, allocations: &Allocations) {
        self.drawn = self.wanted;
        self.grid = self
            .wanted
            .map(|wanted| Grid::new(allocations, wanted.kind, wanted.view, wanted.width, wanted.height));
        self.stage = if self.grid.is_some() { Stage::Coarse } else { Stage::Done };
    }

    /// The same grid in other colors.
    pub(super) fn recolor(&mut self) {
        if matches!(self.stage, Stage::Done | Stage::Painting(_)) && self.grid.is_some() {
            self.stage = Stage::Painting(0);
        }
    }

    /// Goes on until `is_over`. Without a look there are no pixels, only a grid.
    pub(super) fn advance(
        &mut self,
        allocations: &Allocations,
        map: &AddressMap,
        look: Option<&Look>,
        is_over: impl Fn() -> bool,
    ) -> Progress {
        let mut is_new = false;
        while self.stage != Stage::Done {
            is_new |= self.step(allocations, map, look);
            if is_over() {
                break;
            }
        }
        Progress { has_more: self.stage != Stage::Done, is_new }
    }

    /// Returns whether another picture is shown.
    fn step(&mut self, allocations: &Allocations, map: &AddressMap, look: Option<&Look>) -> bool {
        let Some(grid) = &mut self.grid else {
            self.stage = Stage::Done;
            return false;
        };
        match (self.stage, look) {
            (Stage::Done, _) => false,
            (Stage::Coarse | Stage::Fine, _) => {
                let has_more = grid.draw(allocations, map, SLICE);
                if !has_more || self.stage == Stage::Coarse && grid.is_covered() {
                    self.stage = Stage::Painting(0);
                }
                false
            }
            (Stage::Painting(from), Some(look)) => {
                let to = (from + BAND).min(grid.size().0);
                put(&mut self.back, grid, look, from..to);
                if to < grid.size().0 {
                    self.stage = Stage::Painting(to);
                    return false;
                }
                std::mem::swap(&mut self.front, &mut self.back);
                self.front_of = self.drawn;
                self.next(allocations);
                true
            }
            (Stage::Painting(_), None) => {
                self.next(allocations);
                self.stage == Stage::Done
            }
        }
    }

    /// What follows a picture: a look at what is wanted by now, or else the columns between.
    fn next(&mut self, allocations: &Allocations) {
        if self.drawn != self.wanted {
            return self.begin(allocations);
        }
        let is_done = self.grid.as_ref().is_none_or(Grid::is_done);
        self.stage = if is_done { Stage::Done } else { Stage::Fine };
    }

    /// Shows the last picture in the plot of a figure, where its part is now.
    pub(super) fn show(&self, canvas: &HtmlCanvasElement, now: &Shown, plot: Rect) {
        let (Some(front), Some(of), Some(context)) = (&self.front, self.front_of, context_of(canvas)) else {
            return;
        };
        let span = now.view.steps.span();
        let range = now.view.high - now.view.low;
        if of.kind != now.kind || span <= 0.0 || range <= 0.0 {
            return;
        }
        let ratio = browser::canvas_ratio();
        let place = |px: f32| (f64::from(px) * ratio).round();
        let (left, top) = (place(plot.x_px), place(plot.y_px));
        let (width, height) = (count(now.width), count(now.height));
        let x = (of.view.steps.first_step - now.view.steps.first_step) / span * width;
        let y = (now.view.high - of.view.high) / range * height;
        let wide = of.view.steps.span() / span * width;
        let high = (of.view.high - of.view.low) / range * height;
        context.save();
        context.begin_path();
        context.rect(left, top, width, height);
        context.clip();
        context.set_image_smoothing_enabled(false);
        let _ =
            context.draw_image_with_html_canvas_element_and_dw_and_dh(front, left + x, top + y, wide, high);
        context.restore();
    }
}

fn context_of(canvas: &HtmlCanvasElement) -> Option<CanvasRenderingContext2d> {
    canvas.get_context("2d").ok()??.dyn_into().ok()
}

/// Puts some columns of the grid on the canvas, which is made where there is none.
fn put(canvas: &mut Option<HtmlCanvasElement>, grid: &Grid, look: &Look, columns: Range<usize>) {
    let made = || browser::document()?.create_element("canvas").ok()?.dyn_into::<HtmlCanvasElement>().ok();
    if canvas.is_none() {
        *canvas = made();
    }
    let Some(canvas) = canvas else { return };
    let pixels = |length: usize| u32::try_from(length).unwrap_or(0);
    let (width, height) = (pixels(grid.size().0), pixels(grid.size().1));
    if (canvas.width(), canvas.height()) != (width, height) {
        canvas.set_width(width);
        canvas.set_height(height);
    }
    let Some(context) = context_of(canvas) else { return };
    let of_row = |row: usize| look.of_row(row);
    let paint =
        GridPaint { reserved: look.reserved, small: look.small, ground: look.ground, of_row: &of_row };
    let (left, band) = (count(columns.start), pixels(columns.len()));
    let image = grid.pixels(&paint, columns);
    if let Ok(image) = ImageData::new_with_u8_clamped_array(wasm_bindgen::Clamped(&image), band) {
        let _ = context.put_image_data(&image, left, 0.0);
    }
}
