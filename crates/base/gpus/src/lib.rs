//! GPUs as PyTorch sees them, and the recorded sizes that NVIDIA's libraries ask for: `blockyard-torch` and
//! `blockyard-standin` use both. A person can name a value that only a GPU knows ([`Assumption`]); the
//! command reads the value, and the stand-in for CUDA's library uses it.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "sizes are PyTorch's int64, and sizes in bytes are not negative"
)]

mod address_order;
mod architecture;
mod assumption;
pub mod fft;
pub mod layers;
mod non_pytorch;
mod profile;
pub mod recurrent;
pub mod solver;
pub mod sparse;
pub mod tables;

pub use address_order::DriverAddressOrder;
pub use architecture::Architecture;
pub use assumption::{Assumption, AssumptionError};
pub use non_pytorch::{
    NCCL_CODE, NON_PYTORCH_RECORDED_ON, NonPytorchHolder, SHARED_LIBRARY_BYTES, context_and_libraries,
    left_for_pytorch_text, non_pytorch_bytes, non_pytorch_measured_text, parts_of_training, pytorch_memory,
    pytorch_memory_beside,
};
pub use profile::GpuProfile;
