//! The stages of `cargo xtask test` and `cargo xtask ci`, cheap stages first.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail, ensure};

use crate::stages::{StageOutcome, Stages};
use crate::workspace::{self, WASM, Workspace};
use crate::{bundle, deps, fuzz, licenses, loom, prose, setup, size, truth, wheel};

/// Our packages that do nothing outside WebAssembly.
const WASM_PACKAGES: [&str; 3] = ["blockyard-web", "blockyard-gpu", "blockyard-wasm-tests"];

/// Packages that the stage of native tests leaves to other stages, because their dependencies have features
/// that no other package asks for. Cargo compiles a dependency for the features that all packages of one
/// command ask for together: with these among them, the Python package would compile every dependency a
/// second time.
const TESTED_APART: [&str; 5] = [
    "xtask",
    ANSWERS_WRITER,
    bundle::BINDGEN,
    "blockyard-wasm-runner",
    // Messages of the page's workers, without tests.
    "blockyard-worker",
];

/// Packages that a third stage tests together: those that drive the page, and those over Vulkan. Their
/// dependencies ask for features that the Python package would otherwise compile a second time.
const TOOL_PACKAGES: [&str; 4] = ["blockyard-e2e", "blockyard-bench", WGPU_PACKAGE, "blockyard-render"];

/// The package that writes the files that follow from the types of answers. Only this package enables the
/// schemas of these types.
const ANSWERS_WRITER: &str = "blockyard-answers-writer";

/// The device over Vulkan and WebGPU, which has tests for both targets.
const WGPU_PACKAGE: &str = "blockyard-device-wgpu";

/// Runs every test; fails if one test fails.
///
/// The page is built with a profile for tests, which takes minutes less than the page that visitors load.
/// `cargo xtask ci` tests the latter.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let mut stages = Stages::new();
    let page = TestedPage { folder: workspace.tested_page(), profile: Some(bundle::TEST_PROFILE) };
    test_stages(workspace, &mut stages, &page);
    stages.finish()
}

/// Runs every check that a change must pass. A stage is skipped if its tools take minutes to install or 530 MB
/// to fetch, and nobody has; the summary says so. Any other stage that does not run is a failure.
pub(crate) fn ci(workspace: &Workspace) -> Result<()> {
    let mut stages = Stages::new();
    stages.run("format", || workspace::run(&mut workspace.cargo(["fmt", "--all", "--check"])));
    stages.run("format and lints, Python", || wheel::style(workspace, false));
    stages.run("lines of documents", || prose::check(workspace));
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
        workspace::run(&mut workspace.cargo(arguments))?;
        // `--all-targets` leaves out tests that do not run by default.
        let page_tests = ["clippy", "--package", "blockyard-e2e", "--test", "*"];
        workspace::run(workspace.cargo(page_tests).args(deny))
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
    test_stages(workspace, &mut stages, &TestedPage { folder: workspace.dist(), profile: None });
    stages.run("model of the lock", || loom::run(workspace));
    stages.run("size of the page", || size::check(workspace));
    stages.run_or_skip("page in Firefox", || firefox(workspace));
    stages.run_or_skip("dry run", || short_dry_run(workspace));
    stages.run_or_skip("operators", || short_torch_oracle(workspace));
    stages.run_or_skip("oracle", || short_oracle(workspace));
    stages.run_or_skip("fuzz", || fuzz::run_if_possible(workspace, 20));
    stages.finish()
}

/// Checks the advisories of `RustSec` for the packages of the lock file, with the database that cargo-deny
/// fetched earlier.
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

/// Tests the page in Firefox; skipped if Firefox or its driver is not installed.
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

/// The Python that has PyTorch of the release of the recordings, or why the stage is skipped.
fn python_with_pytorch(workspace: &Workspace) -> Result<String, StageOutcome> {
    const IS_RECORDED: &str =
        "from importlib.metadata import version; raise SystemExit(not version('torch').startswith('2.11.0'))";
    let python = std::env::var("BLOCKYARD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if workspace::succeeds(workspace.program(&python).args(["-c", IS_RECORDED])) {
        return Ok(python);
    }
    Err(StageOutcome::Skipped(format!("{python} has no PyTorch 2.11.0; BLOCKYARD_PYTHON names one that has")))
}

