//! Allocations at their addresses, drawn on the GPU: the page's thread sends each change to the painter, and
//! draws the axes.

use blockyard_figure::{
    DIMMED_PERCENT, GridKind, GridView, RESERVED_PERCENT, Role, blended, grid_plot, grid_scene,
};
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::HtmlCanvasElement;

use super::{AllocationsFigure, cells};
use crate::effect::effect;
use crate::painter::{Painter, PainterReport};
use crate::surface::{self, pixels};
use crate::workers::{self, WorkerModule};
use crate::{browser, frames, gpu};

/// How many colors a palette has; the same number of pale colors follows them.
const PLACES: usize = 32;

/// A recording with fewer allocations is drawn as fast without a GPU.
const MIN_ALLOCATIONS: usize = 2000;

/// Opens a painter once a recording of at least [`MIN_ALLOCATIONS`] is shown at its addresses, if the reader has
/// a GPU, and keeps the painter up to date.
pub(super) fn start(it: AllocationsFigure, canvas: NodeRef<html::Canvas>) {
    let is_wanted = Memo::new(move |_| {
        let figures = it.session.figures();
        let count = figures.columns().map_or(0, |columns| columns.allocations.len());
        count >= MIN_ALLOCATIONS && figures.kind.get() == GridKind::Address
    });
    effect(move || {
        let (Some(canvas), true) = (canvas.get(), is_wanted.get()) else { return };
        // A canvas can be handed to a worker only once, so after a failure the grid draws from then on.
        if !it.is_painter_begun.get_value() {
            it.is_painter_begun.set_value(true);
            spawn_local(open(it, canvas));
        }
    });
    effect(move || it.send_rects());
    effect(move || it.send_colors());
    effect(move || it.send_palette());
    effect(move || it.send_view(canvas));
}

async fn open(it: AllocationsFigure, canvas: HtmlCanvasElement) {
    if !gpu::can_paint().await {
        return;
    }
    workers::fetch(&workers::GPU).await;
    // The figure may have been closed in the meantime, and a page that was exported as one file has no
    // painter.
    if !workers::GPU.with(WorkerModule::is_fetched)
        || it.painter.try_with_value(Option::is_none) != Some(true)
    {
        return;
    }
    let painter = Painter::new(&canvas, move |report| match report {
        PainterReport::Ready => {
            let _ = it.is_painted.try_set(true);
        }
        PainterReport::Frame => frames::painted(),
        PainterReport::Failed(_) => {
            // The grid draws from now on.
            let _ = it.is_painted.try_set(false);
            it.painter.try_update_value(Option::take);
        }
    });
    it.painter.try_update_value(|kept| *kept = painter);
}

impl AllocationsFigure {
    /// Whether the GPU draws the part that is shown now: allocations at their addresses, by request. Reads
    /// signals.
    pub(super) fn paints(self) -> bool {
        let figures = self.session.figures();
        self.is_painted.get()
            && figures.kind.get() == GridKind::Address
            && figures.clock.with(Option::is_none)
    }

    fn with_painter(self, use_painter: impl FnOnce(&Painter)) {
        self.painter.with_value(|painter| {
            if let Some(painter) = painter {
                use_painter(painter);
            }
        });
    }

    fn send_rects(self) {
        let Some(rects) = self.rects.get() else { return };
        let groups = self.groups.get_untracked();
        let colors = rects.colors(&groups, |_| false);
        self.with_painter(|painter| painter.set_rects(rects.geometry(), &colors));
    }

    /// Sends the color of each rectangle, and which rectangles are chosen. Reads signals.
    fn send_colors(self) {
        let (Some(rects), groups) = (self.rects.get(), self.groups.get()) else { return };
        let marked = self.session.figures().columns().and_then(|columns| self.marked(&columns));
        let is_picked =
            |row: usize| marked.as_ref().is_some_and(|marked| marked.get(row).copied().unwrap_or(false));
        let colors = rects.colors(&groups, is_picked);
        self.with_painter(|painter| painter.set_colors(&colors));
    }

    fn send_palette(self) {
        if !self.is_painted.get() {
            return;
        }
        let groups = self.groups.get();
        let mut roles = vec![Role::Background, Role::Cached];
        roles.extend(groups.legend().iter().map(|entry| entry.role));
        let colors = self.session.appearance().rgb(&roles);
        let color = |index: usize| colors.get(index).copied().unwrap_or([128; 3]);
        let ground = color(0);
        let reserved = blended(color(1), ground, RESERVED_PERCENT);
        let mut palette = vec![[128; 3]; 2 * PLACES];
        for index in 0..groups.legend().len().min(PLACES - 2) {
            let own = color(index + 2);
            for (at, value) in [(index, own), (index + PLACES, blended(own, ground, DIMMED_PERCENT))] {
                if let Some(kept) = palette.get_mut(at) {
                    *kept = value;
                }
            }
        }
        for (at, value) in [(PLACES - 2, reserved), (PLACES - 1, ground), (2 * PLACES - 2, color(1))] {
            if let Some(kept) = palette.get_mut(at) {
                *kept = value;
            }
        }
        let parts: Vec<f32> = palette
            .into_iter()
            .flat_map(|[red, green, blue]| [red, green, blue, 255].map(|part: u8| f32::from(part) / 255.0))
            .collect();
        self.with_painter(|painter| painter.set_palette(&parts));
    }

    /// Sends the part that is shown, and draws the axes around it. Reads signals.
    fn send_view(self, canvas: NodeRef<html::Canvas>) {
        let (Some(painted), true) = (canvas.get(), self.paints()) else { return };
        let (session, size) = (self.session, self.size.get());
        let (Some(columns), Some(rects)) = (session.figures().columns(), self.rects.get()) else { return };
        if size.width_px < 1.0 {
            return;
        }
        session.appearance().version.track();
        let steps = session.figures().timeline_view_or_fit();
        let (low, high) = session.figures().byte_range(&columns, &steps);
        let plot = grid_plot(size);
        let ratio = pixels(browser::canvas_ratio());
        let (width, height) = (cells(plot.width_px * ratio), cells(plot.height_px * ratio));
        let style = web_sys::HtmlElement::style(&painted);
        for (name, length_px) in
            [("left", plot.x_px), ("top", plot.y_px), ("width", plot.width_px), ("height", plot.height_px)]
        {
            let _ = style.set_property(name, &format!("{}px", surface::on_page(length_px)));
        }
        let (width, height) = (frames::count(width), frames::count(height));
        let ranges = rects.ranges((high - low) / height.max(1.0));
        let dims = f64::from(u8::from(self.marked(&columns).is_some()));
        self.with_painter(|painter| {
            painter.show(
                [steps.first_step, steps.last_step, low, high, width, height, dims, f64::from(ratio)],
                ranges,
            );
        });
        let scene = grid_scene(GridKind::Address, &GridView { steps, low, high }, None, &columns.map, size);
        if let Some(base) = self.base.get() {
            surface::show(session, &base, &scene);
        }
    }
}
