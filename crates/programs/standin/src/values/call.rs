//! The arguments of an operator's call: how much of their bytes is known, and which of them the operator
//! writes.

use std::slice;

use crate::memory::Certainty;
use crate::values::fill::{Fill, Number};
use crate::values::layout::{IValue, ObjectLayout};
use crate::values::python::{Argument, Kind, Operator};
use crate::values::tensors::{Functions, MemoryKind, Storage, Tensor, items};

/// A call of an operator: its arguments, and the means to read them.
pub(super) struct OperatorCall<'a> {
    pub(super) arguments: &'a [IValue],
    pub(super) layout: &'a ObjectLayout,
    pub(super) functions: &'a Functions,
}

/// The properties of all arguments that decide whether the operator is computed.
#[derive(Default)]
pub(super) struct ArgumentSummary {
    /// How sure the least sure argument that is read is.
    pub(super) worst: Certainty,
    pub(super) bytes: u64,
    pub(super) is_on_device: bool,
    /// Whether an argument has no bytes, so that nothing is computed.
    pub(super) has_no_bytes: bool,
}

impl OperatorCall<'_> {
    fn boxed(&self, index: usize) -> Option<&IValue> {
        self.arguments.get(index)
    }

    /// The tensors of an argument: one, or those of a list.
    fn tensors(&self, index: usize, kind: Kind) -> impl Iterator<Item = &IValue> {
        let list = match (kind, self.boxed(index)) {
            (Kind::Tensor, Some(boxed)) => slice::from_ref(boxed),
            (Kind::Tensors, Some(boxed)) if boxed.tag != 0 => items(boxed, self.layout),
            _ => &[],
        };
        list.iter().filter(|boxed| boxed.tag == self.layout.tensor)
    }

    /// Looks at all arguments.
    pub(super) fn summarize(&self, operator: &Operator) -> ArgumentSummary {
        let mut look = ArgumentSummary::default();
        for (index, kind) in operator.kinds.iter().enumerate() {
            let is_only_written = operator.only_written.contains(&index);
            for boxed in self.tensors(index, *kind) {
                let Some(storage) = Storage::of(boxed, self.layout) else {
                    look.has_no_bytes |= self.functions.is_defined(boxed);
                    continue;
                };
                match storage.home() {
                    // A place for a result that gets its bytes when its size is known.
                    MemoryKind::Nowhere if is_only_written && storage.bytes == 0 => {
                        look.is_on_device |= self.functions.is_for_device(boxed);
                    }
                    MemoryKind::Nowhere => look.has_no_bytes = true,
                    MemoryKind::Host => look.bytes = look.bytes.saturating_add(storage.bytes),
                    MemoryKind::Device => {
                        look.is_on_device = true;
                        if is_only_written {
                            look.bytes = look.bytes.saturating_add(storage.bytes);
                            continue;
                        }
                        if !storage.is_partly_known() {
                            look.worst = Certainty::Unknown;
                            continue;
                        }
                        match self.functions.tensor(boxed) {
                            Some(tensor) => {
                                look.worst = look.worst.max(tensor.certainty());
                                let bytes = tensor.count().saturating_mul(tensor.element);
                                look.bytes = look.bytes.saturating_add(bytes);
                            }
                            None => look.has_no_bytes = true,
                        }
                    }
                }
            }
        }
        look
    }

    /// How many elements all tensors have together; `None` if one is of other numbers than integers and truth
    /// values, and the operator does not find these in any numbers.
    pub(super) fn elements(&self, operator: &Operator) -> Option<u64> {
        let kinds = operator.kinds.iter().enumerate();
        let mut all = kinds.flat_map(|(index, kind)| self.tensors(index, *kind));
        all.try_fold(0_u64, |sum, boxed| match Storage::of(boxed, self.layout)?.home() {
            MemoryKind::Nowhere => Some(sum),
            MemoryKind::Host | MemoryKind::Device => {
                let tensor = self.functions.tensor(boxed)?;
                (operator.traits.finds || tensor.is_of_integers()).then(|| sum.saturating_add(tensor.count()))
            }
        })
    }

    /// The tensors on the device that the operator writes, of those that hold a known byte or will.
    pub(super) fn written(&self, operator: &Operator, is_computed: bool) -> Vec<Tensor> {
        let mut written = Vec::new();
        for index in &operator.written {
            let Some(kind) = operator.kinds.get(*index) else { continue };
            for boxed in self.tensors(*index, *kind) {
                let Some(storage) = Storage::of(boxed, self.layout) else { continue };
                let is_there = match storage.home() {
                    MemoryKind::Device => is_computed || storage.is_partly_known(),
                    MemoryKind::Nowhere => is_computed && self.functions.is_for_device(boxed),
                    MemoryKind::Host => false,
                };
                if is_there && let Some(tensor) = self.functions.tensor(boxed) {
                    written.push(tensor);
                }
            }
        }
        written
    }

    /// Whether the operator makes new tensors, or writes one of the device's.
    pub(super) fn gives_to_device(&self, operator: &Operator) -> bool {
        let written =
            || operator.written.iter().filter_map(|index| Some((*index, *operator.kinds.get(*index)?)));
        operator.written.is_empty()
            || written().flat_map(|(index, kind)| self.tensors(index, kind)).any(|boxed| {
                let home = Storage::of(boxed, self.layout).map(|storage| storage.home());
                home.is_some_and(|home| home != MemoryKind::Host)
            })
    }

    /// The fill that an operator does to its first argument; `None` where the helper has to compute it.
    pub(super) fn fill(&self) -> Option<Fill> {
        let boxed = self.boxed(0)?;
        let storage = Storage::of(boxed, self.layout)?;
        if boxed.tag != self.layout.tensor || storage.home() != MemoryKind::Device {
            return None;
        }
        let number = match self.boxed(1) {
            None => Number::Integer(0),
            Some(boxed) => Number::of(boxed, self.layout)?,
        };
        Fill::of(self.functions.tensor(boxed)?, number)
    }

    /// The arguments for the helper; `None` where one is not understood.
    pub(super) fn arguments(&self, operator: &Operator) -> Option<Vec<Argument>> {
        let layout = self.layout;
        operator
            .kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| {
                let boxed = self.boxed(index)?;
                let is_empty_allowed = operator.only_written.contains(&index);
                Argument::of(boxed, *kind, layout, is_empty_allowed, &|boxed| self.functions.tensor(boxed))
            })
            .collect()
    }

    /// Whether the second argument is a tensor that is trained.
    pub(super) fn is_of_parameter(&self) -> bool {
        self.tensors(1, Kind::Tensor).any(|boxed| self.functions.requires_grad(boxed))
    }

    /// The first tensor of the first argument; `None` if it has no bytes.
    pub(super) fn first_tensor(&self, operator: &Operator) -> Option<Tensor> {
        let boxed = self.tensors(0, *operator.kinds.first()?).next()?;
        let storage = Storage::of(boxed, self.layout)?;
        if storage.home() == MemoryKind::Nowhere { None } else { self.functions.tensor(boxed) }
    }
}
