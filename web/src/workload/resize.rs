//! Other sizes for tensors of the workload, by dragging the edge of a block or by a key.
//!
//! A drag changes the text, and all else is computed from the text: the workload runs again for each size
//! that the drag passes. One undo takes the whole drag back.

use blockyard_record::{BlockId, BlockState, Bytes};
use blockyard_rules::size;
use blockyard_workload::edit::resize;
use blockyard_workload::{Request, TensorId, Workload};
use leptos::prelude::*;

use super::{History, WorkloadSignals};
use crate::browser;
use crate::messages::sentence;
use crate::ptr_eq::PtrEq;
use crate::run::{Attempt, Run};
use crate::session::Feature;

/// The smallest change of a size in bytes: PyTorch rounds sizes up to multiples of this number.
const MIN: u64 = size::MIN_BLOCK_SIZE.get();
/// The fewest pixels by which a dragged edge moves at once.
const STEP_PX: f64 = 4.0;

/// A tensor whose size is being dragged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizeDrag {
    tensor: TensorId,
    /// The size at the beginning.
    requested: Bytes,
    /// Where the pointer went down, in the window.
    start_px: f64,
    bytes_per_px: f64,
    /// The workload at the beginning, from which each size is set.
    before: PtrEq<Run>,
    text: String,
    was_at_end: bool,
    /// The size that is shown.
    size: Bytes,
    /// Whether the history has a step for the drag.
    has_step: bool,
}

impl Feature<WorkloadSignals> {
    /// Begins to drag the end of a block whose bytes are `bytes_per_px` to a pixel. Returns whether the
    /// block's size can be changed.
    pub(crate) fn begin_resize(self, block: BlockId, client_x: f64, bytes_per_px: f64) -> bool {
        let Attempt::Ran(before) = self.attempt.get_untracked() else { return false };
        let Some((tensor, requested)) = self.sized(block) else { return false };
        if !(bytes_per_px.is_finite() && bytes_per_px > 0.0) {
            return false;
        }
        self.resizing.set(Some(SizeDrag {
            tensor,
            requested,
            start_px: client_x,
            bytes_per_px,
            before,
            text: self.history.with_untracked(|history| history.text().to_owned()),
            was_at_end: self.session.is_at_end(),
            size: requested,
            has_step: false,
        }));
        self.session.figures().select(Some(block));
        true
    }

    /// Sets the size for a pointer at `client_x`. With `is_fine` every multiple of 512 bytes is possible.
    /// Returns the words for a screen reader, if an edge is dragged.
    pub(crate) fn resize_to(self, client_x: f64, is_fine: bool) -> Option<String> {
        let mut drag = self.resizing.get_untracked()?;
        let unit = if is_fine { MIN } else { unit_for(drag.requested, drag.bytes_per_px) };
        let size = moved(drag.requested, (client_x - drag.start_px) * drag.bytes_per_px, unit);
        if size != drag.size {
            let resized = resize(&drag.text, &drag.before.workload, drag.tensor, size);
            let resized = match resized {
                Ok(resized) => resized,
                Err(error) => return Some(sentence(&error.to_string())),
            };
            let settings = self.settings.get_untracked();
            self.history.update(|history| {
                if drag.has_step {
                    history.amend(resized.text);
                } else {
                    history.replace(resized.text, &settings);
                }
            });
            (drag.size, drag.has_step) = (size, true);
            let (tensor, was_at_end) = (drag.tensor, drag.was_at_end);
            self.resizing.set(Some(drag));
            self.follow_sizes(was_at_end);
            self.session.figures().select(self.block_of(tensor));
        }
        self.size_text(self.resizing.with_untracked(|drag| drag.as_ref().map(|drag| drag.tensor))?)
    }

    /// Ends the drag; the size stays. Returns whether the size was changed.
    pub(crate) fn end_resize(self) -> bool {
        let Some(drag) = self.resizing.get_untracked() else { return false };
        self.resizing.set(None);
        if let Some(words) = self.size_text(drag.tensor).filter(|_| drag.has_step) {
            self.session.announce(words);
        }
        drag.has_step
    }

    /// Ends the drag and restores the workload from before. Returns whether an edge was dragged.
    pub(crate) fn cancel_resize(self) -> bool {
        let Some(drag) = self.resizing.get_untracked() else { return false };
        self.resizing.set(None);
        if drag.has_step {
            self.history.update(History::withdraw);
            self.follow_sizes(drag.was_at_end);
            self.session.figures().select(self.block_of(drag.tensor));
        }
        true
    }

