//! Code that runs on the device, and memory that it shares with the host.
#![expect(unsafe_code, reason = "the driver is a C library, and this is where it is called")]

use std::ffi::{CStr, c_void};
use std::ptr;

use blockyard_record::DeviceAddr;
use cudarc::driver::sys;

use super::{ContextGuard, DriverResult, Stream, check};

/// Code on the device.
#[derive(Debug)]
pub(crate) struct Module(sys::CUmodule);

/// A function of a [`Module`].
#[derive(Debug)]
pub(crate) struct Function(sys::CUfunction);

/// A word of host memory that the device sees too.
#[derive(Debug)]
pub(crate) struct SharedWord(*mut u32);

// SAFETY: the driver's handles may be used from any thread, see `PrimaryContext`.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}
// SAFETY: as above.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}
// SAFETY: the word is only reached through volatile writes of the owner, which need `&mut`.
unsafe impl Send for SharedWord {}
// SAFETY: as above.
unsafe impl Sync for SharedWord {}

impl Module {
    /// Compiles PTX for the device.
    pub(crate) fn load(_: &ContextGuard, ptx: &CStr) -> DriverResult<Self> {
        let mut module = ptr::null_mut();
        // SAFETY: reads the text up to its zero, and writes one handle.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&raw mut module, ptx.as_ptr().cast()) })?;
        Ok(Self(module))
    }

    pub(crate) fn function(&self, _: &ContextGuard, name: &CStr) -> DriverResult<Function> {
        let mut function = ptr::null_mut();
        // SAFETY: the module is alive; reads the name up to its zero, and writes one handle.
        let code = unsafe { sys::cuModuleGetFunction(&raw mut function, self.0, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        Ok(Function(function))
    }

    pub(crate) fn unload(self, _: &ContextGuard) {
        // SAFETY: the module is alive, and this call unloads it with its functions, which its owner drops
        // too.
        let _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

impl Function {
    /// Queues the function on the stream, in this many blocks of this many threads.
    ///
    /// # Safety
    ///
    /// The function must take exactly these parameters, all of 64 bits.
    pub(crate) unsafe fn launch(
        &self,
        _: &ContextGuard,
        stream: &Stream,
        (blocks, threads): (u32, u32),
        parameters: &mut [u64],
    ) -> DriverResult<()> {
        let mut pointers: Vec<*mut c_void> =
            parameters.iter_mut().map(|parameter| (&raw mut *parameter).cast()).collect();
        // SAFETY: the module and the stream are alive; the driver copies the parameters before it returns,
        // and the caller answers for their number and size.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.0,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream.0,
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", code)
    }
}

/// Sets `words` words of 4 bytes to `value`, in the order of the stream.
pub(crate) fn set_words(
    _: &ContextGuard,
    addr: DeviceAddr,
    value: u32,
    words: u64,
    stream: &Stream,
) -> DriverResult<()> {
    // As in `length`: the driver refuses what does not fit.
    let words = usize::try_from(words).unwrap_or(usize::MAX);
    // SAFETY: device memory only, which the driver or the device checks; the stream is alive.
    check("cuMemsetD32Async", unsafe { sys::cuMemsetD32Async(addr.get(), value, words, stream.0) })
}

/// Copies from the device, after all work that was given to the default stream.
pub(crate) fn copy_to_host(_: &ContextGuard, words: &mut [u64], addr: DeviceAddr) -> DriverResult<()> {
    // SAFETY: writes as many bytes as the slice has; any bits are a valid number.
    let code = unsafe { sys::cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), addr.get(), size_of_val(words)) };
    check("cuMemcpyDtoH", code)
}

impl SharedWord {
    /// A word that is zero.
    pub(crate) fn allocate(_: &ContextGuard) -> DriverResult<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer, to at least as many bytes as were asked for.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&raw mut raw, size_of::<u32>(), 0) })?;
        let mut word = Self(raw.cast());
        word.set(0);
        Ok(word)
    }

    /// The word's address on the device, which is the address on the host, as for all memory of this driver.
    pub(crate) fn addr(&self) -> DeviceAddr {
        DeviceAddr::new(self.0.expose_provenance() as u64)
    }

    pub(crate) fn set(&mut self, value: u32) {
        // SAFETY: the memory is aligned for it and lives as long as `self`; the device reads it at any time,
        // hence volatile.
        unsafe { self.0.write_volatile(value) }
    }

    pub(crate) fn free(self, _: &ContextGuard) {
        // SAFETY: this driver allocated it, and this call ends its use.
        let _ = unsafe { sys::cuMemFreeHost(self.0.cast()) };
    }
}
