//! The figure and its allocations in words.

use blockyard_figure::{AllocationLifetime, GridKind};
use blockyard_record::{AllocationId, Recording};
use leptos::prelude::*;

use super::AllocationsFigure;
use crate::figures::Columns;
use crate::numbers::grouped_count;

impl AllocationsFigure {
    /// A sentence about the allocations that are too small to be drawn, and the hints for using the figure.
    pub(super) fn hidden_text(self) -> String {
        self.drawn.track();
        if self.session.figures().columns().is_none() {
            return "Finding all allocations of the recording …".to_owned();
        }
        let found = self.picture.with_value(|picture| {
            let grid = picture.grid()?;
            Some((grid.most_hidden(), grid.is_done()))
        });
        // The ticks have a separate color and no number.
        let help = match self.session.figures().kind.get() {
            GridKind::Address => "An orange tick: addresses that nothing ever reserves are left out there.",
            GridKind::Stacked => "",
        };
        match found {
            Some((hidden, true)) if hidden.count > 0 => format!(
                "Too small to draw: at most {} allocations of {} in all at a time. {help}",
                grouped_count(hidden.count),
                hidden.bytes
            ),
            Some((_, true)) => format!(
                "Allocations that are less than a point high share a point: they are too small to draw one by one. {help}"
            ),
            None | Some(_) => help.to_owned(),
        }
    }

    /// The figure in words.
    pub(super) fn shown_text(self) -> String {
        let Some(columns) = self.session.figures().columns() else {
            return "Allocations over time".to_owned();
        };
        let steps = self.session.figures().timeline_view_or_fit();
        let what = match self.session.figures().kind.get() {
            GridKind::Address => format!("at their addresses, {} of addresses", columns.map.total()),
            GridKind::Stacked => "stacked, a color on top of another".to_owned(),
        };
        let groups = self.groups.get();
        let colors: Vec<String> = groups
            .legend()
            .iter()
            .map(|entry| format!("{} ({})", entry.text, grouped_count(entry.count)))
            .collect();
        format!(
            "{} allocations over time {what}. At most {} active at once. Colors by {}: {}. The table of holders says the same in words.",
            grouped_count(columns.allocations.len()),
            columns.allocations.most_active(&steps),
            self.session.figures().color_by().name(),
            colors.join(", ")
        )
    }
}

/// The name that the program gave to an allocation, or else its number.
pub(super) fn allocation_name(recording: &Recording, id: AllocationId) -> String {
    recording.name(id).map_or_else(|| format!("allocation #{id}"), str::to_owned)
}

/// An allocation in words, a line for each fact, without its stack.
pub(crate) fn allocation_lines(columns: &Columns, row: usize, found: &AllocationLifetime) -> Vec<String> {
    let recording = &columns.recording;
    let name = allocation_name(recording, found.id);
    let begin = match found.start {
        0 => "allocated before the recording began".to_owned(),
        step => format!("allocated by request {}", grouped_count(step)),
    };
    let end = match found.freed {
        None => "not freed in the recording".to_owned(),
        Some(step) => {
            format!(
                "freed by request {} ({} later)",
                grouped_count(step),
                grouped_count(step - found.start.min(step))
            )
        }
    };
    let group =
        blockyard_figure::group_key(&columns.allocations, recording, row, blockyard_figure::GroupBy::Pool)
            .map(|key| blockyard_figure::group_text(recording, key));
    vec![
        format!(
            "{name}: {} ({} bytes, {} requested)",
            found.size,
            blockyard_record::grouped(found.size.get()),
            found.requested
        ),
        format!("{begin}, {end}"),
        format!(
            "at {}, segment #{}, {}, stream {}",
            found.addr,
            found.segment,
            group.unwrap_or_default(),
            recording.stream_name(found.stream)
        ),
    ]
}
