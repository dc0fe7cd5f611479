//! The page's Python: CPython as WebAssembly, which the project Pyodide builds, our extension as a side module
//! of it, and archives of compiled Python.
//!
//! Each file is compressed here, so that a page takes as many bytes from a server that does not compress.

mod pyodide;
mod side_module;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use cargo_metadata::Metadata;
use libdeflater::{CompressionLvl, Compressor};
use sha2::{Digest as _, Sha256};

use crate::bundle::{Files, files_below};
use crate::workspace::{self, Workspace};

pub(crate) use side_module::{link, linker};

/// The folder of Python's files in the page.
const FOLDER: &str = "python";
/// The profile of cargo that the extension is compiled with.
const PROFILE: &str = "wasm-release";
/// Where the folders of our Python are, and these folders.
const OURS: &str = "crates/programs/python";
const PACKAGES: [&str; 2] = ["lib", "fallbacks"];
/// The package that our Python shares with dry runs.
const KEEPERS: &str = "crates/programs/hooks/src/blockyard_keepers";
/// How the archives are made, and the replacements of modules of Python's own library.
const RECIPE: &str = "web/python";

/// Why there are no files of Python.
#[derive(Debug)]
pub(crate) enum NoPython {
    /// Pyodide cannot be fetched: the machine has no network or no npm. The page can be built without Python.
    Fetch(Error),
    /// Our own part is wrong.
    Build(Error),
}

/// Makes the files of the page's Python, by their paths in the page. `profile` replaces the profile of cargo.
pub(crate) fn build(
    workspace: &Workspace,
    metadata: &Metadata,
    profile: Option<&str>,
) -> Result<Files, NoPython> {
    let pyodide = pyodide::fetch(workspace).map_err(NoPython::Fetch)?;
    let build = || {
        let side_module = side_module::build(workspace, metadata, profile.unwrap_or(PROFILE))?;
        let place = metadata.target_directory.join("page").join(FOLDER);
        make_files(workspace, &pyodide, &side_module, place.as_std_path())?;
        read_files(place.as_std_path())
    };
    build().map_err(NoPython::Build)
}

/// Makes the files in the folder `place`, unless that was done from the same bytes.
fn make_files(workspace: &Workspace, pyodide: &Path, side_module: &Path, place: &Path) -> Result<()> {
    let [recipe, ours, keepers] = [RECIPE, OURS, KEEPERS].map(|name| workspace.root().join(name));
    let [packages, fallbacks] = PACKAGES.map(|name| ours.join(name));
    let side_module = fs::read(side_module)?;
    let stamp = stamp(&side_module, &[&recipe, &packages, &fallbacks, &keepers])?;
    let stamp = format!("{} {stamp}", pyodide::VERSION);
    let stamp_file = place.with_extension("stamp");
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) && place.is_dir() {
        return Ok(());
    }
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::create_dir_all(place)?;
    // Compiled Python is read only by the release of Python that compiled it, so Pyodide itself compiles.
    let mut node = workspace.program("node");
    workspace::run(node.arg(recipe.join("pack.mjs")).args([pyodide, &ours, &keepers, place]))?;
    for name in ["library.zip", "torch.zip"] {
        let archive = place.join(name);
        write_compressed(place, name, &fs::read(&archive)?)?;
        fs::remove_file(archive)?;
    }
    for name in pyodide::FILES {
        write_compressed(place, name, &fs::read(pyodide.join(name))?)?;
    }
    write_compressed(place, "blockyard.wasm", &side_module)?;
    fs::copy(recipe.join("LICENSES.txt"), place.join("LICENSES.txt"))?;
    fs::write(stamp_file, stamp)?;
    Ok(())
}

/// A text that differs if any byte of the side module or of a file in the folders differs.
fn stamp(side_module: &[u8], folders: &[&Path]) -> Result<String> {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update(bytes.len().to_le_bytes());
        digest.update(bytes);
    };
    add(side_module);
    for folder in folders {
        for name in files_below(folder)?.iter().filter(|name| !is_cache(name)) {
            add(name.to_string_lossy().as_bytes());
            add(&fs::read(folder.join(name))?);
        }
    }
    Ok(format!("{:x}", digest.finalize()))
}

/// Whether a Python of the machine wrote the file.
fn is_cache(name: &Path) -> bool {
    name.components().any(|part| part.as_os_str() == "__pycache__")
}

fn write_compressed(place: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let mut compressor = Compressor::new(CompressionLvl::best());
    let mut packed = vec![0; compressor.gzip_compress_bound(bytes.len())];
    let length = compressor.gzip_compress(bytes, &mut packed)?;
    packed.truncate(length);
    let file = place.join(format!("{name}.gz"));
    fs::write(&file, packed).with_context(|| format!("cannot write {}", file.display()))
}

fn read_files(place: &Path) -> Result<Files> {
    let read = |name: PathBuf| {
        let bytes = fs::read(place.join(&name))?;
        Ok((Path::new(FOLDER).join(name), bytes))
    };
    files_below(place)?.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_differs_where_a_byte_does_and_ignores_caches() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("__pycache__")).unwrap();
        fs::write(folder.join("a.py"), "one").unwrap();
        let first = stamp(b"module", &[folder]).unwrap();
        assert_eq!(first.len(), 64);
        fs::write(folder.join("__pycache__/a.pyc"), "cache").unwrap();
        assert_eq!(stamp(b"module", &[folder]).unwrap(), first);
        assert_ne!(stamp(b"another", &[folder]).unwrap(), first);
        fs::write(folder.join("a.py"), "two").unwrap();
        assert_ne!(stamp(b"module", &[folder]).unwrap(), first);
    }
}
