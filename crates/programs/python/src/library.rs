//! Our own Python, and our extension, as files that a Python can import.
//!
//! The crate holds the Python files. The first run writes them into a folder of the user's cache, whose name
//! has a hash of all files, so that Python imports them as it imports any package and keeps them compiled. Where
//! the user has no cache, each run writes them into its own folder: another user could put files into a shared
//! one.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::RunError;

mod files {
    include!(concat!(env!("OUT_DIR"), "/library.rs"));
}

/// The folder of the Python files, which are written if they are not there: in the user's cache, or else in the
/// folder of the run.
pub(crate) fn folder(of_run: &Path) -> Result<PathBuf, RunError> {
    let name = format!("python-{}", files::HASH);
    let in_folder = |base: &Path| {
        let folder = base.join(&name);
        let written = if folder.is_dir() { Ok(()) } else { write(base, &folder) };
        written.map(|()| folder)
    };
    let cached = cache_folder().and_then(|base| in_folder(&base).ok());
    cached.map_or_else(|| in_folder(of_run).map_err(RunError::file(of_run)), Ok)
}

/// Our folder in the user's cache.
fn cache_folder() -> Option<PathBuf> {
    let home = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = home("XDG_CACHE_HOME").or_else(|| home("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("blockyard"))
}

/// Writes all files into a new folder and then gives the folder its name, so that nobody sees half of them.
fn write(base: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(base)?;
    let part = base.join(format!("part-{}", std::process::id()));
    for (name, text) in files::FILES {
        let path = part.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    let named = fs::rename(&part, folder);
    if named.is_err() {
        let _ = fs::remove_dir_all(&part);
    }
    // Another process may have been faster.
    if folder.is_dir() { Ok(()) } else { named }
}

/// The name of our extension as Cargo builds it.
const EXTENSION: &str = if cfg!(windows) {
    "_blockyard.dll"
} else if cfg!(target_os = "macos") {
    "lib_blockyard.dylib"
} else {
    "lib_blockyard.so"
};

/// The file of our extension: `BLOCKYARD_EXTENSION`, or a file beside this program or beside its tests.
pub(crate) fn extension() -> Result<PathBuf, RunError> {
    if let Some(path) = env::var_os("BLOCKYARD_EXTENSION").map(PathBuf::from) {
        return Ok(path);
    }
    let program = env::current_exe().map_err(|error| RunError::File { path: PathBuf::new(), error })?;
    let program = program.canonicalize().unwrap_or(program);
    let folders = program.ancestors().skip(1).take(2);
    // Cargo always writes the newest file to `deps`, and not always beside it.
    let places = folders.flat_map(|folder| [folder.join("deps"), folder.to_owned()]);
    let mut places = places.map(|folder| folder.join(EXTENSION));
    places.find(|path| path.is_file()).ok_or(RunError::NoExtension)
}
