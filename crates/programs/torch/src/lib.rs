//! PyTorch's tensors, operators and automatic differentiation, as far as memory goes: shapes, types and
//! storages, and no values on a GPU.
//!
//! A [`Session`] holds what PyTorch keeps in globals. Operators are called by name ([`call`]) or as methods
//! of [`Tensor`]; each takes and gives back GPU memory in the order in which PyTorch 2.11 does, from our
//! allocator over a virtual device. The workspaces of libraries and the kernels of attention follow the
//! release of the session. An operator whose memory is an unverified estimate, which no record of a real GPU
//! proves, leaves an [`EstimatedOperator`](blockyard_answers::EstimatedOperator).
//!
//! # Example
//!
//! The product of two tensors takes another block, which is freed with the tensor:
//!
//! ```
//! use std::rc::Rc;
//!
//! use blockyard_torch::{Device, Session, SessionSettings, Value, call, install, session};
//!
//! install(Rc::new(Session::new(SessionSettings::default())));
//! let shape = Value::from(&[1024, 1024][..]);
//! let a = call("randn", &[shape], &[("device", Device::Cuda(0).into())])?;
//! let product = call("mul", &[a.clone(), a.clone()], &[])?;
//! assert_eq!(session().device(0)?.stats().allocated_bytes.all.current, 8 << 20);
//! drop((a, product));
//! # Ok::<(), blockyard_torch::TorchError>(())
//! ```
//!
//! # Reading order
//!
//! `dtype` and `value` (plain data), `memory` (one GPU), `session` (globals), `geometry`, `storage`, `tensor`
//! and `sparse`, `schema`, `arguments` and `registry` (calls by name), `iterator` (shapes and strides of
//! results), `ops` (the operators, by family), `autograd`, `autocast`, `generator` (random numbers), `limits`
//! (when a program is stopped), `error`.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "sizes are PyTorch's int64, and sizes in bytes are not negative"
)]
#![allow(clippy::similar_names, clippy::many_single_char_names, reason = "ATen's names: mat1, mat2, q, k, v")]

mod arguments;
pub mod autocast;
pub mod autograd;
mod dtype;
mod error;
mod generator;
mod geometry;
mod iterator;
mod limits;
pub mod memory;
mod ops;
mod registry;
mod schema;
pub mod session;
mod sparse;
mod storage;
mod tensor;
mod value;

pub use dtype::{Dtype, promote};
pub use error::{ForeignError, Result, TorchError};
pub use geometry::{channels_last_strides, contiguous_strides, numel};
pub use registry::{Operator, call, lookup, names};
pub use session::{Session, SessionSettings, install, session};
pub use sparse::SparseParts;
pub use storage::{Device, Storage};
pub use tensor::{Shape, Tensor, TensorImpl, TensorObject};
pub use value::{MemoryFormat, Scalar, Value};

#[cfg(test)]
mod tests;
