//! The functions that PyTorch calls, with the signatures of `CUDAPluggableAllocator`.
//!
//! A function that fails returns a null pointer, and a message on standard error says why.
#![expect(unsafe_code, reason = "functions are exported to C under their own names")]

use std::ffi::{c_double, c_int, c_void};
use std::ptr;

use blockyard_allocator::AllocError;
use blockyard_device::DeviceError;
use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::border::{run_answer, run_hook};
use crate::devices::{Allocator, Device, settings};
use crate::error::PluginError;
use crate::filter::{MempoolId, OwnFilter, StreamFilter};
use crate::python_stack::with_stack;

/// The function for `set_init_fn`: called once, before the first allocation. Reports bad settings early.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_init(_device_count: c_int) {
    run_hook((), || settings().map(drop));
}

/// Allocates `size` bytes for use on `stream`; null for 0 bytes, and on an error, which is written to
/// standard error.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_malloc(size: isize, device: c_int, stream: *mut c_void) -> *mut c_void {
    run_hook(ptr::null_mut(), || allocate(size, device, stream))
}

/// [`blockyard_malloc`] for the C++ function that throws PyTorch's exceptions: nothing is printed,
/// [`blockyard_last_error`] has the text, and `failure` is set to 1 for out of memory and to 2 for any other
/// error. A success leaves `failure` as it is.
///
/// # Safety
///
/// `failure` must be null or where a number can be written.
///
/// [`blockyard_last_error`]: crate::blockyard_last_error
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_try_malloc(
    size: isize,
    device: c_int,
    stream: *mut c_void,
    failure: *mut c_int,
) -> *mut c_void {
    let mut code = OTHER_ERROR;
    let found = run_answer(None, || match allocate(size, device, stream) {
        Ok(memory) => Ok(Some(memory)),
        Err(error) if error.is_out_of_memory() => {
            code = OUT_OF_MEMORY;
            Err(error.with_cause(device))
        }
        Err(error) => Err(error),
    });
    if let Some(memory) = found {
        return memory;
    }
    // SAFETY: as the caller says.
    if let Some(failure) = unsafe { failure.as_mut() } {
        *failure = code;
    }
    ptr::null_mut()
}

/// [`blockyard_malloc`] for a PyTorch that would use a null pointer as memory and fault later: without memory
/// the process ends, with the message on standard error.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_malloc_or_exit(size: isize, device: c_int, stream: *mut c_void) -> *mut c_void {
    let found =
        run_hook(None, || allocate(size, device, stream).map(Some).map_err(|error| error.with_cause(device)));
    found.unwrap_or_else(|| end_process())
}

const OUT_OF_MEMORY: c_int = 1;
const OTHER_ERROR: c_int = 2;

#[inline]
fn allocate(size: isize, device: c_int, stream: *mut c_void) -> Result<*mut c_void, PluginError> {
    let requested = u64::try_from(size).map_err(|_| PluginError::Size(size))?;
    let allocator = &Device::get_or_open(device)?.allocator;
    let addr = with_stack(|| allocator.allocate(Bytes::new(requested), stream_id(stream)))
        .map_err(PluginError::Allocator)?;
    Ok(pointer(addr))
}

/// Ends the process at once. `std::process::exit` would run the functions that C++ and CUDA registered for
/// the end of the process while other threads still work.
#[cold]
fn end_process() -> ! {
    unsafe extern "C" {
        safe fn _exit(status: c_int) -> !;
    }
    _exit(1)
}

/// Frees an allocation of [`blockyard_malloc`] on that device; null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_free(memory: *mut c_void, _size: isize, device: c_int, _stream: *mut c_void) {
    run_hook((), || {
        if memory.is_null() {
            return Ok(());
        }
        let used = Device::opened(device).ok_or(PluginError::Unused(device))?;
        match with_stack(|| used.allocator.free(addr(memory))) {
            // The process ends, or the program reset the device: the memory does not exist any more.
            Err(AllocError::Device(DeviceError::Lost { .. })) => Ok(()),
            freed => freed.map_err(PluginError::Allocator),
        }
    });
}

/// The function for `set_record_stream_fn`: `stream` uses the memory too. Memory of another allocator is
/// ignored.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_record_stream(memory: *mut c_void, stream: *mut c_void) {
    run_hook((), || {
        for device in Device::all() {
            match device.allocator.record_stream(addr(memory), stream_id(stream)) {
                Err(AllocError::InvalidPointer(_)) => {}
                recorded => return recorded.map_err(PluginError::Allocator),
            }
        }
        Ok(())
    });
}

