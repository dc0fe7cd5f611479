//! The figures as text.
//!
//! In texts, requests are counted from 1: after "request 7", seven requests are complete.

mod event;
mod facts;
mod names;
mod oom;
mod step;
mod story;
mod target;
mod text;

pub use event::describe_event;
pub use facts::block_facts;
pub(crate) use names::pool_heading;
pub use step::{FailureText, StepText, describe_step};
pub use target::describe_target;
pub use text::{breakdown_text, map_text, read_timeline_text, timeline_text};
