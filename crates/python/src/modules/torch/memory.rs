//! `_torch_memory`: what `torch.cuda` says about memory, devices and streams.

pub(crate) use _torch_memory::module_def;

#[rustpython_vm::pymodule]
mod _torch_memory {
    use std::rc::Rc;

    use blockyard_record::{PoolId, Stats, StreamId};
    use blockyard_torch::memory::{Phase, SimulatedGpu};
    use blockyard_torch::session::AttentionKernels;
    use blockyard_torch::{TorchError, Value, session};
    use rustpython_vm::builtins::{PyDictRef, PyStrRef};
    use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};

    use super::super::{convert, errors};

    /// The device that an argument names: nothing, a number, a text or a `torch.device`.
    fn number(vm: &VirtualMachine, device: &PyObjectRef) -> PyResult<u8> {
        match convert::to_value(vm, device)? {
            Value::None => Ok(session().current_device()),
            Value::Device(blockyard_torch::Device::Cuda(index)) => Ok(index),
            Value::Scalar(scalar) => {
                let index = scalar.to_i64().and_then(|index| u8::try_from(index).ok());
                index.ok_or_else(|| vm.new_value_error("Invalid device id"))
            }
            Value::Str(text) => match blockyard_torch::Device::parse(&text) {
                Ok(blockyard_torch::Device::Cuda(index)) => Ok(index),
                Ok(_other) => Err(vm.new_value_error(format!("Expected a cuda device, but got: {text}"))),
                Err(error) => Err(errors::to_exception(vm, error)),
            },
            _ => Err(vm.new_value_error("Expected a cuda device")),
        }
    }

    fn device(vm: &VirtualMachine, argument: &PyObjectRef) -> PyResult<Rc<SimulatedGpu>> {
        let index = number(vm, argument)?;
        session().device(index).cloned().map_err(|error| errors::to_exception(vm, error))
    }

    fn to_python_result<T>(vm: &VirtualMachine, result: Result<T, TorchError>) -> PyResult<T> {
        result.map_err(|error| errors::to_exception(vm, error))
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
        let reason = if benchmark {
            Some(
                "cudnn.benchmark measures engines on the GPU: the workspace of the engine that PyTorch chooses without the setting counts",
            )
        } else if deterministic {
            Some(
                "cudnn.deterministic may choose another engine than the recorded one, whose workspace is taken",
            )
        } else {
            None
        };
        session().set_engine_setting(reason);
    }

    #[pyfunction]
    fn set_attention_kernels(kernels: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        let kernels: Vec<bool> = kernels.try_to_value(vm)?;
        let [math, flash, efficient, cudnn] = kernels[..] else {
            return Err(vm.new_value_error("four kernels are switched"));
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
    fn device_index(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<u8> {
        number(vm, &argument)
    }

    /// Marks a number that the program reads if it would be another one under other addresses of segments.
    fn mark_address_dependence<T: PartialEq>(device: &SimulatedGpu, name: &str, read: impl Fn(&Stats) -> T) {
        if device.depends_on_addresses(read) {
            session().note_estimate(
                name,
                "which of several equally large free blocks is taken depends on addresses that the driver chooses",
            );
        }
    }

    /// `torch.__version__`.
    #[pyfunction]
    fn version() -> &'static str {
        session().release().version()
    }

    /// One number of `memory_stats`.
    #[pyfunction]
    fn stat(name: PyStrRef, argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<i64> {
        let device = device(vm, &argument)?;
        let name = name.to_string_lossy();
        let read = |stats: &Stats| blockyard_pytorch::memory_stat(stats, &name);
        let function = match &*name {
            "allocated_bytes.all.current" => "memory_allocated",
            "allocated_bytes.all.peak" => "max_memory_allocated",
            "reserved_bytes.all.current" => "memory_reserved",
            "reserved_bytes.all.peak" => "max_memory_reserved",
            other => other,
        };
        mark_address_dependence(&device, function, read);
        read(&device.stats()).ok_or_else(|| vm.new_value_error(format!("no statistic is called {name}")))
    }

    #[pyfunction]
    fn stats(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<PyDictRef> {
        let device = device(vm, &argument)?;
        mark_address_dependence(&device, "memory_stats", blockyard_pytorch::memory_stats);
        let dict = vm.ctx.new_dict();
        let pools = device.reserved_by_private_pools();
        for (name, value) in blockyard_pytorch::memory_stats_in(session().release(), &device.stats(), &pools)
        {
            dict.set_item(name.as_str(), vm.ctx.new_int(value).into(), vm)?;
        }
        Ok(dict)
    }

    #[pyfunction]
    fn host_stats(vm: &VirtualMachine) -> PyResult<PyDictRef> {
        let dict = vm.ctx.new_dict();
        for (name, value) in blockyard_pytorch::host_memory_stats(&session().host_stats()) {
            dict.set_item(name.as_str(), vm.ctx.new_int(value).into(), vm)?;
        }
        Ok(dict)
    }

    #[pyfunction]
    fn summary(argument: PyObjectRef, abbreviated: bool, vm: &VirtualMachine) -> PyResult<String> {
        let device = device(vm, &argument)?;
        mark_address_dependence(&device, "memory_summary", blockyard_pytorch::memory_stats);
        Ok(blockyard_pytorch::memory_summary(&device.stats(), u32::from(device.index()), abbreviated))
    }

    #[pyfunction]
    fn empty_cache(vm: &VirtualMachine) -> PyResult<()> {
        let session = session();
        for index in 0..session.device_count() {
            let device = to_python_result(vm, session.device(index))?;
            device.synchronize();
            to_python_result(vm, device.empty_cache())?;
        }
        Ok(())
    }

    #[pyfunction]
    fn synchronize(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        device(vm, &argument)?.synchronize();
        Ok(())
    }

    #[pyfunction]
    fn set_fraction(fraction: f64, argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        to_python_result(vm, device(vm, &argument)?.set_memory_fraction(fraction))
    }

    #[pyfunction]
    fn reset_peak(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        device(vm, &argument)?.reset_peak_stats();
        Ok(())
    }

    #[pyfunction]
    fn reset_accumulated(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        device(vm, &argument)?.reset_accumulated_stats();
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
    fn set_device(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<u8> {
        let index = number(vm, &argument)?;
        to_python_result(vm, session().set_current_device(index))
    }

    /// Name, total memory, multiprocessors, threads of each, capability.
    #[pyfunction]
    fn properties(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        device(vm, &argument)?;
        let session = session();
        let profile = session.profile();
        let items = vec![
            vm.ctx.new_str(profile.name).into(),
            vm.ctx.new_int(profile.total_memory.get()).into(),
            vm.ctx.new_int(profile.multiprocessors).into(),
            vm.ctx.new_int(profile.threads_per_multiprocessor).into(),
            vm.ctx.new_int(profile.capability.0).into(),
            vm.ctx.new_int(profile.capability.1).into(),
        ];
        Ok(vm.ctx.new_tuple(items).into())
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
    fn current_stream(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<u64> {
        Ok(device(vm, &argument)?.current_stream().get())
    }

    #[pyfunction]
    fn set_stream(argument: PyObjectRef, stream: u64, vm: &VirtualMachine) -> PyResult<u64> {
        Ok(device(vm, &argument)?.set_current_stream(StreamId::new(stream)).get())
    }

    #[pyfunction]
    fn synchronize_stream(argument: PyObjectRef, stream: u64, vm: &VirtualMachine) -> PyResult<()> {
        device(vm, &argument)?.synchronize_stream(StreamId::new(stream));
        Ok(())
    }

    #[pyfunction]
    fn create_pool(argument: PyObjectRef, vm: &VirtualMachine) -> PyResult<u32> {
        to_python_result(vm, device(vm, &argument)?.create_pool()).map(|pool| pool.user)
    }

    #[pyfunction]
    fn begin_pool(argument: PyObjectRef, pool: u32, vm: &VirtualMachine) -> PyResult<()> {
        to_python_result(vm, device(vm, &argument)?.begin_allocate_to_pool(PoolId { capture: 0, user: pool }))
    }

    #[pyfunction]
    fn end_pool(argument: PyObjectRef, pool: u32, vm: &VirtualMachine) -> PyResult<()> {
        to_python_result(vm, device(vm, &argument)?.end_allocate_to_pool(PoolId { capture: 0, user: pool }))
    }

    #[pyfunction]
    fn destroy_pool(argument: PyObjectRef, pool: u32, vm: &VirtualMachine) -> PyResult<()> {
        to_python_result(vm, device(vm, &argument)?.destroy_pool(PoolId { capture: 0, user: pool }))
    }

    /// Sets the part of an iteration that runs; returns the name of the part before.
    #[pyfunction]
    fn set_phase(name: PyStrRef) -> &'static str {
        let phase = match name.to_string_lossy().as_ref() {
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
    fn label(text: PyStrRef) {
        let session = session();
        for index in 0..session.device_count() {
            if let Ok(device) = session.device(index) {
                device.label(&text.to_string_lossy());
            }
        }
    }

    /// Marks the line that runs: its result is an unverified estimate.
    #[pyfunction]
    fn note_estimate(operator: PyStrRef, reason: PyStrRef) {
        session().note_estimate(&operator.to_string_lossy(), &reason.to_string_lossy());
    }

    #[pyfunction]
    fn set_default_dtype(dtype: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        if let Value::Dtype(dtype) = convert::to_value(vm, &dtype)? {
            session().set_default_dtype(dtype);
        }
        Ok(())
    }

    #[pyfunction]
    fn default_dtype(vm: &VirtualMachine) -> PyObjectRef {
        convert::dtype_object(vm, session().default_dtype())
    }

    #[pyfunction]
    fn set_default_device(device: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        match convert::to_value(vm, &device)? {
            Value::Device(device) => session().set_default_device(device),
            Value::Str(text) => {
                session().set_default_device(to_python_result(vm, blockyard_torch::Device::parse(&text))?)
            }
            _ => session().set_default_device(blockyard_torch::Device::Cpu),
        };
        Ok(())
    }
}
