//! CUDA's driver: `libcuda`.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use crate::abi::{In, Out, Text, put_text, text};
use crate::addresses::ALIGNMENT;
use crate::memory::{Certainty, MemoryError, device_of};
use crate::report;
use crate::runtime::device::attribute;
use crate::runtime::kernels::occupancy;
use crate::settings::settings;
use crate::state::{PhysicalMemory, current_device, set_current_device, state};
use crate::values::note_computation;

const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const INVALID_DEVICE: c_int = 101;
const INVALID_HANDLE: c_int = 400;
const NOT_SUPPORTED: c_int = 801;

/// Contexts are numbers above this, one for each device.
const CONTEXTS: usize = 0x2000;
/// The only kernel and module of the driver's functions: what is loaded is never run.
const MODULE: usize = 0x3000;

#[expect(clippy::needless_pass_by_value, reason = "the last use of a result")]
fn code<T>(result: Result<T, MemoryError>) -> c_int {
    match result {
        Ok(_) => SUCCESS,
        Err(MemoryError::Full) => OUT_OF_MEMORY,
        Err(MemoryError::NoSuchAddress) => INVALID_VALUE,
    }
}

fn context(device: c_int) -> usize {
    CONTEXTS.saturating_add(usize::try_from(device).unwrap_or(0)).saturating_add(1)
}

fn check(device: c_int) -> bool {
    (0..settings().devices).contains(&device)
}

/// The first members of `CUmemAllocationProp`, which `cuMemCreate` reads.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct AllocationProp {
    kind: c_int,
    handles: c_int,
    location: c_int,
    device: c_int,
}

/// Handles of memory that another node can open.
const FABRIC: c_int = 8;

