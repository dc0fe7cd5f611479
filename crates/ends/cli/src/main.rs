//! The `blockyard` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    blockyard_cli::run_command(std::env::args_os())
}
