//! The pointer over the figure: it shows a tooltip, chooses an allocation, moves and zooms the shown part,
//! and marks a part with Shift.

use blockyard_figure::{Cell, Point, TimelineView, frame_text, grid_plot};
use leptos::ev;
use leptos::prelude::*;

use super::words::allocation_lines;
use super::{AllocationsFigure, cells};
use crate::figures::zoom_factor;
use crate::frames::{self, Slot};
use crate::numbers::grouped_count;
use crate::surface::{self, pixels};
use crate::view::kit::capture;

/// A press during which the pointer moved less than this is a click.
const CLICK_PX: f32 = 4.0;

/// A drag: where it began, and the steps and bytes that were shown then.
#[derive(Clone, Copy)]
pub(super) struct FigureDrag {
    from: Point,
    steps: TimelineView,
    range: (f64, f64),
    /// Whether the drag marks a part (Shift) instead of moving the shown part.
    is_brush: bool,
}

impl AllocationsFigure {
    /// The column at a place of the figure, and the content of its cell there.
    fn cell_at(self, at: Point) -> Option<(usize, Cell)> {
        let plot = grid_plot(self.size.get_untracked());
        if !plot.contains(at.x_px, at.y_px) {
            return None;
        }
        self.picture.with_value(|picture| {
            let grid = picture.grid()?;
            let (width, height) = grid.size();
            let column = cells((at.x_px - plot.x_px) / plot.width_px * frames_px(width));
            let row = cells((plot.bottom_px() - at.y_px) / plot.height_px * frames_px(height));
            let (column, row) = (column.min(width - 1), row.min(height - 1));
            Some((column, grid.cell(column, row)))
        })
    }

    pub(super) fn moved(self, event: &ev::PointerEvent) {
        let at = place(event);
        if let Some(grabbed) = self.grabbed.get_value() {
            if event.buttons() & 1 != 0 {
                return self.drag(grabbed, at);
            }
            self.let_go();
        }
        self.tip.show(self.tip_text(at), event);
        frames::plan(Slot::Cross, move || {
            let _ = self.pointer.try_set(Some(at));
        });
    }

    /// Shows the words about the place that the pointer is on now, unless the pointer drags.
    pub(super) fn say_again(self) {
        let Some(Some(at)) = self.pointer.try_get_untracked() else { return };
        if matches!(self.grabbed.try_get_value(), Some(None)) {
            self.tip.say(self.tip_text(at));
        }
    }

    fn tip_text(self, at: Point) -> Option<String> {
        let columns = untrack(|| self.session.figures().columns())?;
        let (column, cell) = self.cell_at(at)?;
        let (moment, hidden) = self.picture.with_value(|picture| {
            let grid = picture.grid()?;
            Some((grid.moment(column)?, grid.hidden(column)))
        })?;
        let when = format!(
            "after step {}: {} active",
            grouped_count(moment),
            columns.allocations.active_bytes(moment)
        );
        let mut lines = match cell {
            Cell::Row(row) => {
                let found = columns.allocations.get(row)?;
                // The card of a chosen allocation has the rest.
                let mut lines = allocation_lines(&columns, row, &found);
                lines.truncate(2);
                let stacks = columns.recording.stacks();
                let own = stacks.own_frame(columns.recording.allocation_stack(found.id));
                lines.extend(own.map(|frame| frame_text(stacks.frame(frame))));
                lines
            }
            Cell::Small => {
                vec![format!("{} smaller allocations: {}", grouped_count(hidden.count), hidden.bytes)]
            }
            Cell::Reserved => vec!["reserved, not allocated".to_owned()],
            Cell::Nothing => Vec::new(),
        };
        lines.push(when);
        Some(lines.join("\n"))
    }

    pub(super) fn down(self, event: &ev::PointerEvent) {
        if event.button() != 0 {
            return;
        }
        let Some(columns) = untrack(|| self.session.figures().columns()) else { return };
        capture(event);
        let steps = untrack(|| self.session.figures().timeline_view_or_fit());
        let range = untrack(|| self.session.figures().byte_range(&columns, &steps));
        let is_brush = event.shift_key();
        self.grabbed.set_value(Some(FigureDrag { from: place(event), steps, range, is_brush }));
    }

