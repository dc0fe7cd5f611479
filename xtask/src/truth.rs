//! `cargo xtask truth`: our programs, operators and dry runs, compared with PyTorch. Tests of
//! `crates/programs/python` compare the recorded programs, the package in `xtask/truth` all else.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Subcommand;

use crate::workspace::{self, Workspace};
use crate::{PassedArguments, wheel};

/// The comparisons of which each is a subcommand.
pub(crate) const PACKAGE: &str = "blockyard-truth";

/// What is compared.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Truth {
    /// Lines, allocations and frees of recorded programs; of one that is named, what differs.
    Programs {
        /// Names as `programs/dqn`, with commas between; all programs where none is named.
        names: Option<String>,
        /// Other recordings, in the form of `tests/fixtures/pytorch_programs/recorded.jsonl.gz`.
        #[arg(long, value_name = "FILE")]
        recorded: Option<PathBuf>,
        /// Write the requests of the named program there, each with number, bytes, line and operator of its
        /// allocation.
        #[arg(long, value_name = "FILE", requires = "names")]
        requests: Option<PathBuf>,
        /// Take what cuDNN allocated in the named program into the tables, where they have nothing for a
        /// shape yet; the folder has the recording with its addresses, `dqn.json.gz`.
        #[arg(long, value_name = "FOLDER", requires = "names")]
        learn: Option<PathBuf>,
    },
    /// The lines of recorded programs that differ, and which of them are marked as uncertain; of one that is
    /// named, the marks.
    Marks {
        /// Names as `programs/dqn`, with commas between; all programs where none is named.
        names: Option<String>,
    },
    /// Operator calls that a GPU recorded, run by our operators; `--help` tells more.
    #[command(disable_help_flag = true)]
    OperatorCalls(PassedArguments),
    /// Programs that a GPU recorded, run by a dry run; `--help` tells more.
    #[command(disable_help_flag = true)]
    DryRun(PassedArguments),
    /// Random operator calls and programs, run by our operators and by PyTorch's own code without a GPU;
    /// `--help` tells more.
    #[command(disable_help_flag = true)]
    TorchOracle(PassedArguments),
}

/// Runs what is compared and prints the comparison.
pub(crate) fn run(workspace: &Workspace, what: &Truth) -> Result<()> {
    match what {
        Truth::Programs { names: Some(names), recorded, learn: Some(folder), .. } => {
            // An example writes the tables, because the test only compares.
            let run = ["run", "--quiet", "--package", "blockyard-python", "--example", "recorded", "learn"];
            let mut cargo = workspace.cargo(run);
            cargo.arg(std::path::absolute(folder)?).arg(names);
            if let Some(recorded) = recorded {
                cargo.arg(std::path::absolute(recorded)?);
            }
            workspace::run(&mut cargo)
        }
        Truth::Programs { names, recorded, requests, .. } => {
            let mut variables: Vec<(&str, OsString)> = Vec::new();
            if let Some(names) = names {
                ensure!(requests.is_none() || !names.contains(','), "--requests is for one program");
                variables.push(("COMPARE", names.into()));
            }
            // The test runs in the folder of its package.
            for (name, path) in [("RECORDED", recorded), ("REQUESTS", requests)] {
                if let Some(path) = path {
                    variables.push((name, std::path::absolute(path)?.into()));
                }
            }
            test(workspace, "recorded_programs_print_and_allocate_what_they_did_on_an_h200", &variables)
        }
        Truth::Marks { names } => {
            let named = names.iter().flat_map(|names| [("COMPARE", names.into()), ("MARKS", "1".into())]);
            let named: Vec<(&str, OsString)> = named.collect();
            test(workspace, "no_line_that_differs_from_the_recording_lacks_a_mark", &named)
        }
        Truth::OperatorCalls(passed) => {
            let run = ["run", "--quiet", "--package", PACKAGE, "--", "operator-calls"];
            workspace::run(workspace.cargo(run).args(&passed.arguments))
        }
        Truth::DryRun(passed) => dry_run(workspace, &passed.arguments),
        Truth::TorchOracle(passed) => torch_oracle(workspace, &passed.arguments),
    }
}

/// Runs a test of the recorded programs, which prints the comparison if variables ask for it.
fn test(workspace: &Workspace, test: &str, variables: &[(&str, OsString)]) -> Result<()> {
    let run = ["test", "--quiet", "--package", "blockyard-python", "--test", "it", test];
    let mut cargo = workspace.cargo(run);
    cargo.envs(variables.iter().map(|(name, value)| (name, value))).args(["--", "--nocapture"]);
    workspace::run(&mut cargo)
}

/// Runs recorded programs by a dry run. The stand-in is built first, in the folder of the program that looks
/// for it.
pub(crate) fn dry_run(
    workspace: &Workspace,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<()> {
    workspace::run(&mut workspace.cargo(["build", "--quiet", "--package", "blockyard-standin"]))?;
    let run = ["run", "--quiet", "--package", PACKAGE, "--", "dry-run"];
    workspace::run(workspace.cargo(run).args(arguments))
}

/// Runs random operator calls on PyTorch's own code and on our operators, in an optimized build because of
/// the many calls. The stand-in is built first, in the folder of the program that looks for it. If no
/// argument names a Python, PyTorch is fetched once.
fn torch_oracle(workspace: &Workspace, arguments: &[OsString]) -> Result<()> {
    let packages = ["--package", "blockyard-standin", "--package", PACKAGE];
    workspace::run(workspace.cargo(["build", "--quiet", "--release"]).args(packages))?;
    let run = ["run", "--quiet", "--release", "--package", PACKAGE, "--", "torch-oracle"];
    let mut cargo = workspace.cargo(run);
    let is_named = arguments.iter().any(|argument| {
        let text = argument.to_string_lossy();
        text.starts_with("--python") || text == "--help" || text == "-h"
    });
    if !is_named && std::env::var_os("BLOCKYARD_TORCH_PYTHON").is_none() {
        cargo.env("BLOCKYARD_TORCH_PYTHON", wheel::pytorch(workspace)?);
    }
    workspace::run(cargo.args(arguments))
}
