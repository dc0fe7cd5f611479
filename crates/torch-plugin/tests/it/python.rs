//! The Python module, with a stand-in for torch.

use std::path::Path;
use std::process::Command;

use crate::library::{folder, path, told, with_driver};
use crate::recorded::{replayed_stats, value, verify};

fn run(name: &str, settings: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/module.py");
    let folder = folder(name);
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no python3");
        println!("skipped: there is no python3");
        return;
    }
    let mut command = Command::new("python3");
    command.arg(script).arg(path()).arg(&folder).arg(settings);
    let told = told(&with_driver(&mut command, &[]));
    assert!(told.contains("done as it should be"), "{told}");
    verify(&folder.join("late.jsonl"));
    let recording = folder.join("run.jsonl.gz");
    verify(&recording);
    // What `memory_stats` said when the recording ended is what a replay counts.
    let stats = std::fs::read_to_string(folder.join("stats.json")).unwrap();
    let stats: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&stats).unwrap();
    let replayed = replayed_stats(&recording);
    assert_eq!(stats.len(), 122);
    for (key, found) in stats.iter().filter(|(key, _)| *key != "num_sync_all_streams") {
        assert_eq!(found.as_i64(), Some(value(&replayed, key)), "{key}");
    }
}

#[test]
fn the_module_works_with_default_settings() {
    run("default", "");
}

#[test]
fn the_module_works_with_expandable_segments() {
    run("expandable", "expandable_segments:True");
}

#[test]
fn the_module_works_with_a_largest_split() {
    run("split", "max_split_size_mb:64,roundup_power2_divisions:4");
}
