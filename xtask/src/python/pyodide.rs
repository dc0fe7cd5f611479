//! Fetches Pyodide: CPython and its standard library for WebAssembly, one package of the npm registry.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::setup;
use crate::workspace::{self, Workspace};

/// The release of Pyodide, whose Python is 3.13.2. Another release brings another Python: `web/python.js`,
/// `web/python/pack.py` and the page's words name it.
pub(super) const VERSION: &str = "0.29.5";
/// The SHA-256 of the package.
const SHA256: &str = "6749b10ee515a1458ecea36d860c8ce2a48366e85b3f92d749ad1840e4aff181";
/// The files of the package that the page loads. The standard library is packed again.
pub(super) const FILES: [&str; 3] = ["pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm"];

/// The folder of the unpacked package, which is fetched if it is not there.
pub(super) fn fetch(workspace: &Workspace) -> Result<PathBuf> {
    let tools = workspace.tools();
    let folder = tools.join(format!("pyodide-{VERSION}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    setup::npm(workspace)
        .context("Python for the page comes through npm, which needs a network at the first build")?;
    let download = tools.join("pyodide-download");
    if download.exists() {
        fs::remove_dir_all(&download)?;
    }
    fs::create_dir_all(&download)?;
    let package = format!("pyodide@{VERSION}");
    let mut npm = workspace.program("npm");
    workspace::run(npm.args(["pack", &package, "--silent", "--pack-destination"]).arg(&download))
        .context("npm brought no Pyodide, which needs a network at the first build")?;
    let archive = download.join(format!("pyodide-{VERSION}.tgz"));
    check(&archive)?;
    workspace::run(workspace.program("tar").arg("-xzf").arg(&archive).arg("-C").arg(&download))?;
    // The folder appears under its name only when it is complete.
    fs::rename(download.join("package"), &folder)?;
    fs::remove_dir_all(download)?;
    Ok(folder)
}

fn check(archive: &Path) -> Result<()> {
    let bytes = fs::read(archive).with_context(|| format!("npm wrote no {}", archive.display()))?;
    let found = format!("{:x}", Sha256::digest(bytes));
    ensure!(
        found == SHA256,
        "npm brought another Pyodide {VERSION}: its SHA-256 is {found} and not {SHA256}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_package_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pyodide.tgz");
        fs::write(&file, "another package").unwrap();
        let error = check(&file).unwrap_err().to_string();
        assert!(error.contains("npm brought another Pyodide") && error.contains(SHA256), "{error}");
    }
}
