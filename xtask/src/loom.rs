//! `cargo xtask model`: the tests of the allocator's lock in loom, which runs each in every order of its
//! threads' steps.

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Runs the tests with a separate target folder, because everything is compiled with another setting.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut cargo =
        workspace.cargo(["test", "--release", "--package", "blockyard-allocator", "--lib", "lock::"]);
    cargo.args(["--target-dir", "target/loom"]).env("RUSTFLAGS", "--cfg loom");
    workspace::run(&mut cargo)
}
