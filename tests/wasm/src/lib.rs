//! Tests that run as WebAssembly in a real browser; see `tests/`.
//!
//! `cargo xtask test` runs them, as does
//! `cargo test --package blockyard-wasm-tests --target wasm32-unknown-unknown` where Chromium and its driver
//! are installed.
