//! The recordings among the fixtures.

use std::path::{Path, PathBuf};

use blockyard_pytorch::RecordedRun;

/// The ends of the names of recordings under default settings, `synthetic/default-*`.
pub const DEFAULT: [&str; 6] = ["mix", "small", "large", "pow", "tight", "streams"];
/// Those under expandable segments, `synthetic/expand-*`.
pub const EXPANDABLE: [&str; 4] = ["mix", "large", "tight", "streams"];
/// The names of recordings under split limits, rounding and garbage collection, in `synthetic`.
pub const SETTINGS: [&str; 9] = [
    "split64-mix",
    "split64-large",
    "split64-tight",
    "nonsplit-large",
    "gc06-tight",
    "split32gc06-tight",
    "pow2div4-mix",
    "pow2div4-pow",
    "pow2divlist-mix",
];
/// The names of recordings with memory pools, in `synthetic`.
pub const POOLS: [&str; 2] = ["pools-mix", "pools-expand"];

/// The path of a recording, by its folder and its name.
pub fn fixture(name: &str) -> PathBuf {
    // The tests are carried to machines where they were not built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).to_owned());
    package.join("fixtures").join(format!("{name}.jsonl.gz"))
}

/// A recording, by its folder and its name.
pub fn recorded_run(name: &str) -> RecordedRun {
    let path = fixture(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    RecordedRun::read(&bytes).expect("the fixture is a recording")
}
