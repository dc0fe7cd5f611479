//! Devices of the runtime, and what they can do.
#![expect(unsafe_code, reason = "functions are exported under CUDA's names")]

use std::ffi::{c_int, c_ulonglong, c_void};

use crate::abi::{Out, Text, put_text};
use crate::driver;
use crate::report;
use crate::runtime::errors::{INVALID_DEVICE, INVALID_VALUE, SUCCESS, fail};
use crate::settings::{Settings, settings};
use crate::state::{current_device, set_current_device};

/// An attribute of a device, by CUDA's number (`CUdevice_attribute`). `None` for an attribute that this
/// library does not know.
#[expect(clippy::match_same_arms, reason = "by what a number means, in the order of CUDA's list")]
pub(crate) fn attribute(settings: &Settings, number: c_int, device: c_int) -> Option<c_int> {
    let optin = settings.shared().saturating_sub(1024);
    Some(match number {
        // Threads of a block; its sizes.
        1..=3 | 111 => 1024,
        4 => 64,
        // Blocks of a grid.
        5 | 11 => c_int::MAX,
        6 | 7 => 65_535,
        // Shared and constant memory, warp, registers, clock rate, alignment of textures.
        8 => 49_152,
        9 | 12 | 82 => 65_536,
        10 => 32,
        13 => 1_980_000,
        14 => 512,
        16 => settings.gpu.multiprocessors.cast_signed(),
        // Compute mode, kernel time-out, integrated, TCC, PCI domain: none.
        17 | 18 | 20 | 34 | 35 | 50 => 0,
        // Host memory can be mapped; kernels run side by side; ECC; unified addresses.
        15 | 19 | 31 | 32 | 41 | 78..=80 | 83 | 89..=91 | 95 | 98 | 99 => 1,
        33 => device.saturating_add(1),
        36 => 3_201_000,
        37 => 6144,
        38 => 62_914_560,
        39 => settings.gpu.threads_per_multiprocessor.cast_signed(),
        40 => 3,
        51 => 32,
        75 => settings.capability().0,
        76 => settings.capability().1,
        81 => settings.shared(),
        84..=86 | 88 | 92..=94 | 96 | 100 | 101 => 0,
        97 => optin,
        // Virtual memory and file descriptors as handles.
        102 | 103 => 1,
        106 => settings.max_blocks(),
        108 => 39_321_600,
        109 => 134_213_632,
        // Pools of memory; clusters.
        115 => 1,
        120 => c_int::from(settings.has_clusters()),
        // GPUDirect, fabric handles, multicast, NUMA: none.
        104 | 105 | 107 | 110 | 112..=114 | 116..=119 | 121..=133 | 135..=150 => 0,
        134 => -1,
        _ => return None,
    })
}

/// Writes numbers where `cudaDeviceProp` has them. The first members are equal in all releases of CUDA; CUDA
/// 13 has six fewer.
struct Properties {
    to: Out<u8>,
    at: usize,
    is_13: bool,
}

impl Properties {
    fn bytes(&mut self, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            self.to.put_at(self.at.saturating_add(index), *byte);
        }
        self.at = self.at.saturating_add(bytes.len());
    }

    fn int(&mut self, value: c_int) {
        self.bytes(&value.to_le_bytes());
    }

    fn ints(&mut self, values: &[c_int]) {
        for value in values {
            self.int(*value);
        }
    }

    fn long(&mut self, value: u64) {
        while !self.at.is_multiple_of(8) {
            self.bytes(&[0]);
        }
        self.bytes(&value.to_le_bytes());
    }

    /// A member that CUDA 13 does not have.
    fn until_12(&mut self, value: c_int) {
        if !self.is_13 {
            self.int(value);
        }
    }
}

