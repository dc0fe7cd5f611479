//! The callback of one pass over requests, events or bytes.

use std::ops::ControlFlow;

/// Gets how much of one pass is done, in the unit of the pass, and may cancel the pass. Work of many passes
/// reports phases in words (`OnProgress` of the crate `replay`).
pub type OnDone<'a, Done = usize> = &'a mut dyn FnMut(Done) -> ControlFlow<()>;
