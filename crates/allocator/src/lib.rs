//! PyTorch's CUDA caching allocator (`c10/cuda/CUDACachingAllocator.cpp`, release 2.11.0), to the byte.
//!
//! [`CachingAllocator`] takes segments from a [`DeviceMemory`](blockyard_device::DeviceMemory), cuts them into blocks,
//! hands blocks out, and keeps what is given back for the next request. Given the same requests and the same segment
//! addresses it returns the addresses, statistics, trace and snapshot that PyTorch returns; recordings of the real
//! library, replayed in the cross-crate tests, say so.
//!
//! # Reading order
//!
//! `size` (thresholds and rounding), `config` (settings), `block` (the only owner of blocks), `bins` and `pool` (free blocks in
//! best-fit order), `counters` (statistics in few numbers), `private_pool` (memory pools and scopes), `allocator` (what callers
//! ask for) and `request` (an allocation, as the list of its steps), `segment` (splits and merges), `stream` (pending frees),
//! `reclaim` (what happens when nothing fits), `expandable` (segments that get memory page by page), `shared` with `addr_table`
//! (several threads, and blocks known by their addresses), `beginning` (taking over a run in the middle), `snapshot`,
//! `queries`, `invariants`. Beside them stand the driver's pool (`malloc_async`), the choice between the two (`backend`) and
//! pinned host memory (`host`).
//!
//! # Invariants
//!
//! 1. The blocks of a segment cover it exactly, in address order, linked both ways.
//! 2. Two neighbors are never both inactive, nor both unmapped: they merge at once. (A pending block is active.)
//! 3. A block is in its pool's free set exactly when it is inactive, and among the unmapped ones exactly when it is unmapped.
//! 4. Every block size is a multiple of 512 and at least 512.
//! 5. The statistics' current values are what the blocks add up to.
//! 6. Free blocks never move between streams.
//!
//! [`CachingAllocator::check`] tests all of them.
//!
//! # What is modeled
//!
//! One device of the native backend with every setting that decides a device address: `max_split_size_mb`,
//! `max_non_split_rounding_mb`, `roundup_power2_divisions`, `garbage_collection_threshold`, `large_segment_size_mb`,
//! `per_process_memory_fraction` and `expandable_segments`; memory pools of programs and captures. `backend:cudaMallocAsync` is
//! another allocator, [`AsyncAllocator`], and [`BackendAllocator`] is the one that the settings ask for. [`HostAllocator`] caches pinned
//! host memory. Not yet: checkpoints of pools, pools with an allocator of their own.
//!
//! # Deviations
//!
//! Where PyTorch leaves an order to a hash table, which nothing may rely on, ours is fixed:
//!
//! * Completed frees are collected stream by stream in ascending order of the handle, and frees that waited for the end of a
//!   scope in the order of their requests.
//! * Pools that nobody uses are released, and pools that lend are asked, in the order of their making.
//!
//! Where PyTorch is known to be broken or stops with an internal assertion, ours does what was meant:
//!
//! * A second scope on a pool is refused without counting a use of the pool; PyTorch counts first and so leaks it.
//! * A pool whose every use was given up while a scope on it is open lasts until the scope is closed.
//! * A pool may be given up while a scope on another one is open; PyTorch trips over an assertion.
//! * What [`CachingAllocator::record_stream`] noted inside of a scope ends with the allocation. PyTorch keeps it by the block's place in
//!   the host's memory when the free comes outside of a scope, and takes it for that of a later block there, which then may be
//!   reused too early.
//! * A pool that serves on want of memory does so also while a scope for another stream is open on it; PyTorch fails with
//!   "already recording" in place of memory.
//! * A part of a divided segment is never released by itself. PyTorch does that when `max_split_size_mb` became smaller, or when
//!   `expandable_segments` was switched on beside it, and damages its own state.
//! * Fractions in settings are decimal; PyTorch, reading them with C++, takes `0x.8` for one half.
//! * An unused pool never ends before its last block does. PyTorch goes by a counter that is wrong when expandable segments are
//!   mapped and unmapped in unequal pieces, and may end the pool too early, which leaves garbage in snapshots.
//! * [`CachingAllocator::pool_snapshot`] lists all memory of expandable segments, also behind a gap.
//! * The active blocks of pinned memory fall by the block when it becomes reusable; release 2.11 leaves out what no stream has
//!   used, and counts the bytes of the others as -1. See [`HostAllocator`].
//!
//! Where a program of ours is not one of PyTorch's:
//!
//! * [`CachingAllocator::free`] takes the allocation, not its address, so that a double free does not compile; one of
//!   another allocator is an error that leaves everything as it was. The same holds for the other allocators.
//! * Requests of 2^60 bytes and more are refused at every door; PyTorch looks only where tensors are allocated. Pinned
//!   requests above 2^63 bytes, which it would round up to nothing, are refused too.
//! * Settings that C++ cannot read as numbers, or that end too early, name the token beside PyTorch's word.
//! * The driver's pool under `backend:cudaMallocAsync` is a model: see [`malloc_async`].

#![forbid(unsafe_code)]

mod addr_table;
mod allocator;
mod backend;
mod beginning;
mod bins;
mod block;
mod config;
mod counters;
mod error;
mod expandable;
pub mod host;
mod invariants;
pub mod malloc_async;
mod pool;
mod private_pool;
mod queries;
mod reclaim;
mod request;
mod segment;
mod shared;
pub mod size;
mod snapshot;
mod stream;

pub use allocator::{Allocation, CachingAllocator};
pub use backend::{BackendAllocation, BackendAllocator, UncachedAllocation};
pub use config::{AllocatorConfig, Environment, EnvironmentError, PinnedConfig};
pub use error::{AllocError, ConfigError, Corruption, MallocAsyncOutOfMemory, OutOfMemory};
pub use host::{HostAllocation, HostAllocator, HostError};
pub use malloc_async::{AsyncAllocation, AsyncAllocator};
pub use private_pool::PoolOptions;
pub use shared::SharedAllocator;
