//! `cargo xtask truth torch-oracle`, `cargo xtask truth operator-calls` and `cargo xtask truth dry-run`.

use std::path::PathBuf;
use std::process::ExitCode;

use blockyard_truth::dry_run::{self, DryRunOptions};
use blockyard_truth::operator_calls::{self, OperatorCallsOptions};
use blockyard_truth::torch_oracle::{self, TorchOracleOptions};
use clap::Parser;

#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask truth")]
enum Command {
    TorchOracle(TorchOracleOptions),
    OperatorCalls(OperatorCallsOptions),
    DryRun(DryRunOptions),
    /// Our side of the oracle, in a separate process: runs the program of a file.
    #[command(hide = true)]
    Ours {
        source: PathBuf,
        /// The file for the program's run.
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::TorchOracle(options) => torch_oracle::run(&options),
        Command::OperatorCalls(options) => operator_calls::run(&options).map(|()| ExitCode::SUCCESS),
        Command::DryRun(options) => dry_run::run(&options),
        Command::Ours { source, out } => {
            torch_oracle::run_for_another(&source, &out).map(|()| ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
