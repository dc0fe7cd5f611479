//! `cargo xtask bench`: builds the benchmark and runs it.

use std::ffi::OsString;

use anyhow::Result;

use crate::metadata;
use crate::workspace::{self, Workspace};

/// Builds the benchmark and our library that it loads, and runs it with `arguments`.
pub(crate) fn run(workspace: &Workspace, arguments: &[OsString]) -> Result<()> {
    let packages = ["--package", "blockyard-bench", "--package", "blockyard-bench-abi"];
    workspace::run(&mut workspace.cargo([&["build", "--profile", "bench"][..], &packages].concat()))?;
    let program = metadata::read(workspace)?.target_directory.join("release/blockyard-bench");
    workspace::run(workspace.program(program).args(arguments))
}
