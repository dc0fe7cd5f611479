//! The Python module, with a stand-in for torch.

use std::path::Path;
use std::process::{Command, Output};

use crate::library::{folder, output_text, path, with_driver};
use crate::recorded::{replayed_stats, value, verify};

/// The script, ready to be run with its arguments; `None` where there is no Python.
fn script(name: &str) -> Option<Command> {
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no python3");
        println!("skipped: there is no python3");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name)).arg(path());
    Some(command)
}

fn run(name: &str, settings: &str) {
    run_under(name, settings, "2.11.0", 122);
}

/// With a version of PyTorch, and as many statistics as it has without a memory pool.
fn run_under(name: &str, settings: &str, torch: &str, statistics: usize) {
    let folder = folder(name);
    let Some(mut command) = script("module.py") else { return };
    command.arg(&folder).arg(settings);
    command.env("TORCH_VERSION", torch).env("STATISTICS", statistics.to_string());
    let output = output_text(&with_driver(&mut command, &[]));
    assert!(output.contains("done as it should be"), "{output}");
    verify(&folder.join("late.jsonl"));
    let recording = folder.join("run.jsonl.gz");
    verify(&recording);
    // What `memory_stats` said when the recording ended is what a replay counts.
    let stats = std::fs::read_to_string(folder.join("stats.json")).unwrap();
    let stats: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&stats).unwrap();
    let replayed = replayed_stats(&recording);
    assert_eq!(stats.len(), statistics);
    let is_compared = |key: &str| key != "num_sync_all_streams" && key != "num_oom_rejections";
    for (key, found) in stats.iter().filter(|(key, _)| is_compared(key)) {
        assert_eq!(found.as_i64(), Some(value(&replayed, key)), "{key}");
    }
}

#[test]
fn the_module_follows_the_release_of_the_installed_pytorch() {
    run_under("release", "", "2.15.0", 123);
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

/// Runs a part of the script about running out of memory, on a device of 1 GiB.
fn run_out_of_memory(part: &str) -> Option<Output> {
    let mut command = script("out_of_memory.py")?;
    command.arg(folder("out_of_memory")).arg(part);
    Some(with_driver(&mut command, &[("FAKE_CUDA_MEMORY", "1073741824")]))
}

#[test]
fn an_out_of_memory_is_an_exception_that_can_be_caught() {
    let Some(output) = run_out_of_memory("throw") else { return };
    assert!(output_text(&output).contains("done as it should be"));
}

#[test]
fn without_a_compiler_an_out_of_memory_ends_the_process_with_its_message() {
    for part in ["exit", "broken"] {
        let Some(output) = run_out_of_memory(part) else { return };
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), out.trim()), (Some(1), "before"), "{err}");
        assert!(err.contains("blockyard: CUDA out of memory. Tried to allocate 2.00 GiB."), "{err}");
        assert!(
            err.contains(
                "Blockyard: the request alone, 2 GiB, is larger than the 1 GiB that may be reserved."
            ),
            "{err}"
        );
    }
}
