//! `_torch_memory`: what `torch.cuda` says about memory, devices and streams.

use std::rc::Rc;

use blockyard_record::{PoolId, SegmentSnapshot, Stats, StreamId};
use blockyard_torch::memory::{Dependence, Phase, PoolOptions, SimulatedGpu};
use blockyard_torch::session::AttentionKernels;
use blockyard_torch::{Value, session};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::{result, to_exception};
use crate::{convert, line, run};

/// The device that an argument names: nothing, a number, a text or a `torch.device`.
fn number(device: &Bound<'_, PyAny>) -> PyResult<u8> {
    match convert::to_value(device)? {
        Value::None => Ok(session().current_device()),
        Value::Device(blockyard_torch::Device::Cuda(index)) => Ok(index),
        Value::Scalar(scalar) => scalar
            .to_i64()
            .and_then(|i| u8::try_from(i).ok())
            .ok_or_else(|| PyValueError::new_err("Invalid device id")),
        Value::Str(text) => match blockyard_torch::Device::parse(&text) {
            Ok(blockyard_torch::Device::Cuda(index)) => Ok(index),
            Ok(_) => Err(PyValueError::new_err(format!("Expected a cuda device, but got: {text}"))),
            Err(error) => Err(to_exception(device.py(), error)),
        },
        _ => Err(PyValueError::new_err("Expected a cuda device")),
    }
}

fn device(argument: &Bound<'_, PyAny>) -> PyResult<Rc<SimulatedGpu>> {
    let index = number(argument)?;
    result(argument.py(), session().device(index).cloned())
}

const ADDRESS_REASON: &str =
    "which of several equally large free blocks is taken depends on addresses that the driver chooses";

/// Marks a number that the program reads if it would be another one under other addresses of segments.
fn mark_address_dependence<T: PartialEq>(device: &SimulatedGpu, name: &str, read: impl Fn(&Stats) -> T) {
    if device.depends_on_addresses(read) {
        session().note_estimate(name, ADDRESS_REASON);
    }
}

/// Whether each kernel of attention may run: products, flash attention, the memory-efficient kernel,
/// cuDNN's.
#[pyfunction]
fn attention_kernels() -> (bool, bool, bool, bool) {
    let kernels = session().attention_kernels();
    (kernels.allows_math, kernels.allows_flash, kernels.allows_efficient, kernels.allows_cudnn)
}

/// Whether convolutions may run other engines than the recorded ones, because of a setting of
/// `torch.backends.cudnn`.
#[pyfunction]
fn set_engines(benchmark: bool, deterministic: bool) {
    session().set_engine_setting(if benchmark {
        Some("cudnn.benchmark measures engines on the GPU: the workspace of the engine that PyTorch chooses without the setting counts")
    } else if deterministic {
        Some("cudnn.deterministic may choose another engine than the recorded one, whose workspace is taken")
    } else { None });
}

#[pyfunction]
fn set_attention_kernels(kernels: Vec<bool>) -> PyResult<()> {
    let [math, flash, efficient, cudnn] = kernels[..] else {
        return Err(PyValueError::new_err("four kernels are switched"));
    };
    session().set_attention_kernels(AttentionKernels {
        allows_math: math,
        allows_flash: flash,
        allows_efficient: efficient,
        allows_cudnn: cudnn,
    });
    Ok(())
}

#[pyfunction]
fn device_index(argument: Bound<'_, PyAny>) -> PyResult<u8> {
    number(&argument)
}

/// `torch.__version__`.
#[pyfunction]
fn version() -> &'static str {
    session().release().version()
}

/// One number of `memory_stats`.
#[pyfunction]
fn stat(name: &str, argument: Bound<'_, PyAny>) -> PyResult<i64> {
    let device = device(&argument)?;
    let read = |stats: &Stats| blockyard_pytorch::memory_stat(stats, name);
    let function = match name {
        "allocated_bytes.all.current" => "memory_allocated",
        "allocated_bytes.all.peak" => "max_memory_allocated",
        "reserved_bytes.all.current" => "memory_reserved",
        "reserved_bytes.all.peak" => "max_memory_reserved",
        other => other,
    };
    mark_address_dependence(&device, function, read);
    read(&device.stats()).ok_or_else(|| PyValueError::new_err(format!("no statistic is called {name}")))
}