    fn drag(self, FigureDrag { from, steps, range, is_brush }: FigureDrag, at: Point) {
        self.tip.hide();
        let plot = grid_plot(self.size.get_untracked());
        if is_brush {
            self.brush.set(Some((from, at)));
            return;
        }
        frames::plan(Slot::Seek, move || {
            let session = self.session;
            let count = session.run.get_untracked().recording.step_count();
            let across = f64::from((from.x_px - at.x_px) / plot.width_px);
            let panned = steps.pan(across, count);
            session.figures().timeline_view.set((panned != TimelineView::fit(count)).then_some(panned));
            if session.figures().range.with_untracked(Option::is_some) {
                let up = f64::from((at.y_px - from.y_px) / plot.height_px) * (range.1 - range.0);
                self.session.figures().set_range(range.0 + up, range.1 + up);
            }
        });
    }

    pub(super) fn up(self, event: &ev::PointerEvent) {
        let at = place(event);
        let Some(FigureDrag { from, steps, range, is_brush }) = self.grabbed.get_value() else { return };
        self.let_go();
        let is_click = (from.x_px - at.x_px).abs() < CLICK_PX && (from.y_px - at.y_px).abs() < CLICK_PX;
        if is_click {
            return self.choose(at);
        }
        if !is_brush {
            return;
        }
        let plot = grid_plot(self.size.get_untracked());
        let x = |x_px: f32| f64::from(((x_px - plot.x_px) / plot.width_px).clamp(0.0, 1.0));
        let y = |y_px: f32| f64::from(((plot.bottom_px() - y_px) / plot.height_px).clamp(0.0, 1.0));
        let count = self.session.run.get_untracked().recording.step_count();
        let (left, right) = (x(from.x_px.min(at.x_px)), x(from.x_px.max(at.x_px)));
        let shown = TimelineView {
            first_step: steps.first_step + left * steps.span(),
            last_step: steps.first_step + right * steps.span(),
        };
        self.session.figures().timeline_view.set(Some(shown.clamp(count)));
        // A flat mark chooses steps and leaves the bytes as they are.
        if (from.y_px - at.y_px).abs() > 12.0 {
            let (low, high) = (y(from.y_px.max(at.y_px)), y(from.y_px.min(at.y_px)));
            let height = range.1 - range.0;
            self.session.figures().set_range(range.0 + low * height, range.0 + high * height);
        }
    }

    /// Chooses the allocation at a place of the figure, and moves the cursor to the moment of this place if
    /// the allocation is not active at the cursor.
    fn choose(self, at: Point) {
        let session = self.session;
        let Some((column, cell)) = self.cell_at(at) else { return };
        let moment = self.picture.with_value(|picture| picture.grid()?.moment(column));
        let Some(columns) = untrack(|| session.figures().columns()) else { return };
        let Cell::Row(row) = cell else {
            if !session.figures().unpick()
                && let Some(moment) = moment
            {
                session.seek_moment(moment);
            }
            return;
        };
        let Some(found) = columns.allocations.get(row) else { return };
        let now = session.player.with_untracked(|player| player.steps);
        if let Some(moment) = moment.filter(|_| !columns.allocations.is_active(row, now)) {
            session.seek_moment(moment);
        }
        session.figures().pick(format!("allocation #{}", found.id), vec![row]);
    }

    pub(super) fn wheel(self, event: &ev::WheelEvent) {
        let at = place(event);
        let plot = grid_plot(self.size.get_untracked());
        if event.ctrl_key() || event.meta_key() {
            event.prevent_default();
            if event.shift_key() {
                let place = f64::from((plot.bottom_px() - at.y_px) / plot.height_px);
                self.session.figures().zoom_bytes(place, zoom_factor(event));
            } else {
                let place = f64::from((at.x_px - plot.x_px) / plot.width_px.max(1.0));
                self.session.figures().zoom_timeline(place, zoom_factor(event));
            }
        } else if event.delta_x().abs() > event.delta_y().abs() {
            event.prevent_default();
            self.session.figures().pan_timeline(event.delta_x() / 600.0);
        }
    }

    pub(super) fn fit(self) {
        self.session.figures().fit_timeline();
    }

    pub(super) fn let_go(self) {
        self.grabbed.set_value(None);
        self.brush.set(None);
    }

    pub(super) fn leave(self) {
        self.tip.hide();
        self.pointer.set(None);
    }
}

fn place(event: &web_sys::MouseEvent) -> Point {
    let (x_px, y_px) = surface::offset_px(event);
    Point::new(x_px, y_px)
}

fn frames_px(count: usize) -> f32 {
    pixels(frames::count(count))
}
