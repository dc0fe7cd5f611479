//! The part of PyTorch's wheel that holds its allocator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use blockyard_rules::Release;

/// The version of PyTorch that is tested for a release, like "2.11.0".
pub fn version(release: Release) -> &'static str {
    let built = release.version();
    built.split_once('+').map_or(built, |(version, _)| version)
}

/// A script of Python that unpacks the needed files of the wheel: the allocator's two libraries and the
/// headers that describe them.
const KEPT: &str = r"
import sys, zipfile
wheel, folder = sys.argv[1:]
libraries = ('torch/lib/libc10.so', 'torch/lib/libc10_cuda.so')
headers = ('torch/include/c10/', 'torch/include/torch/headeronly/')
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name in libraries or name.startswith(headers):
            archive.extract(name, folder)
";

/// The folders with the wheel's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WheelPaths {
    /// The folder of `libc10.so` and `libc10_cuda.so`.
    pub libraries: PathBuf,
    /// The include folder with the headers of the libraries.
    pub include: PathBuf,
}

impl WheelPaths {
    fn below(folder: &Path) -> Self {
        let torch = folder.join("torch");
        Self { libraries: torch.join("lib"), include: torch.join("include") }
    }

    fn is_there(&self) -> bool {
        self.libraries.join("libc10_cuda.so").is_file() && self.libraries.join("libc10.so").is_file()
    }
}

/// The release's files below `target`, cargo's target folder, if they were fetched before.
pub fn find_wheel(target: &Path, release: Release) -> Option<WheelPaths> {
    let paths = WheelPaths::below(&unpacked(target, version(release)));
    paths.is_there().then_some(paths)
}

/// The release's files below `target`, cargo's target folder; fetches them with pip (530 MB, once) if they
/// are missing.
///
/// # Errors
///
/// When this is not Linux on x86-64, or pip or the network is missing; the message says which.
pub fn wheel(target: &Path, release: Release) -> Result<WheelPaths> {
    let version = version(release);
    if let Some(paths) = find_wheel(target, release) {
        return Ok(paths);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("PyTorch's library with CUDA is for Linux on x86-64; this is another system");
    }
    let folder = target.join("oracle");
    let downloads = folder.join("download");
    fs::create_dir_all(&downloads).with_context(|| format!("cannot make {}", downloads.display()))?;
    let archive = match downloaded(&downloads, version)? {
        Some(archive) => archive,
        None => download(&downloads, version)?,
    };
    // The wheel is unpacked into another folder, which is renamed at the end, so that a folder of this name
    // is always complete.
    let half = folder.join("unpacking");
    if half.exists() {
        fs::remove_dir_all(&half)?;
    }
    let unpacked_all = Command::new("python3").args(["-c", KEPT]).arg(&archive).arg(&half).status();
    let is_unpacked = unpacked_all.context("python3 is needed to unpack the wheel")?.success();
    if !is_unpacked || !WheelPaths::below(&half).is_there() {
        bail!("{} is not a wheel of torch {version}; delete it and try again", archive.display());
    }
    fs::rename(&half, unpacked(target, version))?;
    fs::remove_dir_all(&downloads)?;
    find_wheel(target, release).context("the unpacked wheel is not where it should be")
}

fn unpacked(target: &Path, version: &str) -> PathBuf {
    target.join("oracle").join(format!("torch-{version}"))
}

/// A finished download; pip writes under this name only what is complete.
fn downloaded(downloads: &Path, version: &str) -> Result<Option<PathBuf>> {
    let start = format!("torch-{version}-");
    for entry in fs::read_dir(downloads)? {
        let path = entry?.path();
        let is_wheel = path.extension().is_some_and(|extension| extension == "whl");
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if is_wheel && name.starts_with(&start) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn download(downloads: &Path, version: &str) -> Result<PathBuf> {
    let has_pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
    if !has_pip.is_ok_and(|output| output.status.success()) {
        bail!("pip is needed to fetch torch {version}: install python3 and python3-pip");
    }
    let mut pip = Command::new("python3");
    // The libraries are the same for every release of Python, so the Python that runs here need not be one of
    // the wheel's.
    pip.args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--implementation", "cp"])
        .args(["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"])
        // That of 2.6.
        .args(["--platform", "manylinux1_x86_64"])
        .arg(format!("torch=={version}"))
        .arg("--dest")
        .arg(downloads);
    let status = pip.status().context("cannot run pip")?;
    if !status.success() {
        bail!("pip could not fetch torch {version} (530 MB): is there a network?");
    }
    downloaded(downloads, version)?.with_context(|| format!("pip brought no wheel of torch {version}"))
}
