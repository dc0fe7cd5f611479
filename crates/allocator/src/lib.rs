//! PyTorch's CUDA caching allocator (`c10/cuda/CUDACachingAllocator.cpp`, release 2.11.0), to the byte.
//!
//! [`CachingAllocator`] takes segments from a [`DeviceMemory`](blockyard_device::DeviceMemory), cuts them into blocks,
//! hands blocks out, and keeps what is given back for the next request. Given the same requests and the same segment
//! addresses it returns the addresses, statistics, trace and snapshot that PyTorch returns; recordings of the real
//! library, replayed in the cross-crate tests, say so.
//!
//! # Reading order
//!
//! `size` (thresholds and rounding), `config` (settings), `block` (the only owner of blocks), `pool` (free blocks in
//! best-fit order), `private_pool` (memory pools and scopes), `allocator` (allocate and free, as lists of their steps),
//! `segment` (splits and merges), `stream` (pending frees), `reclaim` (what happens when nothing fits), `expandable` (segments
//! that get memory page by page), `beginning` (taking over a run in the middle), `snapshot`, `invariants`.
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
//! `per_process_memory_fraction` and `expandable_segments`; memory pools of programs and captures. Not yet:
//! `backend:cudaMallocAsync` (refused with [`ConfigError::Unsupported`]), checkpoints of pools, pools with an allocator of their own.
//!
//! # Deviations
//!
//! * Completed frees are collected stream by stream in ascending order of the handle; PyTorch visits the streams in the
//!   order of a hash table, which nothing may rely on.
//! * [`CachingAllocator::free`] takes the allocation, not its address, so that a double free does not compile; one of
//!   another allocator is an error that leaves everything as it was.
//! * A second scope on a pool is refused without counting a use of the pool; PyTorch counts first and so leaks it.
//! * A pool whose every use was given up while a scope on it is open lasts until the scope is closed.
//! * Pools that nobody uses are released in the order of their making; PyTorch's order is a hash table's.

#![forbid(unsafe_code)]

mod addr_table;
mod allocator;
mod beginning;
mod bins;
mod block;
mod config;
mod counters;
mod error;
mod expandable;
mod invariants;
mod pool;
mod private_pool;
mod reclaim;
mod segment;
mod shared;
pub mod size;
mod snapshot;
mod stream;

pub use allocator::{Allocation, CachingAllocator};
pub use config::AllocatorConfig;
pub use error::{AllocError, ConfigError, Corruption, OutOfMemory};
pub use private_pool::PoolOptions;
pub use shared::SharedAllocator;
