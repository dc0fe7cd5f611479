//! The `blockyard` command.

use std::process::ExitCode;

#[cfg(feature = "python")]
#[global_allocator]
static HEAP: blockyard_cli::CountedHeap = blockyard_cli::CountedHeap;

fn main() -> ExitCode {
    blockyard_cli::run_command(std::env::args_os())
}
