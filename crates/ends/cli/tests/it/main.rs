//! The command from outside: what it prints, and its exit status.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod answers;
mod autopsy;
mod bench;
mod bound;
mod device;
mod export_html;
mod fit;
mod fit_questions;
mod guard;
mod keepers;
mod lesson;
mod mcp;
mod one_number;
mod pipes;
mod play;
mod python;
mod questions;
mod record_script;
mod report;
mod run;
mod search;
mod site;
mod snapshot;
#[cfg(feature = "python")]
mod training;
mod verify;
#[cfg(target_os = "linux")]
mod watch;
mod what_if;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// The exit status and the output of a call of the command.
#[derive(Debug)]
struct CommandOutput {
    status: i32,
    out: String,
    err: String,
}

/// The command, without settings of the environment that the tests run in.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    for variable in [
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_HIP_ALLOC_CONF",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "PYTORCH_NO_HIP_MEMORY_CACHING",
    ] {
        command.env_remove(variable);
    }
    command
}

fn blockyard<'a>(arguments: impl IntoIterator<Item = &'a str>) -> CommandOutput {
    blockyard_with_input(arguments, "")
}

fn blockyard_with_input<'a>(arguments: impl IntoIterator<Item = &'a str>, input: &str) -> CommandOutput {
    let mut child = command()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().unwrap();
    // A thread writes the input while the output is read, since each may be larger than a pipe holds. An
    // error of writing is ignored: the command may end without reading its input.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
        child.wait_with_output().unwrap()
    });
    CommandOutput {
        status: output.status.code().expect("the command ends by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn fixture(name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures");
    fixtures.join(format!("{name}.jsonl.gz")).to_str().expect("a path of text").to_owned()
}

fn fixture_text(name: &str) -> String {
    let mut text = String::new();
    GzDecoder::new(&std::fs::read(fixture(name)).unwrap()[..]).read_to_string(&mut text).unwrap();
    text
}

/// A program's recording without the first entries of its trace and without its checkpoints.
fn begun_late(name: &str, missing: usize) -> String {
    let text = fixture_text(name);
    let lines = text.lines().filter(|line| !line.starts_with("{\"checkpoints\""));
    let lines = lines.map(|line| {
        let mut line = json(line);
        line.as_object_mut().unwrap().remove("stats");
        if let Some(trace) = line.get_mut("trace").and_then(serde_json::Value::as_array_mut) {
            trace.drain(..missing);
        }
        line.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes a file and returns its path. Tests run at the same time, so each test uses other names.
fn file(name: &str, content: impl AsRef<[u8]>) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().expect("a path of text").to_owned()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}
