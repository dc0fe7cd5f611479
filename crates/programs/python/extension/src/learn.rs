//! What cuDNN was recorded to take, learned from the recording of a program (`cargo xtask learn`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use blockyard_gpus::tables;
use blockyard_torch::session;
use pyo3::prelude::*;

thread_local! {
    static LEARNED: RefCell<BTreeMap<u32, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// From now on, a workspace for which the tables have nothing is taken from a recording: addresses, and bytes
/// that are negative for a free.
#[pyfunction]
fn learn_from(trace: Vec<(u64, i64)>) {
    tables::set_recorder(Some(Rc::new(move |numbers, operands| {
        let key = tables::hash(numbers);
        if let Some(size) = tables::recorded_size(key, operands) {
            return Some(size);
        }
        let session = session();
        let place = session.device(0).ok()?.log_count();
        // A workspace is freed as soon as the kernel is queued.
        let size = match (trace.get(place), trace.get(place + 1)) {
            (Some((address, size)), Some((freed, negative))) if address == freed && *size == -negative => {
                size.unsigned_abs()
            }
            _ => 0,
        };
        LEARNED.with_borrow_mut(|learned| learned.insert(key, tables::encode(size, operands)));
        Some(size)
    })));
}

/// What was learned: entries of the tables.
#[pyfunction]
fn learned() -> Vec<(u32, u64)> {
    LEARNED.take().into_iter().collect()
}

/// Adds the functions of this module to `_host`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(learn_from, module)?)?;
    module.add_function(wrap_pyfunction!(learned, module)?)
}
