//! What releases of PyTorch want of CUDA's libraries, in `symbols.txt`, and which functions of it the
//! stand-in has by hand.
//!
//! `cargo xtask update symbols` writes the file again for the stand-in as it is; with `--python PYTHON` the
//! releases that these Pythons have are added first. The difference is what is to be read.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use blockyard_dry_run::{Torch, defined};

/// By release; a mark for each name that the release wants.
#[derive(Debug, Default, PartialEq)]
struct Table {
    releases: BTreeSet<String>,
    /// Names of libraries and of functions, with the releases that want them.
    libraries: BTreeMap<String, BTreeSet<String>>,
    functions: BTreeMap<String, BTreeSet<String>>,
}

const HEAD: &str = "\
# What PyTorch's libraries want of CUDA's. After a name: the releases that want it, where not all of them do.
# `hand`: the stand-in has the function. `made`: a generated one reports that it was called, and does nothing.
";

impl Table {
    /// The table of a text.
    fn read(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ').map(str::to_owned);
            let kind = words.next().unwrap_or_default();
            if kind == "releases" {
                table.releases = words.collect();
                continue;
            }
            let name = words.next().unwrap_or_else(|| panic!("no name: {line}"));
            let mut releases: BTreeSet<String> = words.collect();
            if releases.is_empty() {
                releases.clone_from(&table.releases);
            }
            let names = if kind == "library" { &mut table.libraries } else { &mut table.functions };
            assert!(names.insert(name, releases).is_none(), "twice: {line}");
        }
        table
    }

    /// Adds a release, or what it wants now.
    fn add(&mut self, torch: &Torch) {
        let wanted = torch.imports().expect("its libraries are read");
        let release = &torch.version;
        self.releases.insert(release.clone());
        for (names, found) in
            [(&mut self.libraries, wanted.libraries), (&mut self.functions, wanted.functions)]
        {
            for releases in names.values_mut() {
                releases.remove(release);
            }
            for name in found {
                names.entry(name).or_default().insert(release.clone());
            }
            names.retain(|_, releases| !releases.is_empty());
        }
    }

    fn text(&self, by_hand: &BTreeSet<String>) -> String {
        let mut text = HEAD.to_owned();
        let joined = |releases: &BTreeSet<String>| {
            releases.iter().flat_map(|release| [" ", release]).collect::<String>()
        };
        writeln!(text, "releases{}", joined(&self.releases)).expect("a text takes it");
        let mut line = |kind: &str, name: &str, releases: &BTreeSet<String>| {
            let releases = if *releases == self.releases { String::new() } else { joined(releases) };
            writeln!(text, "{kind} {name}{releases}").expect("a text takes it");
        };
        for (name, releases) in &self.libraries {
            line("library", name, releases);
        }
        for (name, releases) in &self.functions {
            line(if by_hand.contains(name) { "hand" } else { "made" }, name, releases);
        }
        text
    }
}

/// The library that cargo built beside this test.
fn standin() -> PathBuf {
    let own = env::current_exe().expect("the test has a file");
    let beside = own.parent().unwrap_or(Path::new(".")).join("libblockyard_standin.so");
    assert!(beside.is_file(), "{} is built with this test", beside.display());
    beside
}

#[test]
fn what_releases_want_is_listed_with_what_the_standin_has() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbols.txt");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut table = Table::read(&text);
    let is_update = env::var_os("UPDATE").is_some();
    for python in env::var("TORCH").iter().flat_map(|paths| paths.split(':')).filter(|_| is_update) {
        table.add(&Torch::find(python).expect("it has PyTorch"));
    }
    let found = table.text(&defined(&standin()).expect("it is read"));
    if is_update {
        fs::write(&path, &found).expect("the file is written");
        return;
    }
    let before: BTreeSet<&str> = text.lines().collect();
    let changed: Vec<&str> = found.lines().filter(|line| !before.contains(line)).collect();
    assert!(
        found == text,
        "symbols.txt is older than the stand-in, `cargo xtask update symbols` writes it again; lines that change:\n{}",
        changed.join("\n")
    );
    assert_eq!(Table::read(&text), table, "the text says all of the table");
}

/// Without these a program that allocates, copies and launches nothing unusual would be an estimate.
#[test]
fn what_every_program_calls_is_there_by_hand() {
    let by_hand = defined(&standin()).expect("it is read");
    for name in [
        "cudaMalloc",
        "cudaFree",
        "cudaMemcpyAsync",
        "cudaLaunchKernel",
        "cudaStreamSynchronize",
        "cublasCreate_v2",
        "cublasSgemm_v2",
        "cudnnCreate",
    ] {
        assert!(by_hand.contains(name), "{name}");
    }
}
