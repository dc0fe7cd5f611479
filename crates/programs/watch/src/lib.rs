//! Watches a running PyTorch program: `blockyard watch`.
//!
//! The crate is both ends of a stream. As a shared library it is loaded into the program by `python/`, attaches
//! to the trace of PyTorch's own allocator (`symbols`, `job`), takes Python stacks (`python_frames`), and sends
//! what it sees from a thread through a bounded `ring`. As a crate it reads these [`Frame`]s, and a [`Watched`]
//! program is the state that they lead to.
//!
//! No PyTorch is linked. Functions of PyTorch's are found by the symbols of its library, and one allocation that
//! is made at the beginning tells whether the entries of the trace are understood.
//!
//! # Example
//!
//! ```
//! use blockyard_watch::{Decoder, Frame};
//!
//! let mut bytes = Vec::new();
//! Frame::Note("hello".to_owned()).write(&mut bytes);
//! let mut decoder = Decoder::default();
//! decoder.add(&bytes);
//! assert_eq!(decoder.next(), Ok(Some(Frame::Note("hello".to_owned()))));
//! ```
//!
//! # Decisions
//!
//! - **The program never waits.** The callback writes into a ring; a full ring counts what it loses, and the
//!   next step sends PyTorch's snapshot, from which the state goes on. A reader that ends ends the watching.
//! - **An event has the time that PyTorch took**: the processor's counter on x86-64. The callback takes none again.
//! - **Small requests have a stack while that takes at most half a percent of the program's time.** Whether the
//!   GPU or the host limits a program cannot be asked: a stream is idle after each `item()` too, and asking would
//!   break the capture of a graph. So stacks are timed, one in 16.
//! - **PyTorch's settings stay as they are.** No recording of PyTorch's is begun, changed or ended.
//! - **One allocation of 1.5 KiB is made and freed before the first event.** Its segment stays in the cache, as
//!   that of the program's first small tensor would.

mod error;
mod files;
mod frames;
#[cfg(target_os = "linux")]
mod job;
#[cfg(target_os = "linux")]
mod python_frames;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod symbols;
mod watched;

pub use error::{JobError, WatchedError};
pub use files::{ALL_LINES_VARIABLE, ATTACH, CHECK_VARIABLE, LIBRARY, environment, write_attach, write_hook};
pub use frames::{
    Decoder, DeviceMemory, Event, FORMAT, Frame, FrameError, Hello, MAX_DEVICES, StackFrame, StackText,
};
#[cfg(target_os = "linux")]
pub use job::{
    blockyard_watch_begin, blockyard_watch_finish, blockyard_watch_hold, blockyard_watch_note,
    blockyard_watch_out_of_memory, blockyard_watch_set_on, blockyard_watch_snapshot, blockyard_watch_stacks,
    blockyard_watch_stacks_from, blockyard_watch_start, blockyard_watch_step,
};
pub use watched::{DeviceStep, Steps, Watched};
