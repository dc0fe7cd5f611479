//! Searches over many numbers that a program makes again: a graph's links, found in one matrix by each layer in
//! each step. The results of the first search are kept for as long as the numbers stay as they are.

use std::sync::{Arc, Mutex, PoisonError};

use crate::state::state;
use crate::values::python::{Object, Operator};
use crate::values::tensors::Tensor;

/// The most searches that are kept.
const MAX_KEPT: usize = 16;
/// The most results of a search that is kept.
const MAX_RESULTS: i64 = 1 << 20;

/// The computed results of a search, and how many they are.
pub(super) type Found = (Arc<Object>, Option<i64>);

struct Search {
    operator: u64,
    tensor: Tensor,
    found: Found,
}

static SEARCHES: Mutex<Vec<Search>> = Mutex::new(Vec::new());

/// Whether the operator searches its only argument.
pub(super) fn is_search(operator: &Operator) -> bool {
    operator.assumed_count > 0.0 && operator.kinds.len() == 1
}

/// The results of this search; `None` if they were not kept, or the numbers may have changed.
pub(super) fn found(operator: &Operator, tensor: &Tensor) -> Option<Found> {
    let (start, end) = tensor.extent();
    if !state().devices.is_unchanged(start, end) {
        return None;
    }
    let searches = SEARCHES.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = searches.iter().find(|kept| kept.operator == operator.number && kept.tensor == *tensor)?;
    Some(kept.found.clone())
}

/// Keeps the results of a search.
pub(super) fn keep(operator: &Operator, tensor: &Tensor, found: &Found) {
    if found.1.is_none_or(|count| count > MAX_RESULTS) {
        return;
    }
    let (start, end) = tensor.extent();
    state().devices.watch(start, end);
    let search = Search { operator: operator.number, tensor: tensor.clone(), found: found.clone() };
    let mut searches = SEARCHES.lock().unwrap_or_else(PoisonError::into_inner);
    // What was found in other numbers there is dropped, after the lock: that takes Python's lock.
    let (old, kept) = std::mem::take(&mut *searches)
        .into_iter()
        .partition(|kept: &Search| kept.tensor.data == search.tensor.data);
    *searches = kept;
    let oldest = (searches.len() >= MAX_KEPT).then(|| searches.remove(0));
    searches.push(search);
    drop(searches);
    drop::<(Vec<Search>, _)>((old, oldest));
}
