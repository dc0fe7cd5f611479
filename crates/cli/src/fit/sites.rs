//! The lines of the program that hold the peak of allocated memory.

use std::collections::BTreeMap;
use std::path::Path;

use blockyard_figure::frame_text;
use blockyard_fit::Held;
use blockyard_record::Bytes;

use crate::progress::Bar;
use crate::snapshot::{self, At, DeviceReport, ReportOptions};

/// The lines, those first that hold most; all devices together.
pub(super) fn sites(file: &Path) -> anyhow::Result<Vec<Held>> {
    let file = snapshot::open(file, &Bar::hidden())?;
    let question = ReportOptions { at: Some(At::Peak), top: usize::MAX, has_certificate: false };
    let mut lines: BTreeMap<String, Bytes> = BTreeMap::new();
    for place in 0..file.memories().count() {
        let report = DeviceReport::of(&file, place, question, &mut |_| std::ops::ControlFlow::Continue(()))?;
        for holder in &report.moment.holders {
            let frame = file.stacks.own_frame(holder.stack).map(|frame| file.stacks.frame(frame));
            let bytes = lines.entry(frame.map_or_else(|| WITHOUT.to_owned(), frame_text)).or_default();
            *bytes = bytes.saturating_add(Bytes::new(holder.bytes));
        }
    }
    let mut held: Vec<Held> = lines.into_iter().map(|(what, bytes)| Held { what, bytes }).collect();
    held.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.what.cmp(&other.what)));
    Ok(held)
}

/// What threads of backward ask for.
const WITHOUT: &str = "threads without a line of Python, as those of backward";