entries! {
    fn cuInit(_flags: c_uint) -> c_int {
        SUCCESS
    }

    fn cuDriverGetVersion(to: Out<c_int>) -> c_int {
        to.put(settings().cuda);
        SUCCESS
    }

    fn cuDeviceGet(to: Out<c_int>, device: c_int) -> c_int {
        if !check(device) {
            return INVALID_DEVICE;
        }
        to.put(device);
        SUCCESS
    }

    fn cuDeviceGetCount(to: Out<c_int>) -> c_int {
        to.put(settings().devices);
        SUCCESS
    }

    fn cuDeviceGetName(to: Out<u8>, room: c_int, _device: c_int) -> c_int {
        put_text(to, usize::try_from(room).unwrap_or(0), settings().gpu.name);
        SUCCESS
    }

    fn cuDeviceTotalMem_v2(to: Out<u64>, _device: c_int) -> c_int {
        to.put(settings().memory());
        SUCCESS
    }

    fn cuDeviceGetAttribute(to: Out<c_int>, number: c_int, device: c_int) -> c_int {
        let value = attribute(settings(), number, device);
        if value.is_none() {
            report::report_estimate(&format!("attribute {number} of a device is not known and is assumed to be 0"));
        }
        to.put(value.unwrap_or(0));
        SUCCESS
    }

    fn cuCtxGetCurrent(to: Out<usize>) -> c_int {
        to.put(context(current_device()));
        SUCCESS
    }

    fn cuCtxSetCurrent(wanted: usize) -> c_int {
        match wanted.checked_sub(CONTEXTS.saturating_add(1)).and_then(|device| c_int::try_from(device).ok()) {
            Some(device) if check(device) => {
                set_current_device(device);
                SUCCESS
            }
            _ if wanted == 0 => SUCCESS,
            _ => INVALID_VALUE,
        }
    }

    fn cuCtxPushCurrent_v2(wanted: usize) -> c_int {
        cuCtxSetCurrent(wanted)
    }

    fn cuCtxPopCurrent_v2(to: Out<usize>) -> c_int {
        to.put(context(current_device()));
        SUCCESS
    }

    fn cuCtxGetDevice(to: Out<c_int>) -> c_int {
        to.put(current_device());
        SUCCESS
    }

    fn cuDevicePrimaryCtxGetState(_device: c_int, flags: Out<c_uint>, is_active: Out<c_int>) -> c_int {
        flags.put(0);
        is_active.put(1);
        SUCCESS
    }

    fn cuDevicePrimaryCtxRetain(to: Out<usize>, device: c_int) -> c_int {
        if !check(device) {
            return INVALID_DEVICE;
        }
        to.put(context(device));
        SUCCESS
    }

    fn cuGetErrorString(error: c_int, to: Out<*const c_char>) -> c_int {
        to.put(text(match error {
            SUCCESS => c"no error",
            INVALID_VALUE => c"invalid argument",
            OUT_OF_MEMORY => c"out of memory",
            NOT_SUPPORTED => c"operation not supported",
            _ => c"unknown error",
        }));
        SUCCESS
    }

    fn cuGetErrorName(error: c_int, to: Out<*const c_char>) -> c_int {
        to.put(text(match error {
            SUCCESS => c"CUDA_SUCCESS",
            INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
            OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
            NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
            _ => c"CUDA_ERROR_UNKNOWN",
        }));
        SUCCESS
    }

    fn cuMemAddressReserve(to: Out<u64>, size: u64, _alignment: u64, _wanted: u64, _flags: c_ulonglong) -> c_int {
        let found = match state().devices.get(current_device()) {
            Some(device) => device.reserve(size),
            None => Err(MemoryError::Full),
        };
        code(found.map(|address| to.put(address)))
    }

    fn cuMemAddressFree(address: u64, _size: u64) -> c_int {
        let Some(index) = device_of(address) else { return INVALID_VALUE };
        let found = match state().devices.get(index) {
            Some(device) => device.release(address),
            None => Err(MemoryError::NoSuchAddress),
        };
        code(found)
    }

    fn cuMemCreate(to: Out<usize>, size: u64, prop: In<AllocationProp>, _flags: c_ulonglong) -> c_int {
        let Some(prop) = prop.get() else { return INVALID_VALUE };
        if prop.handles == FABRIC {
            return NOT_SUPPORTED;
        }
        let mut state = state();
        let Some(device) = state.devices.get(prop.device) else { return INVALID_DEVICE };
        let found = device.map(size);
        if found.is_ok() {
            to.put(state.physical.add(PhysicalMemory { device: prop.device, size }));
        }
        code(found)
    }

    fn cuMemRelease(handle: usize) -> c_int {
        let mut state = state();
        let Some(memory) = state.physical.remove(handle) else { return INVALID_HANDLE };
        match state.devices.get(memory.device) {
            Some(device) => {
                device.unmap(memory.size);
                SUCCESS
            }
            None => INVALID_DEVICE,
        }
    }

    fn cuMemMap(address: u64, size: u64, _offset: u64, handle: usize, _flags: c_ulonglong) -> c_int {
        let mut state = state();
        if state.physical.get(handle).is_none_or(|memory| memory.size < size) {
            return INVALID_HANDLE;
        }
        let is_reserved = device_of(address)
            .and_then(|index| state.devices.get(index)?.holding(address))
            .is_some_and(|(base, length)| address.saturating_add(size) <= base.saturating_add(length));
        if is_reserved { SUCCESS } else { INVALID_VALUE }
    }

    fn cuMemUnmap(address: u64, size: u64) -> c_int {
        let mut state = state();
        match device_of(address).and_then(|index| state.devices.get(index)) {
            Some(device) if device.holding(address).is_some() => {
                device.discard(address, size);
                SUCCESS
            }
            _ => INVALID_VALUE,
        }
    }

    fn cuMemSetAccess(_address: u64, _size: u64, _access: usize, _count: usize) -> c_int {
        SUCCESS
    }

    // PyTorch up to 2.7 looks the next five up with all others, and has no use for them on one device.
    fn cuMemExportToShareableHandle() -> c_int {
        NOT_SUPPORTED
    }

    fn cuMemImportFromShareableHandle() -> c_int {
        NOT_SUPPORTED
    }

    fn cuMulticastCreate() -> c_int {
        NOT_SUPPORTED
    }

    fn cuMulticastAddDevice() -> c_int {
        NOT_SUPPORTED
    }

    fn cuMulticastBindMem() -> c_int {
        NOT_SUPPORTED
    }

    fn cuMemGetAllocationGranularity(to: Out<u64>, _prop: usize, _option: c_int) -> c_int {
        to.put(ALIGNMENT);
        SUCCESS
    }

    fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<u64>, address: u64) -> c_int {
        let found = device_of(address).and_then(|index| state().devices.get(index)?.holding(address));
        let Some((start, length)) = found else { return INVALID_VALUE };
        base.put(start);
        size.put(length);
        SUCCESS
    }

    fn cuMemsetD32Async(address: u64, _value: c_uint, count: u64, _stream: usize) -> c_int {
        if device_of(address).is_none() {
            return INVALID_VALUE;
        }
        state().devices.mark(address, address.saturating_add(count.saturating_mul(4)), Certainty::Unknown);
        SUCCESS
    }

    fn cuPointerGetAttribute(to: Out<u8>, number: c_int, address: u64) -> c_int {
        let device = device_of(address);
        let bytes = |value: &[u8]| value.iter().enumerate().for_each(|(place, byte)| to.put_at(place, *byte));
        match number {
            // Context, kind of memory, addresses, ordinal.
            1 => bytes(&context(device.unwrap_or(0)).to_le_bytes()),
            2 => bytes(&(if device.is_some() { 2_u32 } else { 1 }).to_le_bytes()),
            3 | 4 => bytes(&address.to_le_bytes()),
            9 => bytes(&device.unwrap_or(-2).to_le_bytes()),
            _ => return NOT_SUPPORTED,
        }
        SUCCESS
    }

    fn cuModuleLoad(to: Out<usize>, _file: Text) -> c_int {
        to.put(MODULE);
        SUCCESS
    }

    fn cuModuleLoadData(to: Out<usize>, _image: usize) -> c_int {
        to.put(MODULE);
        SUCCESS
    }

    fn cuModuleLoadDataEx(to: Out<usize>, _image: usize, _count: c_uint, _options: usize, _values: usize) -> c_int {
        to.put(MODULE);
        SUCCESS
    }

    fn cuModuleUnload(_module: usize) -> c_int {
        SUCCESS
    }

    fn cuModuleGetFunction(to: Out<usize>, _module: usize, _name: Text) -> c_int {
        to.put(MODULE);
        SUCCESS
    }

    fn cuModuleGetLoadingMode(to: Out<c_int>) -> c_int {
        // Lazy.
        to.put(2);
        SUCCESS
    }

    fn cuFuncGetAttribute(to: Out<c_int>, number: c_int, _function: usize) -> c_int {
        // Threads of a block; registers; the rest is 0.
        to.put(match number {
            0 => 1024,
            4 => 32,
            _ => 0,
        });
        SUCCESS
    }

    fn cuFuncSetAttribute(_function: usize, _number: c_int, _value: c_int) -> c_int {
        SUCCESS
    }

    fn cuFuncSetCacheConfig(_function: usize, _config: c_int) -> c_int {
        SUCCESS
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(to: Out<c_int>, _function: usize, threads: c_int, shared: u64) -> c_int {
        to.put(occupancy(threads, shared));
        SUCCESS
    }

    fn cuOccupancyMaxActiveClusters(to: Out<c_int>, _function: usize, _config: usize) -> c_int {
        to.put(1);
        SUCCESS
    }

    fn cuCtxGetLimit(to: Out<u64>, _limit: c_int) -> c_int {
        to.put(8 << 20);
        SUCCESS
    }

    fn cuCtxSetLimit(_limit: c_int, _value: u64) -> c_int {
        SUCCESS
    }

    fn cuLaunchKernel(_function: usize) -> c_int {
        note_computation();
        SUCCESS
    }

    fn cuLaunchKernelEx(_config: usize) -> c_int {
        note_computation();
        SUCCESS
    }

    fn cuLaunchCooperativeKernel(_function: usize) -> c_int {
        note_computation();
        SUCCESS
    }

    fn cuStreamWriteValue32(_stream: usize, address: u64, _value: c_uint, _flags: c_uint) -> c_int {
        state().devices.mark(address, address.saturating_add(4), Certainty::Unknown);
        SUCCESS
    }

    fn cuTensorMapEncodeTiled(_map: usize) -> c_int {
        SUCCESS
    }

    // PyTorch 2.14 and later ask for the driver's messages when they start; the stand-in has none.
    fn cuLogsRegisterCallback(_function: usize, _data: usize, to: Out<usize>) -> c_int {
        to.put(1);
        SUCCESS
    }

    fn cuLogsUnregisterCallback(_callback: usize) -> c_int {
        SUCCESS
    }

    fn cuGetProcAddress_v2(name: Text, to: Out<*const c_void>, _version: c_int, _flags: c_ulonglong, result: Out<c_int>) -> c_int {
        let Some(name) = name.get() else { return INVALID_VALUE };
        put_by_name(&name.to_string_lossy(), to, result);
        SUCCESS
    }
}

/// Stands for every function of the driver that this library lacks: fails, and adds the call to the report.
extern "C" fn not_written() -> c_int {
    report::report_unknown_function("a function of the driver");
    NOT_SUPPORTED
}

/// Finds the function of this name as `cuGetProcAddress` does: the newest of its versions. A function of the driver
/// that this library lacks is found too, and fails when it is called. `result` is 0 where one is found, else 1.
pub(crate) fn put_by_name(name: &str, to: Out<*const c_void>, result: Out<c_int>) {
    let function = find(name).or_else(|| find(&format!("{name}_v2"))).or_else(|| {
        report::report_call(&format!("{name} (asked for, not written)"));
        name.starts_with("cu").then_some(not_written as *const c_void)
    });
    to.put(function.unwrap_or(std::ptr::null()));
    result.put(c_int::from(function.is_none()));
}
