//! GPUs as PyTorch sees them, for everything that stands for one: `blockyard-torch` and `blockyard-standin`.

mod profile;
pub mod tables;

pub use profile::GpuProfile;
