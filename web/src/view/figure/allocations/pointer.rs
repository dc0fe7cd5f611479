//! The pointer over the figure: it shows a tooltip and chooses an allocation. Over the axis of bytes, the
//! wheel zooms the bytes.

use blockyard_figure::{Cell, Point, frame_text, grid_plot};
use blockyard_record::counted;
use leptos::prelude::*;
use web_sys::MouseEvent;

use super::picture::Picture;
use super::words::{allocation_lines, allocation_name};
use super::{AllocationsFigure, cells};
use crate::frames::{self, Slot};
use crate::numbers::grouped_count;
use crate::surface::pixels;
use crate::view::figure::gesture::Gesture;
use crate::view::figure::timeline::{go_to_mark, mark_text, moment_text};

/// A click this near to the place that the tooltip is about chooses what the tooltip names: browsers round the
/// place of a click, and a block may be one pixel high.
const SAME_PX: f32 = 1.5;

/// What is drawn at a place of the figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointed {
    column: usize,
    cell: Cell,
    /// The moment that the column shows.
    moment: usize,
}

impl AllocationsFigure {
    /// What is drawn at a place of the figure.
    fn pointed(self, at: Point) -> Option<Pointed> {
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
            Some(Pointed { column, cell: grid.cell(column, row), moment: grid.moment(column)? })
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
                self.named.set_value(None);
                true
            }
            Gesture::Zoom(factor) if at.x_px < plot.x_px => {
                let place = f64::from((plot.bottom_px() - at.y_px) / plot.height_px);
                figures.zoom_bytes(place, factor)
            }
            Gesture::Begin => figures.range.get_untracked().is_none() && self.over_time.act(gesture, at),
            Gesture::Pan(by) => {
                figures.pan_bytes(f64::from(by.y_px / plot.height_px));
                self.over_time.act(gesture, at)
            }
            Gesture::Choose => go_to_mark(self.session, &self.bounds.get_untracked(), at) || self.choose(at),
            _ => self.over_time.act(gesture, at),
        }
    }

    /// Shows the words about the place that the pointer is on now, unless the pointer drags.
    pub(super) fn update_tip(self) {
        if let Some(Some(at)) = self.pointer.try_get_untracked() {
            self.tip.say(self.tip_text(at));
        }
    }

    /// The words about a place of the figure.
    fn tip_text(self, at: Point) -> Option<String> {
        let pointed = self.pointed(at);
        self.named.set_value(pointed.map(|pointed| (at, pointed)));
        if let Some(words) = mark_text(self.session, &self.bounds.get_untracked(), at) {
            return Some(words);
        }
        let Pointed { column, cell, moment } = pointed?;
        let columns = untrack(|| self.session.figures().columns())?;
        let when = format!(
            "after request {}: {} active",
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
                let hidden = self
                    .picture
                    .with_value(|picture| Some(picture.grid()?.hidden(column)))
                    .unwrap_or_default();
                vec![format!("{}: {}", small_title(hidden.count), hidden.bytes)]
            }
            Cell::Reserved => vec!["reserved, not allocated".to_owned()],
            Cell::Nothing => return moment_text(self.session, moment),
        };
        lines.push(when);
        Some(lines.join("\n"))
    }

    /// Chooses what the tooltip names: an allocation, the small allocations of a moment, or else the event. The
    /// cursor moves to the moment of this place if the allocation is not active at the cursor.
    fn choose(self, at: Point) -> bool {
        let session = self.session;
        let is_near = |named: &Point| (named.x_px - at.x_px).hypot(named.y_px - at.y_px) <= SAME_PX;
        let named = self.named.get_value().filter(|(place, _)| is_near(place));
        let pointed = named.map_or_else(|| self.pointed(at), |(_, pointed)| Some(pointed));
        let Some(Pointed { column, cell, moment }) = pointed else { return false };
        let Some(columns) = untrack(|| session.figures().columns()) else { return false };
        let allocations = &columns.allocations;
        let (title, rows) = match cell {
            Cell::Row(row) => {
                let Some(found) = allocations.get(row) else { return false };
                (allocation_name(&columns.recording, found.id), vec![row])
            }
            Cell::Small => {
                let hidden = |picture: &Picture| Some(picture.grid()?.hidden_rows(allocations, column));
                let rows = self.picture.with_value(hidden).unwrap_or_default();
                (small_title(rows.len()), rows)
            }
            Cell::Reserved | Cell::Nothing if session.figures().unpick() => return true,
            Cell::Reserved | Cell::Nothing => {
                session.figures().choose_event();
                session.seek_moment(moment);
                return true;
            }
        };
        let now = session.player.with_untracked(|player| player.steps);
        if !rows.iter().all(|row| allocations.is_active(*row, now)) {
            session.seek_moment(moment);
        }
        session.figures().pick(title, rows);
        true
    }
}

/// The name of allocations that are too small to be drawn one by one.
fn small_title(count: usize) -> String {
    counted(count, "smaller allocation")
}

fn frames_px(count: usize) -> f32 {
    pixels(frames::count(count))
}
