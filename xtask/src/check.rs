//! `cargo xtask test` and `cargo xtask ci`: the stages, cheap ones first.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::stages::{StageOutcome, Stages};
use crate::workspace::{self, WASM, Workspace};
use crate::{bundle, deps, fuzz, licenses, model, setup, size, wheel};

/// Our packages that do nothing outside WebAssembly.
const WASM_PACKAGES: [&str; 4] =
    ["blockyard-web", "blockyard-gpu", "blockyard-interpreter", "blockyard-wasm-tests"];

/// The device over Vulkan and WebGPU: for both targets, and no default member since it takes long to compile.
const WGPU_PACKAGE: &str = "blockyard-device-wgpu";

/// Runs every test; fails if one does.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let mut stages = Stages::new();
    test_stages(workspace, &mut stages);
    stages.finish()
}

/// Everything that a change must pass; where there is a list, a stage that it does not name may not be skipped.
pub(crate) fn ci(workspace: &Workspace, may_skip: Option<Vec<String>>) -> Result<()> {
    let mut stages = Stages::that_must_run_but(may_skip);
    stages.run("format", || workspace::run(&mut workspace.cargo(["fmt", "--all", "--check"])));
    stages.run("dependency rules", || deps::check(workspace));
    stages.run("licenses", || licenses::check(workspace));
    stages.run_or_skip("advisories", || advisories(workspace));
    stages.run("wasm target", || setup::wasm_target(workspace));
    let native: Vec<_> = WASM_PACKAGES.iter().flat_map(|package| ["--exclude", package]).collect();
    let wasm: Vec<_> =
        WASM_PACKAGES.iter().chain([&WGPU_PACKAGE]).flat_map(|package| ["--package", package]).collect();
    let deny = ["--", "-D", "warnings"];
    stages.run("lints, native", || {
        let arguments =
            [&["clippy", "--keep-going", "--workspace", "--all-targets"][..], &native, &deny].concat();
        workspace::run(&mut workspace.cargo(arguments))
    });
    stages.run("lints, wasm", || {
        let arguments =
            [&["clippy", "--keep-going", "--all-targets", "--target", WASM][..], &wasm, &deny].concat();
        workspace::run(&mut workspace.cargo(arguments))
    });
    stages.run("docs", || {
        for arguments in [
            [&["doc", "--no-deps", "--keep-going", "--workspace"][..], &native].concat(),
            [&["doc", "--no-deps", "--keep-going", "--target", WASM][..], &wasm].concat(),
        ] {
            workspace::run(workspace.cargo(arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
        }
        Ok(())
    });
    test_stages(workspace, &mut stages);
    stages.run("model of the lock", || model::run(workspace));
    stages.run("size of the page", || size::check(workspace));
    stages.run_or_skip("page in Firefox", || firefox(workspace));
    stages.run_or_skip("page by Trunk", || bundle::build_with_trunk(workspace));
    stages.run_or_skip("oracle", || short_oracle(workspace));
    stages.run_or_skip("fuzz", || fuzz::run_if_possible(workspace, 20));
    stages.finish()
}

/// The advisories of `RustSec` for the packages of the lock file, with the database that cargo-deny has fetched before.
fn advisories(workspace: &Workspace) -> Result<StageOutcome> {
    if !workspace::succeeds(&mut workspace.cargo(["deny", "--version"])) {
        return Ok(StageOutcome::Skipped(
            "there is no cargo-deny; `cargo install --locked cargo-deny`".to_owned(),
        ));
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    if !home.is_some_and(|home| home.join("advisory-dbs").is_dir()) {
        return Ok(StageOutcome::Skipped(
            "there is no database of advisories; `cargo deny fetch db`".to_owned(),
        ));
    }
    workspace::run(&mut workspace.cargo(["deny", "--offline", "check"]))?;
    Ok(StageOutcome::Passed)
}

/// The page in Firefox, which not every system has with its driver.
fn firefox(workspace: &Workspace) -> Result<StageOutcome> {
    for (name, program) in [("GECKODRIVER", "geckodriver"), ("FIREFOX", "firefox")] {
        let program = std::env::var(name).unwrap_or_else(|_| program.to_owned());
        if !workspace::succeeds(workspace.program(&program).arg("--version")) {
            return Ok(StageOutcome::Skipped(format!("there is no {program}; {name} names one elsewhere")));
        }
    }
    workspace::run(&mut workspace.cargo([
        "test",
        "--package",
        "blockyard-e2e",
        "--test",
        "firefox",
        "--",
        "--ignored",
    ]))?;
    Ok(StageOutcome::Passed)
}

/// A minute against PyTorch's own library, with sequences that are new each time.
fn short_oracle(workspace: &Workspace) -> Result<StageOutcome> {
    /// The oracle's exit status where it was not set up.
    const WHEEL_MISSING: i32 = 3;
    let mut cargo = oracle_command(workspace);
    let status = cargo.args(["--if-present", "--seconds", "60"]).status().context("cannot run the oracle")?;
    match status.code() {
        Some(0) => Ok(StageOutcome::Passed),
        Some(WHEEL_MISSING) => Ok(StageOutcome::Skipped(
            "PyTorch's wheel is not here; `cargo xtask oracle` fetches it (530 MB, once)".to_owned(),
        )),
        _ => bail!("the oracle failed ({status})"),
    }
}

/// Runs our allocator against PyTorch's own library.
pub(crate) fn oracle(
    workspace: &Workspace,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<()> {
    setup::pip(workspace).context("PyTorch's library is fetched with pip")?;
    workspace::run(oracle_command(workspace).args(arguments))
}

/// Recorded operator calls through our operators.
pub(crate) fn zoo(
    workspace: &Workspace,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<()> {
    workspace::run(workspace.cargo(["run", "--quiet", "--package", "blockyard-zoo", "--"]).args(arguments))
}

/// Runs recorded programs by a dry run: the library that stands for CUDA's is built first, beside the program that looks for it.
pub(crate) fn dry_run_truth(
    workspace: &Workspace,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<()> {
    workspace::run(&mut workspace.cargo(["build", "--quiet", "--package", "blockyard-standin"]))?;
    workspace::run(
        workspace.cargo(["run", "--quiet", "--package", "blockyard-dry-run-truth", "--"]).args(arguments),
    )
}

fn oracle_command(workspace: &Workspace) -> Command {
    workspace.cargo(["run", "--quiet", "--release", "--package", "blockyard-oracle", "--"])
}

fn test_stages(workspace: &Workspace, stages: &mut Stages) {
    let mut driver = None;
    let mut page = false;
    stages.run("set-up", || {
        setup::wasm_target(workspace)?;
        driver = Some(setup::browser(workspace)?);
        setup::axe(workspace)
    });
    stages.run("tests, native", || workspace::run(&mut workspace.cargo(["test", "--no-fail-fast"])));
    stages.run("tests, tools", || {
        workspace::run(&mut workspace.cargo([
            "test",
            "--package",
            "xtask",
            "--package",
            "blockyard-serve",
            "--package",
            "blockyard-oracle",
            "--package",
            "blockyard-zoo",
            "--package",
            "blockyard-bench",
        ]))
    });
    // The parts of the page that need no browser; no other stage tests them without a browser.
    stages.run("tests, page, no browser", || {
        workspace::run(&mut workspace.cargo(["test", "--package", "blockyard-web", "--lib"]))
    });
    stages.run("tests, Python package", || wheel::test(workspace));
    stages.run("tests, Vulkan", || {
        setup::vulkan(workspace)?;
        let mut cargo = workspace.cargo(["test", "--no-fail-fast", "--package", WGPU_PACKAGE]);
        if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
            // Mesa complains once for each test where it is not set, though nothing is shown on a screen.
            cargo.env("XDG_RUNTIME_DIR", workspace.tools());
        }
        workspace::run(&mut cargo)
    });
    stages.run("tests, wasm in a browser", || {
        let driver = driver.as_ref().context("there is no browser, see set-up")?;
        let mut cargo = workspace.cargo([
            "test",
            "--no-fail-fast",
            "--package",
            "blockyard-wasm-tests",
            "--package",
            WGPU_PACKAGE,
            "--target",
            WASM,
        ]);
        // A browser that starts beside a compiler needs more than the usual 20 seconds.
        // The test runner would take Firefox where its driver is named too.
        cargo.env("CHROMEDRIVER", driver).env_remove("GECKODRIVER");
        workspace::run(cargo.env("WASM_BINDGEN_TEST_TIMEOUT", "120"))
    });
    stages.run("page", || {
        bundle::build(workspace)?;
        page = true;
        Ok(())
    });
    stages.run("tests, end to end", || {
        let driver = driver.as_ref().context("there is no browser, see set-up")?;
        if !page {
            // An old page in dist/ would pass for the new one.
            bail!("the page was not built");
        }
        end_to_end(workspace, driver)
    });
}

/// The tests of the page in Chromium; prints which of them passed only when they ran a second time, and why the first run failed.
fn end_to_end(workspace: &Workspace, driver: &Path) -> Result<()> {
    let second_runs = workspace.root().join("target/e2e/second-runs.txt");
    if second_runs.exists() {
        fs::remove_file(&second_runs)?;
    }
    let mut cargo = workspace.cargo(["test", "--no-fail-fast", "--package", "blockyard-e2e"]);
    let outcome = workspace::run(cargo.env("CHROMEDRIVER", driver));
    let lines = if second_runs.exists() { fs::read_to_string(&second_runs)? } else { String::new() };
    println!("    tests that ran a second time, with their first error: {}", lines.lines().count());
    lines.lines().for_each(|line| println!("      {line}"));
    outcome
}
