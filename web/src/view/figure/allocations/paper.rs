//! The allocations on paper: the figure, and the holders of the memory at the peak.
//!
//! The part of the page that makes the sheet is loaded first, and calls this part through a function that the
//! figure sets.

use std::fmt::Write as _;

use blockyard_figure::{AllocationFilter, Size, Theme, bytes_of, escaped, holder_texts, holders, rows_in};
use leptos::prelude::*;

use super::whole::whole_scene;
use crate::numbers::grouped_count;
use crate::session::Session;
use crate::view::paper::WIDTH_PX;

const ALLOCATIONS_PX: f32 = 340.0;

/// A figure of more rectangles, lines and texts is not printed: browsers write each into the file, which made
/// 147 MB of a training of 17,000 allocations.
const MAX_MARKS: usize = 5_000;

/// The most holders of the memory at the peak that are printed.
const MAX_HOLDERS: usize = 20;

/// The part of the sheet as HTML. Reads signals.
pub(super) fn part(session: Session, title: &str) -> String {
    let mut out = String::new();
    write_allocations(&mut out, session, title);
    write_peak(&mut out, session);
    out
}

/// Writes the allocations over time, as the page shows them.
fn write_allocations(out: &mut String, session: Session, title: &str) {
    let Some(groups) = session.figures().color_groups() else { return };
    let size = Size::new(WIDTH_PX, ALLOCATIONS_PX);
    let Some(scene) = whole_scene(session, &groups, size) else { return };
    if scene.marks.len() > MAX_MARKS {
        let _ = write!(
            out,
            "<h2>Allocations over time</h2><p>The figure has too many parts for paper. The button PNG of the figure saves it as a picture.</p>"
        );
        return;
    }
    let words = format!("Colors by {}.", session.figures().color_by().name());
    let svg = scene.to_svg(Theme::Light, &format!("{title}: allocations over time"), &words);
    let _ =
        write!(out, "<figure><h2>Allocations over time</h2>{svg}<figcaption>{words}</figcaption></figure>");
}

/// Writes the holders of the memory at the peak, the largest first.
fn write_peak(out: &mut String, session: Session) {
    let Some(columns) = session.figures().columns() else { return };
    let (allocations, recording) = (&columns.allocations, &columns.recording);
    let peak = session.run.with(|run| run.series.peak_steps(recording).0);
    let rows = rows_in(allocations, AllocationFilter::At(peak));
    let by = session.figures().group_by();
    let mut found = holders(allocations, recording, &rows, by);
    let all = found.len();
    found.truncate(MAX_HOLDERS);
    let _ = write!(
        out,
        "<h2>What held the memory at the peak, after request {}: {}</h2><table><tbody>",
        grouped_count(peak),
        bytes_of(allocations, &rows)
    );
    for (holder, text) in found.iter().zip(holder_texts(recording, &found)) {
        let (bytes, count) = (holder.bytes, grouped_count(holder.count));
        let _ = write!(out, "<tr><td>{bytes}</td><td>{count}</td><td>{}</td></tr>", escaped(&text));
    }
    let _ = write!(out, "</tbody></table>");
    if all > MAX_HOLDERS {
        let _ = write!(out, "<p>And {} more.</p>", grouped_count(all - MAX_HOLDERS));
    }
}
