//! `blockyard watch`: programs that end, that never use PyTorch, and, where `TORCH` names a Python with PyTorch,
//! programs over the stand-in, whose events are compared with PyTorch's snapshot after each step.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use crate::{CommandOutput, command};

/// A file that cargo builds beside the tests.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the test has a file");
    own.parent().unwrap_or(Path::new(".")).join(name)
}

fn watch(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let mut command = command();
    command.current_dir(folder).env("BLOCKYARD_WATCH", built("libblockyard_watch.so"));
    command.env("BLOCKYARD_STANDIN", built("libblockyard_standin.so"));
    let output = command.arg("watch").args(arguments).stdin(Stdio::null()).output().expect("it starts");
    CommandOutput {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn the_exit_status_and_the_output_are_the_programs() {
    let folder = tempfile::tempdir().unwrap();
    let ended = watch(folder.path(), &["--", "sh", "-c", "echo hello; exit 7"]);
    assert_eq!((ended.status, ended.out.as_str()), (7, "hello\n"));
    assert!(ended.err.contains("nothing was watched"), "{}", ended.err);
    assert_eq!(watch(folder.path(), &["--", "no-such-program"]).status, 2);
}

#[test]
fn the_hook_lets_another_sitecustomize_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sitecustomize.py"), "print('the own one')").unwrap();
    let script =
        "PYTHONPATH=$PYTHONPATH:. python3 -c 'import sys; print(\"blockyard_watch\" in sys.modules)'";
    if !has_python() {
        return;
    }
    let ended = watch(folder.path(), &["--", "sh", "-c", script]);
    assert_eq!((ended.status, ended.out.as_str()), (0, "the own one\nTrue\n"), "{}", ended.err);
}

fn has_python() -> bool {
    let there = std::process::Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    let is_there = there.is_ok_and(|status| status.success());
    if !is_there {
        assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no python3");
        eprintln!("skipped: there is no python3");
    }
    is_there
}

/// Watches a dry run of a program: the folder with the recording, and what was printed. `None` without PyTorch.
fn watched(source: &str, options: &[&str]) -> Option<(TempDir, CommandOutput)> {
    let Some(python) = std::env::var("TORCH").ok().and_then(|list| list.split(':').next().map(str::to_owned))
    else {
        eprintln!("skipped: TORCH names no Python with PyTorch");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), source).unwrap();
    let mut arguments = vec!["--check", "--", env!("CARGO_BIN_EXE_blockyard"), "dry-run", "--quiet"];
    arguments.extend(["--python", &python]);
    arguments.extend(options);
    arguments.push("train.py");
    let ended = watch(folder.path(), &arguments);
    assert!(ended.err.contains("all equal"), "{}", ended.err);
    assert!(!ended.err.contains("did not fit"), "{}", ended.err);
    assert!(!ended.err.contains("lines are not known"), "{}", ended.err);
    Some((folder, ended))
}

/// Each step keeps 3 MB.
const LEAK: &str = r#"
import torch, torch.nn as nn
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
opt = torch.optim.AdamW(model.parameters())
kept = []
for step in range(200):
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    kept.append(torch.empty(3_000_000, dtype=torch.uint8, device="cuda"))
    opt.step()
    opt.zero_grad(set_to_none=True)
"#;

#[test]
fn the_forecast_names_the_step_that_fails() {
    for conf in ["", "expandable_segments:True"] {
        let options = ["--total-memory", "1200000000", "--conf", conf];
        let Some((folder, ended)) = watched(LEAK, &options) else { return };
        assert_ne!(ended.status, 0);
        let step_after = |text: &str| -> Vec<u64> {
            let number = |rest: &str| rest.split(|one: char| !one.is_ascii_digit()).next()?.parse().ok();
            ended.err.split(text).skip(1).filter_map(number).collect()
        };
        let (failed, forecasts) = (step_after("out of memory in step "), step_after("at this growth step "));
        assert_eq!(failed.len(), 1, "{}", ended.err);
        assert!(!forecasts.is_empty(), "{}", ended.err);
        let is_right = |step: &u64| step.abs_diff(failed[0]) <= 1;
        assert!(forecasts.iter().all(is_right), "{conf}: {forecasts:?} and {failed:?}");
        assert!(ended.err.contains("MiB of <module> train.py:8"), "{}", ended.err);
        // The recording is for all questions.
        let mut verdict = command();
        let verdict = verdict.arg("watch.pickle").current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&verdict.stdout).into_owned();
        assert!(text.contains("out of memory") && text.contains("train.py:8"), "{text}");
    }
}

/// Two streams, a memory pool and releases of the cache.
const STREAMS: &str = r#"
import torch, torch.nn as nn
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
opt = torch.optim.AdamW(model.parameters())
side, pool, kept = torch.cuda.Stream(), torch.cuda.MemPool(), []
for step in range(10):
    with torch.cuda.stream(side):
        x = torch.randn(64 + 8 * (step % 3), 512, device="cuda")
        y = torch.empty(7_000_000 + 100_000 * step, dtype=torch.uint8, device="cuda")
    y.record_stream(torch.cuda.current_stream())
    x.record_stream(torch.cuda.current_stream())
    with torch.cuda.use_mem_pool(pool):
        kept.append(torch.empty(3_000_000 * (step % 4 + 1), device="cuda"))
    model(x).square().mean().backward()
    del x, y
    if step % 4 == 3:
        kept.clear()
        torch.cuda.empty_cache()
    opt.step()
    opt.zero_grad(set_to_none=True)
"#;

#[test]
fn the_events_lead_to_pytorchs_snapshot_after_each_step() {
    for conf in ["", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4"] {
        let Some((_folder, ended)) = watched(STREAMS, &["--conf", conf]) else { return };
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(ended.err.contains("10 snapshots"), "{conf}: {}", ended.err);
    }
}
