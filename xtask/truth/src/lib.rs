//! Three comparisons with PyTorch, each a command of `cargo xtask truth`.
//!
//! [`torch_oracle`] makes random operator calls and programs on PyTorch's own code and on our operators.
//! [`operator_calls`] makes operator calls that were recorded on a GPU. [`dry_run`] runs programs that
//! were recorded on a GPU.

#![forbid(unsafe_code)]

pub mod dry_run;
mod installed;
pub mod operator_calls;
mod tally;
pub mod torch_oracle;
