//! `cargo xtask update`: files that follow from others, written again.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::workspace::{self, Workspace};

/// What is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpdateTarget {
    /// JSON Schema, classes of the Python package and tables of the documents, from the types of
    /// crates/base/answers.
    Answers,
    /// Scenes and words of the figure, in crates/show/figure/tests.
    Figure,
    /// What lessons, their errors and their language are expected to be, in crates/show/lessons/tests.
    Lessons,
    /// What the language of workloads is expected to be, in crates/core/workload.
    Workload,
    /// Pictures of segments, in tests/tests/behavior.
    Behavior,
    /// How far recorded programs are equal (`floors.txt`), their lines without a mark (`marked.txt`), and the
    /// second derivatives that count as recorded.
    Programs,
    /// Which nodes of PyTorch's list of derivatives no operator of ours makes (`missing_nodes.txt`).
    Nodes,
    /// What PyTorch's releases want of CUDA's libraries (`symbols.txt`).
    Symbols,
    /// What `watch` needs of PyTorch's releases (`releases.txt`).
    Watch,
}

/// Writes what is named, or all of it.
pub(crate) fn run(workspace: &Workspace, what: &[UpdateTarget], python: &[String]) -> Result<()> {
    let takes_python = [UpdateTarget::Symbols, UpdateTarget::Watch];
    ensure!(
        python.is_empty() || !what.is_empty() && what.iter().all(|what| takes_python.contains(what)),
        "--python belongs to `symbols` and `watch` alone"
    );
    let all = UpdateTarget::value_variants();
    for what in if what.is_empty() { all } else { what } {
        update(workspace, *what, python)?;
    }
    workspace::run(workspace.program("git").args(["status", "--short"]))
}

fn update(workspace: &Workspace, what: UpdateTarget, python: &[String]) -> Result<()> {
    // The tests that compare a file with its sources write the file if a variable says so.
    let (variable, arguments): (&str, &[&str]) = match what {
        UpdateTarget::Answers => {
            let run = ["run", "--quiet", "--package", "blockyard-answers-writer"];
            return workspace::run(&mut workspace.cargo(run));
        }
        UpdateTarget::Nodes => {
            let run = ["run", "--quiet", "--package", "blockyard-torch", "--example", "missing_nodes"];
            let printed = workspace::read(&mut workspace.cargo(run))?;
            let list = workspace.root().join("crates/programs/torch/src/autograd/missing_nodes.txt");
            return fs::write(&list, printed).with_context(|| list.display().to_string());
        }
        UpdateTarget::Figure => ("UPDATE_EXPECT", &["--package", "blockyard-figure"]),
        UpdateTarget::Lessons => ("UPDATE_EXPECT", &["--package", "blockyard-lessons"]),
        UpdateTarget::Workload => ("UPDATE_EXPECT", &["--package", "blockyard-workload"]),
        UpdateTarget::Behavior => ("UPDATE_EXPECT", &["--package", "blockyard-tests", "--test", "behavior"]),
        UpdateTarget::Programs => {
            let run = ["run", "--quiet", "--package", "blockyard-python", "--example", "recorded", "update"];
            return workspace::run(&mut workspace.cargo(run));
        }
        UpdateTarget::Symbols => ("UPDATE", &["--package", "blockyard-dry-run", "--test", "it", "symbols"]),
        UpdateTarget::Watch => ("UPDATE", &["--package", "blockyard-watch", "--lib", "known_releases"]),
    };
    let mut cargo = workspace.cargo(["test", "--quiet"]);
    cargo.args(arguments).env(variable, "1");
    if !python.is_empty() {
        cargo.env("TORCH", python.join(":"));
    }
    workspace::run(&mut cargo)
}
