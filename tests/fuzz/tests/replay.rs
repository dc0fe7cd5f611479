//! Runs the targets without libFuzzer on their seeds and their earlier findings.

#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

use blockyard_fuzz::TARGETS;

fn files(folder: &str, target: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target);
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files
}

#[test]
fn every_seed_and_every_regression_passes() {
    for (name, target) in TARGETS {
        let files = [files("seeds", name), files("regressions", name)].concat();
        assert!(!files.is_empty(), "{name} has no seeds");
        for file in files {
            // Shown when the target panics.
            println!("{name} {}", file.display());
            target(&fs::read(&file).expect("it can be read"));
        }
    }
}

#[test]
fn no_input_is_an_input() {
    for (_, target) in TARGETS {
        target(&[]);
    }
}

#[test]
fn the_seeds_stay_small() {
    let seeds = TARGETS.iter().flat_map(|(name, _)| files("seeds", name));
    let sizes = seeds.map(|file| fs::metadata(file).expect("it is there").len());
    assert!(sizes.sum::<u64>() < 50_000);
}

/// Changes that libFuzzer would need long to find: bytes that look random and are the same each time.
#[test]
fn snapshots_of_later_releases_open_whatever_they_add() {
    let mut state = 1_u64;
    for _ in 0..2000 {
        let mut bytes = [0; 120];
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = state.to_be_bytes()[0];
        }
        let length = usize::from(bytes[0]) % bytes.len();
        blockyard_fuzz::later_release(&bytes[..length]);
    }
}
