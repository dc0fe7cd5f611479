//! The functions of NVML that list the processes with memory on a device.

use std::ffi::{CStr, c_char};

use crate::calls::BUS_ADDRESS;

const DEVICE: usize = 0xde71;
const SUCCESS: u32 = 0;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;

#[repr(C)]
struct Process {
    id: u32,
    used: u64,
}

fn processes() -> Vec<Process> {
    let text = std::env::var("FAKE_CUDA_PROCESSES").unwrap_or_default();
    let parts = text.split(',').filter_map(|part| part.split_once(':'));
    parts
        .filter_map(|(id, used)| {
            let id = id.parse().ok().filter(|id| *id != 0).unwrap_or_else(std::process::id);
            Some(Process { id, used: used.parse().ok()? })
        })
        .collect()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(address: *const c_char, device: *mut usize) -> u32 {
    // SAFETY: as in NVML, the caller guarantees that the text and the place for the handle are valid.
    unsafe {
        if CStr::from_ptr(address) != BUS_ADDRESS {
            return NOT_FOUND;
        }
        device.write(DEVICE);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetComputeRunningProcesses(device: usize, count: *mut u32, to: *mut Process) -> u32 {
    assert_eq!(device, DEVICE, "no other handle was given out");
    let found = processes();
    // SAFETY: as in NVML, the caller guarantees that the number is valid and that `to` has room for that many
    // processes.
    unsafe {
        let room = count.read();
        count.write(u32::try_from(found.len()).unwrap_or(u32::MAX));
        if found.len() > room as usize {
            return INSUFFICIENT_SIZE;
        }
        for (index, process) in found.into_iter().enumerate() {
            to.wrapping_add(index).write(process);
        }
    }
    SUCCESS
}
