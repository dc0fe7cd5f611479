//! Slots of tensors, reused as tensors are freed.

use std::collections::HashMap;

use blockyard_record::next_u32;

use crate::request::TensorId;

/// Slots of tensors: there are only as many slots as tensors that are allocated at the same time.
///
/// The slot that was freed last is used first, so that a replay touches little memory.
#[derive(Clone, Debug, Default)]
pub struct TensorSlots {
    slot_of: HashMap<TensorId, u32>,
    vacant: Vec<u32>,
    count: u32,
}

impl TensorSlots {
    /// Gives the tensor a slot.
    pub fn allocate(&mut self, tensor: TensorId) -> u32 {
        let slot = self.vacant.pop().unwrap_or_else(|| next_u32(&mut self.count));
        self.slot_of.insert(tensor, slot);
        slot
    }

    /// Takes the slot away from the tensor; `None` if it has none.
    pub fn free(&mut self, tensor: TensorId) -> Option<u32> {
        let slot = self.slot_of.remove(&tensor);
        self.vacant.extend(slot);
        slot
    }

    /// The slot of the tensor; `None` if it has none.
    #[must_use]
    pub fn get(&self, tensor: TensorId) -> Option<u32> {
        self.slot_of.get(&tensor).copied()
    }

    /// How many slots there are, vacant ones too.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The slots of all tensors that are allocated, by ascending tensor.
    #[must_use]
    pub fn allocated(&self) -> Vec<u32> {
        let mut all: Vec<_> = self.slot_of.iter().map(|(tensor, slot)| (*tensor, *slot)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, slot)| slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_that_was_freed_last_is_used_first() {
        let mut slots = TensorSlots::default();
        let [a, b, c, d] = [0, 1, 2, 3].map(TensorId::new);
        assert_eq!([slots.allocate(a), slots.allocate(b), slots.allocate(c)], [0, 1, 2]);
        assert_eq!((slots.free(c), slots.free(a), slots.free(a)), (Some(2), Some(0), None));
        assert_eq!((slots.get(a), slots.allocate(d), slots.get(d)), (None, 0, Some(0)));
        assert_eq!((slots.count(), slots.allocated()), (3, vec![1, 0]));
    }
}
