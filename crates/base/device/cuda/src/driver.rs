//! The driver's calls, one function each. The other modules explain and combine them.
//!
//! Handles of the driver are in types that only this module makes and that a destroying call consumes, so
//! that no other module can pass the driver a handle that does not exist any more. Device addresses are plain
//! numbers: the driver knows the addresses that it gave out, and answers others with an error.
#![expect(unsafe_code, reason = "the driver is a C library, and this is where it is called")]

mod code;
mod processes;

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

use blockyard_record::{Bytes, DeviceAddr};
use cudarc::driver::sys;

use crate::error::{CudaError, DriverError};

pub(crate) use code::{Function, Module, SharedWord, copy_to_host, set_words};
pub(crate) use processes::processes;

type DriverResult<T> = Result<T, DriverError>;

/// The name of the driver library on this system.
pub(crate) const LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// A device's number in the driver's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device(sys::CUdevice);

/// A device's primary context, which was retained and not yet released.
#[derive(Debug)]
pub(crate) struct PrimaryContext {
    raw: sys::CUcontext,
    device: Device,
}

/// A stream: the default stream, a stream of [`Stream::create`], or a stream that other code made and keeps
/// alive.
#[derive(Debug)]
pub(crate) struct Stream(sys::CUstream);

/// An event that was made and not yet destroyed.
#[derive(Debug)]
pub(crate) struct Event(sys::CUevent);

/// A page's memory.
#[derive(Debug)]
pub(crate) struct Page(sys::CUmemGenericAllocationHandle);

// SAFETY: the driver's handles may be used from any thread, which its reference promises for all calls here;
// only which context is current belongs to a thread, and every call is made under a `ContextGuard` of the
// calling one.
unsafe impl Send for PrimaryContext {}
// SAFETY: as above.
unsafe impl Sync for PrimaryContext {}
// SAFETY: as above.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}
// SAFETY: as above.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// Whether there is a driver library; nothing else here may be called without one.
pub(crate) fn is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loads and unloads the driver library; its constructors are NVIDIA's and have no conditions for
    // us.
    *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

pub(crate) fn init() -> DriverResult<()> {
    // SAFETY: needs nothing but the library.
    check("cuInit", unsafe { sys::cuInit(0) })
}

/// The newest CUDA that the driver supports, 13020 for 13.2.
pub(crate) fn version() -> DriverResult<u32> {
    let mut version = 0;
    // SAFETY: writes one number.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
    Ok(version.unsigned_abs())
}

pub(crate) fn device_count() -> DriverResult<u32> {
    let mut count = 0;
    // SAFETY: writes one number.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
    Ok(count.unsigned_abs())
}

impl Device {
    pub(crate) fn get(index: u32) -> DriverResult<Self> {
        // The driver refuses the largest number, since no machine has that many devices.
        let (mut device, index) = (0, c_int::try_from(index).unwrap_or(c_int::MAX));
        // SAFETY: writes one number.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut device, index) })?;
        Ok(Self(device))
    }

    pub(crate) fn name(self) -> DriverResult<String> {
        let mut text = [0; 256];
        // SAFETY: writes at most this many characters, with a zero at the end.
        check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(text.as_mut_ptr(), 255, self.0) })?;
        // SAFETY: the last character was zero before the call and is not written by it.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    pub(crate) fn total_memory(self) -> DriverResult<Bytes> {
        let mut size = 0;
        // SAFETY: writes one number.
        check("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&raw mut size, self.0) })?;
        Ok(Bytes::new(size as u64))
    }

    /// The device's address on the PCI bus, by which NVML finds the device.
    pub(crate) fn bus_address(self) -> DriverResult<CString> {
        let mut text = [0; 32];
        // SAFETY: writes at most this many characters, with a zero at the end.
        check("cuDeviceGetPCIBusId", unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), 31, self.0) })?;
        // SAFETY: the last character was zero before the call and is not written by it.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_owned())
    }

    pub(crate) fn has_virtual_memory(self) -> DriverResult<bool> {
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED;
        let mut value = 0;
        // SAFETY: writes one number.
        let code = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, self.0) };
        check("cuDeviceGetAttribute", code)?;
        Ok(value != 0)
    }
}

impl PrimaryContext {
    pub(crate) fn retain(device: Device) -> DriverResult<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut raw, device.0) })?;
        Ok(Self { raw, device })
    }

    /// Makes the context the calling thread's current context until the guard is dropped.
    pub(crate) fn enter(&self) -> DriverResult<ContextGuard> {
        let mut before = ptr::null_mut();
        // SAFETY: writes one handle.
        check("cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&raw mut before) })?;
        if before == self.raw {
            return Ok(ContextGuard { before: None });
        }
        // SAFETY: the context is retained as long as `self` lives.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })?;
        Ok(ContextGuard { before: Some(before) })
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: releases the context of `retain` once. No caller can get the error.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device.0) };
    }
}

