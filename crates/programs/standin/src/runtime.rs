//! CUDA's runtime: `libcudart`.

pub(crate) mod device;
pub(crate) mod errors;
pub(crate) mod graphs;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod streams;
pub(crate) mod work;
