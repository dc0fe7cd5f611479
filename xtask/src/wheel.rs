//! The Python package: built by maturin, and tested by pytest after an installation as users make it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::workspace::{self, Workspace};
use crate::{bundle, metadata, setup};

/// The versions of the tools that work with the toolchain of the workspace.
const TOOLS: [&str; 2] = ["maturin==1.9.4", "pytest==8.4.2"];

/// Packages that only tests need: readers of Arrow streams, schedulers of many ranks, types.
const TEST_PACKAGES: [&str; 5] =
    ["pyarrow==21.0.0", "polars==1.33.1", "distributed==2025.9.1", "ray==2.60.0", "mypy==1.18.2"];

/// The formatter and linter of Python; `ruff.toml` says which files and which rules.
const STYLE: [&str; 1] = ["ruff==0.17.6"];

/// The most lines of a module of the library that programs run over.
const MAX_LINES: usize = 500;

/// Modules that are longer, each with its present length, beyond which it must not grow.
const LONGER: [(&str, usize); 4] = [
    ("numpy/__init__.py", 975),
    ("torch/__init__.py", 800),
    ("torch/_tensor.py", 540),
    ("torch/nn/module.py", 610),
];

/// A C compiler and linker for other targets, which maturin takes from Python.
const ZIG: &str = "ziglang==0.15.2";

/// Which wheel to build.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct WheelOptions {
    /// The folder; target/wheels where none is named.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Build the source package too.
    #[arg(long)]
    pub(crate) sdist: bool,
    /// What the wheel is for; this machine where nothing is named.
    #[arg(long, value_name = "TRIPLE")]
    pub(crate) target: Option<String>,
    /// Cargo's profile; the one for wheels where none is named.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
}

/// Builds the wheel, and the source package where it is asked for.
pub(crate) fn build(workspace: &Workspace, options: &WheelOptions) -> Result<()> {
    let tools = virtual_environment(workspace, "python-tools", &TOOLS)?;
    bundle::build_to(workspace, &packed_page(workspace), None)?;
    let out = options.out.clone().unwrap_or_else(|| workspace.root().join("target/wheels"));
    let profile = options.profile.as_deref().unwrap_or("wheel");
    pack_standin(workspace, profile, options.target.as_deref())?;
    match &options.target {
        None => run_maturin(workspace, &tools, &["build", "--profile", profile], &out)?,
        Some(target) => {
            // The toolchain of this machine has no linker for other targets.
            let tools = virtual_environment(workspace, "python-tools-cross", &[TOOLS[0], ZIG])?;
            workspace::run(workspace.program("rustup").args(["target", "add", target]))?;
            run_maturin(
                workspace,
                &tools,
                &["build", "--profile", profile, "--target", target, "--zig"],
                &out,
            )?;
        }
    }
    if options.sdist {
        run_maturin(workspace, &tools, &["sdist"], &out)?;
    }
    println!("the wheel is in {}", out.display());
    Ok(())
}

/// Builds the wheel without optimization and with the page in the folder `page`, installs it into a new
/// virtual environment and runs its tests there.
pub(crate) fn test(workspace: &Workspace, page: &Path) -> Result<()> {
    let tools = virtual_environment(workspace, "python-tools", &TOOLS)?;
    let out = workspace.root().join("target/wheel-under-test");
    if out.exists() {
        // Otherwise pip could find a wheel of another version in the folder.
        fs::remove_dir_all(&out)?;
    }
    bundle::copy_built(page, &packed_page(workspace))?;
    pack_standin(workspace, "dev", None)?;
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

/// Checks that our Python has one style, or gives it that style.
pub(crate) fn style(workspace: &Workspace, fix: bool) -> Result<()> {
    let ruff = virtual_environment(workspace, "python-style", &STYLE)?.join("bin/ruff");
    let (format, check): (&[&str], &[&str]) =
        if fix { (&["format"], &["check", "--fix"]) } else { (&["format", "--check"], &["check"]) };
    // The formatter runs after the fixes, which may change the layout.
    workspace::run(workspace.program(&ruff).args(check).arg("--quiet"))?;
    workspace::run(workspace.program(&ruff).args(format).arg("--quiet"))?;
    let library = workspace.root().join("crates/python/lib");
    let files = bundle::files_below(&library)?;
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "py")) {
        let lines = fs::read_to_string(library.join(path))?.lines().count();
        let longer = LONGER.iter().find(|(name, _)| Path::new(name) == path.as_path());
        let most = longer.map_or(MAX_LINES, |(_, most)| *most);
        ensure!(lines <= most, "{} has {lines} lines: more than {most}", path.display());
    }
    Ok(())
}

/// The folder of the page in the package: notebooks show the page, and `blockyard open` serves it.
fn packed_page(workspace: &Workspace) -> PathBuf {
    workspace.root().join("crates/wheel/python/blockyard/page")
}

/// Builds the stand-in into the package, for dry runs, which run on x86-64 alone. The file is not in git.
fn pack_standin(workspace: &Workspace, profile: &str, target: Option<&str>) -> Result<()> {
    let name = "libblockyard_standin.so";
    // Maturin leaves out files that end in `.so`.
    let packed = workspace.root().join("crates/wheel/python/blockyard").join(format!("{name}.1"));
    let is_for_this_machine = target.is_none_or(|target| target.starts_with("x86_64"));
    if !is_for_this_machine || !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        if packed.exists() {
            fs::remove_file(&packed)?;
        }
        return Ok(());
    }
    let mut cargo =
        workspace.cargo(["rustc", "--quiet", "--package", "blockyard-standin", "--crate-type", "cdylib"]);
    workspace::run(cargo.args(["--profile", profile, "--", "-C", "strip=symbols"]))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let built = metadata::read(workspace)?.target_directory.join(folder).join(name);
    fs::copy(&built, &packed).with_context(|| built.to_string())?;
    Ok(())
}

/// A Python with PyTorch 2.11.0 for CUDA, without NVIDIA's libraries, which our stand-in replaces.
pub(crate) fn pytorch(workspace: &Workspace) -> Result<PathBuf> {
    const PACKAGES: [&str; 10] = [
        "--no-deps",
        "torch==2.11.0",
        "typing_extensions",
        "sympy",
        "mpmath",
        "networkx",
        "jinja2",
        "markupsafe",
        "fsspec",
        "filelock",
    ];
    Ok(virtual_environment(workspace, "pytorch", &PACKAGES)?.join("bin/python"))
}

/// Makes sure that there is a virtual environment with these packages, and returns its folder.
fn virtual_environment(workspace: &Workspace, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = workspace.tools().join(name);
    let stamp = folder.join("packages.txt");
    let list = packages.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == list) {
        return Ok(folder);
    }
    setup::python_venv(workspace)?;
    workspace::run(workspace.program("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    workspace::run(
        workspace.program(folder.join("bin/python")).args(["-m", "pip", "install", "--quiet"]).args(packages),
    )?;
    fs::write(&stamp, list)?;
    Ok(folder)
}

fn run_maturin(workspace: &Workspace, tools: &Path, arguments: &[&str], out: &Path) -> Result<()> {
    let mut maturin = workspace.program(tools.join("bin/maturin"));
    // Maturin looks for the Python that has Zig in `PATH`.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    maturin.env("PATH", std::env::join_paths(folders)?);
    maturin.args(arguments).args(["--manifest-path", "crates/wheel/Cargo.toml", "--out"]).arg(out);
    workspace::run(&mut maturin)
}
