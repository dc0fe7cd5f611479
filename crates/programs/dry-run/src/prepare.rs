//! Makes the folder of libraries under CUDA's names, which a dry run loads instead of CUDA's libraries.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use blockyard_hooks::KEEPERS;

use crate::elf::{Library, write_library};
use crate::extensions::{add_imports, libraries_beside};
use crate::symbols::{Imports, defined};
use crate::{DryRunError, Torch};

/// The file of the stand-in for CUDA's libraries.
const STANDIN: &str = "libblockyard_standin.so";
/// The generated library, with an entry point for each function of CUDA that the stand-in lacks.
const REST: &str = "libblockyard_standin_rest.so";
/// The driver's library by its own name: Triton links what it compiles against a file of this name on the
/// library path.
const DRIVER: &str = "libcuda.so.1";
/// The function that generated entry points call.
const REPORT: &str = "blockyard_standin_unknown";
/// The files of the runner: the part of a dry run that is in the program's Python, and starts the program.
const RUNNER: [(&str, &str); 19] = [
    ("__main__.py", include_str!("runner/__main__.py")),
    ("blockyard_dry_run/__init__.py", include_str!("runner/blockyard_dry_run/__init__.py")),
    ("children/sitecustomize.py", include_str!("runner/children/sitecustomize.py")),
    ("blockyard_dry_run/child.py", include_str!("runner/blockyard_dry_run/child.py")),
    ("blockyard_dry_run/checkpoints.py", include_str!("runner/blockyard_dry_run/checkpoints.py")),
    ("blockyard_dry_run/crash.py", include_str!("runner/blockyard_dry_run/crash.py")),
    ("blockyard_dry_run/growth.py", include_str!("runner/blockyard_dry_run/growth.py")),
    ("blockyard_dry_run/holders.py", include_str!("runner/blockyard_dry_run/holders.py")),
    ("blockyard_dry_run/initial.py", include_str!("runner/blockyard_dry_run/initial.py")),
    ("blockyard_dry_run/loaded.py", blockyard_hooks::LOADED),
    ("blockyard_dry_run/objects.py", include_str!("runner/blockyard_dry_run/objects.py")),
    ("blockyard_dry_run/peaks.py", include_str!("runner/blockyard_dry_run/peaks.py")),
    ("blockyard_dry_run/places.py", include_str!("runner/blockyard_dry_run/places.py")),
    ("blockyard_dry_run/preload.py", include_str!("runner/blockyard_dry_run/preload.py")),
    ("blockyard_dry_run/printed.py", include_str!("runner/blockyard_dry_run/printed.py")),
    ("blockyard_dry_run/ranks.py", include_str!("runner/blockyard_dry_run/ranks.py")),
    ("blockyard_dry_run/record.py", include_str!("runner/blockyard_dry_run/record.py")),
    ("blockyard_dry_run/torch_hooks.py", include_str!("runner/blockyard_dry_run/torch_hooks.py")),
    ("blockyard_dry_run/values.py", include_str!("runner/blockyard_dry_run/values.py")),
];
/// The folder of the runner.
const RUNNER_FOLDER: &str = "runner";
/// The number of the folder's format: it is raised with each change of what this module writes, so that older
/// folders are not used.
const FORMAT: u32 = 3;

/// A folder with the stand-in under the names of CUDA's libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFolder {
    /// The path of the folder.
    pub folder: PathBuf,
    /// File names of the libraries that a process loads first.
    pub preload: Vec<String>,
}

impl LibraryFolder {
    /// The path of the runner.
    pub(crate) fn runner(&self) -> PathBuf {
        self.folder.join(RUNNER_FOLDER)
    }
}

/// The path of the stand-in, as [`find_library`] finds it: the value of `BLOCKYARD_STANDIN`, or a file near this
/// program.
///
/// # Errors
///
/// [`DryRunError::NoStandin`].
pub fn find_standin() -> Result<PathBuf, DryRunError> {
    find_library("BLOCKYARD_STANDIN", STANDIN).ok_or(DryRunError::NoStandin)
}

/// The path of a library of ours: the value of a variable, or a file beside this program, in `lib/blockyard`
/// beside the program's folder, or above the folder (tests of cargo).
pub fn find_library(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = env::var_os(variable).map(PathBuf::from) {
        return path.is_file().then_some(path);
    }
    let program = env::current_exe().and_then(fs::canonicalize).ok()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let above = folder.parent().unwrap_or(folder);
    let places = [folder.join(name), above.join("lib/blockyard").join(name), above.join(name)];
    places.into_iter().find(|path| path.is_file())
}

/// The file that stands for a library of this name. The file has another name: PyTorch looks through the
/// names of loaded files for NVIDIA's libraries, and loads further libraries if it finds one.
fn file_name(library: &str) -> String {
    format!("standin-{}", library.trim_start_matches("lib").replace(".so", "")) + ".so"
}

