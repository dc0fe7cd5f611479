//! NVML: `libnvidia-ml`. No process is listed, so that an error message of PyTorch speaks of this process alone.
#![expect(unsafe_code, reason = "functions are exported under NVML's names")]

use std::ffi::{c_char, c_int, c_uint};

use crate::abi::{Out, Text, put_text, text};
use crate::settings::settings;

const SUCCESS: c_int = 0;
const INVALID_ARGUMENT: c_int = 2;
const NOT_SUPPORTED: c_int = 3;

/// Handles are numbers above this, one for each device.
const HANDLES: usize = 0x9000;

fn handle(to: Out<usize>, device: c_uint) -> c_int {
    if device >= settings().devices.unsigned_abs() {
        return INVALID_ARGUMENT;
    }
    to.put(HANDLES.saturating_add(device as usize));
    SUCCESS
}

fn no_processes(count: Out<c_uint>) -> c_int {
    count.put(0);
    SUCCESS
}

entries! {
    fn nvmlInit_v2() -> c_int {
        SUCCESS
    }

    fn nvmlInit() -> c_int {
        SUCCESS
    }

    fn nvmlInitWithFlags(_flags: c_uint) -> c_int {
        SUCCESS
    }

    fn nvmlShutdown() -> c_int {
        SUCCESS
    }

    fn nvmlDeviceGetCount_v2(to: Out<c_uint>) -> c_int {
        to.put(settings().devices.unsigned_abs());
        SUCCESS
    }

    fn nvmlDeviceGetHandleByIndex_v2(device: c_uint, to: Out<usize>) -> c_int {
        handle(to, device)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(name: Text, to: Out<usize>) -> c_int {
        let name = name.get().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bus = name.split(':').nth(1).and_then(|bus| c_uint::from_str_radix(bus, 16).ok());
        match bus.and_then(|bus| bus.checked_sub(1)) {
            Some(device) => handle(to, device),
            None => INVALID_ARGUMENT,
        }
    }

    fn nvmlDeviceGetUUID(device: usize, to: Out<u8>, room: c_uint) -> c_int {
        let Some(device) = device.checked_sub(HANDLES) else { return INVALID_ARGUMENT };
        put_text(to, room as usize, &format!("GPU-b1000000-0000-0000-0000-0000000000{:02x}", device.saturating_add(1)));
        SUCCESS
    }

    fn nvmlDeviceGetComputeRunningProcesses(_device: usize, count: Out<c_uint>, _to: usize) -> c_int {
        no_processes(count)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(_device: usize, count: Out<c_uint>, _to: usize) -> c_int {
        no_processes(count)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(to: Out<c_int>) -> c_int {
        to.put(settings().cuda);
        SUCCESS
    }

    fn nvmlErrorString(_error: c_int) -> *const c_char {
        text(c"an error of NVML")
    }

    // No NVLink and no fabric.
    fn nvmlDeviceGetNvLinkRemoteDeviceType() -> c_int {
        NOT_SUPPORTED
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2() -> c_int {
        NOT_SUPPORTED
    }

    fn nvmlDeviceGetGpuFabricInfoV() -> c_int {
        NOT_SUPPORTED
    }

    fn nvmlDeviceGetP2PStatus() -> c_int {
        NOT_SUPPORTED
    }
}