/// While this value lives, the calling thread's current context is the device's; then it is the previous
/// context again.
#[derive(Debug)]
pub(crate) struct ContextGuard {
    before: Option<sys::CUcontext>,
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was this thread's current context, or null for none.
            let _ = unsafe { sys::cuCtxSetCurrent(before) };
        }
    }
}

// The functions below need a current context; each takes the guard as the proof of it.

pub(crate) fn synchronize(_: &ContextGuard) -> DriverResult<()> {
    // SAFETY: needs a current context.
    check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
}

/// Free and total bytes.
pub(crate) fn memory_info(_: &ContextGuard) -> DriverResult<(Bytes, Bytes)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: writes two numbers.
    check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
    Ok((Bytes::new(free as u64), Bytes::new(total as u64)))
}

/// Permits calls that change memory while a stream of this thread is being captured, until the guard is
/// dropped.
///
/// Such calls are not work of a stream, so that no graph contains them.
pub(crate) fn relax_capture(_: &ContextGuard) -> CaptureModeGuard {
    let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: reads and writes one number.
    let code = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    CaptureModeGuard { before: (code == sys::CUresult::CUDA_SUCCESS).then_some(mode) }
}

#[derive(Debug)]
pub(crate) struct CaptureModeGuard {
    before: Option<sys::CUstreamCaptureMode>,
}

impl Drop for CaptureModeGuard {
    fn drop(&mut self) {
        if let Some(mut mode) = self.before {
            // SAFETY: reads and writes one number.
            let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        }
    }
}

pub(crate) fn allocate(_: &ContextGuard, size: Bytes) -> DriverResult<DeviceAddr> {
    let mut addr = 0;
    // SAFETY: writes one address.
    check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&raw mut addr, length(size)) })?;
    Ok(DeviceAddr::new(addr))
}

pub(crate) fn free(_: &ContextGuard, addr: DeviceAddr) -> DriverResult<()> {
    // SAFETY: the driver refuses addresses that it did not allocate, and waits for work that uses the memory.
    check("cuMemFree", unsafe { sys::cuMemFree_v2(addr.get()) })
}

pub(crate) fn allocate_on(_: &ContextGuard, size: Bytes, stream: &Stream) -> DriverResult<DeviceAddr> {
    let mut addr = 0;
    // SAFETY: writes one address; the stream is alive.
    let code = unsafe { sys::cuMemAllocAsync(&raw mut addr, length(size), stream.0) };
    check("cuMemAllocAsync", code)?;
    Ok(DeviceAddr::new(addr))
}

pub(crate) fn free_on(_: &ContextGuard, addr: DeviceAddr, stream: &Stream) -> DriverResult<()> {
    // SAFETY: the driver refuses addresses that it did not allocate; the stream is alive.
    check("cuMemFreeAsync", unsafe { sys::cuMemFreeAsync(addr.get(), stream.0) })
}

/// Makes the device's pool of stream-ordered memory keep freed memory (`keeps`), or release all of it now and
/// from now on.
pub(crate) fn keep_pool(_: &ContextGuard, device: Device, keeps: bool) -> DriverResult<()> {
    let mut pool = ptr::null_mut();
    // SAFETY: writes one handle.
    let code = unsafe { sys::cuDeviceGetDefaultMemPool(&raw mut pool, device.0) };
    check("cuDeviceGetDefaultMemPool", code)?;
    let mut threshold = if keeps { u64::MAX } else { 0 };
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the attribute is a number of 64 bits, which is read; the pool is the device's own.
    let code = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()) };
    check("cuMemPoolSetAttribute", code)?;
    if keeps {
        return Ok(());
    }
    // SAFETY: the pool is the device's own.
    check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(pool, 0) })
}

pub(crate) fn reserve(_: &ContextGuard, size: Bytes) -> DriverResult<DeviceAddr> {
    let mut addr = 0;
    // SAFETY: writes one address.
    let code = unsafe { sys::cuMemAddressReserve(&raw mut addr, length(size), 0, 0, 0) };
    check("cuMemAddressReserve", code)?;
    Ok(DeviceAddr::new(addr))
}

pub(crate) fn free_range(_: &ContextGuard, addr: DeviceAddr, size: Bytes) -> DriverResult<()> {
    // SAFETY: the driver refuses ranges that it did not reserve or that have memory.
    check("cuMemAddressFree", unsafe { sys::cuMemAddressFree(addr.get(), length(size)) })
}

