//! The processes that use memory of a device, as NVML reports them.
//!
//! The CUDA driver does not say which process uses how much. PyTorch makes the same call when memory runs
//! out.
#![expect(unsafe_code, reason = "NVML is a C library, and this is where it is called")]

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

use blockyard_device::ProcessMemory;
use blockyard_record::Bytes;
use libloading::Library;

const LIBRARY: &str = if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" };

const SUCCESS: c_uint = 0;
const INSUFFICIENT_SIZE: c_uint = 7;
/// The value for bytes that NVML does not know.
const UNKNOWN: u64 = u64::MAX;

/// NVML's `nvmlProcessInfo_v1_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Process {
    id: c_uint,
    used: u64,
}

type Init = unsafe extern "C" fn() -> c_uint;
type Find = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_uint;
type ListProcesses = unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut Process) -> c_uint;

/// NVML, loaded and started until the process ends.
struct Nvml {
    find: Find,
    running: ListProcesses,
}

/// How many bytes each process uses on the device with this address on the PCI bus, in NVML's order; empty if
/// NVML is missing or does not know.
pub(crate) fn processes(bus_address: &CStr) -> Vec<ProcessMemory> {
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    let found = NVML.get_or_init(Nvml::load).as_ref().and_then(|nvml| nvml.processes(bus_address));
    let this = std::process::id();
    let known = found.unwrap_or_default().into_iter().filter(|process| process.used != UNKNOWN);
    known
        .map(|Process { id, used }| ProcessMemory {
            process: (id != this).then_some(id),
            used: Bytes::new(used),
        })
        .collect()
}

impl Nvml {
    fn load() -> Option<Self> {
        // SAFETY: loads the library; its constructors are NVIDIA's and have no conditions for us.
        let library = unsafe { Library::new(LIBRARY) }.ok()?;
        // SAFETY: the functions of these names have these types in every version of NVML.
        let (init, find, running) = unsafe {
            let init: Init = *library.get(b"nvmlInit_v2").ok()?;
            let find: Find = *library.get(b"nvmlDeviceGetHandleByPciBusId_v2").ok()?;
            // The one without a version is the first version, with the shortest description of a process.
            let running: ListProcesses = *library.get(b"nvmlDeviceGetComputeRunningProcesses").ok()?;
            (init, find, running)
        };
        // The functions of the library are used as long as the process runs.
        std::mem::forget(library);
        // SAFETY: needs nothing but the library.
        (unsafe { init() } == SUCCESS).then_some(Self { find, running })
    }

    fn processes(&self, bus_address: &CStr) -> Option<Vec<Process>> {
        let mut device = ptr::null_mut();
        // SAFETY: reads the text up to its zero, and writes one handle.
        if unsafe { (self.find)(bus_address.as_ptr(), &raw mut device) } != SUCCESS {
            return None;
        }
        let mut found = vec![Process::default(); 8];
        // Processes come and go between the calls, but not forever.
        for _ in 0..8 {
            let mut count = c_uint::try_from(found.len()).ok()?;
            // SAFETY: the handle is NVML's; writes one number, and at most as many descriptions as there is
            // room for.
            let code = unsafe { (self.running)(device, &raw mut count, found.as_mut_ptr()) };
            let count = usize::try_from(count).ok()?;
            match code {
                SUCCESS => {
                    found.truncate(count);
                    return Some(found);
                }
                INSUFFICIENT_SIZE => found.resize(count.max(found.len() * 2), Process::default()),
                _ => return None,
            }
        }
        None
    }
}
