//! The categories of tensors in the workload of a lesson, by their names: a workload has no other information
//! about the purpose of a tensor.

use blockyard_figure::{Role, Scene};
use blockyard_record::{BlockState, Bytes, Event, MemoryState, Recording};
use blockyard_workload::{TensorId, Workload};
use leptos::prelude::*;

use super::LessonSignals;
use crate::program::CATEGORIES;
use crate::session::Feature;

/// The place in [`CATEGORIES`] of each name that lessons about a training use.
const NAMES: [(&str, usize); 19] = [
    ("weight", 0),
    ("bias", 0),
    ("grad", 1),
    ("buckets", 1),
    ("average", 2),
    ("square", 2),
    ("count", 2),
    ("activation", 3),
    ("hidden", 3),
    ("linear", 3),
    ("output", 3),
    ("wide", 3),
    ("logits", 3),
    ("loss", 3),
    ("batch", 4),
    ("x", 4),
    ("workspace", 5),
    ("counter", 5),
    ("partial", 5),
];
/// The category of the other tensors of a training.
const TEMPORARY: usize = CATEGORIES.len() - 1;

/// `weight.grad[2]` is a gradient, `average.bias[2]` a state of the optimizer, and `batch.copy` a part of the
/// input.
pub(crate) fn category_of(name: &str) -> usize {
    let name = name.split('[').next().unwrap_or_default();
    let known = |part: &str| NAMES.iter().find(|(known, _)| *known == part).map(|(_, place)| *place);
    let is_gradient = name.split('.').any(|part| part == "grad");
    let of_name = || name.split('.').find_map(known);
    if is_gradient { 1 } else { of_name().unwrap_or(TEMPORARY) }
}

/// Whether the workload is a training, which is so if a tensor is a parameter.
fn is_of_training(workload: &Workload) -> bool {
    has_category(workload, 0)
}

/// Whether a tensor of the workload has the category at this place.
pub(crate) fn has_category(workload: &Workload, place: usize) -> bool {
    let mut names = (0..).map_while(|number| workload.tensor_name(TensorId::new(number)));
    names.any(|name| category_of(&name) == place)
}

/// Gives the blocks of a training the colors of their categories.
pub(crate) fn color_training(
    scene: &mut Scene,
    workload: &Workload,
    recording: &Recording,
    state: &MemoryState,
) {
    if is_of_training(workload) {
        scene.color_blocks(|block| {
            let place = category_of(recording.name(state.block(block)?.allocation?)?);
            Role::CATEGORIES.get(place).copied()
        });
    }
}

/// The bytes of the blocks of a training by category; all 0 if the workload is not of a training.
pub(crate) fn training_sums(
    workload: &Workload,
    recording: &Recording,
    state: &MemoryState,
) -> [Bytes; CATEGORIES.len()] {
    let mut sums = [Bytes::ZERO; CATEGORIES.len()];
    if !is_of_training(workload) {
        return sums;
    }
    let segments = state.snapshot().segments;
    let blocks = segments.iter().flat_map(|segment| &segment.blocks);
    for block in blocks.filter(|block| block.state == BlockState::Allocated) {
        let name = block.allocation.and_then(|allocation| recording.name(allocation));
        if let Some(sum) = name.and_then(|name| sums.get_mut(category_of(name))) {
            *sum = sum.saturating_add(block.size);
        }
    }
    sums
}

/// The allocated bytes of a training by category after each number of complete steps, for a figure over time;
/// empty if the workload is not of a training, or its recording is damaged.
pub(crate) fn training_groups(workload: &Workload, recording: &Recording) -> Vec<(Role, Vec<Bytes>)> {
    if !is_of_training(workload) {
        return Vec::new();
    }
    let mut groups = Role::CATEGORIES.map(|role| (role, vec![Bytes::ZERO]));
    let mut sums = [Bytes::ZERO; CATEGORIES.len()];
    let mut state = recording.initial_state();
    // The category and the size of an allocated block.
    let held = |state: &MemoryState, block| {
        let block = state.block(block)?;
        Some((recording.name(block.allocation?).map_or(TEMPORARY, category_of), block.size))
    };
    for step in (0..recording.step_count()).map_while(|index| recording.step(index)) {
        let events = || (step.start..step.end).filter_map(|index| recording.event(index));
        for event in events() {
            if let Event::FreeRequested { block, .. } = event
                && let Some((place, size)) = held(&state, block)
            {
                sums[place] = sums[place].saturating_sub(size);
            }
        }
        if recording.advance(&mut state, step.start, step.end).is_err() {
            return Vec::new();
        }
        for event in events() {
            if let Event::Allocated { block, .. } = event
                && let Some((place, size)) = held(&state, block)
            {
                sums[place] = sums[place].saturating_add(size);
            }
        }
        groups.iter_mut().zip(sums).for_each(|((_, bytes), sum)| bytes.push(sum));
    }
    groups.into()
}

impl Feature<LessonSignals> {
    /// Gives the blocks of a lesson about a training the colors of their categories. Reads signals.
    pub(crate) fn color_blocks(self, scene: &mut Scene, state: &MemoryState) {
        let run = self.session.run.get();
        if self.session.open_lesson().is_some() {
            color_training(scene, &run.workload, &run.recording, state);
        }
    }

    /// Whether the shown run is the run of a text about a training, whose names show the categories. Reads
    /// signals.
    pub(crate) fn has_category_names(self) -> bool {
        self.session.shows_text() && !self.has_no_categories()
    }

    /// Whether the open lesson is not about a training. Reads signals.
    pub(crate) fn has_no_categories(self) -> bool {
        !is_of_training(&self.session.run.get().workload)
    }

    /// The bytes of a lesson's blocks by category; all 0 if the lesson is not about a training. Reads
    /// signals.
    pub(crate) fn categories(self) -> [Bytes; CATEGORIES.len()] {
        let sums = self.session.with_state(|run, state| training_sums(&run.workload, &run.recording, state));
        sums.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_name_says_what_a_tensor_is_for() {
        let named = [
            "weight[0]",
            "weight.grad[3]",
            "average.bias[1]",
            "linear[2]",
            "batch.copy",
            "workspace.lt",
            "flow",
        ];
        let places = named.map(category_of);
        assert_eq!(
            places.map(|place| CATEGORIES[place]),
            ["parameters", "gradients", "optimizer", "activations", "input", "workspaces", "temporaries"]
        );
    }
}
