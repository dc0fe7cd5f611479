//! Set-up of a fresh machine: targets of Rust, a browser with its driver, a driver for Vulkan, npm, axe-core.
//!
//! Each step looks first and does nothing if the tool exists; if the step may not install the tool, it says
//! in one line what to install.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::{self, WASM, Workspace, which};

/// The version of axe-core, the accessibility checker that the end-to-end tests put into the page.
const AXE_VERSION: &str = "4.12.1";

/// Makes sure that the standard library for WebAssembly is installed.
pub(crate) fn wasm_target(workspace: &Workspace) -> Result<()> {
    rust_target(workspace, WASM)
}

/// Makes sure that Rust's standard library for this target is installed.
pub(crate) fn rust_target(workspace: &Workspace, target: &str) -> Result<()> {
    let mut rustc = workspace.program(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let library = workspace::read(rustc.args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(library.trim()).is_dir() {
        return Ok(());
    }
    if which("rustup").is_none() {
        bail!(
            "this Rust has no {target} and there is no rustup to add it: install Rust with rustup, \
             or the package of your system that brings the target"
        );
    }
    workspace::run(workspace.program("rustup").args(["target", "add", target]))
}

/// Makes sure that there is a browser with a driver, and returns the path of the driver.
pub(crate) fn browser(workspace: &Workspace) -> Result<PathBuf> {
    if let (true, Some(driver)) = (has_browser(), driver()) {
        return Ok(driver);
    }
    // Ubuntu has no packages of the Debian names; its own hand over to snap.
    let packages = if system_is("ubuntu") {
        ["chromium-browser", "chromium-chromedriver"]
    } else {
        ["chromium", "chromium-driver"]
    };
    apt_install(workspace, &packages)?;
    match driver() {
        Some(driver) if has_browser() => Ok(driver),
        _ => bail!(
            "{} brought no browser with a driver: install Chrome or Chromium with the chromedriver of its version \
             and name the driver in CHROMEDRIVER",
            packages.join(" and ")
        ),
    }
}

fn has_browser() -> bool {
    std::env::var_os("CHROME").is_some()
        || ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
            .into_iter()
            .any(|name| which(name).is_some())
}

fn driver() -> Option<PathBuf> {
    if let Some(driver) = std::env::var_os("CHROMEDRIVER") {
        return Some(driver.into());
    }
    let elsewhere = [
        "/usr/lib/chromium-browser/chromedriver",
        "/usr/lib/chromium/chromedriver",
        "/snap/bin/chromium.chromedriver",
    ];
    which("chromedriver").or_else(|| elsewhere.into_iter().map(PathBuf::from).find(|file| file.is_file()))
}

/// Makes sure that Vulkan has a driver: the one of a GPU, or Mesa's lavapipe, which computes on the
/// processor.
pub(crate) fn vulkan(workspace: &Workspace) -> Result<()> {
    if has_vulkan() {
        return Ok(());
    }
    apt_install(workspace, &["mesa-vulkan-drivers"]).context("there is no driver for Vulkan")?;
    if has_vulkan() { Ok(()) } else { bail!("mesa-vulkan-drivers brought no driver for Vulkan") }
}

fn has_vulkan() -> bool {
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];
    let folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
    named.into_iter().any(|name| std::env::var_os(name).is_some())
        || folders.into_iter().any(|folder| {
            fs::read_dir(folder)
                .is_ok_and(|mut files| files.any(|file| file.is_ok_and(|file| is_driver(&file.path()))))
        })
}

/// Whether the loader of Vulkan would read the file.
fn is_driver(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

/// Makes sure that `target/tools/axe.min.js` exists, in the version that the tests were written for.
///
/// It comes from a registry and not from git, since its license is not ours.
pub(crate) fn axe(workspace: &Workspace) -> Result<()> {
    let tools = workspace.tools();
    let file = tools.join("axe.min.js");
    if is_axe(&file) {
        return Ok(());
    }
    let download = tools.join("axe-download");
    if download.exists() {
        fs::remove_dir_all(&download)?;
    }
    fs::create_dir_all(&download)?;
    npm(workspace).context("axe-core comes through npm")?;
    let (package, archive) = (format!("axe-core@{AXE_VERSION}"), format!("axe-core-{AXE_VERSION}.tgz"));
    let mut pack = workspace.program("npm");
    workspace::run(pack.args(["pack", &package, "--silent", "--pack-destination"]).arg(&download))?;
    let mut tar = workspace.program("tar");
    workspace::run(tar.arg("-xzf").arg(download.join(archive)).arg("-C").arg(&download))?;
    let unpacked = download.join("package/axe.min.js");
    if !is_axe(&unpacked) {
        bail!("{} is not axe-core {AXE_VERSION}", unpacked.display());
    }
    fs::rename(&unpacked, &file)?;
    fs::remove_dir_all(&download)?;
    Ok(())
}

fn is_axe(file: &Path) -> bool {
    let banner = format!("/*! axe v{AXE_VERSION}\n");
    fs::read(file).is_ok_and(|bytes| bytes.starts_with(banner.as_bytes()))
}

/// Makes sure that there is npm, and with it Node, in which the page's Python compiles its library.
pub(crate) fn npm(workspace: &Workspace) -> Result<()> {
    if which("npm").is_some() && which("node").is_some() {
        return Ok(());
    }
    apt_install(workspace, &["nodejs", "npm"])
}

/// Makes sure that Python has pip.
pub(crate) fn pip(workspace: &Workspace) -> Result<()> {
    if workspace::succeeds(workspace.program("python3").args(["-m", "pip", "--version"])) {
        return Ok(());
    }
    apt_install(workspace, &["python3", "python3-pip"])
}

/// Makes sure that Python can make virtual environments, which Debian packs apart from Python.
pub(crate) fn python_venv(workspace: &Workspace) -> Result<()> {
    let has_venv =
        || workspace::succeeds(workspace.program("python3").args(["-c", "import ensurepip, venv"]));
    if has_venv() {
        return Ok(());
    }
    apt_install(workspace, &["python3", "python3-venv"])?;
    if has_venv() { Ok(()) } else { bail!("python3 has no module venv") }
}

/// Installs packages of the system where we may, else says which.
fn apt_install(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    let advice = format!("install this first: sudo apt-get install {}", packages.join(" "));
    if which("apt-get").is_none() {
        bail!("no apt-get here; install what Debian calls {}", packages.join(" and "));
    }
    let is_root = workspace::read(workspace.program("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let prefix: &[&str] = if is_root { &[] } else { &["sudo", "-n"] };
    if !is_root && !workspace::succeeds(workspace.program("sudo").args(["-n", "true"])) {
        bail!("{advice}");
    }
    let install = ["apt-get", "install", "--yes", "--no-install-recommends"];
    for arguments in [&["apt-get", "update"][..], &[&install[..], packages].concat()] {
        let words = [prefix, arguments].concat();
        let mut command = workspace.program(words[0]);
        // A package that asks a question would never get an answer.
        command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
        workspace::run(&mut command).with_context(|| advice.clone())?;
    }
    Ok(())
}

/// Whether the system calls itself `name` in `os-release`.
fn system_is(name: &str) -> bool {
    fs::read_to_string("/etc/os-release").is_ok_and(|text| is_id(&text, name))
}

fn is_id(os_release: &str, name: &str) -> bool {
    let ids = os_release.lines().filter_map(|line| line.strip_prefix("ID="));
    ids.map(|id| id.trim_matches('"')).any(|id| id == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_distinguished() {
        assert!(is_id("NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\n", "ubuntu"));
        assert!(is_id("ID=\"ubuntu\"\n", "ubuntu"));
        assert!(!is_id("ID=debian\nVERSION_ID=\"12\"\n", "ubuntu"));
        assert!(!is_id("ID=neon\nID_LIKE=\"ubuntu debian\"\n", "ubuntu"));
    }
}
