//! Regressions and samples from `cargo xtask oracle`: sequences with the answers of PyTorch's own library,
//! repeated without the library.

use std::fs;
use std::path::{Path, PathBuf};

use blockyard_oracle::Fixture;

fn fixtures() -> Vec<(PathBuf, Fixture)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/oracle");
    let entries = fs::read_dir(folder).expect("the fixtures are there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("it is text");
        let fixture = Fixture::parse(&text).unwrap_or_else(|error| panic!("{}: {error:#}", file.display()));
        (file, fixture)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn every_sequence_comes_to_what_pytorch_answered() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 12, "only {} fixtures", fixtures.len());
    let mut failures = Vec::new();
    for (file, fixture) in &fixtures {
        match fixture.check() {
            Ok(None) => {}
            Ok(Some(difference)) => failures.push(format!("{}: {difference}", file.display())),
            Err(error) => failures.push(format!("{}: {error:#}", file.display())),
        }
    }
    assert!(
        failures.is_empty(),
        "`cargo xtask oracle --replay FILE` tells more about\n{}",
        failures.join("\n")
    );
}

#[test]
fn the_sequences_lead_to_every_hard_place() {
    let all: String = fixtures().iter().map(|(_, fixture)| fixture.text()).collect();
    for place in [
        "max_split_size_mb",
        "max_non_split_rounding_mb",
        "roundup_power2_divisions",
        "garbage_collection_threshold",
        "expandable_segments:True",
        "large_segment_size_mb",
        "per_process_memory_fraction",
        "#! apply",
        "use_on_oom",
        "no_split",
        "#! enter c1",
        "record_stream",
        "failed: CUDA out of memory",
        "allowed;",
        "allocated in private pools",
        "trace segment_free",
        "trace segment_unmap",
        "active_pending_free",
    ] {
        assert!(all.contains(place), "no fixture has {place}");
    }
}
