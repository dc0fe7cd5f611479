//! The setting `backend`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which of PyTorch's device allocators a run uses (the setting `backend`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Backend {
    /// PyTorch's own caching allocator.
    #[default]
    Native,
    /// The driver's stream-ordered memory pool.
    CudaMallocAsync,
}

impl Backend {
    /// The name in settings, also what `torch.cuda.get_allocator_backend()` returns.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::CudaMallocAsync => "cudaMallocAsync",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