/// Runs the tests over PyTorch and four recorded programs by a dry run, if a PyTorch of their release is
/// installed.
fn short_dry_run(workspace: &Workspace) -> Result<StageOutcome> {
    let python = match python_with_pytorch(workspace) {
        Ok(python) => python,
        Err(skipped) => return Ok(skipped),
    };
    workspace::run(&mut workspace.cargo(["build", "--quiet", "--package", "blockyard-standin"]))?;
    let library = workspace.root().join("target/debug/libblockyard_standin.so");
    let packages = ["blockyard-dry-run", "blockyard-standin", "blockyard-watch", "blockyard-cli"];
    let mut cargo = workspace.cargo(["test", "--no-fail-fast"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    workspace::run(cargo.env("TORCH", &python).env("BLOCKYARD_STANDIN", library))?;
    let programs = ["moe_hash", "converge", "guards", "distributions"];
    let files = programs.map(|name| format!("tests/fixtures/values/{name}.json.gz"));
    truth::dry_run(workspace, ["--python".to_owned(), python].into_iter().chain(files))?;
    Ok(StageOutcome::Passed)
}

/// Runs operator calls and programs on PyTorch's own code and on ours, if a PyTorch is installed; the calls
/// are the same each time.
fn short_torch_oracle(workspace: &Workspace) -> Result<StageOutcome> {
    /// The exit status if Python has no PyTorch for CUDA.
    const NO_PYTORCH: i32 = 3;
    let python = match python_with_pytorch(workspace) {
        Ok(python) => python,
        Err(skipped) => return Ok(skipped),
    };
    workspace::run(&mut workspace.cargo(["build", "--quiet", "--package", "blockyard-standin"]))?;
    let mut cargo = workspace.cargo(["run", "--quiet", "--package", truth::PACKAGE, "--", "torch-oracle"]);
    cargo.args([
        "--if-present",
        "--calls",
        "4000",
        "--programs",
        "20",
        "--cycles",
        "40",
        "--python",
        &python,
    ]);
    let status = cargo.status().context("cannot run the calls")?;
    match status.code() {
        Some(0) => Ok(StageOutcome::Passed),
        Some(NO_PYTORCH) => Ok(StageOutcome::Skipped(format!(
            "{python} has no PyTorch 2.11.0 for CUDA; BLOCKYARD_PYTHON names one that has"
        ))),
        _ => bail!("PyTorch's own code and ours differ ({status})"),
    }
}

/// Compares our allocator with PyTorch's own library for a minute, with new sequences each time.
fn short_oracle(workspace: &Workspace) -> Result<StageOutcome> {
    /// The oracle's exit status if the wheel is missing.
    const WHEEL_MISSING: i32 = 3;
    // The oracle takes half a minute to compile, for nothing where it never fetched a wheel.
    let has_folder = workspace.root().join("target/oracle").is_dir();
    let status =
        has_folder.then(|| oracle_command(workspace).args(["--if-present", "--seconds", "60"]).status());
    match status.transpose().context("cannot run the oracle")?.map(|status| status.code()) {
        Some(Some(0)) => Ok(StageOutcome::Passed),
        None | Some(Some(WHEEL_MISSING)) => Ok(StageOutcome::Skipped(
            "PyTorch's wheel is not here; `cargo xtask oracle` fetches it (530 MB, once)".to_owned(),
        )),
        Some(_) => bail!("the oracle failed"),
    }
}

/// Compares our allocator with PyTorch's own library.
pub(crate) fn oracle(
    workspace: &Workspace,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<()> {
    setup::pip(workspace).context("PyTorch's library is fetched with pip")?;
    workspace::run(oracle_command(workspace).args(arguments))
}

fn oracle_command(workspace: &Workspace) -> Command {
    workspace.cargo(["run", "--quiet", "--release", "--package", "blockyard-oracle", "--"])
}

/// The page that the tests open.
struct TestedPage {
    folder: PathBuf,
    /// A profile of cargo; `None` for the page's own profiles.
    profile: Option<&'static str>,
}

/// A page that another process of this program builds. Cargo locks the folder of each profile by itself, so
/// that tests of another profile compile and run at the same time: while one of the two processes waits for a
/// crate, the other uses the second processor.
struct PageBuild(JoinHandle<io::Result<Output>>);

impl PageBuild {
    fn begin(workspace: &Workspace, page: &TestedPage) -> Result<Self> {
        let mut command = workspace.program(std::env::current_exe()?);
        command.arg("build").arg("--out").arg(&page.folder);
        if let Some(profile) = page.profile {
            command.args(["--profile", profile]);
        }
        command.stdin(Stdio::null());
        println!("    the page is built beside the next stages");
        Ok(Self(thread::spawn(move || command.output())))
    }

    /// Waits for the page, and prints the output of the process.
    fn finish(self) -> Result<()> {
        let Ok(output) = self.0.join() else { bail!("the thread that waits for the page ended") };
        let output = output.context("cannot run the process that builds the page")?;
        for said in [&output.stdout, &output.stderr] {
            print!("{}", String::from_utf8_lossy(said));
        }
        ensure!(output.status.success(), "the page was not built ({})", output.status);
        Ok(())
    }
}

fn test_stages(workspace: &Workspace, stages: &mut Stages, page: &TestedPage) {
    let mut driver = None;
    let mut build = None;
    let mut is_built = false;
    stages.run("set-up", || {
        setup::wasm_target(workspace)?;
        setup::vulkan(workspace)?;
        driver = Some(setup::browser(workspace)?);
        build = Some(PageBuild::begin(workspace, page)?);
        setup::axe(workspace)
    });
    stages.run("tests, native", || {
        let apart = [&WASM_PACKAGES[..], &TESTED_APART, &TOOL_PACKAGES].concat();
        let mut cargo = workspace.cargo(["test", "--no-fail-fast", "--workspace"]);
        workspace::run(cargo.args(apart.iter().flat_map(|package| ["--exclude", package])))
    });
    stages.run("tests, tools", || {
        // These are three commands, so that the first one compiles only crates that this program was compiled
        // from.
        for packages in [&["xtask"][..], &[ANSWERS_WRITER], &TOOL_PACKAGES] {
            let named = packages.iter().flat_map(|package| ["--package", package]);
            let mut cargo = workspace.cargo(["test", "--no-fail-fast"]);
            if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
                // Without this variable Mesa prints a warning for each test, although nothing is shown on a
                // screen.
                cargo.env("XDG_RUNTIME_DIR", workspace.tools());
            }
            workspace::run(cargo.args(named))?;
        }
        let tool = ["test", "--profile", bundle::TOOL_PROFILE, "--package", bundle::BINDGEN];
        workspace::run(&mut workspace.cargo(tool))
    });
    stages.run("page", || {
        build.take().context("it was not begun, see set-up")?.finish()?;
        is_built = true;
        Ok(())
    });
    stages.run("tests, Python package", || {
        // Otherwise the tests would run on an old page in the folder.
        ensure!(is_built, "the page was not built");
        wheel::test(workspace, &page.folder)
    });
    stages.run("tests, wasm in a browser", || {
        let driver = driver.as_ref().context("there is no browser, see set-up")?;
        let mut cargo = workspace.cargo(["test", "--no-fail-fast", "--profile", bundle::TEST_PROFILE]);
        cargo.args(["--package", "blockyard-wasm-tests", "--package", WGPU_PACKAGE, "--target", WASM]);
        cargo.args(["--package", "blockyard-web"]);
        // The test runner would use Firefox if its driver were named too.
        cargo.env("CHROMEDRIVER", driver).env_remove("GECKODRIVER");
        // A browser that starts beside a compiler needs more than the usual 20 seconds.
        workspace::run(cargo.env("WASM_BINDGEN_TEST_TIMEOUT", "120"))
    });
    stages.run("tests, end to end", || {
        let driver = driver.as_ref().context("there is no browser, see set-up")?;
        ensure!(is_built, "the page was not built");
        end_to_end(workspace, driver, &page.folder)
    });
}

/// Runs the tests of the page in Chromium.
fn end_to_end(workspace: &Workspace, driver: &Path, page: &Path) -> Result<()> {
    let mut cargo = workspace.cargo(["test", "--no-fail-fast"]);
    // All packages of the stage "tools" are named, so that their dependencies have the same features.
    cargo.args(TOOL_PACKAGES.iter().flat_map(|package| ["--package", package]));
    cargo.args(["--test", "smoke", "--test", "page"]);
    workspace::run(cargo.env("CHROMEDRIVER", driver).env("BLOCKYARD_TESTED_PAGE", page))
}