    /// Makes the tensor in a block larger or smaller, by about a sixteenth. Returns whether the block can
    /// have another size.
    pub(crate) fn resize_by_key(self, block: BlockId, is_larger: bool) -> bool {
        let Attempt::Ran(run) = self.attempt.get_untracked() else { return false };
        let Some((tensor, requested)) = self.sized(block) else { return false };
        let unit = (requested.get() / 16).checked_next_power_of_two().unwrap_or(MIN).max(MIN);
        let whole = requested.get() / unit * unit;
        let size = if is_larger {
            whole.saturating_add(unit)
        } else if whole == requested.get() {
            whole.saturating_sub(unit)
        } else {
            whole
        };
        let text = self.history.with_untracked(|history| history.text().to_owned());
        match resize(&text, &run.workload, tensor, Bytes::new(size.max(MIN))) {
            Ok(resized) => {
                let (was_at_end, settings) = (self.session.is_at_end(), self.settings.get_untracked());
                self.history
                    .update(|history| history.change_size(resized.text, browser::now_millis(), &settings));
                self.follow_sizes(was_at_end);
                self.session.figures().select(self.block_of(tensor));
                let words = self.size_text(tensor).unwrap_or_default();
                if resized.tensors > 1 {
                    self.session.show_note(format!(
                        "{words} All {} tensors of the statement changed.",
                        resized.tensors
                    ));
                }
                self.session.announce(words);
            }
            Err(error) => self.session.show_error(sentence(&error.to_string())),
        }
        true
    }

    /// Whether the tensor in a block of the shown run can have another size.
    pub(crate) fn can_resize(self, block: BlockId) -> bool {
        self.sized(block).is_some()
    }

    /// The tensor in an allocated block of the workload, and the size that it asks for.
    fn sized(self, block: BlockId) -> Option<(TensorId, Bytes)> {
        if !untrack(|| self.session.shows_text()) {
            return None;
        }
        let tensor = self.tensor_of(block)?;
        let run = self.session.run.get_untracked();
        Some((tensor, requested_by(&run.workload, tensor)?))
    }

    /// The block that a tensor has at the moment under the cursor.
    fn block_of(self, tensor: TensorId) -> Option<BlockId> {
        self.session.with_state_now(|run, state| {
            let is_of_tensor = |step: usize| {
                matches!(run.request(step), Some(Request::Allocate { tensor: made, .. }) if *made == tensor)
            };
            let segments = state.segments().filter_map(|info| state.segment(info.id));
            let mut blocks = segments.flat_map(|segment| segment.blocks);
            let found = blocks.find(|block| {
                let step = block.allocation.and_then(|allocation| run.recording.allocated_at(allocation));
                block.state == BlockState::Allocated && step.is_some_and(is_of_tensor)
            });
            found.map(|block| block.id)
        })
        .flatten()
    }

    /// The size that a tensor has now, as it was asked for and as it is allocated.
    fn size_text(self, tensor: TensorId) -> Option<String> {
        let run = self.session.run.get_untracked();
        let requested = requested_by(&run.workload, tensor)?;
        let name = run.workload.tensor_name(tensor).unwrap_or_default();
        let allocated = self.block_of(tensor).and_then(|block| {
            self.session.with_state_now(|_, state| state.block(block).map(|block| block.size)).flatten()
        });
        Some(match allocated {
            Some(size) if size == requested => format!("{name}: {requested} requested, as much allocated."),
            Some(size) => format!("{name}: {requested} requested, {size} allocated."),
            None => format!("{name}: {requested} requested, out of memory."),
        })
    }
}

fn requested_by(workload: &Workload, tensor: TensorId) -> Option<Bytes> {
    workload.requests().iter().find_map(|request| match request {
        Request::Allocate { tensor: made, size, .. } if *made == tensor => Some(*size),
        _ => None,
    })
}

/// The unit in bytes by which a drag changes the size of a tensor: that of some pixels, and at least a
/// quarter of a mebibyte for a size that is shown in mebibytes.
fn unit_for(requested: Bytes, bytes_per_px: f64) -> u64 {
    let unit = unit_above(bytes_per_px * STEP_PX);
    if requested >= Bytes::kib(1024) { unit.max(Bytes::kib(256).get()) } else { unit }
}

/// The smallest power of two from 512 on that is at least `bytes`.
fn unit_above(bytes: f64) -> u64 {
    let mut unit = MIN;
    while as_f64(unit) < bytes && unit < 1 << 50 {
        unit <<= 1;
    }
    unit
}

/// The multiple of the unit that is nearest to `from` plus `by` bytes; at least one unit.
fn moved(from: Bytes, by: f64, unit: u64) -> Bytes {
    let units = ((as_f64(from.get()) + by) / as_f64(unit)).round().clamp(1.0, 1e15);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 1e15")]
    let units = units as u64;
    Bytes::new(units.saturating_mul(unit))
}

#[expect(clippy::cast_precision_loss, reason = "the units are far coarser than what is lost")]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn an_edge_moves_by_whole_units_of_some_pixels() {
        assert_eq!(unit_above(1.0), 512);
        assert_eq!(unit_above(513.0), 1024);
        assert_eq!(unit_above(f64::NAN), 512);
        assert_eq!(unit_for(Bytes::mib(3), 1000.0), 256 << 10);
        assert_eq!(unit_for(Bytes::kib(3), 100.0), 512);
        let mib = Bytes::mib(1).get();
        assert_eq!(moved(Bytes::mib(3), as_f64(mib) * 1.4, mib), Bytes::mib(4));
        assert_eq!(moved(Bytes::mib(3), as_f64(mib) * 1.6, mib), Bytes::mib(5));
        assert_eq!(moved(Bytes::mib(3), -1e12, mib), Bytes::mib(1), "nothing is smaller than a unit");
        // A size between two multiples goes to one.
        assert_eq!(moved(Bytes::new(1000), 0.0, 512), Bytes::new(1024));
    }
}
