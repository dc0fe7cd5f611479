//! The picture of a grid, made over several frames. Until a new picture is ready, the last one is shown,
//! moved and stretched, so that the time of a frame does not depend on how many allocations are drawn.

use std::ops::Range;
use std::sync::Arc;

use blockyard_figure::{AddressMap, Allocations, Clock, Grid, GridKind, GridPaint, GridView, Groups, Rect};
use blockyard_record::Recording;
use web_sys::{HtmlCanvasElement, ImageData};

use crate::browser;
use crate::canvas::{context_of, new_canvas, set_size};
use crate::frames::count;
use crate::ptr_eq::PtrEq;
use crate::surface::pixels as pixels_of;

/// How many columns of the grid are computed before the clock is looked at again.
const SLICE: usize = 8;
/// How many columns are turned into pixels before the clock is looked at again.
const BAND: usize = 32;

/// A part of the figure, and the size at which it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GridPart {
    pub(super) kind: GridKind,
    pub(super) view: GridView,
    /// Whether the horizontal axis is the clock.
    pub(super) is_by_clock: bool,
    /// The width in pixels of the screen, like `height`.
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The colors of a grid, each with red, green, blue and opacity.
pub(super) struct GridColors {
    pub(super) groups: PtrEq<Groups>,
    /// The color of each entry of the legend, and that of it while others are chosen.
    pub(super) colors: Vec<[[u8; 4]; 2]>,
    /// Which rows are chosen; all other rows are pale. `None` if no row is chosen.
    pub(super) marked: Option<Vec<bool>>,
    pub(super) reserved: [u8; 4],
    /// The color of the dots on cached memory.
    pub(super) dots: [u8; 4],
    pub(super) small: [u8; 4],
    pub(super) ground: [u8; 4],
}

impl GridColors {
    fn of_row(&self, row: usize) -> [u8; 4] {
        let is_pale = self.marked.as_ref().is_some_and(|marked| !marked.get(row).copied().unwrap_or(false));
        let colors = self.colors.get(self.groups.place(row));
        colors.map_or([128; 4], |[own, pale]| if is_pale { *pale } else { *own })
    }
}

/// The work that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    /// Every eighth column is computed, and the columns after it show its cells.
    Coarse,
    /// The grid is turned into pixels, from this column on.
    Painting(usize),
    /// All other columns are computed.
    Fine,
    #[default]
    Done,
}

/// The result of [`Picture::advance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PictureProgress {
    /// Whether the picture is not complete yet.
    pub(super) has_more: bool,
    /// Whether a new picture can be shown, or the grid has become complete.
    pub(super) is_new: bool,
}

/// A grid that is being computed, and two canvases with its pixels: one is shown while the other is filled.
#[derive(Default)]
pub(super) struct Picture {
    /// The recording of the allocations.
    recording: Option<Arc<Recording>>,
    /// The groups by which stacked allocations are ordered; `None` for the order of their starts.
    groups: Option<PtrEq<Groups>>,
    /// The clock of the horizontal axis; `None` on an axis of requests.
    clock: Option<PtrEq<Clock>>,
    /// The part that the reader wants to see.
    wanted: Option<GridPart>,
    /// The part that the grid shows.
    drawn: Option<GridPart>,
    grid: Option<Grid>,
    phase: Phase,
    /// The canvas that is shown.
    front: Option<HtmlCanvasElement>,
    /// The part that the front canvas shows.
    front_of: Option<GridPart>,
    /// The canvas that is filled.
    back: Option<HtmlCanvasElement>,
}

impl Picture {
    /// Drops the grid and the picture. The canvases are kept for the next grid.
    pub(super) fn clear(&mut self) {
        *self = Self { front: self.front.take(), back: self.back.take(), ..Self::default() };
    }

    /// The grid, if it shows the wanted part.
    pub(super) fn grid(&self) -> Option<&Grid> {
        self.grid.as_ref().filter(|_| self.drawn == self.wanted)
    }

    /// Sets the part to be shown. A coarse picture that has been begun is finished first, so that a new
    /// picture is shown every few frames however fast the part changes.
    pub(super) fn want(
        &mut self,
        wanted: Option<GridPart>,
        recording: &Arc<Recording>,
        allocations: &Allocations,
        groups: PtrEq<Groups>,
        clock: Option<PtrEq<Clock>>,
    ) {
        if !self.recording.as_ref().is_some_and(|recording_of| Arc::ptr_eq(recording_of, recording)) {
            self.clear();
            self.recording = Some(recording.clone());
        }
        let is_stacked = wanted.is_some_and(|wanted| wanted.kind == GridKind::Stacked);
        let has_order = !is_stacked || self.groups.as_ref() == Some(&groups);
        self.groups = Some(groups);
        self.clock = clock;
        self.wanted = wanted;
        let form = |part: GridPart| (part.kind, part.is_by_clock, part.width, part.height);
        let is_other = |part: Option<GridPart>| part.map(form) != wanted.map(form);
        if is_other(self.front_of) {
            self.front_of = None;
        }
        let is_first_look = match self.phase {
            Phase::Coarse => true,
            Phase::Painting(_) => self.grid.as_ref().is_some_and(|grid| !grid.is_done()),
            Phase::Fine | Phase::Done => false,
        };
        if !is_first_look || is_other(self.drawn) || !has_order {
            self.begin(allocations);
        }
    }

