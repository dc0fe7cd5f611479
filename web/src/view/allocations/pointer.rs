//! The pointer over the figure: it shows a tooltip and chooses an allocation. Over the axis of bytes, the
//! wheel zooms the bytes.

use blockyard_figure::{Cell, Point, frame_text, grid_plot};
use leptos::prelude::*;
use web_sys::MouseEvent;

use super::words::allocation_lines;
use super::{AllocationsFigure, cells};
use crate::frames::{self, Slot};
use crate::numbers::grouped_count;
use crate::surface::pixels;
use crate::view::gesture::Gesture;

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

    pub(super) fn act(self, gesture: Gesture, at: Point, event: &MouseEvent) -> bool {
        let figures = self.session.figures();
        let plot = grid_plot(self.size.get_untracked());
        match gesture {
            Gesture::Hover => {
                self.tip.show(self.tip_text(at), event);
                frames::plan(Slot::Cross, move || {
                    let _ = self.pointer.try_set(Some(at));
                });
                true
            }
            Gesture::Leave => {
                self.tip.hide();
                self.pointer.set(None);
                true
            }
            Gesture::Zoom(factor) if at.x_px < plot.x_px => {
                let place = f64::from((plot.bottom_px() - at.y_px) / plot.height_px);
                figures.zoom_bytes(place, factor)
            }
            Gesture::Pan(by) => {
                figures.pan_bytes(f64::from(by.y_px / plot.height_px));
                self.over_time.act(gesture, at)
            }
            Gesture::Choose => self.choose(at),
            _ => self.over_time.act(gesture, at),
        }
    }

    /// Shows the words about the place that the pointer is on now, unless the pointer drags.
    pub(super) fn say_again(self) {
        if let Some(Some(at)) = self.pointer.try_get_untracked() {
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

    /// Chooses the allocation at a place of the figure, and moves the cursor to the moment of this place if
    /// the allocation is not active at the cursor.
    fn choose(self, at: Point) -> bool {
        let session = self.session;
        let Some((column, cell)) = self.cell_at(at) else { return false };
        let moment = self.picture.with_value(|picture| picture.grid()?.moment(column));
        let Some(columns) = untrack(|| session.figures().columns()) else { return false };
        let Cell::Row(row) = cell else {
            return session.figures().unpick() || self.over_time.act(Gesture::Choose, at);
        };
        let Some(found) = columns.allocations.get(row) else { return false };
        let now = session.player.with_untracked(|player| player.steps);
        if let Some(moment) = moment.filter(|_| !columns.allocations.is_active(row, now)) {
            session.seek_moment(moment);
        }
        session.figures().pick(format!("allocation #{}", found.id), vec![row]);
        true
    }
}

fn frames_px(count: usize) -> f32 {
    pixels(frames::count(count))
}
