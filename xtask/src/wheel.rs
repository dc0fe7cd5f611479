//! The Python package: built by maturin, tested by pytest where it is installed as a user installs it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::{self, Workspace};
use crate::{bundle, setup};

/// Versions that work with the toolchain of the workspace.
const TOOLS: [&str; 2] = ["maturin==1.9.4", "pytest==8.4.2"];

/// Packages that only tests need: readers of Arrow streams, schedulers of many ranks, types.
const TEST_PACKAGES: [&str; 4] =
    ["pyarrow==21.0.0", "polars==1.33.1", "distributed==2025.9.1", "mypy==1.18.2"];

/// Builds the wheel, and the source package where `sdist` is asked for, into `out`.
pub(crate) fn build(workspace: &Workspace, out: &Path, sdist: bool) -> Result<()> {
    let tools = virtual_environment(workspace, "python-tools", &TOOLS)?;
    add_page(workspace)?;
    run_maturin(workspace, &tools, &["build", "--profile", "wheel"], out)?;
    if sdist {
        run_maturin(workspace, &tools, &["sdist"], out)?;
    }
    println!("the wheel is in {}", out.display());
    Ok(())
}

/// Builds the wheel without optimization, installs it into a virtual environment of its own and runs its tests there.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let tools = virtual_environment(workspace, "python-tools", &TOOLS)?;
    let out = workspace.root().join("target/wheel-under-test");
    if out.exists() {
        // A wheel of another version would be found beside the new one.
        fs::remove_dir_all(&out)?;
    }
    add_page(workspace)?;
    run_maturin(workspace, &tools, &["build", "--profile", "dev"], &out)?;
    let environment =
        virtual_environment(workspace, "python-tests", &[&TOOLS[1..], &TEST_PACKAGES].concat())?;
    let wheel = fs::read_dir(&out)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .context("maturin left no wheel")?;
    let python = environment.join("bin/python");
    workspace::run(
        workspace
            .program(&python)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"])
            .arg(&wheel),
    )?;
    workspace::run(workspace.program(&python).args(["-m", "pytest", "--quiet", "crates/wheel/tests"]))
}

/// Puts the built page into the package: notebooks show it, and `blockyard open` serves it.
fn add_page(workspace: &Workspace) -> Result<()> {
    bundle::build_to(workspace, &workspace.root().join("crates/wheel/python/blockyard/page"), None)
}

/// Makes sure that there is a virtual environment with these packages, and returns its folder.
fn virtual_environment(workspace: &Workspace, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = workspace.tools().join(name);
    let stamp = folder.join("packages.txt");
    let wanted = packages.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(folder);
    }
    setup::python_venv(workspace)?;
    workspace::run(workspace.program("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    workspace::run(
        workspace.program(folder.join("bin/python")).args(["-m", "pip", "install", "--quiet"]).args(packages),
    )?;
    fs::write(&stamp, wanted)?;
    Ok(folder)
}

fn run_maturin(workspace: &Workspace, tools: &Path, arguments: &[&str], out: &Path) -> Result<()> {
    let mut maturin = workspace.program(tools.join("bin/maturin"));
    maturin.args(arguments).args(["--manifest-path", "crates/wheel/Cargo.toml", "--out"]).arg(out);
    workspace::run(&mut maturin)
}