#[pyfunction]
#[pyo3(signature = (argument, is_marked = true))]
fn stats(argument: Bound<'_, PyAny>, is_marked: bool) -> PyResult<Bound<'_, PyDict>> {
    let python = argument.py();
    let device = device(&argument)?;
    if is_marked {
        mark_address_dependence(&device, "memory_stats", blockyard_pytorch::memory_stats);
    }
    let dict = PyDict::new(python);
    let pools = device.reserved_by_private_pools();
    for (name, value) in blockyard_pytorch::memory_stats_in(session().release(), &device.stats(), &pools) {
        dict.set_item(name.as_str(), value)?;
    }
    Ok(dict)
}

#[pyfunction]
fn host_stats(python: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(python);
    for (name, value) in blockyard_pytorch::host_memory_stats(&session().host_stats()) {
        dict.set_item(name.as_str(), value)?;
    }
    Ok(dict)
}

#[pyfunction]
fn summary(argument: Bound<'_, PyAny>, abbreviated: bool) -> PyResult<String> {
    let device = device(&argument)?;
    mark_address_dependence(&device, "memory_summary", blockyard_pytorch::memory_stats);
    Ok(blockyard_pytorch::memory_summary(&device.stats(), u32::from(device.index()), abbreviated))
}

#[pyfunction]
fn empty_cache(python: Python<'_>) -> PyResult<()> {
    let session = session();
    for index in 0..session.device_count() {
        let device = result(python, session.device(index))?;
        device.synchronize();
        result(python, device.empty_cache())?;
    }
    Ok(())
}

#[pyfunction]
fn synchronize(argument: Bound<'_, PyAny>) -> PyResult<()> {
    device(&argument)?.synchronize();
    Ok(())
}

#[pyfunction]
fn set_fraction(fraction: f64, argument: Bound<'_, PyAny>) -> PyResult<()> {
    result(argument.py(), device(&argument)?.set_memory_fraction(fraction))
}

#[pyfunction]
fn reset_peak(argument: Bound<'_, PyAny>) -> PyResult<()> {
    device(&argument)?.reset_peak_stats();
    Ok(())
}

#[pyfunction]
fn reset_accumulated(argument: Bound<'_, PyAny>) -> PyResult<()> {
    device(&argument)?.reset_accumulated_stats();
    Ok(())
}

#[pyfunction]
fn device_count() -> u8 {
    session().device_count()
}

#[pyfunction]
fn current_device() -> u8 {
    session().current_device()
}

#[pyfunction]
fn set_device(argument: Bound<'_, PyAny>) -> PyResult<u8> {
    let index = number(&argument)?;
    result(argument.py(), session().set_current_device(index))
}

/// Name, total memory, multiprocessors, threads of each, capability.
#[pyfunction]
fn properties(argument: Bound<'_, PyAny>) -> PyResult<(String, u64, u32, u32, u32, u32)> {
    device(&argument)?;
    let session = session();
    let profile = session.profile();
    Ok((
        profile.name.to_string(),
        profile.total_memory.get(),
        profile.multiprocessors,
        profile.threads_per_multiprocessor,
        profile.architecture.capability().0,
        profile.architecture.capability().1,
    ))
}

/// The non-PyTorch memory of each GPU, in bytes.
#[pyfunction]
fn non_pytorch_bytes() -> u64 {
    session().non_pytorch().get()
}

#[pyfunction]
fn create_stream() -> u64 {
    session().create_stream().get()
}

#[pyfunction]
fn current_stream(argument: Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(device(&argument)?.current_stream().get())
}

#[pyfunction]
fn set_stream(argument: Bound<'_, PyAny>, stream: u64) -> PyResult<u64> {
    Ok(device(&argument)?.set_current_stream(StreamId::new(stream)).get())
}

#[pyfunction]
fn synchronize_stream(argument: Bound<'_, PyAny>, stream: u64) -> PyResult<()> {
    device(&argument)?.synchronize_stream(StreamId::new(stream));
    Ok(())
}

/// The segments of all devices, those of one memory pool where one is named, as `torch.cuda.memory_snapshot`
/// returns them. No block has a stack, as where no history is recorded.
#[pyfunction]
fn snapshot(python: Python<'_>, capture: u32, user: u32) -> PyResult<Bound<'_, PyList>> {
    let segments = PyList::empty(python);
    let frames = PyList::empty(python);
    for index in 0..session().device_count() {
        let device = result(python, session().device(index).cloned())?;
        let (listed, dependence) = result(python, device.listed_segments(PoolId { capture, user }))?;
        match dependence {
            Dependence::Nothing => {}
            Dependence::Order => run::add_note(
                line::current(python),
                "a snapshot lists segments by address, and the driver chooses addresses: here they rise",
            ),
            Dependence::Content => session().note_estimate("memory_snapshot", ADDRESS_REASON),
        }
        for segment in &listed {
            segments.append(segment_dict(&frames, index, segment)?)?;
        }
    }
    Ok(segments)
}

fn segment_dict<'py>(
    frames: &Bound<'py, PyList>,
    device: u8,
    segment: &SegmentSnapshot,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(frames.py());
    dict.set_item("device", device)?;
    dict.set_item("address", segment.addr.get())?;
    dict.set_item("total_size", segment.size.get())?;
    dict.set_item("allocated_size", segment.allocated().get())?;
    dict.set_item("active_size", segment.active().get())?;
    dict.set_item("requested_size", segment.requested().get())?;
    dict.set_item("stream", segment.stream.get())?;
    dict.set_item("segment_type", segment.pool.to_string())?;
    dict.set_item("segment_pool_id", (segment.pool_id.capture, segment.pool_id.user))?;
    dict.set_item("is_expandable", segment.is_expandable)?;
    dict.set_item("frames", frames)?;
    let blocks = segment.blocks.iter().map(|block| {
        let dict = PyDict::new(frames.py());
        dict.set_item("address", block.addr.get())?;
        dict.set_item("size", block.size.get())?;
        dict.set_item("requested_size", block.requested.get())?;
        dict.set_item("state", block.state.name())?;
        dict.set_item("frames", frames)?;
        Ok(dict)
    });
    dict.set_item("blocks", blocks.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

#[pyfunction]
fn create_pool(argument: Bound<'_, PyAny>, never_splits: bool, serves_on_oom: bool) -> PyResult<u32> {
    let options = PoolOptions { never_splits, serves_on_oom };
    result(argument.py(), device(&argument)?.create_pool(options)).map(|pool| pool.user)
}

#[pyfunction]
fn pool_use_count(argument: Bound<'_, PyAny>, pool: u32) -> PyResult<u32> {
    Ok(device(&argument)?.pool_use_count(PoolId { capture: 0, user: pool }))
}

#[pyfunction]
fn begin_pool(argument: Bound<'_, PyAny>, pool: u32) -> PyResult<()> {
    result(argument.py(), device(&argument)?.begin_allocate_to_pool(PoolId { capture: 0, user: pool }))
}

#[pyfunction]
fn end_pool(argument: Bound<'_, PyAny>, pool: u32) -> PyResult<()> {
    result(argument.py(), device(&argument)?.end_allocate_to_pool(PoolId { capture: 0, user: pool }))
}

#[pyfunction]
fn destroy_pool(argument: Bound<'_, PyAny>, pool: u32) -> PyResult<()> {
    result(argument.py(), device(&argument)?.destroy_pool(PoolId { capture: 0, user: pool }))
}

/// Sets the part of an iteration that runs; returns the name of the part before.
#[pyfunction]
fn set_phase(name: &str) -> &'static str {
    let phase = match name {
        "optimizer" => Phase::Optimizer,
        "backward" => Phase::Backward,
        _ => Phase::Forward,
    };
    match session().set_phase(phase) {
        Phase::Optimizer => "optimizer",
        Phase::Backward => "backward",
        Phase::Forward => "forward",
    }
}

/// Adds a label to the recordings, for the requests from now on.
#[pyfunction]
fn label(text: &str) {
    let session = session();
    for index in 0..session.device_count() {
        if let Ok(device) = session.device(index) {
            device.label(text);
        }
    }
}

/// Marks the line that runs: its result is an unverified estimate.
#[pyfunction]
fn note_estimate(operator: &str, reason: &str) {
    session().note_estimate(operator, reason);
}

#[pyfunction]
fn set_default_dtype(dtype: Bound<'_, PyAny>) -> PyResult<()> {
    if let Value::Dtype(dtype) = convert::to_value(&dtype)? {
        session().set_default_dtype(dtype);
    }
    Ok(())
}

#[pyfunction]
fn default_dtype(python: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    convert::dtype_object(python, session().default_dtype())
}

#[pyfunction]
fn set_default_device(argument: Bound<'_, PyAny>) -> PyResult<()> {
    match convert::to_value(&argument)? {
        Value::Device(device) => session().set_default_device(device),
        Value::Str(text) => {
            session().set_default_device(result(argument.py(), blockyard_torch::Device::parse(&text))?)
        }
        _ => session().set_default_device(blockyard_torch::Device::Cpu),
    };
    Ok(())
}

/// Adds the functions of this module to `_torch_memory`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add { ($($function:ident)*) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)* } }
    add!(attention_kernels set_engines set_attention_kernels device_index version stat stats host_stats summary empty_cache synchronize
        set_fraction reset_peak reset_accumulated device_count current_device set_device properties non_pytorch_bytes create_stream
        current_stream set_stream synchronize_stream snapshot create_pool pool_use_count begin_pool end_pool destroy_pool set_phase label note_estimate
        set_default_dtype default_dtype set_default_device);
    Ok(())
}
