//! The `blockyard` command: `run` operations, `verify` recordings, `play` workloads, `bench` devices, ask
//! questions about runs (`what-if`).

mod bench;
mod device;
mod options;
mod output;
mod play;
mod progress;
mod questions;
mod run;
mod verify;

use std::process::ExitCode;

use clap::Parser;

use crate::options::{Command, Options};

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match &options.command {
        Command::Run(options) => run::run(options),
        Command::Verify(options) => verify::verify(options),
        Command::Play(options) => play::play(options),
        Command::Bench(options) => bench::bench(options),
        Command::WhatIf(options) => questions::what_if::what_if(options),
    };
    match result {
        Ok(code) => code,
        // A reader that has seen enough (`| head`) is no error.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
