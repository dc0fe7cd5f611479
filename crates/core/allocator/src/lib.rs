//! PyTorch's CUDA caching allocator (`c10/cuda/CUDACachingAllocator.cpp`, releases 2.6 to 2.15), to the
//! byte.
//!
//! [`CachingAllocator`] allocates segments from a [`DeviceMemory`](blockyard_device::DeviceMemory), splits
//! them into blocks for its callers, and caches freed blocks for the next request. With the same requests and
//! the same segment addresses it returns the addresses, statistics, trace and snapshot that PyTorch returns.
//! The cross-crate tests check that against recordings of the real library.
//!
//! # Example
//!
//! Two requests share a segment. A freed block serves the next request of its size:
//!
//! ```
//! use blockyard_allocator::CachingAllocator;
//! use blockyard_rules::AllocatorConfig;
//! use blockyard_device::VirtualDevice;
//! use blockyard_record::{Bytes, NullSink, StreamId};
//!
//! let device = VirtualDevice::new(Bytes::gib(1));
//! let mut allocator = CachingAllocator::new(device, AllocatorConfig::default(), NullSink);
//! let first = allocator.allocate(Bytes::mib(3), StreamId::DEFAULT)?;
//! let second = allocator.allocate(Bytes::mib(5), StreamId::DEFAULT)?;
//! assert_eq!(allocator.snapshot().segments.len(), 1);
//! assert_eq!(second.addr(), first.addr().offset(Bytes::mib(3)));
//!
//! let addr = first.addr();
//! allocator.free(first)?;
//! let third = allocator.allocate(Bytes::mib(3), StreamId::DEFAULT)?;
//! assert_eq!(third.addr(), addr);
//! assert_eq!(allocator.stats().allocated_bytes.all.current, 8 << 20);
//! assert_eq!(allocator.stats().reserved_bytes.all.current, 20 << 20);
//! # Ok::<(), blockyard_allocator::AllocError>(())
//! ```
//!
//! # Reading order
//!
//! Thresholds, rounding and settings are in [`blockyard_rules`]. `block` (the only owner of blocks), `bins`
//! and `free_list` (free blocks ordered by stream, size, address), `counters` (statistics), `memory_pool`
//! (memory pools and scopes), `allocator` and `request` (what `allocate` and `free` do, one action after the
//! other), `best_fit` (which free block serves a request), `segment` (splits and merges), `stream` (pending
//! frees), `reclaim` (garbage collection, a new segment, releases of oversize blocks and of the whole cache),
//! `expandable` (expandable segments), `shared` with `addr_table` (several threads, and frees by address),
//! `beginning` (an allocator that begins with a snapshot), `snapshot`, `queries`, `invariants`, `numbering`
//! (new ids for everything that exists), `error`.
//! Three more modules are other allocators, and the choice between them: `malloc_async` (the driver's memory
//! pool), `backend` (the choice between the two allocators) and `host` (pinned host memory).
//!
//! # Decisions
//!
//! - **Ids follow PyTorch's block objects.** A split makes a new object for the front and keeps the old
//!   object for the remainder; a merge keeps the object of the block that is being freed. So stale
//!   `requested_size` values equal PyTorch's, and a figure has keys that survive a split.
//! - **Expandable segments are one more way to find space** (`reclaim::find_new_block`). They need the
//!   optional part of the device trait ([`VirtualMemory`](blockyard_device::VirtualMemory)).
//! - **Memory pools are pairs of block pools** beside the default pair; `AllocParams` names the memory pool
//!   of its request.
//! - **`malloc_async` is another allocator**: PyTorch's thin layer over a model of the driver's pool, which
//!   was derived from a recording. Its events are those of a segment that grows, so that figures need no
//!   special case. What PyTorch reports under it is a projection of the statistics
//!   ([`Stats::reported_by`](blockyard_record::Stats::reported_by)). `replay` uses `backend`, which selects
//!   one of the two.
//! - **`host` caches pinned memory** over [`HostMemory`](blockyard_device::HostMemory).
//!
//! # Invariants
//!
//! 1. The blocks of a segment cover the segment exactly, in address order, and are linked in both directions.
//! 2. Two neighbors are never both inactive nor both unmapped, because they are merged at once. (A pending
//!    block is active.)
//! 3. A block is among the cached blocks of a free list exactly when it is inactive, and among the unmapped
//!    blocks of a free list exactly when it is unmapped.
//! 4. Every block size is a multiple of 512 and at least 512.
//! 5. The current values of the statistics are the sums over the blocks. (Not so `oversize_allocations` and
//!    `oversize_segments`, which go by the setting at the time of each request.)
//! 6. Blocks never move between streams: a block serves the stream that its segment was allocated for.
//!
//! [`CachingAllocator::check`] tests the first five, and that the blocks of a segment belong to one stream.
//! That no block changes its stream between two requests is tested on random runs
//! (`tests/tests/it/properties/follow.rs`).
//!
//! # What is modeled
//!
//! One device of the native backend with every setting that decides a device address: `max_split_size_mb`,
//! `max_non_split_rounding_mb`, `roundup_power2_divisions`, `garbage_collection_threshold`,
//! `large_segment_size_mb`, `per_process_memory_fraction`, `throw_on_cudamalloc_oom`, `expandable_segments`
//! and `expandable_segments_reserve`; memory pools of programs and captures. The settings name the release
//! whose rules hold ([`blockyard_rules::Release`]). `backend:cudaMallocAsync` is another allocator,
//! [`MallocAsyncAllocator`], and [`BackendAllocator`] is the one that the settings ask for. [`HostAllocator`]
//! caches pinned host memory. Not modeled: the checkpoints of memory pools that CUDA graph trees take
//! (`getCheckpointState`), and pools with their own allocator.
//!
//! # Deviations
//!
//! Where PyTorch's order is that of a hash table, ours is fixed:
//!
//! * Completed frees are collected stream by stream in ascending order of the handle, and frees that waited
//!   for the end of a scope in the order of their requests.
//! * Pools out of use are released, and pools with `use_on_oom` are asked, in the order of creation.
//!
//! Where PyTorch has a known defect or stops with an internal assertion, ours does what the code is meant to
//! do:
//!
//! * A second scope on a pool is refused without counting a use of the pool; PyTorch counts first and so
//!   leaks it.
//! * A pool whose last use was released while a scope on it is open exists until the scope is closed.
//! * A pool may be released while a scope on another pool is open; PyTorch fails with an assertion.
//! * A stream that [`CachingAllocator::record_stream`] recorded inside of a scope is forgotten when the
//!   allocation is freed. If the free comes outside of a scope, PyTorch keeps the stream under the host
//!   address of the block object, and applies it to a later block object at that address, which then may be
//!   reused too early.
//! * A pool with `use_on_oom` serves other requests also while a scope for another stream is open on it;
//!   PyTorch fails with "already recording".
//! * A block of a split segment is never released alone. PyTorch does that when `max_split_size_mb` became
//!   smaller, or when `expandable_segments` was switched on too, and damages its own state.
//! * Up to release 2.7, `empty_cache` in a capture is an assertion in PyTorch; here it does what it does in 2.8.
//! * A capture that was announced counts for every stream; PyTorch also asks whether the current stream is
//!   captured.
//! * `expandable_segments_reserve_by_class` is read and has no effect: only C++ programs tag streams with
//!   classes.
//! * `allocateWithAddress` (2.13), a request for a given address inside of a free block
//!   (`UntypedStorage._resize_with_addr_` in Python), is missing. It exists for tensors that CUDA graphs read
//!   at fixed addresses; no operator asks for it, and PyTorch's interface for plug-ins refuses it, so that no
//!   request of a workload, of a program or of the plug-in has an address. A trace that contains one is
//!   replayed by best fit: where that chooses another address, the certificate has it as the first
//!   difference.
//! * In 2.13 a pinned request above `pinned_max_round_threshold_mb` may get a cached block that is too small
//!   for it; here it gets one that is large enough, as in PyTorch from 2.14 on.
//! * Fractions in settings are decimal; PyTorch reads them with C++, where `0x.8` is one half.
//! * A pool out of use never ends before its last block does. PyTorch uses a counter that is wrong when
//!   expandable segments are mapped and unmapped in unequal pieces, and may end the pool too early, which
//!   leaves garbage in snapshots.
//! * The statistics of active pinned memory fall by the block when its free completes; releases 2.11 and 2.12
//!   skip blocks that no stream has used, and decrease the bytes by 1 for the others. See [`HostAllocator`].
//!
//! Where our interface differs from PyTorch's:
//!
//! * [`CachingAllocator::free`] takes the allocation, not its address, so that a double free does not
//!   compile. An allocation of another allocator is an error, and nothing changes. The same holds for the
//!   other allocators.
//! * All functions refuse requests of 2^60 bytes and more; in PyTorch only the functions that allocate
//!   tensors do. Pinned requests above 2^63 bytes, which PyTorch rounds up to zero, are refused too.
//! * Errors about settings that C++ cannot read as numbers, or that end too early, have PyTorch's text and
//!   name the token.
//! * The driver's pool under `backend:cudaMallocAsync` is a model: see [`malloc_async`].

mod addr_table;
mod allocator;
mod backend;
mod beginning;
mod best_fit;
mod bins;
mod block;
mod counters;
mod error;
mod expandable;
mod free_list;
pub mod host;
mod invariants;
pub mod lock;
pub mod malloc_async;
mod memory_pool;
mod numbering;
mod queries;
mod reclaim;
mod request;
mod segment;
mod shared;
mod snapshot;
mod stream;

pub use allocator::{Allocation, CachingAllocator};
pub use backend::{BackendAllocation, BackendAllocator, UncachedAllocation};
pub use error::{AllocError, Corruption, MallocAsyncOutOfMemory, OomAdvice, OutOfMemory};
pub use host::{HostAllocation, HostAllocator, HostError};
pub use malloc_async::{MallocAsyncAllocation, MallocAsyncAllocator};
pub use memory_pool::PoolOptions;
pub use shared::SharedAllocator;
