//! The variables with which a dry run tells the stand-in and the runner what is asked.

/// How many GPUs there are.
pub const DEVICES: &str = "STANDIN_DEVICES";
/// The short name of each GPU's profile (`blockyard_gpus::GpuProfile`).
pub const GPU: &str = "STANDIN_GPU";
/// The bytes of each GPU, where they are not those of the profile.
pub const MEMORY: &str = "STANDIN_MEMORY";
/// The version of CUDA.
pub const CUDA: &str = "STANDIN_CUDA";
/// The version of cuDNN.
pub const CUDNN: &str = "STANDIN_CUDNN";
/// The order of the addresses of segments: `driver` (the default), `rising` or `falling`.
pub const ADDRESSES: &str = "STANDIN_ADDRESSES";
/// The file of the report.
pub const REPORT: &str = "STANDIN_REPORT";
/// Values that a person named, one `FILE:LINE=VALUE` a line.
pub const ASSUME: &str = "STANDIN_ASSUME";
/// Any value: large parameters on the host are not initialized.
pub const SKIP_INIT: &str = "BLOCKYARD_DRY_RUN_SKIP_INIT";
/// `1`: bytes of the driver and the libraries count.
pub const NON_PYTORCH: &str = "STANDIN_NON_PYTORCH";
/// The ranks that run, with commas.
pub const RANKS: &str = "STANDIN_RANKS";
/// The address of the store in which processes of one program find each other.
pub const STORE: &str = "STANDIN_STORE";
/// The number (PID) of the program's own process.
pub const PROCESS: &str = "STANDIN_PROCESS";

/// For developers: a file that lists each call of a function of CUDA's.
pub const TRACE: &str = "STANDIN_TRACE";
/// For developers, any value: exceptions in the helper that computes values are printed on standard error.
pub const DEBUG: &str = "STANDIN_DEBUG";