    fn begin(&mut self, allocations: &Allocations) {
        self.drawn = self.wanted;
        self.grid = self.wanted.map(|wanted| {
            let (clock, size) = (self.clock.as_deref(), (wanted.width, wanted.height));
            let grid = Grid::on_axis(allocations, wanted.kind, wanted.view, clock, size);
            match &self.groups {
                Some(groups) => grid.by_groups(groups),
                None => grid,
            }
        });
        self.phase = if self.grid.is_some() { Phase::Coarse } else { Phase::Done };
    }

    /// Turns the grid into pixels again, for other colors.
    pub(super) fn recolor(&mut self) {
        if matches!(self.phase, Phase::Done | Phase::Painting(_)) && self.grid.is_some() {
            self.phase = Phase::Painting(0);
        }
    }

    /// Continues until `is_over` or until the picture is complete. Without colors only the grid is computed.
    pub(super) fn advance(
        &mut self,
        allocations: &Allocations,
        map: &AddressMap,
        colors: Option<&GridColors>,
        is_over: impl Fn() -> bool,
    ) -> PictureProgress {
        let mut is_new = false;
        while self.phase != Phase::Done {
            is_new |= self.step(allocations, map, colors);
            if is_over() {
                break;
            }
        }
        PictureProgress { has_more: self.phase != Phase::Done, is_new }
    }

    /// Does one piece of the work. Returns whether a new picture exists or the grid has become complete.
    fn step(&mut self, allocations: &Allocations, map: &AddressMap, colors: Option<&GridColors>) -> bool {
        let Some(grid) = &mut self.grid else {
            self.phase = Phase::Done;
            return false;
        };
        match (self.phase, colors) {
            (Phase::Done, _) => false,
            (Phase::Coarse | Phase::Fine, _) => {
                let has_more = grid.draw(allocations, map, SLICE);
                if !has_more || self.phase == Phase::Coarse && grid.is_covered() {
                    self.phase = Phase::Painting(0);
                }
                false
            }
            (Phase::Painting(from), Some(colors)) => {
                let to = (from + BAND).min(grid.size().0);
                paint_columns(&mut self.back, grid, colors, from..to);
                if to < grid.size().0 {
                    self.phase = Phase::Painting(to);
                    return false;
                }
                std::mem::swap(&mut self.front, &mut self.back);
                self.front_of = self.drawn;
                self.next(allocations);
                true
            }
            (Phase::Painting(_), None) => {
                self.next(allocations);
                self.phase == Phase::Done
            }
        }
    }

    /// Chooses the work after a picture: a new grid if another part is wanted by now, or else the columns
    /// that are missing.
    fn next(&mut self, allocations: &Allocations) {
        if self.drawn != self.wanted {
            return self.begin(allocations);
        }
        let is_done = self.grid.as_ref().is_none_or(Grid::is_done);
        self.phase = if is_done { Phase::Done } else { Phase::Fine };
    }

    /// Draws the last picture into the plot of the figure, at the place that its part has while `now` is
    /// shown.
    pub(super) fn show(&self, canvas: &HtmlCanvasElement, now: &GridPart, plot: Rect) {
        let (Some(front), Some(of), Some(context)) = (&self.front, self.front_of, context_of(canvas)) else {
            return;
        };
        let span = now.view.steps.span();
        let range = now.view.high - now.view.low;
        if of.kind != now.kind || of.is_by_clock != now.is_by_clock || span <= 0.0 || range <= 0.0 {
            return;
        }
        let ratio = browser::canvas_ratio();
        let place = |px: f32| (f64::from(px) * ratio).round();
        let (left, top) = (place(plot.x_px), place(plot.y_px));
        let (width, height) = (count(now.width), count(now.height));
        let (left_share, share) = match &self.clock {
            Some(clock) => clock.place(&of.view.steps, &now.view.steps),
            None => {
                ((of.view.steps.first_step - now.view.steps.first_step) / span, of.view.steps.span() / span)
            }
        };
        let (x, wide) = (left_share * width, share * width);
        let y = (now.view.high - of.view.high) / range * height;
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

/// Draws some columns of the grid on the canvas, which is made if there is none.
fn paint_columns(
    canvas: &mut Option<HtmlCanvasElement>,
    grid: &Grid,
    colors: &GridColors,
    columns: Range<usize>,
) {
    if canvas.is_none() {
        *canvas = new_canvas();
    }
    let Some(canvas) = canvas else { return };
    let pixels = |length: usize| u32::try_from(length).unwrap_or(0);
    let (width, height) = (pixels(grid.size().0), pixels(grid.size().1));
    set_size(canvas, width, height);
    let Some(context) = context_of(canvas) else { return };
    let of_row = |row: usize| colors.of_row(row);
    let paint = GridPaint {
        reserved: colors.reserved,
        dots: colors.dots,
        cells_per_px: pixels_of(browser::canvas_ratio()),
        small: colors.small,
        ground: colors.ground,
        of_row: &of_row,
    };
    let (left, band) = (count(columns.start), pixels(columns.len()));
    let image = grid.pixels(&paint, columns);
    if let Ok(image) = ImageData::new_with_u8_clamped_array(wasm_bindgen::Clamped(&image), band) {
        let _ = context.put_image_data(&image, left, 0.0);
    }
}
