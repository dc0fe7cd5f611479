//! `scripts/record.py` over a stand-in for torch that plays a run of the fixtures: `verify` replays the file
//! that the script writes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{blockyard, fixture_text, json};

/// A stand-in for torch that has made the run of the recording whose path is in the environment variable
/// `RUN`. The first snapshot ends at the recording's first checkpoint, the second has the whole run.
const TORCH: &str = r#"
import gzip, json, os, types
__version__ = "2.11.0+stand-in"
calls = []
run = {}
for line in gzip.open(os.environ["RUN"], "rt"):
    run.update(json.loads(line))
label, count, stats = run["checkpoints"][0]
moments = [(count, stats), (len(run["trace"]), run["stats"])]

def entry(action, place, size, stream):
    named = {"device_free" if action == "oom" else "addr": place}
    return {"action": action, "size": size, "stream": stream, "frames": [], "time_us": 1, **named}

def segment(of):
    blocks = [dict(zip(("address", "size", "requested_size", "state"), block)) for block in of["blocks"]]
    return {**of, "device": 0, "frames": [], "blocks": [{**block, "frames": []} for block in blocks]}

class memory:
    def _record_memory_history(enabled="all", **options):
        calls.append(enabled)
    def _snapshot(device=None):
        count, _ = moments.pop(0)
        trace = [entry(*line) for line in run["trace"][:count]]
        return {"device_traces": [trace], "segments": [segment(of) for of in run["segments"]]}

class cuda:
    memory = memory
    def init(): pass
    def current_device(): return 0
    def memory_stats(device): return moments[0][1]
    def get_device_properties(device):
        return types.SimpleNamespace(total_memory=run["meta"]["total_memory"], name="NVIDIA H200")
"#;

const PROGRAM: &str = r#"
import sys, torch, record
assert torch.calls == ["all"] and sys.argv[1:] == ["--epochs", "1"], (torch.calls, sys.argv)
record.running.mark("middle")
if "FAIL" in __import__("os").environ: raise SystemExit("out of luck")
"#;

/// Runs the script in a new folder; `None` without a Python.
fn record(name: &str, fails: bool) -> Option<(PathBuf, Output)> {
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no python3");
        eprintln!("skipped: there is no python3");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(folder.join("torch")).unwrap();
    std::fs::write(folder.join("torch/__init__.py"), TORCH).unwrap();
    std::fs::write(folder.join("train.py"), PROGRAM).unwrap();
    let out = folder.join("run.jsonl.gz");
    let mut command = Command::new("python3");
    command.arg(root.join("scripts/record.py")).arg("--out").arg(&out);
    command.arg(folder.join("train.py")).args(["--epochs", "1"]);
    command.env("PYTHONPATH", &folder).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PYTORCH_CUDA_ALLOC_CONF", "").env_remove("FAIL");
    command.env("RUN", root.join("tests/fixtures/programs/cudagraph_mlp.jsonl.gz"));
    if fails {
        command.env("FAIL", "1");
    }
    Some((out, command.output().unwrap()))
}

#[test]
fn what_the_script_records_is_replayed_identically() {
    let Some((out, output)) = record("record", false) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verified = blockyard(["verify", out.to_str().unwrap()]);
    assert_eq!(verified.status, 0, "{}{}", verified.out, verified.err);
    assert!(verified.out.contains("identical"), "{}", verified.out);
    assert!(!verified.out.contains(" 0/"), "{}", verified.out);
    let (lines, recorded) = (unpacked(&out), fixture_text("programs/cudagraph_mlp"));
    let lines: Vec<_> = lines.lines().map(json).collect();
    let recorded: Vec<_> = recorded.lines().map(json).collect();
    assert_eq!(lines[0]["meta"]["torch"], "2.11.0+stand-in");
    assert_eq!(lines[1], recorded[1], "the trace");
    assert_eq!(lines[2]["checkpoints"][0][0], "middle");
    assert_eq!(lines[2]["checkpoints"][0][1], recorded[2]["checkpoints"][0][1]);
    assert_eq!(lines[3]["segments"], recorded[3]["segments"]);
}

#[test]
fn a_program_that_fails_leaves_its_recording_behind() {
    let Some((out, output)) = record("record-failing", true) else { return };
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("out of luck"));
    assert_eq!(blockyard(["verify", out.to_str().unwrap()]).status, 0);
}

fn unpacked(path: &Path) -> String {
    use std::io::Read as _;
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// docs/format.md names every member that recordings of real runs have.
#[test]
fn the_format_s_description_knows_every_member_of_our_recordings() {
    let format = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/format.md");
    let format = std::fs::read_to_string(format).unwrap();
    for name in ["synthetic/pools-mix", "programs/cudagraph_mlp", "synthetic/default-tight"] {
        for line in fixture_text(name).lines().map(json) {
            for (member, value) in line.as_object().unwrap() {
                // The settings as PyTorch's snapshot has them, and a seed: no reader uses these two.
                if ["allocator_settings", "seed"].contains(&member.as_str()) {
                    continue;
                }
                assert!(
                    format.contains(&format!("`{member}`")) || format.contains(&format!("\"{member}\"")),
                    "{member}"
                );
                if member == "op" {
                    assert!(format.contains(&format!("`{}`", value.as_str().unwrap())), "{value}");
                }
            }
        }
    }
}
