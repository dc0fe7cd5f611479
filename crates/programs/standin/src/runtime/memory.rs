//! Memory of the runtime: allocation, copies, pinned memory, attributes of pointers.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_uint};

use crate::abi::Out;
use crate::memory::{HostRead, MemoryError, device_of};
use crate::non_pytorch;
use crate::report;
use crate::runtime::errors::{ASSERT, INVALID_VALUE, MEMORY_ALLOCATION, NOT_SUPPORTED, SUCCESS, code, fail};
use crate::settings::settings;
use crate::state::{current_device, state};
use crate::values::{assumptions, frames};

/// The members of `cudaPointerAttributes` that all releases of CUDA have.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct PointerAttributes {
    /// 0 for unregistered memory, 1 for the host's, 2 for a device's.
    kind: c_int,
    device: c_int,
    on_device: u64,
    on_host: u64,
}

/// Bytes of a page: pinned memory starts at a multiple.
const PAGE: usize = 4096;

fn layout(size: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(size).ok()?.max(1), PAGE).ok()
}

/// `cudaMalloc`: null for no bytes.
pub(crate) fn allocate(to: Out<u64>, size: u64) -> c_int {
    if to.is_null() {
        return fail(INVALID_VALUE);
    }
    if size == 0 {
        to.put(0);
        return SUCCESS;
    }
    let found = match state().devices.get(current_device()) {
        Some(device) => device.allocate(size),
        None => Err(MemoryError::Full),
    };
    code(found.map(|address| to.put(address)))
}

/// `cudaFree`: does nothing for null.
pub(crate) fn release(address: u64) -> c_int {
    if address == 0 {
        return SUCCESS;
    }
    let Some(index) = device_of(address) else { return fail(INVALID_VALUE) };
    let found = match state().devices.get(index) {
        Some(device) => device.free(address),
        None => Err(MemoryError::NoSuchAddress),
    };
    code(found)
}

/// Copies bytes. Where the host reads unknown bytes, it gets zeros, and the report gets a line.
pub(crate) fn copy(to: u64, from: u64, count: u64) -> c_int {
    let keeps_large = !frames::is_of_parameter();
    // The lock is given back before Python is asked for the line.
    let copied = state().devices.copy(to, from, count, keeps_large);
    if let Ok(read) = copied
        && read != HostRead::default()
        // SAFETY: the caller wants `count` bytes at the address.
        && assumptions::read(unsafe { Out::at(to) }, count, read).is_err()
    {
        return fail(ASSERT);
    }
    code(copied.map(|_| ()))
}

/// Whether the address lies in pinned or registered memory of the host.
fn is_pinned(address: u64) -> bool {
    let state = state();
    let range = state.host.range(..=address).next_back();
    range.is_some_and(|(base, size)| address - base < *size)
}

fn fill(to: u64, value: c_int, count: u64) -> c_int {
    // CUDA reads the lowest byte of the value alone.
    code(state().devices.fill(to, value.to_le_bytes()[0], count))
}

