//! Our allocator held against PyTorch's own library, operation by operation.

mod native;
mod wheel;

pub use native::{build_cudart, compile};
pub use wheel::{WheelPaths, find_wheel, wheel};
