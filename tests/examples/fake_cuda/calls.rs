//! The functions of the driver that the tests call.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::model::{
    CudaResult, Driver, INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, NOT_READY, SUCCESS, StreamWork, low,
};

struct Process {
    driver: Driver,
    counts: BTreeMap<&'static str, u32>,
    failures: Vec<(String, u32, u32)>,
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

const CONTEXT: usize = 0xc0de_0000;
pub(crate) const BUS_ADDRESS: &CStr = c"0000:17:00.0";

fn process() -> MutexGuard<'static, Process> {
    static PROCESS: OnceLock<Mutex<Process>> = OnceLock::new();
    let process = PROCESS.get_or_init(|| {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let failures = std::env::var("FAKE_CUDA_FAIL").unwrap_or_default();
        let failures = failures.split(',').filter(|failure| !failure.is_empty()).filter_map(|failure| {
            let mut parts = failure.split(':');
            let name = parts.next()?.to_owned();
            Some((name, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        });
        let devices = c_int::try_from(number("FAKE_CUDA_DEVICES", 1)).unwrap_or(1);
        let driver = Driver::new(devices, number("FAKE_CUDA_MEMORY", 16 << 30));
        Mutex::new(Process { driver, counts: BTreeMap::new(), failures: failures.collect() })
    });
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an error is sticky: every later call returns it.
fn is_sticky(code: u32) -> bool {
    matches!(code, 214 | 700..=719)
}

/// Answers a call that needs no context.
fn answer(name: &'static str, act: impl FnOnce(&mut Driver) -> CudaResult) -> u32 {
    let process = &mut *process();
    let count = process.counts.entry(name).or_insert(0);
    *count += 1;
    let planned = process.failures.iter().find(|(call, number, _)| call == name && number == count);
    if let Some((.., code)) = planned {
        if is_sticky(*code) {
            process.driver.sticky = Some(*code);
        }
        return *code;
    }
    if let Some(code) = process.driver.sticky
        && !name.starts_with("cuDevice")
        && !name.starts_with("cuCtxGet")
        && !name.starts_with("cuCtxSet")
    {
        return code;
    }
    act(&mut process.driver).err().unwrap_or(SUCCESS)
}

/// Answers a call that needs a current context.
fn within(name: &'static str, act: impl FnOnce(&mut Driver) -> CudaResult) -> u32 {
    answer(name, |driver| {
        if CURRENT.get() != CONTEXT || driver.retained == 0 {
            return Err(INVALID_CONTEXT);
        }
        act(driver)
    })
}

fn put<T>(to: *mut T, value: T) {
    // SAFETY: the driver's functions write only to pointers of their callers, who guarantee that the pointers
    // are valid.
    unsafe { to.write(value) }
}

/// A word of host memory that the device looks at.
pub(crate) fn read(addr: u64) -> u32 {
    let at: *const u32 = std::ptr::with_exposed_provenance(usize::try_from(addr).unwrap_or_default());
    // SAFETY: the address is one that `cuMemHostAlloc` gave out, and its owner frees it after all work.
    unsafe { at.read_volatile() }
}

fn text(from: *const c_char) -> String {
    // SAFETY: the driver's functions read text up to its zero.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> u32 {
    answer("cuInit", |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: *mut c_int) -> u32 {
    put(version, 13000);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: u32, name: *mut *const c_char) -> u32 {
    let text = match code {
        1 => c"CUDA_ERROR_INVALID_VALUE",
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        100 => c"CUDA_ERROR_NO_DEVICE",
        201 => c"CUDA_ERROR_INVALID_CONTEXT",
        400 => c"CUDA_ERROR_INVALID_HANDLE",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        709 => c"CUDA_ERROR_CONTEXT_IS_DESTROYED",
        719 => c"CUDA_ERROR_LAUNCH_FAILED",
        _ => return INVALID_VALUE,
    };
    put(name, text.as_ptr());
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(_code: u32, description: *mut *const c_char) -> u32 {
    put(description, c"the fake driver's words".as_ptr());
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: *mut c_int) -> u32 {
    answer("cuDeviceGetCount", |driver| {
        put(count, driver.devices);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: *mut c_int, index: c_int) -> u32 {
    put(device, index);
    SUCCESS
}

fn put_text(to: *mut c_char, text: &CStr) {
    for (index, byte) in text.to_bytes_with_nul().iter().enumerate() {
        put(to.wrapping_add(index), c_char::from_ne_bytes([*byte]));
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetName(name: *mut c_char, _length: c_int, _device: c_int) -> u32 {
    put_text(name, c"Stand-in");
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetPCIBusId(address: *mut c_char, _length: c_int, _device: c_int) -> u32 {
    put_text(address, BUS_ADDRESS);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceTotalMem_v2(size: *mut u64, _device: c_int) -> u32 {
    answer("cuDeviceTotalMem", |driver| {
        put(size, driver.total);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(value: *mut c_int, _attribute: c_int, _device: c_int) -> u32 {
    put(value, 1);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, _device: c_int) -> u32 {
    answer("cuDevicePrimaryCtxRetain", |driver| {
        driver.retained += 1;
        put(context, CONTEXT);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> u32 {
    answer("cuDevicePrimaryCtxRelease", |driver| {
        driver.retained -= 1;
        if let Some(left) = driver.left().filter(|_| driver.retained == 0 && driver.sticky.is_none()) {
            eprintln!("the fake CUDA driver: {left} are left when the last context goes");
            std::process::abort();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(context: *mut usize) -> u32 {
    put(context, CURRENT.get());
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: usize) -> u32 {
    CURRENT.set(context);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> u32 {
    within("cuCtxSynchronize", Driver::synchronize)
}

#[unsafe(no_mangle)]
extern "C" fn cuThreadExchangeStreamCaptureMode(_mode: *mut c_uint) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetInfo_v2(free: *mut u64, total: *mut u64) -> u32 {
    within("cuMemGetInfo", |driver| {
        put(free, driver.total - driver.used);
        put(total, driver.total);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAlloc_v2(addr: *mut u64, size: usize) -> u32 {
    within("cuMemAlloc", |driver| {
        put(addr, driver.allocate(size as u64)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(addr: u64) -> u32 {
    within("cuMemFree", |driver| driver.free(addr))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocAsync(addr: *mut u64, size: usize, _stream: u64) -> u32 {
    cuMemAlloc_v2(addr, size)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(addr: u64, _stream: u64) -> u32 {
    cuMemFree_v2(addr)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetDefaultMemPool(pool: *mut usize, _device: c_int) -> u32 {
    put(pool, CONTEXT);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolSetAttribute(_pool: usize, _attribute: c_uint, _value: *mut c_void) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolTrimTo(_pool: usize, _keep: usize) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAddressReserve(
    addr: *mut u64,
    size: usize,
    _alignment: usize,
    _wanted: u64,
    _flags: u64,
) -> u32 {
    within("cuMemAddressReserve", |driver| {
        put(addr, driver.reserve(size as u64)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAddressFree(addr: u64, size: usize) -> u32 {
    within("cuMemAddressFree", |driver| driver.free_range(addr, size as u64))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemCreate(page: *mut u64, size: usize, _properties: *const c_void, _flags: u64) -> u32 {
    within("cuMemCreate", |driver| {
        put(page, driver.create_page(size as u64)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemRelease(page: u64) -> u32 {
    within("cuMemRelease", |driver| driver.release_page(page))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemMap(addr: u64, size: usize, _offset: usize, page: u64, _flags: u64) -> u32 {
    within("cuMemMap", |driver| driver.map(addr, size as u64, page))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemUnmap(addr: u64, size: usize) -> u32 {
    within("cuMemUnmap", |driver| driver.unmap(addr, size as u64))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemSetAccess(addr: u64, size: usize, _access: *const c_void, _count: usize) -> u32 {
    within("cuMemSetAccess", |driver| driver.allow_access(addr, size as u64))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(stream: *mut u64, _flags: c_uint) -> u32 {
    within("cuStreamCreate", |driver| {
        put(stream, driver.create_stream());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: u64) -> u32 {
    within("cuStreamDestroy", |driver| driver.destroy_stream(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: u64) -> u32 {
    within("cuStreamSynchronize", |driver| driver.finish(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(event: *mut u64, _flags: c_uint) -> u32 {
    within("cuEventCreate", |driver| {
        put(event, driver.create_event());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: u64, stream: u64) -> u32 {
    within("cuEventRecord", |driver| driver.record(event, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: u64) -> u32 {
    within("cuEventQuery", |driver| driver.query(event))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: u64) -> u32 {
    within("cuEventSynchronize", |driver| driver.wait(event).map_err(|code| code.max(NOT_READY)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: u64) -> u32 {
    within("cuEventDestroy", |driver| driver.destroy_event(event))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(module: *mut u64, code: *const c_char) -> u32 {
    within("cuModuleLoadData", |driver| {
        if !text(code).contains(".visible .entry blockyard_fill") {
            return Err(218);
        }
        put(module, driver.load_module());
        Ok(())
    })
}

/// Functions are numbered from 1 on.
const FUNCTIONS: [&str; 3] = ["blockyard_fill", "blockyard_check", "blockyard_gate"];

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetFunction(function: *mut usize, module: u64, name: *const c_char) -> u32 {
    within("cuModuleGetFunction", |driver| {
        let name = text(name);
        let index = FUNCTIONS.iter().position(|known| *known == name).filter(|_| driver.has_module(module));
        put(function, 1 + index.ok_or(500_u32)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: u64) -> u32 {
    within("cuModuleUnload", |driver| driver.unload_module(module))
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    function: usize,
    blocks_x: c_uint,
    _blocks_y: c_uint,
    _blocks_z: c_uint,
    threads_x: c_uint,
    _threads_y: c_uint,
    _threads_z: c_uint,
    _shared: c_uint,
    stream: u64,
    parameters: *const *const u64,
    _extra: *const c_void,
) -> u32 {
    within("cuLaunchKernel", |driver| {
        let number = |index: usize| {
            // SAFETY: the caller passes as many numbers of 64 bits as the function takes.
            unsafe { **parameters.wrapping_add(index) }
        };
        if blocks_x == 0 || threads_x == 0 || threads_x > 1024 {
            return Err(INVALID_VALUE);
        }
        let work = match function {
            1 => StreamWork::Fill { addr: number(0), words: number(1), pattern: low(number(2)) },
            2 => StreamWork::Check {
                addr: number(0),
                words: number(1),
                pattern: low(number(2)),
                result: number(3),
            },
            3 => StreamWork::Gate {
                flag: number(0),
                number: low(number(1)),
                longest: Duration::from_nanos(number(2)),
                since: None,
            },
            _ => return Err(INVALID_HANDLE),
        };
        driver.give(stream, work)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32Async(addr: u64, value: c_uint, words: usize, stream: u64) -> u32 {
    within("cuMemsetD32Async", |driver| {
        driver.give(stream, StreamWork::Words { addr, words: words as u64, value })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoH_v2(to: *mut u32, addr: u64, size: usize) -> u32 {
    within("cuMemcpyDtoH", |driver| {
        for (index, word) in driver.read_words(addr, size / 4)?.into_iter().enumerate() {
            put(to.wrapping_add(index), word);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostAlloc(to: *mut *mut c_void, size: usize, _flags: c_uint) -> u32 {
    within("cuMemHostAlloc", |driver| {
        // The memory is leaked: it has a few bytes, and freeing it would need its size.
        let memory = Box::leak(vec![0_u64; size.div_ceil(8)].into_boxed_slice());
        let at: *mut c_void = memory.as_mut_ptr().cast();
        driver.add_host(at.expose_provenance() as u64);
        put(to, at);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(at: *mut c_void) -> u32 {
    within("cuMemFreeHost", |driver| driver.remove_host(at.expose_provenance() as u64))
}