entries! {
    fn cudaMalloc(to: Out<u64>, size: u64) -> c_int {
        allocate(to, size)
    }

    fn cudaFree(address: u64) -> c_int {
        release(address)
    }

    fn cudaMallocAsync(to: Out<u64>, size: u64, _stream: usize) -> c_int {
        report::report_estimate("the pool of cudaMallocAsync is CUDA's own, and its reserved bytes are not followed");
        allocate(to, size)
    }

    fn cudaFreeAsync(address: u64, _stream: usize) -> c_int {
        release(address)
    }

    fn cudaMemGetInfo(free: Out<u64>, total: Out<u64>) -> c_int {
        let Some(left) = state().devices.get(current_device()).map(|device| device.free_bytes()) else {
            return fail(MEMORY_ALLOCATION);
        };
        free.put(left);
        total.put(settings().memory());
        SUCCESS
    }

    fn cudaHostAlloc(to: Out<u64>, size: u64, _flags: c_uint) -> c_int {
        let Some(layout) = layout(size) else { return fail(MEMORY_ALLOCATION) };
        // SAFETY: the layout has at least one byte.
        let address = unsafe { alloc_zeroed(layout) } as u64;
        if address == 0 || !to.put(address) {
            return fail(MEMORY_ALLOCATION);
        }
        state().host.insert(address, size);
        non_pytorch::follow(non_pytorch::NonPytorchUse::Pinned);
        SUCCESS
    }

    fn cudaMallocHost(to: Out<u64>, size: u64) -> c_int {
        cudaHostAlloc(to, size, 0)
    }

    fn cudaFreeHost(address: u64) -> c_int {
        if address == 0 {
            return SUCCESS;
        }
        let Some(size) = state().host.remove(&address) else { return fail(INVALID_VALUE) };
        if let Some(layout) = layout(size) {
            // SAFETY: the memory was taken with this layout by `cudaHostAlloc`, and its entry was just
            // removed.
            unsafe { dealloc(address as *mut u8, layout) };
        }
        SUCCESS
    }

    fn cudaHostRegister(address: u64, size: u64, _flags: c_uint) -> c_int {
        state().host.insert(address, size);
        SUCCESS
    }

    fn cudaHostUnregister(address: u64) -> c_int {
        match state().host.remove(&address) {
            Some(_) => SUCCESS,
            None => fail(INVALID_VALUE),
        }
    }

    fn cudaHostGetDevicePointer(to: Out<u64>, address: u64, _flags: c_uint) -> c_int {
        to.put(address);
        SUCCESS
    }

    fn cudaPointerGetAttributes(to: Out<PointerAttributes>, address: u64) -> c_int {
        let attributes = if let Some(device) = device_of(address) {
            PointerAttributes { kind: 2, device, on_device: address, on_host: 0 }
        } else if is_pinned(address) {
            PointerAttributes { kind: 1, device: current_device(), on_device: address, on_host: address }
        } else {
            PointerAttributes { kind: 0, device: -2, on_device: 0, on_host: address }
        };
        to.put(attributes);
        SUCCESS
    }

    fn cudaMemcpy(to: u64, from: u64, count: u64, _kind: c_int) -> c_int {
        copy(to, from, count)
    }

    fn cudaMemcpyAsync(to: u64, from: u64, count: u64, _kind: c_int, _stream: usize) -> c_int {
        copy(to, from, count)
    }

    fn cudaMemcpyPeerAsync(to: u64, _to_device: c_int, from: u64, _from_device: c_int, count: u64, _stream: usize) -> c_int {
        copy(to, from, count)
    }

    fn cudaMemcpy2DAsync(
        to: u64,
        to_pitch: u64,
        from: u64,
        from_pitch: u64,
        width: u64,
        height: u64,
        _kind: c_int,
        _stream: usize,
    ) -> c_int {
        for row in 0..height {
            let (to, from) = (to_pitch.checked_mul(row).and_then(|offset| to.checked_add(offset)),
                from_pitch.checked_mul(row).and_then(|offset| from.checked_add(offset)));
            let (Some(to), Some(from)) = (to, from) else { return fail(INVALID_VALUE) };
            let done = copy(to, from, width);
            if done != SUCCESS {
                return done;
            }
        }
        SUCCESS
    }

    fn cudaMemset(to: u64, value: c_int, count: u64) -> c_int {
        fill(to, value, count)
    }

    fn cudaMemsetAsync(to: u64, value: c_int, count: u64, _stream: usize) -> c_int {
        fill(to, value, count)
    }

    fn cudaMemcpyToSymbol(_symbol: u64, _from: u64, _count: u64, _offset: u64, _kind: c_int) -> c_int {
        SUCCESS
    }

    fn cudaGetSymbolAddress(to: Out<u64>, symbol: u64) -> c_int {
        match crate::runtime::kernels::symbol_address(current_device(), symbol) {
            Some(address) => {
                to.put(address);
                SUCCESS
            }
            None => fail(INVALID_VALUE),
        }
    }

    fn cudaDeviceGetDefaultMemPool(to: Out<usize>, device: c_int) -> c_int {
        to.put(0x7000_0000_usize.saturating_add(usize::try_from(device).unwrap_or(0)));
        SUCCESS
    }

    fn cudaMemPoolGetAttribute(_pool: usize, _attribute: c_int, to: Out<u64>) -> c_int {
        report::report_estimate("the pool of cudaMallocAsync is CUDA's own, and its reserved bytes are not followed");
        to.put(0);
        SUCCESS
    }

    fn cudaIpcGetMemHandle(_to: usize, _address: u64) -> c_int {
        eprintln!("blockyard: memory of a dry run is not shared between processes (cudaIpcGetMemHandle)");
        fail(NOT_SUPPORTED)
    }

    fn cudaIpcGetEventHandle(_to: usize, _event: usize) -> c_int {
        eprintln!("blockyard: events of a dry run are not shared between processes (cudaIpcGetEventHandle)");
        fail(NOT_SUPPORTED)
    }

    fn cudaIpcOpenMemHandle() -> c_int {
        fail(NOT_SUPPORTED)
    }

    fn cudaIpcOpenEventHandle() -> c_int {
        fail(NOT_SUPPORTED)
    }

    fn cudaIpcCloseMemHandle() -> c_int {
        fail(NOT_SUPPORTED)
    }
}

setting! { cudaMemPoolSetAttribute cudaMemPoolSetAccess cudaMemPoolTrimTo cudaDeviceEnablePeerAccess }
