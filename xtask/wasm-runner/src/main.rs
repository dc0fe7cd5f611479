//! The runner that cargo calls for tests built for WebAssembly (see `.cargo/config.toml`).
//!
//! It is wasm-bindgen's own test runner, built from the library part alone, which downloads nothing, in the
//! version of Cargo.lock.

fn main() -> anyhow::Result<()> {
    wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(std::env::args_os())
}