/// The folder for this PyTorch in the user's cache directory, made if it does not exist.
///
/// # Errors
///
/// A library that cannot be read, and a folder that cannot be written.
pub fn prepare(torch: &Torch, standin: &Path) -> Result<LibraryFolder, DryRunError> {
    prepare_in(torch, standin, &cache_folder()?.join("standin"))
}

/// The libraries of [`prepare`], in a folder `cache` that the caller names.
///
/// # Errors
///
/// The errors of [`prepare`].
pub fn prepare_in(torch: &Torch, standin: &Path, cache: &Path) -> Result<LibraryFolder, DryRunError> {
    let libraries = torch.libraries()?;
    let others = torch.folder.parent().map(libraries_beside).unwrap_or_default();
    let key = key(libraries.iter().chain(&others).map(PathBuf::as_path).chain([standin]))?;
    let folder = cache.join(format!("{}-{key:016x}", torch.version.replace(['/', ':'], "_")));
    if !folder.is_dir() {
        fs::create_dir_all(cache).map_err(DryRunError::file(cache))?;
        // The folder is written under another name and then moved, so that a second run never sees a part of
        // it.
        let part = cache.join(format!("part-{key:016x}-{}", std::process::id()));
        let mut imports = Imports::of(&libraries)?;
        add_imports(&mut imports, &others);
        fill(&part, &imports, standin)?;
        if let Err(error) = fs::rename(&part, &folder) {
            let _ = fs::remove_dir_all(&part);
            if !folder.is_dir() {
                return Err(DryRunError::File { path: folder, error });
            }
        }
    }
    let mut preload = Vec::new();
    for entry in fs::read_dir(&folder).map_err(DryRunError::file(&folder))? {
        let name = entry.map_err(DryRunError::file(&folder))?.file_name().to_string_lossy().into_owned();
        if name.starts_with("standin-") {
            preload.push(name);
        }
    }
    preload.sort();
    Ok(LibraryFolder { folder, preload })
}

/// Writes the folder's files.
fn fill(folder: &Path, imports: &Imports, standin: &Path) -> Result<(), DryRunError> {
    fs::create_dir_all(folder).map_err(DryRunError::file(folder))?;
    let by_hand = defined(standin)?;
    let rest: BTreeSet<&str> =
        imports.functions.iter().map(String::as_str).filter(|name| !by_hand.contains(*name)).collect();
    let rest: Vec<&str> = rest.into_iter().collect();
    write(folder, REST, &Library { name: REST, needed: &[STANDIN], entries: &rest, report: REPORT })?;
    for name in &imports.libraries {
        write(folder, &file_name(name), &Library { name, needed: &[STANDIN, REST], ..Library::default() })?;
    }
    let link = folder.join(STANDIN);
    symlink(standin, &link).map_err(DryRunError::file(&link))?;
    if imports.libraries.iter().any(|name| name == DRIVER) {
        // A process that loads it by this name has it already.
        let driver = folder.join(DRIVER);
        symlink(file_name(DRIVER), &driver).map_err(DryRunError::file(&driver))?;
    }
    write_runner(folder)?;
    let list = folder.join("generated.txt");
    fs::write(&list, rest.join("\n") + "\n").map_err(DryRunError::file(&list))
}

/// Writes the runner into the folder of the libraries.
///
/// # Errors
///
/// [`DryRunError::File`].
pub fn write_runner(folder: &Path) -> Result<(), DryRunError> {
    for (name, text) in RUNNER.iter().chain(&KEEPERS) {
        let path = folder.join(RUNNER_FOLDER).join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(DryRunError::file(parent))?;
        }
        fs::write(&path, text).map_err(DryRunError::file(&path))?;
    }
    Ok(())
}

fn write(folder: &Path, file: &str, library: &Library<'_>) -> Result<(), DryRunError> {
    let path = folder.join(file);
    let bytes = write_library(library)
        .map_err(|error| DryRunError::Library { path: path.clone(), text: error.to_string() })?;
    fs::write(&path, bytes).map_err(DryRunError::file(&path))
}

/// A number that stands for the present contents of these files: it differs after a file changed.
fn key<'a>(files: impl Iterator<Item = &'a Path>) -> Result<u64, DryRunError> {
    let mut hasher = DefaultHasher::new();
    FORMAT.hash(&mut hasher);
    (RUNNER, KEEPERS).hash(&mut hasher);
    for path in files {
        let metadata: Metadata = fs::metadata(path).map_err(DryRunError::file(path))?;
        path.hash(&mut hasher);
        metadata.len().hash(&mut hasher);
        metadata.modified().map_err(DryRunError::file(path))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// The folder in which Blockyard keeps files between runs: `blockyard` in the user's cache directory.
///
/// # Errors
///
/// [`DryRunError::NoCache`] where neither `XDG_CACHE_HOME` nor `HOME` names a place.
pub fn cache_folder() -> Result<PathBuf, DryRunError> {
    let folder = |name: &str| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let base = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    Ok(base.ok_or(DryRunError::NoCache)?.join("blockyard"))
}
