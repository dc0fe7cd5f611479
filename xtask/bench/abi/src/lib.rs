//! Our allocator for callers in other languages.
//!
//! Natively this is a library with a C ABI around [`SharedAllocator`](blockyard_allocator::SharedAllocator),
//! lock and statistics included, with the signatures of the virtual functions of PyTorch's allocator: the
//! same loop calls both. As WebAssembly it is the loop of `blockyard_measure` with a few exports. `native`
//! has the C ABI, `floor` an allocator that does as little as possible, `page` the exports for WebAssembly.
#![expect(unsafe_code, reason = "functions that C and JavaScript call by name")]

#[cfg(not(target_arch = "wasm32"))]
pub mod floor;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
#[cfg(target_arch = "wasm32")]
pub mod page;
