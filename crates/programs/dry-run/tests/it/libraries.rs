//! Libraries that are written are loaded by the system's own loader, and read by our own reader.
#![expect(unsafe_code, reason = "libraries are loaded, and their functions called")]

use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::{env, fs};

use blockyard_dry_run::{Imports, Library, defined, write_library};
use tempfile::TempDir;

/// A folder that is removed at the end.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("the folder is made"))
    }

    fn write(&self, file: &str, library: &Library<'_>) -> PathBuf {
        let path = self.0.path().join(file);
        fs::write(&path, write_library(library).expect("it is written")).expect("the file is written");
        path
    }
}

#[test]
fn libraries_are_read() {
    let folder = Folder::new();
    let own = env::current_exe().expect("the test has a file");
    let imports = Imports::of(&[own]).expect("it is read");
    assert_eq!(imports, Imports::default(), "a test wants nothing of CUDA's");
    let damaged = folder.0.path().join("damaged.so");
    fs::write(&damaged, b"no library").expect("the file is written");
    assert!(defined(&damaged).is_err() && Imports::of(&[damaged]).is_err());
}

/// `strdup` of the C library takes a text and gives a copy.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn an_entry_point_calls_the_report_with_its_name() {
    let folder = Folder::new();
    let library = Library {
        name: "libgenerated.so",
        needed: &["libc.so.6"],
        entries: &["first", "second_one"],
        report: "strdup",
    };
    let path = folder.write("generated.so", &library);
    // SAFETY: the library has no code that runs when it is loaded.
    let loaded = unsafe { libloading::Library::new(&path) }.expect("the loader takes it");
    for name in ["first", "second_one"] {
        // SAFETY: an entry point has this signature where its report is `strdup`: the name goes in, a copy
        // comes out.
        let text = unsafe {
            let entry: libloading::Symbol<'_, unsafe extern "C" fn() -> *const c_char> =
                loaded.get(name.as_bytes()).expect("the entry point is there");
            CStr::from_ptr(entry())
        };
        assert_eq!(text.to_str(), Ok(name));
    }
}

#[test]
fn the_runner_knows_installed_files_by_the_same_paths() {
    let runner = include_str!("../../src/runner/blockyard_dry_run/places.py");
    let line = runner.lines().find(|line| line.starts_with("_INSTALLED = ")).expect("the runner has a list");
    let parts: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    assert_eq!(parts, blockyard_record::INSTALLED_PATHS);
}
