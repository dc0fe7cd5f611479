//! Kernels: registered with their names, launched without running.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

use blockyard_gpus::Architecture;

use crate::abi::{Dim3, In, Out, Text};
use crate::non_pytorch;
use crate::runtime::errors::{INVALID_CONFIGURATION, INVALID_VALUE, SUCCESS, fail};
use crate::settings::settings;
use crate::state::state;
use crate::values::note_computation;

/// The kernels and variables that the process's modules registered, by their addresses on the host.
#[derive(Default)]
struct ModuleRegistry {
    /// Names of kernels, which are constants of the modules.
    kernels: HashMap<u64, &'static CStr>,
    /// Bytes of variables, and the addresses that they were given, by device.
    variables: HashMap<u64, (u64, HashMap<c_int, u64>)>,
}

static REGISTERED: LazyLock<Mutex<ModuleRegistry>> = LazyLock::new(Mutex::default);

/// The address of a kernel's variable on a device.
pub(crate) fn symbol_address(device: c_int, symbol: u64) -> Option<u64> {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let (size, addresses) = registered.variables.entry(symbol).or_insert((256, HashMap::new()));
    if let Some(address) = addresses.get(&device) {
        return Some(*address);
    }
    let address = state().devices.get(device)?.symbol(*size);
    addresses.insert(device, address);
    Some(address)
}

/// The first members of `cudaFuncAttributes`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct FunctionAttributes {
    shared: u64,
    constant: u64,
    local: u64,
    max_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    caches_in_l1: c_int,
    max_dynamic_shared: c_int,
    carveout: c_int,
    cluster: [c_int; 6],
}

/// A launch, which runs nothing: the bytes that the kernel would write are unknown.
fn launch(kernel: u64, grid: Dim3, block: Dim3) -> c_int {
    let threads = block.x.saturating_mul(block.y).saturating_mul(block.z);
    if grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0 || threads > 1024 {
        return fail(INVALID_CONFIGURATION);
    }
    non_pytorch::follow_kernel(kernel, || {
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).kernels.get(&kernel).copied()
    });
    note_computation();
    SUCCESS
}

/// Blocks of a kernel that one multiprocessor holds, by threads and shared memory alone.
pub(crate) fn occupancy(threads: c_int, shared: u64) -> c_int {
    let settings = settings();
    let rounded = threads.max(1).saturating_add(31) / 32 * 32;
    let by_threads = settings.gpu.threads_per_multiprocessor.cast_signed() / rounded;
    let by_shared = match shared {
        0 => c_int::MAX,
        // CUDA keeps a KiB of shared memory for each block.
        _ => c_int::try_from(u64::from(settings.shared().unsigned_abs()) / shared.saturating_add(1024))
            .unwrap_or(c_int::MAX),
    };
    by_threads.min(by_shared).clamp(1, settings.max_blocks())
}

thread_local! {
    /// Configurations of launches between `<<<` and the launch.
    static LAUNCHES: RefCell<Vec<(Dim3, Dim3, usize, usize)>> = const { RefCell::new(Vec::new()) };
}

/// The first members of `cudaLaunchConfig_t`, which `cudaLaunchKernelExC` gets.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
    attributes: usize,
    count: c_uint,
}

/// The architecture of the code that a GPU runs: CUB looks for its settings under this number and fails for
/// one that nothing was compiled for.
fn code_version(architecture: Architecture) -> c_int {
    match architecture {
        Architecture::Turing => 75,
        Architecture::Ampere => 80,
        // PyTorch's builds have no code for compute capability 8.9; its GPUs run the code for 8.6.
        Architecture::Ada => 86,
        Architecture::Hopper => 90,
    }
}

entries! {
    fn __cudaRegisterFatBinary(_binary: usize) -> *mut c_void {
        static HANDLE: u64 = 0;
        (&raw const HANDLE).cast_mut().cast()
    }

    fn __cudaRegisterFatBinaryEnd(_handle: usize) -> () {}

    fn __cudaUnregisterFatBinary(_handle: usize) -> () {}

    fn __cudaInitModule(_handle: usize) -> c_char {
        0
    }

    fn __cudaRegisterFunction(
        _handle: usize,
        host: u64,
        _device: usize,
        name: Text,
        _limit: c_int,
        _thread: usize,
        _block: usize,
        _block_dim: usize,
        _grid_dim: usize,
        _warp: usize,
    ) -> () {
        if let Some(name) = name.get() {
            REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).kernels.insert(host, name);
        }
    }

    fn __cudaRegisterVar(
        _handle: usize,
        host: u64,
        _device: usize,
        _name: usize,
        _external: c_int,
        size: u64,
        _constant: c_int,
        _global: c_int,
    ) -> () {
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).variables.insert(host, (size, HashMap::new()));
    }

    fn __cudaGetKernel(to: Out<u64>, host: u64) -> c_int {
        to.put(host);
        SUCCESS
    }

    fn __cudaLaunchKernel(kernel: u64, grid: Dim3, block: Dim3, _arguments: In<usize>, _shared: usize, _stream: usize) -> c_int {
        launch(kernel, grid, block)
    }

    fn __cudaLaunchKernel_ptsz(kernel: u64, grid: Dim3, block: Dim3, _arguments: In<usize>, _shared: usize, _stream: usize) -> c_int {
        launch(kernel, grid, block)
    }

    fn cudaLaunchKernel(kernel: u64, grid: Dim3, block: Dim3, _arguments: In<usize>, _shared: usize, _stream: usize) -> c_int {
        launch(kernel, grid, block)
    }

    fn cudaLaunchCooperativeKernel(kernel: u64, grid: Dim3, block: Dim3, _arguments: In<usize>, _shared: usize, _stream: usize) -> c_int {
        launch(kernel, grid, block)
    }

    fn cudaLaunchKernelExC(config: In<LaunchConfig>, kernel: u64, _arguments: In<usize>) -> c_int {
        match config.get() {
            Some(config) => launch(kernel, config.grid, config.block),
            None => fail(INVALID_VALUE),
        }
    }

    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: usize) -> c_uint {
        LAUNCHES.with_borrow_mut(|launches| launches.push((grid, block, shared, stream)));
        0
    }

    fn __cudaPopCallConfiguration(grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<usize>) -> c_int {
        let Some(launch) = LAUNCHES.with_borrow_mut(Vec::pop) else { return fail(INVALID_CONFIGURATION) };
        grid.put(launch.0);
        block.put(launch.1);
        shared.put(launch.2);
        stream.put(launch.3);
        SUCCESS
    }

    fn cudaFuncGetAttributes(to: Out<FunctionAttributes>, _kernel: u64) -> c_int {
        let version = code_version(settings().gpu.architecture);
        to.put(FunctionAttributes {
            max_threads: 1024,
            registers: 32,
            ptx_version: version,
            binary_version: version,
            max_dynamic_shared: 49_152,
            carveout: -1,
            ..FunctionAttributes::default()
        });
        SUCCESS
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(to: Out<c_int>, _kernel: u64, threads: c_int, shared: u64) -> c_int {
        to.put(occupancy(threads, shared));
        SUCCESS
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        to: Out<c_int>,
        _kernel: u64,
        threads: c_int,
        shared: u64,
        _flags: c_uint,
    ) -> c_int {
        to.put(occupancy(threads, shared));
        SUCCESS
    }
}

setting! { cudaFuncSetAttribute cudaFuncSetCacheConfig cudaProfilerStart cudaProfilerStop }