/// The function for `set_reset_fn`: gives the cached memory of all devices back, for
/// `torch.cuda.empty_cache()`.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_reset() {
    run_hook((), empty_caches);
}

/// Gives the cached memory of all devices back.
pub(crate) fn empty_caches() -> Result<(), PluginError> {
    Device::all().try_for_each(|device| {
        let emptied = device.allocator.with(Allocator::empty_cache);
        emptied.map_err(PluginError::Allocator)
    })
}

/// The function for `set_memory_fraction_fn`: limits the reserved bytes of the device, for
/// `set_per_process_memory_fraction`.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_memory_fraction(fraction: c_double, device: c_int) {
    run_hook((), || Device::get_or_open(device)?.set_fraction(fraction));
}

/// The function for `set_base_alloc_fn`: where the segment of that memory starts; `size`, if it is not null,
/// gets the segment's bytes.
///
/// # Safety
///
/// `size` must be null or where a number can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_base_alloc(memory: *mut c_void, size: *mut usize) -> *mut c_void {
    run_hook(ptr::null_mut(), || {
        let addr = addr(memory);
        for device in Device::all() {
            let snapshot = device.allocator.with(|allocator| allocator.snapshot());
            let segments = &snapshot.segments;
            let holds = |start: DeviceAddr, size: Bytes| addr >= start && addr < start.offset(size);
            let Some(segment) = segments.iter().find(|segment| holds(segment.addr, segment.size)) else {
                continue;
            };
            if segment.is_expandable {
                return Err(PluginError::Expandable(addr));
            }
            // SAFETY: as the caller says.
            if let Some(size) = unsafe { size.as_mut() } {
                // A segment is within the address space of the process, so its size fits.
                *size = usize::try_from(segment.size.get()).unwrap_or(usize::MAX);
            }
            return Ok(pointer(segment.addr));
        }
        Err(PluginError::Allocator(AllocError::InvalidPointer(addr)))
    })
}

/// The function for `set_begin_allocate_to_pool`: requests of streams that `filter` accepts go to the pool
/// from now on.
///
/// # Safety
///
/// `filter` must be null or that of a live `std::function<bool(cudaStream_t)>` of libstdc++; it is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_begin_allocate_to_pool(
    device: c_int,
    pool_id: MempoolId,
    filter: *const StreamFilter,
) {
    run_hook((), || {
        let id = pool_id.pool()?;
        // SAFETY: as the caller says.
        let filter = unsafe { OwnFilter::copy(filter) };
        let begun = Device::get_or_open(device)?.allocator.with(|allocator| {
            match filter {
                Some(filter) => allocator.begin_allocate_to_pool_if(id, move |stream| filter.accepts(stream)),
                None => allocator.begin_allocate_to_pool(id, None),
            }?;
            // No hook announces a capture, so every scope counts as one, as up to 2.12: a capture that is
            // taken for a scope would break.
            allocator.mark_capture_begin();
            Ok(())
        });
        begun.map_err(PluginError::Allocator)
    });
}

/// The function for `set_end_allocate_to_pool_fn`: ends the scope of [`blockyard_begin_allocate_to_pool`].
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_end_allocate_to_pool(device: c_int, pool_id: MempoolId) {
    run_hook((), || {
        let id = pool_id.pool()?;
        let ended = Device::get_or_open(device)?.allocator.with(|allocator| {
            allocator.end_allocate_to_pool(id)?;
            allocator.mark_capture_end();
            Ok(())
        });
        ended.map_err(PluginError::Allocator)
    });
}

/// The function for `set_release_pool`: the pool has one user fewer.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_release_pool(device: c_int, pool_id: MempoolId) {
    run_hook((), || {
        let id = pool_id.pool()?;
        let released = Device::get_or_open(device)?.allocator.with(|allocator| allocator.release_pool(id));
        released.map_err(PluginError::Allocator)
    });
}

#[inline]
fn stream_id(stream: *mut c_void) -> StreamId {
    StreamId::new(stream.expose_provenance() as u64)
}

#[inline]
fn addr(memory: *mut c_void) -> DeviceAddr {
    DeviceAddr::new(memory.expose_provenance() as u64)
}

#[inline]
fn pointer(addr: DeviceAddr) -> *mut c_void {
    ptr::with_exposed_provenance_mut(usize::try_from(addr.get()).unwrap_or_default())
}
