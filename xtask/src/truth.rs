//! `cargo xtask truth`: programs that run here, compared with what a GPU printed and allocated.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Subcommand;

use crate::workspace::{self, Workspace};

/// What is compared with the recordings.
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
}

/// Runs the programs and prints the comparison.
pub(crate) fn run(workspace: &Workspace, what: &Truth) -> Result<()> {
    if let Truth::Programs { names: Some(names), recorded, learn: Some(folder), .. } = what {
        // An example writes the tables, because the test only compares.
        let run = ["run", "--quiet", "--package", "blockyard-python", "--example", "recorded", "learn"];
        let mut cargo = workspace.cargo(run);
        cargo.arg(std::path::absolute(folder)?).arg(names);
        if let Some(recorded) = recorded {
            cargo.arg(std::path::absolute(recorded)?);
        }
        return workspace::run(&mut cargo);
    }
    let test = match what {
        Truth::Programs { .. } => "recorded_programs_print_and_allocate_what_they_did_on_an_h200",
        Truth::Marks { .. } => "no_line_that_differs_from_the_recording_lacks_a_mark",
    };
    // The test that compares the programs with `floors.txt` prints the comparison if variables ask for it.
    let mut cargo =
        workspace.cargo(["test", "--quiet", "--package", "blockyard-python", "--test", "recorded", test]);
    match what {
        Truth::Programs { names, recorded, requests, .. } => {
            if let Some(names) = names {
                ensure!(requests.is_none() || !names.contains(','), "--requests is for one program");
                cargo.env("COMPARE", names);
            }
            // The test runs in the folder of its package.
            let files = [("RECORDED", recorded), ("REQUESTS", requests)];
            for (variable, path) in files.into_iter().filter_map(|(name, path)| Some((name, path.as_ref()?)))
            {
                cargo.env(variable, std::path::absolute(path)?);
            }
        }
        Truth::Marks { names } => {
            if let Some(names) = names {
                cargo.env("COMPARE", names).env("MARKS", "1");
            }
        }
    }
    cargo.args(["--", "--nocapture"]);
    workspace::run(&mut cargo)
}
