//! Sentences about the effect of the last line of the story. Every number in them is computed from the run.

use blockyard_record::{Breakdown, Bytes};
use blockyard_workload::Request;

use super::{CONTEXT, Story};

/// The last line of a story, and the memory around it.
pub(super) struct LineEffect<'a> {
    pub(super) story: &'a Story,
    pub(super) before: Breakdown,
    pub(super) after: Breakdown,
    /// The largest cached block before the line.
    pub(super) largest: Bytes,
    pub(super) has_failed: bool,
}

/// The bytes that `nvidia-smi` shows for the process.
pub(crate) fn nvidia_smi(memory: &Breakdown) -> Bytes {
    memory.reserved().saturating_add(CONTEXT)
}

impl LineEffect<'_> {
    /// The sentences about the effect of the request; without a request, those about the memory at the
    /// beginning.
    pub(super) fn text(&self, request: Option<&Request>) -> String {
        match request {
            None => self.opening(),
            Some(Request::Allocate { size, .. }) if self.has_failed => self.out_of_memory(*size),
            Some(Request::Allocate { size, .. }) => self.created(*size),
            Some(Request::Free { .. }) => self.deleted(),
            Some(_) => self.emptied(),
        }
    }

    fn opening(&self) -> String {
        let smi = nvidia_smi(&self.after);
        let Breakdown { cached, free, .. } = self.after;
        let allocated = self.after.allocated();
        let unused = cached.saturating_add(free);
        if self.story.is_first() {
            return format!(
                "There is no tensor yet, and nvidia-smi shows {smi} already: the CUDA context, which each process takes once. \
                 Allocate a tensor, then free it."
            );
        }
        let size = self.story.situation().sizes.first().map_or(Bytes::ZERO, |(size, _)| *size);
        format!(
            "A GPU of {} after some work: tensors take {allocated}, and {unused} are unused. \
             Does a tensor of {size} fit? Allocate it.",
            self.after.capacity().saturating_add(CONTEXT)
        )
    }

    fn created(&self, size: Bytes) -> String {
        let smi = nvidia_smi(&self.after);
        let taken = self.after.reserved().saturating_sub(self.before.reserved());
        let (was, now) = (self.before.cached, self.after.cached);
        if self.story.is_expandable() && taken.is_zero() {
            return format!(
                "It fits. With expandable segments, one segment grows instead of new ones being taken, so what is freed side by side \
                 becomes one piece: of {} here. The tensor takes {size} of it, and nvidia-smi stays at {smi}.",
                self.largest
            );
        }
        if self.story.is_expandable() {
            return format!(
                "It fits. With expandable segments, what is freed side by side becomes one piece: the tensor takes what is cached in the one \
                 segment, and the segment grows by {taken}, to {} reserved, so nvidia-smi shows {smi}.",
                self.after.reserved()
            );
        }
        if taken.is_zero() {
            return format!(
                "Nothing was taken from the GPU: the {size} come from the {was} that were cached, and {now} stay cached. \
                 nvidia-smi stays at {smi}."
            );
        }
        if taken > size {
            return format!(
                "You asked for {size}. PyTorch took a segment of {taken} from the GPU, to have some ready for the next tensors. \
                 nvidia-smi counts all of it: {smi}."
            );
        }
        format!(
            "PyTorch took a segment of {taken} from the GPU for this tensor alone. nvidia-smi shows {smi}."
        )
    }

    fn deleted(&self) -> String {
        let smi = nvidia_smi(&self.after);
        let (allocated, reserved) = (self.after.allocated(), self.after.reserved());
        let fell = self.before.allocated().saturating_sub(allocated);
        format!(
            "You freed it, and nvidia-smi did not fall: {smi}. memory_allocated() fell by {fell}, to {allocated}. \
             But PyTorch keeps the memory for the next tensor: memory_reserved() stays at {reserved}."
        )
    }

    fn emptied(&self) -> String {
        let smi = nvidia_smi(&self.after);
        let cached = self.after.cached;
        let given = self.before.reserved().saturating_sub(self.after.reserved());
        let rest = if self.after.reserved().is_zero() {
            "What is left is the CUDA context. It goes with the process.".to_owned()
        } else if cached.is_zero() {
            "The rest is in use.".to_owned()
        } else {
            format!("{cached} stay cached, beside tensors in the same segments.")
        };
        if !given.is_zero() {
            return format!(
                "Now it falls: PyTorch gave {given} back to the GPU, and nvidia-smi shows {smi}. {rest}"
            );
        }
        if cached.is_zero() {
            return format!("Nothing was given back, since nothing is cached. nvidia-smi stays at {smi}.");
        }
        format!(
            "Nothing was given back. {cached} are cached, but in segments with tensors in them, and a segment goes back only as a \
             whole. nvidia-smi stays at {smi}."
        )
    }

    fn out_of_memory(&self, size: Bytes) -> String {
        let Breakdown { cached, free, .. } = self.after;
        let unused = cached.saturating_add(free);
        let enough =
            if unused >= size { format!("although {unused} are unused") } else { "as it had to".to_owned() };
        format!(
            "It did not fit, {enough}: {free} are free on the GPU, and {cached} are cached, in pieces of at most {}. \
             A tensor of {size} needs one piece.",
            self.largest
        )
    }
}
