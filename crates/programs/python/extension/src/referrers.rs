//! `_host`: what tensors and nodes of the backward graph lead to, for the search of `lib/_reasons.py`, and when
//! the search is made.

use std::collections::BTreeMap;
use std::rc::Rc;

use blockyard_python::Referrers;
use blockyard_record::Bytes;
use blockyard_torch::autograd::SavedValue;
use blockyard_torch::memory::SimulatedGpu;
use blockyard_torch::{Device, Tensor, autocast, session};
use pyo3::prelude::*;

use crate::autograd::context_of;
use crate::tensor::{PyNode, PyTensor};
use crate::{convert, line, run};

fn first_device() -> Option<Rc<SimulatedGpu>> {
    session().device(0).ok().cloned()
}

/// The number of a tensor's block of the first GPU.
fn block_number(tensor: &Tensor) -> Option<u32> {
    if tensor.device() == Device::Cuda(0) { tensor.storage().block_number() } else { None }
}

/// What tells a tensor from other tensors, and the number of its block of the first GPU; `None` for an object
/// that the garbage collector cleared.
#[pyfunction]
fn tensor_identity(object: PyRef<'_, PyTensor>) -> Option<(usize, Option<u32>)> {
    object.held().map(|tensor| (tensor.identity(), block_number(&tensor)))
}

/// Whether something beside the object holds its tensor, such as a backward graph.
#[pyfunction]
fn is_held_without_object(object: PyRef<'_, PyTensor>) -> bool {
    // One count is the object's, one is that of the tensor here.
    object.held().is_some_and(|tensor| tensor.use_count() > 2)
}

/// The gradient of a tensor, and the node that made the tensor.
#[pyfunction]
fn tensor_parts<'py>(
    python: Python<'py>,
    object: PyRef<'py, PyTensor>,
) -> PyResult<(Option<Bound<'py, PyAny>>, Option<PyNode>)> {
    let Some(tensor) = object.held() else { return Ok((None, None)) };
    let grad = tensor.grad().map(|grad| convert::tensor_object(python, grad)).transpose()?;
    Ok((grad, tensor.grad_fn_as_it_stands().map(PyNode)))
}

/// What tells a node from other nodes.
#[pyfunction]
fn node_identity(node: PyRef<'_, PyNode>) -> usize {
    Rc::as_ptr(&node.0).addr()
}

/// A value that a node saved: the node's member, the number of its block of the first GPU, and the object that
/// a hook packed.
type SavedMember = (Option<&'static str>, Option<u32>, Option<Py<PyAny>>);

/// What a node leads to.
#[derive(IntoPyObject)]
struct NodeParts {
    name: &'static str,
    saved: Vec<SavedMember>,
    /// The number of the leaf's block whose gradient the node adds up.
    leaf: Option<u32>,
    /// The context of a `torch.autograd.Function`.
    context: Option<Py<PyAny>>,
    edges: Vec<PyNode>,
}

#[pyfunction]
fn node_parts(python: Python<'_>, node: PyRef<'_, PyNode>) -> NodeParts {
    let node = &node.0;
    let saved = node.saved_values().into_iter().map(|(member, value)| match value {
        SavedValue::Tensor(tensor) => (member, block_number(&tensor), None),
        SavedValue::Packed(packed) => {
            (member, None, packed.downcast_ref::<Py<PyAny>>().map(|object| object.clone_ref(python)))
        }
    });
    NodeParts {
        name: node.name(),
        saved: saved.collect(),
        leaf: node.leaf().and_then(block_number),
        context: context_of(node).map(|context| context.clone_ref(python)),
        edges: node.edges().into_iter().flatten().map(|edge| PyNode(edge.node)).collect(),
    }
}

/// The numbers of the blocks that the cache of autocast keeps.
#[pyfunction]
fn autocast_blocks() -> Vec<u32> {
    autocast::cached().iter().filter_map(|(_, cast)| block_number(cast)).collect()
}

/// The numbers of the blocks that libraries keep until the process ends, each with its library.
#[pyfunction]
fn library_blocks() -> Vec<(u32, &'static str)> {
    session().library_blocks(0)
}

/// The operator or the node of autograd that runs.
#[pyfunction]
fn operator() -> &'static str {
    session().operator()
}

/// Whether the recording of the first GPU wants the names of its blocks.
#[pyfunction]
fn is_recorded() -> bool {
    first_device().is_some_and(|device| device.is_recorded())
}

/// The requested bytes of each block of the first GPU, by the block's number.
#[pyfunction]
fn requested_bytes() -> Vec<u64> {
    let origins = first_device().map(|device| device.origins()).unwrap_or_default();
    origins.iter().map(|origin| origin.requested.get()).collect()
}

/// An amount of memory, for a reader.
#[pyfunction]
fn bytes_text(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// Calls a function once, before the step that follows the first `steps` steps of the first GPU's recording.
/// The function's argument says whether that step frees memory.
#[pyfunction]
fn call_before_step(steps: usize, function: Py<PyAny>) {
    let Some(device) = first_device() else { return };
    device.call_before_step(steps, move |is_free| {
        Python::attach(|python| {
            // Memory may be freed while an exception is on its way.
            let exception = PyErr::take(python);
            if let Err(error) = function.call1(python, (is_free,)) {
                error.write_unraisable(python, None);
            }
            if let Some(exception) = exception {
                exception.restore(python);
            }
        });
    });
}

/// Notes why memory of the first GPU is alive now, for the run's outcome: the reasons by the block's number.
#[pyfunction]
fn note_referrers(python: Python<'_>, step: usize, reasons: BTreeMap<u32, Vec<String>>) {
    let operator = operator().to_owned();
    run::set_referrers(Referrers { step, reasons, line: line::current(python), operator });
}

/// Adds the functions of this module to `_host`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($function:ident)*) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)* }
    }
    add!(tensor_identity is_held_without_object tensor_parts node_identity node_parts autocast_blocks library_blocks operator is_recorded
        requested_bytes bytes_text call_before_step note_referrers);
    Ok(())
}
