//! NVML: `libnvidia-ml`. No process is listed, so that an error message of PyTorch is about this process
//! alone.
#![expect(unsafe_code, reason = "functions are exported under NVML's names")]

use std::ffi::{c_char, c_int, c_uint};

use crate::abi::{Out, Text, put_text, text};
use crate::settings::settings;
use crate::state::state;

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

/// The number of the device of a handle.
fn index(handle: usize) -> Option<u32> {
    let index = u32::try_from(handle.checked_sub(HANDLES)?).ok()?;
    (index < settings().devices.unsigned_abs()).then_some(index)
}

fn unique_name(device: u32) -> String {
    format!("GPU-b1000000-0000-0000-0000-0000000000{:02x}", device.saturating_add(1))
}

/// Bytes of a device: all of them, and those that this process has not taken.
fn memory(handle: usize) -> Option<(u64, u64)> {
    let index = c_int::try_from(index(handle)?).ok()?;
    let free = state().devices.get(index)?.free_bytes();
    Some((settings().memory(), free))
}

/// Writes `nvmlPciInfo_t`: two names of the bus, and the bus as a number between them.
fn put_bus(to: Out<u8>, device: u32) {
    let bus = device.saturating_add(1);
    // The domain, the bus, the device on the bus, and the numbers of the model, which are not known: 0.
    let numbers = [0, bus, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes);
    let named = |name: String, room: usize| {
        let mut bytes = name.into_bytes();
        bytes.resize(room, 0);
        bytes
    };
    let first = named(format!("0000:{bus:02X}:00.0"), 16);
    let last = named(format!("00000000:{bus:02X}:00.0"), 32);
    for (place, byte) in first.into_iter().chain(numbers).chain(last).enumerate() {
        to.put_at(place, byte);
    }
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
        let Some(device) = index(device) else { return INVALID_ARGUMENT };
        put_text(to, room as usize, &unique_name(device));
        SUCCESS
    }

    fn nvmlDeviceGetHandleByUUID(name: Text, to: Out<usize>) -> c_int {
        let name = name.get().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match (0..settings().devices.unsigned_abs()).find(|device| unique_name(*device) == name) {
            Some(device) => handle(to, device),
            None => INVALID_ARGUMENT,
        }
    }

    fn nvmlDeviceGetIndex(device: usize, to: Out<c_uint>) -> c_int {
        let Some(device) = index(device) else { return INVALID_ARGUMENT };
        to.put(device);
        SUCCESS
    }

    fn nvmlDeviceGetName(device: usize, to: Out<u8>, room: c_uint) -> c_int {
        if index(device).is_none() {
            return INVALID_ARGUMENT;
        }
        put_text(to, room as usize, settings().gpu.name);
        SUCCESS
    }

    fn nvmlDeviceGetCudaComputeCapability(device: usize, major: Out<c_int>, minor: Out<c_int>) -> c_int {
        if index(device).is_none() {
            return INVALID_ARGUMENT;
        }
        major.put(settings().capability().0);
        minor.put(settings().capability().1);
        SUCCESS
    }

    fn nvmlDeviceGetPciInfo_v3(device: usize, to: Out<u8>) -> c_int {
        let Some(device) = index(device) else { return INVALID_ARGUMENT };
        put_bus(to, device);
        SUCCESS
    }

    // All bytes, free ones, used ones.
    fn nvmlDeviceGetMemoryInfo(device: usize, to: Out<u64>) -> c_int {
        let Some((total, free)) = memory(device) else { return INVALID_ARGUMENT };
        for (place, bytes) in [total, free, total.saturating_sub(free)].into_iter().enumerate() {
            to.put_at(place, bytes);
        }
        SUCCESS
    }

    // The structure's version, all bytes, reserved ones, free ones, used ones.
    fn nvmlDeviceGetMemoryInfo_v2(device: usize, to: Out<u64>) -> c_int {
        let Some((total, free)) = memory(device) else { return INVALID_ARGUMENT };
        for (place, bytes) in [total, 0, free, total.saturating_sub(free)].into_iter().enumerate() {
            to.put_at(place.saturating_add(1), bytes);
        }
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

    // No NVLink.
    fn nvmlDeviceGetNvLinkRemoteDeviceType() -> c_int {
        NOT_SUPPORTED
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2() -> c_int {
        NOT_SUPPORTED
    }

    // No fabric. The structure's version, 16 bytes of a name, a status, the number of a group, and the state, of
    // which 0 says that there is none. PyTorch takes an error as a fault.
    fn nvmlDeviceGetGpuFabricInfoV(device: usize, to: Out<u8>) -> c_int {
        if index(device).is_none() {
            return INVALID_ARGUMENT;
        }
        (4..=28).for_each(|place| to.put_at(place, 0));
        SUCCESS
    }

    fn nvmlDeviceGetP2PStatus() -> c_int {
        NOT_SUPPORTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_tells_of_its_device() {
        let mut device = 0_usize;
        assert_eq!(nvmlDeviceGetHandleByIndex_v2(0, Out::of(&mut device)), SUCCESS);
        let (mut major, mut minor, mut number) = (0, 0, 9);
        assert_eq!(
            nvmlDeviceGetCudaComputeCapability(device, Out::of(&mut major), Out::of(&mut minor)),
            SUCCESS
        );
        assert_eq!((major, minor), (9, 0));
        assert_eq!(nvmlDeviceGetIndex(device, Out::of(&mut number)), SUCCESS);
        assert_eq!(number, 0);
        let mut bus = [0_u8; 68];
        put_bus(Out::of_list(&mut bus), 2);
        assert!(bus.starts_with(b"0000:03:00.0\0") && bus[36..].starts_with(b"00000000:03:00.0\0"));
        assert_eq!(bus[20], 3);
        let mut fabric = [0xff_u8; 32];
        assert_eq!(nvmlDeviceGetGpuFabricInfoV(device, Out::of_list(&mut fabric)), SUCCESS);
        assert!(fabric[..4] == [0xff; 4] && fabric[4..29] == [0; 25] && fabric[29..] == [0xff; 3]);
        let beyond = device + settings().devices.unsigned_abs() as usize;
        assert_eq!(nvmlDeviceGetIndex(beyond, Out::of(&mut number)), INVALID_ARGUMENT);
    }
}
