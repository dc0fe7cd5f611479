//! Which allocations without a stack are gradients.
//!
//! PyTorch runs most of a backward pass on threads of autograd, which have no Python stack. An allocation
//! counts as a gradient where the recording has enough evidence: it has no stack in a recording of stacks,
//! its size is that of a live parameter, no more such allocations exist than parameters of this size, and it
//! outlives the backward pass, which ends when the program allocates with a stack again.

use blockyard_record::{Recording, StackCategory, StackId};
use rustc_hash::FxHashMap;

use super::Allocations;

/// The live parameters of a size, and the gradients that were found for them: the moments at which each is
/// freed.
#[derive(Default)]
struct OfSize {
    parameters: Vec<u32>,
    gradients: Vec<u32>,
}

impl OfSize {
    /// Whether a parameter that is live at the moment has no gradient yet.
    fn lacks_gradient(&mut self, moment: u32) -> bool {
        self.parameters.retain(|freed| *freed > moment);
        self.gradients.retain(|freed| *freed > moment);
        self.gradients.len() < self.parameters.len()
    }
}

/// The rows of the gradients, ascending.
pub(super) fn gradients(made: &Allocations, recording: &Recording) -> Vec<u32> {
    let mut categories: FxHashMap<StackId, StackCategory> = FxHashMap::default();
    let mut sizes: FxHashMap<u64, OfSize> = FxHashMap::default();
    let mut pending: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for (row, id) in made.ids.iter().enumerate() {
        let stack = recording.allocation_stack(*id);
        let category =
            *categories.entry(stack).or_insert_with(|| StackCategory::of(recording.stacks(), stack));
        let at = |column: &[u32]| column.get(row).copied().unwrap_or(0);
        let (start, freed) = (at(&made.starts), at(&made.frees));
        if category == StackCategory::Unknown {
            // Allocations older than the recording have no stack either.
            if start > 0 && !sizes.is_empty() {
                pending.push(row);
            }
            continue;
        }
        for row in pending.drain(..) {
            let of = |column: &[u32]| column.get(row).copied().unwrap_or(0);
            let (begun, ends) = (of(&made.starts), of(&made.frees));
            let size = made.requested.get(row).and_then(|size| sizes.get_mut(size));
            if let Some(size) = size.filter(|_| ends > start)
                && size.lacks_gradient(begun)
            {
                size.gradients.push(ends);
                found.extend(u32::try_from(row).ok());
            }
        }
        if category == StackCategory::Parameters
            && let Some(requested) = made.requested.get(row)
        {
            sizes.entry(*requested).or_default().parameters.push(freed);
        }
    }
    found
}
