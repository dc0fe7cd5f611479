//! Call sites, by which allocations are grouped.

use std::collections::BTreeMap;

use blockyard_record::{frame_text, own_caller};
use blockyard_workload::Request;

use crate::Run;

/// The call sites of a run's allocations: their stacks or, if none were recorded, names or sizes.
pub(crate) struct Sites {
    /// The site of each request, as an index into `names`.
    pub(crate) of: Vec<u32>,
    /// The frames of each site, innermost first.
    pub(crate) names: Vec<Vec<String>>,
}

impl Sites {
    pub(crate) fn of(run: &Run) -> Self {
        let mut numbers: BTreeMap<Vec<String>, u32> = BTreeMap::new();
        // Stacks repeat, so the text of each stack is made once.
        let mut by_stack: BTreeMap<u32, u32> = BTreeMap::new();
        let mut names: Vec<Vec<String>> = Vec::new();
        let mut of = vec![0; run.requests().len()];
        for (request, site) in run.requests().iter().zip(0..).filter_map(|(request, index)| {
            let Request::Allocate { tensor, size, .. } = request else { return None };
            Some(((*tensor, *size), index))
        }) {
            let stack = run.stack_number(site);
            let known = stack.and_then(|stack| by_stack.get(&stack)).copied();
            let number =
                known.unwrap_or_else(|| {
                    let mut name = run.stack(site);
                    if name.is_empty() {
                        let text = run.workload().tensor_name(request.0);
                        name.push(text.map_or_else(
                            || format!("requests of {}", request.1),
                            std::borrow::Cow::into_owned,
                        ));
                    }
                    let number = *numbers.entry(name).or_insert_with_key(|name| {
                        names.push(name.clone());
                        // There are no more sites than requests, and no more tensors than `TensorId` can
                        // count.
                        u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
                    });
                    if let Some(stack) = stack {
                        by_stack.insert(stack, number);
                    }
                    number
                });
            if let Some(place) = of.get_mut(site) {
                *place = number;
            }
        }
        Self { of, names }
    }

    pub(crate) fn name(&self, site: u32) -> Vec<String> {
        self.names.get(site as usize).cloned().unwrap_or_default()
    }

    pub(crate) fn at(&self, request: usize) -> u32 {
        self.of.get(request).copied().unwrap_or_default()
    }
}

/// The line of the program that called the own line of a stack; `None` for a call from the program's top
/// level, which would not help a reader.
pub(crate) fn caller(stack: &[String]) -> Option<String> {
    own_caller(stack).map(frame_text).filter(|caller| !caller.starts_with("<module>"))
}