pub(crate) fn create_page(_: &ContextGuard, device: Device, size: Bytes) -> DriverResult<Page> {
    let properties = sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(device),
        win32HandleMetaData: ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    };
    let mut handle = 0;
    // SAFETY: reads the properties and writes one handle.
    check("cuMemCreate", unsafe {
        sys::cuMemCreate(&raw mut handle, length(size), &raw const properties, 0)
    })?;
    Ok(Page(handle))
}

#[expect(clippy::needless_pass_by_value, reason = "this call released the page")]
pub(crate) fn release_page(_: &ContextGuard, page: Page) -> DriverResult<()> {
    // SAFETY: the page is alive, and this call releases it.
    check("cuMemRelease", unsafe { sys::cuMemRelease(page.0) })
}

pub(crate) fn map(_: &ContextGuard, addr: DeviceAddr, size: Bytes, page: &Page) -> DriverResult<()> {
    // SAFETY: the page is alive; the driver refuses addresses that are not reserved.
    check("cuMemMap", unsafe { sys::cuMemMap(addr.get(), length(size), 0, page.0, 0) })
}

pub(crate) fn unmap(_: &ContextGuard, addr: DeviceAddr, size: Bytes) -> DriverResult<()> {
    // SAFETY: the driver refuses addresses that are not mapped.
    check("cuMemUnmap", unsafe { sys::cuMemUnmap(addr.get(), length(size)) })
}

pub(crate) fn allow_access(
    _: &ContextGuard,
    device: Device,
    addr: DeviceAddr,
    size: Bytes,
) -> DriverResult<()> {
    let access = sys::CUmemAccessDesc {
        location: location(device),
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    // SAFETY: reads one description; the driver refuses addresses that are not mapped.
    let code = unsafe { sys::cuMemSetAccess(addr.get(), length(size), &raw const access, 1) };
    check("cuMemSetAccess", code)
}

impl Stream {
    pub(crate) const fn default() -> Self {
        Self(ptr::null_mut())
    }

    /// # Safety
    ///
    /// The handle must be that of a stream of the device, and the stream must live as long as this value is
    /// used.
    pub(crate) const unsafe fn foreign(handle: *mut c_void) -> Self {
        Self(handle.cast())
    }

    /// A stream that does not wait for the default stream.
    pub(crate) fn create(_: &ContextGuard) -> DriverResult<Self> {
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: writes one handle.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
        Ok(Self(stream))
    }

    /// Destroys a stream of [`Stream::create`]; the stream's work still runs to its end.
    pub(crate) fn destroy(self, _: &ContextGuard) {
        if !self.0.is_null() {
            // SAFETY: the stream is alive, and this call destroys it.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.0) };
        }
    }

    pub(crate) fn synchronize(&self, _: &ContextGuard) -> DriverResult<()> {
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.0) })
    }
}

impl Event {
    /// An event without a time, which is cheaper to record and to ask.
    pub(crate) fn create(_: &ContextGuard) -> DriverResult<Self> {
        let mut event = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
        // SAFETY: writes one handle.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut event, flags) })?;
        Ok(Self(event))
    }

    pub(crate) fn record(&self, _: &ContextGuard, stream: &Stream) -> DriverResult<()> {
        // SAFETY: both are alive.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.0, stream.0) })
    }

    /// Whether the work before the event is done. Never blocks.
    pub(crate) fn is_complete(&self, _: &ContextGuard) -> DriverResult<bool> {
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.0) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuEventQuery", code).map(|()| true),
        }
    }

    pub(crate) fn wait(&self, _: &ContextGuard) -> DriverResult<()> {
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.0) })
    }

    pub(crate) fn destroy(self, _: &ContextGuard) {
        // SAFETY: the event is alive, and this call destroys it.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

fn location(device: Device) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device.0 }
}

/// A size as the driver takes it. A size that does not fit is more than any device has; the driver refuses
/// the largest number.
fn length(size: Bytes) -> usize {
    usize::try_from(size.get()).unwrap_or(usize::MAX)
}

fn check(operation: &'static str, code: sys::CUresult) -> DriverResult<()> {
    if code == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let (mut name, mut description) = (ptr::null(), ptr::null());
    // SAFETY: writes one pointer each, to text that lives as long as the library.
    let codes = unsafe {
        [sys::cuGetErrorName(code, &raw mut name), sys::cuGetErrorString(code, &raw mut description)]
    };
    let text = |code: sys::CUresult, text: *const std::ffi::c_char| {
        if code != sys::CUresult::CUDA_SUCCESS || text.is_null() {
            return "an error that the driver has no words for".to_owned();
        }
        // SAFETY: the driver gave text with a zero at its end.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    let error = CudaError::new(code as u32, text(codes[0], name), text(codes[1], description));
    Err(DriverError { operation, error })
}
