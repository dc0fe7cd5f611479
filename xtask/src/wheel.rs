//! The Python package: built by maturin, and tested by pytest after an installation as users make it.

use std::ffi::OsString;
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

/// A C compiler and linker for other targets and for older systems, and what lets cargo call it; maturin takes the
/// compiler from Python.
const ZIG: [&str; 2] = ["ziglang==0.15.2", "cargo-zigbuild==0.24.1"];

/// The oldest glibc that a wheel for a named target runs on: that of `manylinux2014`, which maturin writes into the
/// wheel's name.
const OLDEST_GLIBC: &str = "2.17";

/// Which wheel to build.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct WheelOptions {
    /// The folder; target/wheels where none is named.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Build the source package too.
    #[arg(long)]
    pub(crate) sdist: bool,
    /// What the wheel is for, on any Linux since 2014; this machine where nothing is named.
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
    match &options.target {
        None => {
            pack_libraries(workspace, profile, None)?;
            run_maturin(workspace, &tools, &["build", "--profile", profile], &out)?;
        }
        Some(target) => {
            // The toolchain of this machine has no linker for other targets, and links against the glibc of
            // this machine.
            let tools = virtual_environment(workspace, "python-tools-cross", &[TOOLS[0], ZIG[0], ZIG[1]])?;
            workspace::run(workspace.program("rustup").args(["target", "add", target]))?;
            pack_libraries(workspace, profile, Some((target, &tools)))?;
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
    pack_libraries(workspace, "dev", None)?;
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
    workspace::run(workspace.program(&python).args(["-m", "pytest", "--quiet", "crates/ends/wheel/tests"]))
}

/// Checks that our Python has one style, or gives it that style.
pub(crate) fn style(workspace: &Workspace, fix: bool) -> Result<()> {
    let ruff = virtual_environment(workspace, "python-style", &STYLE)?.join("bin/ruff");
    let (format, check): (&[&str], &[&str]) =
        if fix { (&["format"], &["check", "--fix"]) } else { (&["format", "--check"], &["check"]) };
    // The formatter runs after the fixes, which may change the layout.
    workspace::run(workspace.program(&ruff).args(check).arg("--quiet"))?;
    workspace::run(workspace.program(&ruff).args(format).arg("--quiet"))?;
    let library = workspace.root().join("crates/programs/python/lib");
    let files = bundle::files_below(&library)?;
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "py")) {
        let lines = fs::read_to_string(library.join(path))?.lines().count();
        ensure!(lines <= MAX_LINES, "{} has {lines} lines: more than {MAX_LINES}", path.display());
    }
    Ok(())
}

/// The folder of the page in the package: notebooks show the page, and `blockyard open` serves it.
fn packed_page(workspace: &Workspace) -> PathBuf {
    workspace.root().join("crates/ends/wheel/python/blockyard/page")
}

/// A library that the package has beside its native half.
struct PackedLibrary {
    package: &'static str,
    /// The file, as cargo builds it.
    file: &'static str,
}

/// What dry runs, programs and watched programs load. Dry runs run on x86-64 Linux alone.
const LIBRARIES: [PackedLibrary; 3] = [
    PackedLibrary { package: "blockyard-standin", file: "libblockyard_standin.so" },
    PackedLibrary { package: "blockyard-python-extension", file: "lib_blockyard.so" },
    PackedLibrary { package: "blockyard-watch", file: "libblockyard_watch.so" },
];

impl PackedLibrary {
    fn is_for(&self, target: Option<&str>) -> bool {
        let is_x86 = target.map_or(cfg!(target_arch = "x86_64"), |target| target.starts_with("x86_64"));
        let is_linux = target.map_or(cfg!(target_os = "linux"), |target| target.contains("linux"));
        is_linux && (is_x86 || self.package != "blockyard-standin")
    }

    /// Where the library is in the package. Maturin leaves out files that end in `.so`.
    fn packed(&self, workspace: &Workspace) -> PathBuf {
        workspace.root().join("crates/ends/wheel/python/blockyard").join(format!("{}.1", self.file))
    }
}

/// What the compiler gets after the arguments of cargo.
const STRIPPED: [&str; 3] = ["--", "-C", "strip=symbols"];

/// Builds the libraries into the package, for this machine or for a target with the linker of `tools`. The files are
/// not in git.
fn pack_libraries(workspace: &Workspace, profile: &str, target: Option<(&str, &Path)>) -> Result<()> {
    let name = target.map(|(target, _)| target);
    for library in &LIBRARIES {
        let packed = library.packed(workspace);
        if !library.is_for(name) {
            // No library of an earlier build stays.
            if packed.exists() {
                fs::remove_file(&packed)?;
            }
            continue;
        }
        let arguments =
            ["--quiet", "--package", library.package, "--crate-type", "cdylib", "--profile", profile];
        match target {
            None => workspace::run(workspace.cargo(["rustc"]).args(arguments).args(STRIPPED))?,
            Some((target, tools)) => {
                let mut zigbuild = workspace.program(tools.join("bin/cargo-zigbuild"));
                zigbuild.env("PATH", path_with(tools)?).arg("rustc").args(arguments);
                let target = format!("{target}.{OLDEST_GLIBC}");
                workspace::run(zigbuild.args(["--target", &target]).args(STRIPPED))?;
            }
        }
        let folder = if profile == "dev" { "debug" } else { profile };
        let built = metadata::read(workspace)?.target_directory.join(name.unwrap_or_default()).join(folder);
        let built = built.join(library.file);
        fs::copy(&built, packed).with_context(|| built.to_string())?;
    }
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
    maturin.env("PATH", path_with(tools)?);
    maturin.args(arguments).args(["--manifest-path", "crates/ends/wheel/Cargo.toml", "--out"]).arg(out);
    workspace::run(&mut maturin)
}

/// The folders of programs, with those of a virtual environment first: where Zig is looked for.
fn path_with(tools: &Path) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(folders)?)
}
