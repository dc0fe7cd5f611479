//! The allocator as a shared library that PyTorch loads with `torch.cuda.memory.CUDAPluggableAllocator`.
//!
//! `hooks` has the functions that PyTorch calls: [`blockyard_malloc`] and [`blockyard_free`], which it takes
//! by name, and those that it takes by address. `answers` has functions that PyTorch has only for its own
//! allocator: statistics, snapshots, recordings; `python/blockyard_torch.py` beside this crate calls them.
//! `devices` keeps one allocator for each device, made when it is first used. `history` keeps events while a
//! recording or a trace is on; `files` writes them. `python_stack` takes the Python stack of a thread.
//! `filter` has the C++ values that PyTorch passes to hooks of memory pools. `cause` says in a sentence why a
//! request found no memory, and `error` has the errors.
//!
//! No panic leaves this library: `border` turns errors and panics into a null pointer or an error code with a
//! message.
//!
//! # Example
//!
//! `python/blockyard_torch.py` loads the library into PyTorch. A program in Rust can call the same functions:
//!
//! ```
//! // 0 says that the allocator can use the settings of `PYTORCH_CUDA_ALLOC_CONF`.
//! assert_eq!(blockyard_torch_plugin::blockyard_check_settings(), 0);
//! ```
//!
//! # Decisions
//!
//! - One allocator exists for each device until the process ends. It is never dropped, because the driver may
//!   be unloaded first.
//! - After a panic the library allocates nothing any more, because half a step could allocate the same memory
//!   twice.
//! - Events are kept only while a recording or a history is on: a sink tests one flag for each event.
//! - What a trace cannot show (a reset, an `empty_cache` of an empty cache) is left out of a recording's
//!   statistics, so that the replay is identical.

mod answers;
mod border;
mod cause;
mod devices;
mod error;
mod files;
mod filter;
mod history;
mod hooks;
mod python_stack;

pub use answers::{
    blockyard_check_settings, blockyard_empty_cache, blockyard_follow_release, blockyard_free_text,
    blockyard_last_error, blockyard_memory_stats, blockyard_memory_summary, blockyard_record_finish,
    blockyard_record_mark, blockyard_record_start, blockyard_reset_accumulated_stats,
    blockyard_reset_peak_stats, blockyard_snapshot, blockyard_trace_stacks, blockyard_trace_start,
    blockyard_trace_stop,
};
pub use filter::{MempoolId, StreamFilter};
pub use hooks::{
    blockyard_base_alloc, blockyard_begin_allocate_to_pool, blockyard_end_allocate_to_pool, blockyard_free,
    blockyard_init, blockyard_malloc, blockyard_malloc_or_exit, blockyard_memory_fraction,
    blockyard_record_stream, blockyard_release_pool, blockyard_reset, blockyard_try_malloc,
};
