//! The C ABI. Every function takes the allocator first, as virtual functions do.

use std::ptr;

use blockyard_allocator::{CachingAllocator, SharedAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, DeviceAddr, NullSink, Stat, StatArray, StreamId};
use blockyard_rules::AllocatorConfig;

type AbiAllocator = SharedAllocator<VirtualDevice, NullSink>;

/// How many numbers `memory_stats()` has.
const STATS: usize = 122;

/// Makes an allocator with PyTorch's default settings on a virtual device of `capacity` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_create(capacity: u64) -> *mut AbiAllocator {
    let device = VirtualDevice::new(Bytes::new(capacity));
    let allocator = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
    Box::into_raw(Box::new(SharedAllocator::new(allocator)))
}

/// Ends an allocator.
///
/// # Safety
///
/// `shared` comes from [`blockyard_create`], is in no other use, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_destroy(shared: *mut AbiAllocator) {
    // SAFETY: the caller guarantees that the pointer is from `blockyard_create` and that this is its last
    // use.
    drop(unsafe { Box::from_raw(shared) });
}

/// Allocates memory, as PyTorch's `raw_alloc_with_stream`; returns null where that throws.
///
/// # Safety
///
/// `shared` comes from [`blockyard_create`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_allocate(shared: &AbiAllocator, size: usize, stream: usize) -> usize {
    let addr = shared.allocate(Bytes::new(size as u64), StreamId::new(stream as u64));
    addr.map_or(0, |addr| usize::try_from(addr.get()).unwrap_or(0))
}

/// Frees memory, as PyTorch's `raw_delete`.
///
/// # Safety
///
/// `shared` was returned by [`blockyard_create`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_free(shared: &AbiAllocator, addr: usize) {
    // Where PyTorch throws, a wrong free shows in the statistics, which are compared.
    let _ = shared.free(DeviceAddr::new(addr as u64));
}

/// Records the use of memory on a stream, as PyTorch's `recordStream`.
///
/// # Safety
///
/// `shared` was returned by [`blockyard_create`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_record_stream(shared: &AbiAllocator, addr: usize, stream: usize) {
    let _ = shared.record_stream(DeviceAddr::new(addr as u64), StreamId::new(stream as u64));
}

/// Completes all work that the stream has so far.
///
/// # Safety
///
/// `shared` was returned by [`blockyard_create`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_advance(shared: &AbiAllocator, stream: usize) {
    shared.with(|allocator| allocator.device_mut().advance(StreamId::new(stream as u64)));
}

/// Completes all work of all streams.
///
/// # Safety
///
/// `shared` was returned by [`blockyard_create`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_advance_all(shared: &AbiAllocator) {
    shared.with(|allocator| allocator.device_mut().advance_all());
}

/// Releases cached segments, as PyTorch's `emptyCache`.
///
/// # Safety
///
/// `shared` was returned by [`blockyard_create`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_empty_cache(shared: &AbiAllocator) {
    let _ = shared.with(CachingAllocator::empty_cache);
}

/// Sets peaks to current values and accumulated counts to zero.
///
/// # Safety
///
/// `shared` was returned by [`blockyard_create`] and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_reset_stats(shared: &AbiAllocator) {
    shared.with(|allocator| {
        allocator.reset_peak_stats();
        allocator.reset_accumulated_stats();
    });
}

/// Writes the 122 numbers of `memory_stats()`: nine arrays of all, small and large, each as current, peak,
/// allocated and freed; two oversize counts; five counters; `max_split_size`.
///
/// # Safety
///
/// `shared` as in [`blockyard_allocate`]; `into` has room for 122 numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_stats(shared: &AbiAllocator, into: *mut i64) {
    let stats = shared.with(|allocator| allocator.stats());
    let arrays = [
        stats.allocation,
        stats.segment,
        stats.active,
        stats.inactive_split,
        stats.allocated_bytes,
        stats.reserved_bytes,
        stats.active_bytes,
        stats.inactive_split_bytes,
        stats.requested_bytes,
    ];
    let mut values: Vec<i64> = arrays.iter().flat_map(array).collect();
    values.extend(stat(&stats.oversize_allocations));
    values.extend(stat(&stats.oversize_segments));
    values.extend([
        stats.num_alloc_retries,
        stats.num_ooms,
        stats.num_sync_all_streams,
        stats.num_device_alloc,
        stats.num_device_free,
        stats.max_split_size,
    ]);
    values.resize(STATS, 0);
    // SAFETY: `values` has 122 numbers and the caller has room for as many.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), into, STATS) };
}

fn array(array: &StatArray) -> Vec<i64> {
    [array.all, array.small_pool, array.large_pool].iter().flat_map(stat).collect()
}

fn stat(stat: &Stat) -> [i64; 4] {
    [stat.current, stat.peak, stat.allocated, stat.freed]
}