/// Fills `cudaDeviceProp` in the order of CUDA's declaration, up to its reserved end.
fn properties(to: Out<u8>, device: c_int, is_13: bool, settings: &Settings) {
    let mut list = Properties { to, at: 0, is_13 };
    let shared = u64::from(settings.shared().unsigned_abs());
    let mut name = [0_u8; 256];
    for (slot, byte) in name.iter_mut().zip(settings.gpu.name.bytes().take(255)) {
        *slot = byte;
    }
    list.bytes(&name);
    let mut uuid = [0_u8; 16];
    uuid[0] = 0xb1;
    uuid[15] = device.saturating_add(1).to_le_bytes()[0];
    list.bytes(&uuid);
    list.bytes(&[0; 8]);
    list.int(0);
    list.long(settings.memory());
    list.long(49_152);
    list.ints(&[65_536, 32]);
    list.long(2_147_483_647);
    list.ints(&[1024, 1024, 1024, 64, c_int::MAX, 65_535, 65_535]);
    list.until_12(1_980_000);
    list.long(65_536);
    let (major, minor) = settings.capability();
    list.ints(&[major, minor]);
    list.long(512);
    list.long(32);
    list.until_12(1);
    list.int(settings.gpu.multiprocessors.cast_signed());
    list.until_12(0);
    // Integrated, mapped host memory.
    list.ints(&[0, 1]);
    list.until_12(0);
    // Sizes of textures and surfaces, on which no number of a dry run depends.
    list.ints(&[131_072, 32_768]);
    list.until_12(268_435_456);
    list.ints(&[0; 37]);
    list.long(512);
    // Kernels side by side, ECC, PCI bus, device, domain, TCC, copy engines, unified addresses.
    list.ints(&[1, 1, device.saturating_add(1), 0, 0, 0, 3, 1]);
    list.until_12(3_201_000);
    let threads = settings.gpu.threads_per_multiprocessor.cast_signed();
    list.ints(&[6144, 62_914_560, 39_321_600, threads, 1, 1, 1]);
    list.long(shared);
    // Registers, managed memory, boards, atomics of the host.
    list.ints(&[65_536, 1, 0, 0, 0]);
    list.until_12(2);
    // Pageable memory, concurrent managed access, preemption, registered memory, cooperative launch.
    list.ints(&[0, 1, 1, 1, 1]);
    list.until_12(1);
    list.long(shared.saturating_sub(1024));
    list.ints(&[0, 0, settings.max_blocks(), 134_213_632]);
    list.long(1024);
    // Host memory can be registered; memory pools; the rest no.
    list.ints(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    list.ints(&[c_int::from(settings.has_clusters()), 0]);
    let end = if is_13 { 1008 } else { 1032 };
    while list.at < end {
        list.int(0);
    }
}

/// Asks for a function of the driver by name.
fn driver_function(name: Text, to: Out<*const c_void>, result: Out<c_int>) -> c_int {
    let Some(name) = name.get() else { return fail(INVALID_VALUE) };
    let name = name.to_string_lossy();
    report::report_call(&name);
    driver::put_by_name(&name, to, result);
    SUCCESS
}

fn check(device: c_int) -> bool {
    (0..settings().devices).contains(&device)
}

entries! {
    fn cudaGetDevice(to: Out<c_int>) -> c_int {
        to.put(current_device());
        SUCCESS
    }

    fn cudaSetDevice(device: c_int) -> c_int {
        if !check(device) {
            return fail(INVALID_DEVICE);
        }
        set_current_device(device);
        SUCCESS
    }

    fn cudaGetDeviceCount(to: Out<c_int>) -> c_int {
        to.put(settings().devices);
        SUCCESS
    }

    fn cudaDriverGetVersion(to: Out<c_int>) -> c_int {
        to.put(settings().cuda);
        SUCCESS
    }

    fn cudaRuntimeGetVersion(to: Out<c_int>) -> c_int {
        to.put(settings().cuda);
        SUCCESS
    }

    fn cudaDeviceGetAttribute(to: Out<c_int>, number: c_int, device: c_int) -> c_int {
        if !check(device) {
            return fail(INVALID_DEVICE);
        }
        let value = attribute(settings(), number, device);
        if value.is_none() {
            report::report_estimate(&format!("attribute {number} of a device is not known and is assumed to be 0"));
        }
        to.put(value.unwrap_or(0));
        SUCCESS
    }

    fn cudaDeviceGetPCIBusId(to: Out<u8>, room: c_int, device: c_int) -> c_int {
        put_text(to, usize::try_from(room).unwrap_or(0), &format!("0000:{:02x}:00.0", device.saturating_add(1)));
        SUCCESS
    }

    fn cudaGetDeviceProperties(to: Out<u8>, device: c_int) -> c_int {
        if !check(device) {
            return fail(INVALID_DEVICE);
        }
        properties(to, device, true, settings());
        SUCCESS
    }

    // CUDA 12's name and layout.
    fn cudaGetDeviceProperties_v2(to: Out<u8>, device: c_int) -> c_int {
        if !check(device) {
            return fail(INVALID_DEVICE);
        }
        properties(to, device, false, settings());
        SUCCESS
    }

    fn cudaDeviceCanAccessPeer(to: Out<c_int>, device: c_int, peer: c_int) -> c_int {
        if !check(device) || !check(peer) {
            return fail(INVALID_DEVICE);
        }
        to.put(c_int::from(device != peer));
        SUCCESS
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) -> c_int {
        least.put(0);
        greatest.put(-5);
        SUCCESS
    }

    fn cudaGetDriverEntryPoint(name: Text, to: Out<*const c_void>, _flags: c_ulonglong, result: Out<c_int>) -> c_int {
        driver_function(name, to, result)
    }

    fn cudaGetDriverEntryPointByVersion(
        name: Text,
        to: Out<*const c_void>,
        _version: u32,
        _flags: c_ulonglong,
        result: Out<c_int>,
    ) -> c_int {
        driver_function(name, to, result)
    }
}

setting! { cudaDeviceReset cudaDeviceSetLimit }
