//! The lines of the program that hold the peak of allocated memory.

use std::path::Path;

use blockyard_figure::frame_text;
use blockyard_fit::HolderBytes;

use crate::progress::Bar;
use crate::snapshot::{self, WITHOUT_LINE, lines_at_peak};

/// The lines by descending bytes, for all devices together.
pub(super) fn sites(file: &Path) -> anyhow::Result<Vec<HolderBytes>> {
    let file = snapshot::open(file, &Bar::hidden())?;
    let places = 0..file.memories().count();
    let lines =
        lines_at_peak(&file, places, |frame| frame.map_or_else(|| WITHOUT_LINE.to_owned(), frame_text))?;
    Ok(lines.into_iter().map(|(what, bytes)| HolderBytes { what, bytes }).collect())
}
