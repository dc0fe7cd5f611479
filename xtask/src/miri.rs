//! `cargo xtask miri`: the unit tests of the allocator and of its lock in an interpreter that sees undefined
//! behavior and races.

use anyhow::{Context, Result};

use crate::workspace::{self, Workspace};

/// Runs the tests; first installs the nightly toolchain and its Miri if they are missing.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let nightly = |arguments: &[&str]| {
        let mut rustup = workspace.program("rustup");
        rustup.args(["run", "nightly", "cargo"]).args(arguments);
        rustup
    };
    if !workspace::succeeds(&mut nightly(&["miri", "--version"])) {
        let mut install = workspace.program("rustup");
        install.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
        install.args(["--component", "miri", "--component", "rust-src"]);
        workspace::run(&mut install).context("Miri comes with the nightly toolchain, through rustup")?;
    }
    // Miri has a separate folder, because the compiler cannot use its output.
    workspace::run(&mut nightly(&[
        "miri",
        "test",
        "--package",
        "blockyard-allocator",
        "--target-dir",
        "target/miri",
    ]))
}
