//! GPUs as PyTorch sees them, for everything that stands for one: `blockyard-torch` and `blockyard-standin`. A value
//! that only a GPU knows can be named by a person ([`Assumption`]): the command reads it and the library that stands for CUDA's uses it.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "sizes are PyTorch's int64, and sizes in bytes are not negative"
)]

mod assumption;
pub mod fft;
pub mod layers;
mod profile;
pub mod solver;
pub mod sparse;
pub mod tables;

pub use assumption::{Assumption, NotAnAssumption};
pub use profile::GpuProfile;
