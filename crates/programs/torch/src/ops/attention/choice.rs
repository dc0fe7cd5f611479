//! Which kernel computes a call of attention.

use blockyard_gpus::Architecture;

use crate::error::runtime;
use crate::session::AttentionKernels;
use crate::{Dtype, Result, session};

/// The kernels of attention (`SDPBackend`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttentionKernel {
    Cudnn,
    Flash,
    Efficient,
    /// Products of matrices and a softmax.
    Math,
}

/// Sizes of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) batch: i64,
    pub(super) heads: i64,
    pub(super) queries: i64,
    pub(super) keys: i64,
    pub(super) width: i64,
    pub(super) value_width: i64,
}

impl Sizes {
    /// The heads of all batches together.
    pub(super) fn all_heads(self) -> u64 {
        (self.batch * self.heads).max(0) as u64
    }
}

/// PyTorch's error where the program allows no kernel that can run.
pub(super) const NO_KERNEL: &str = "No available kernel. Aborting execution.";

/// The kernel that `sdp_utils.cpp` chooses of those that the program allows: on this GPU cuDNN comes first,
/// then flash attention, then the memory-efficient kernel, then products of matrices. Up to release 2.10 cuDNN
/// comes last.
pub(super) fn choose(sizes: Sizes, dtype: Dtype, has_mask: bool, dropout: f64) -> Result<AttentionKernel> {
    let allowed = session().attention_kernels();
    // `minimum_gemm_alignment`: rows are read 16 bytes at a time.
    let at_once = if dtype.is_reduced_float() { 8 } else { 4 };
    let is_aligned = sizes.width % at_once == 0 && sizes.value_width % at_once == 0;
    let has_cudnn = match session().profile().architecture {
        Architecture::Turing | Architecture::Ampere | Architecture::Ada => false,
        Architecture::Hopper => true,
    };
    // cuDNN's kernel wants more than one key, and more than one query where elements are dropped.
    let is_short = sizes.keys == 1 || (sizes.queries == 1 && dropout > 0.0);
    let is_sixteenths =
        !session().release().cudnn_attention_needs_sixteenths() || (dropout * 16.0).fract() == 0.0;
    let is_reduced = dtype.is_reduced_float();
    let mut kernels = [
        (
            allowed.allows_cudnn
                && is_reduced
                && has_cudnn
                && !is_short
                && is_sixteenths
                && sizes.width % 8 == 0
                && sizes.width <= 256,
            AttentionKernel::Cudnn,
        ),
        // Flash attention is made for rows of up to 256 elements.
        (allowed.allows_flash && is_reduced && !has_mask && sizes.width <= 256, AttentionKernel::Flash),
        (allowed.allows_efficient && is_aligned, AttentionKernel::Efficient),
        (allowed.allows_math, AttentionKernel::Math),
    ];
    if !session().release().prefers_cudnn_attention() {
        kernels.rotate_left(1);
    }
    let Some((_, kernel)) = kernels.into_iter().find(|(is_fit, _)| *is_fit) else {
        return runtime(NO_KERNEL);
    };
    if allowed != AttentionKernels::ALL && kernel != AttentionKernel::Math {
        session().note_estimate(
            "scaled_dot_product_attention",
            "a kernel that the program chose was recorded only where PyTorch chooses it on its own",
        );
    }
    Ok(kernel)
}
