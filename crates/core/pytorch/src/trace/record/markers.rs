//! Markers, made of annotations that begin and end.

use blockyard_record::{Marker, TextId};
use rustc_hash::FxHashMap;

/// Stretches that have begun, and all that are known.
#[derive(Debug, Default)]
pub(super) struct Markers {
    pub(super) done: Vec<Marker>,
    open: FxHashMap<TextId, Vec<usize>>,
}

impl Markers {
    /// Adds the beginning or the end of an annotation.
    pub(super) fn pass(
        &mut self,
        time: u64,
        name: TextId,
        is_end: bool,
        step: u32,
        text: impl FnOnce() -> String,
    ) {
        if is_end {
            let begun = self.open.get_mut(&name).and_then(Vec::pop);
            if let Some(marker) = begun.and_then(|place| self.done.get_mut(place)) {
                marker.end_step = Some(step);
                marker.end_us = Some(time);
                return;
            }
        } else {
            self.open.entry(name).or_default().push(self.done.len());
        }
        let end = is_end.then_some(step);
        let end_us = is_end.then_some(time);
        // A stretch that has an end alone began before the recording.
        let (start_step, start_us) = if is_end { (0, 0) } else { (step, time) };
        self.done.push(Marker { text: text(), start_step, end_step: end, start_us, end_us });
    }
}
