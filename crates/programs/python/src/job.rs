//! What the process that runs a program is asked to do.

use std::path::PathBuf;
use std::time::Duration;

use blockyard_record::Bytes;
use blockyard_rules::Release;
use serde::{Deserialize, Serialize};

/// A run, as the file `job` in the folder of the run says it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessJob {
    /// The name that tracebacks show.
    pub file: String,
    /// The text of the program.
    pub source: String,
    /// The arguments after the file's name in `sys.argv`.
    pub arguments: Vec<String>,
    /// The folder of the program's own modules.
    pub folder: Option<PathBuf>,
    /// The id of the GPU, such as `h200`.
    pub gpu: String,
    /// All memory of the GPU.
    pub total_memory: Bytes,
    /// How many devices the program sees.
    pub devices: u8,
    /// The release of PyTorch that runs the program.
    pub release: Release,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The non-PyTorch memory of each GPU.
    pub non_pytorch: Bytes,
    /// Whether recordings are made.
    pub is_recorded: bool,
    /// Whether the program is confined, and the folders that it may read then.
    pub readable: Option<Vec<PathBuf>>,
    /// How many operators the program may call.
    pub max_operators: u64,
    /// How many allocations and frees of GPU memory the program may ask for.
    pub max_requests: u64,
    /// How long the program may run.
    pub time_limit: Option<Duration>,
    /// How many bytes of the host's memory the program may use.
    pub host_memory: Option<Bytes>,
    /// The step at which somebody asks why memory is alive.
    pub referrers_at: Option<usize>,
}
