//! For the tests of `blockyard watch --page`: the command, and the program that the command watches.

#[cfg(target_os = "linux")]
mod player;

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    #[cfg(target_os = "linux")]
    if let Some(socket) = std::env::var_os("BLOCKYARD_WATCH_SOCKET") {
        player::play(socket.as_ref())?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(blockyard_cli::run_command(std::env::args_os()))
}
