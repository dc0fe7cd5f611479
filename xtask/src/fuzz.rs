//! `cargo xtask fuzz`: lets libFuzzer look for input that breaks a target of `tests/fuzz`.
//!
//! The stable toolchain is enough: without a sanitizer cargo-fuzz asks for nothing else. The code of the
//! targets has `unsafe` only in the lock, which Miri tests.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::stages::StageOutcome;
use crate::workspace::{self, Workspace, which};

/// How long to look for a shorter input that breaks a target in the same way.
const SHRINKING_SECONDS: u64 = 20;
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Runs one target, or each of them, for this many seconds.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>, seconds: u64) -> Result<()> {
    let targets = targets(workspace)?;
    if let Some(name) = only.filter(|name| !targets.iter().any(|target| target == name)) {
        bail!("no fuzz target `{name}`: there are {}", targets.join(", "));
    }
    set_up(workspace)?;
    let chosen: Vec<_> = targets.iter().filter(|target| only.is_none_or(|only| only == *target)).collect();
    let lines: Vec<String> =
        chosen.iter().map(|target| Fuzzer::new(workspace, target)?.run(seconds)).collect::<Result<_>>()?;
    println!();
    for line in lines {
        println!("    {line}");
    }
    Ok(())
}

/// Runs each target if all tools are installed; otherwise the stage is skipped.
pub(crate) fn run_if_possible(workspace: &Workspace, seconds: u64) -> Result<StageOutcome> {
    match missing(workspace) {
        None => run(workspace, None, seconds).map(|()| StageOutcome::Passed),
        Some(what) => {
            Ok(StageOutcome::Skipped(format!("there is no {what}; `cargo xtask fuzz` sets up what it can")))
        }
    }
}

fn missing(workspace: &Workspace) -> Option<&'static str> {
    if !has_compiler() {
        Some("C++ compiler")
    } else if !workspace::succeeds(&mut workspace.cargo(["fuzz", "--version"])) {
        Some("cargo-fuzz")
    } else {
        None
    }
}

fn has_compiler() -> bool {
    std::env::var_os("CXX").is_some()
        || ["c++", "g++", "clang++"].into_iter().any(|name| which(name).is_some())
}

fn set_up(workspace: &Workspace) -> Result<()> {
    if !has_compiler() {
        bail!("libFuzzer is written in C++: install a compiler, such as Debian's g++");
    }
    if missing(workspace).is_some() {
        workspace::run(&mut workspace.cargo(["install", "--locked", "cargo-fuzz"]))?;
    }
    Ok(())
}

fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root().join("tests/fuzz/targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// One target, built.
struct Fuzzer<'a> {
    workspace: &'a Workspace,
    target: &'a str,
    program: PathBuf,
    /// The corpus: the interesting inputs of this and earlier runs.
    corpus: PathBuf,
    log: PathBuf,
}

impl<'a> Fuzzer<'a> {
    fn new(workspace: &'a Workspace, target: &'a str) -> Result<Self> {
        let folder = workspace.root().join("target/fuzz");
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let host = host(workspace)?;
        let mut build = workspace.cargo(["fuzz", "build", "--fuzz-dir", "tests/fuzz", "--sanitizer", "none"]);
        build.args(["--target", &host, "--target-dir"]).arg(&folder).arg(target);
        // With overflow checks a sum that wraps is a finding; the release profile would continue with the
        // wrapped number.
        build.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
        build.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
        workspace::run(&mut build)?;
        let program = folder.join(host).join("release").join(target);
        let log = folder.join(format!("{target}.log"));
        Ok(Self { workspace, target, program, corpus, log })
    }

    fn command(&self, seconds: u64) -> Command {
        let mut command = self.workspace.program(&self.program);
        command.arg(format!("-max_total_time={seconds}")).args(["-timeout=30", "-rss_limit_mb=4096"]);
        command
    }

    /// Runs the target for this many seconds; returns a line about its progress.
    fn run(&self, seconds: u64) -> Result<String> {
        let found = self.workspace.root().join("target/fuzz/found").join(self.target);
        fs::create_dir_all(&found)?;
        let mut command = self.command(seconds);
        command.args(["-max_len=4096", "-print_final_stats=1"]);
        command.arg(format!("-artifact_prefix={}/", found.display()));
        let own = self.workspace.root().join("tests/fuzz");
        let dictionary = own.join("dictionaries").join(self.target);
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        command.arg(&self.corpus);
        command.args(
            ["seeds", "regressions"]
                .map(|kind| own.join(kind).join(self.target))
                .iter()
                .filter(|path| path.is_dir()),
        );
        let mut progress = Progress::default();
        println!("    {} runs for {seconds} s", self.target);
        let succeeds = self.follow(&mut command, &mut progress)?;
        if succeeds {
            return Ok(format!("{:<12} {progress}, nothing found", self.target));
        }
        self.tell_failure(&progress)
    }

    /// Runs the command to its end, with its output in the log.
    fn follow(&self, command: &mut Command, progress: &mut Progress) -> Result<bool> {
        let mut log = fs::File::create(&self.log)?;
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot run the target")?;
        let mut last = Instant::now();
        if let Some(stderr) = child.stderr.take() {
            for line in BufReader::new(stderr).split(b'\n') {
                let line = line?;
                log.write_all(&line)?;
                log.write_all(b"\n")?;
                progress.read(&String::from_utf8_lossy(&line));
                if last.elapsed() >= BETWEEN_LINES {
                    last = Instant::now();
                    println!("    {:<12} {progress}", self.target);
                }
            }
        }
        Ok(child.wait()?.success())
    }

    fn tell_failure(&self, progress: &Progress) -> Result<String> {
        let Some(input) = &progress.input else {
            bail!("{} ended badly; {} says more", self.target, self.log.display());
        };
        let kept = self.keep(Path::new(input))?;
        let kept = kept.strip_prefix(self.workspace.root()).unwrap_or(&kept);
        bail!(
            "{} fails after {progress}:\n  {}\nThe input is now {}, which `cargo test -p blockyard-fuzz` tries too: give it a name \
             that says what it is. Alone: `cargo run -p blockyard-fuzz --bin {} {}`",
            self.target,
            progress.panic.join("\n  "),
            kept.display(),
            self.target,
            kept.display(),
        )
    }

    /// Adds the input, or a shorter one that fails too, to the regressions.
    fn keep(&self, input: &Path) -> Result<PathBuf> {
        let folder = self.workspace.root().join("tests/fuzz/regressions").join(self.target);
        fs::create_dir_all(&folder)?;
        let kept = folder.join(input.file_name().context("the input has a name")?);
        fs::copy(input, &kept)?;
        println!("    {} fails; looking for a shorter input for {SHRINKING_SECONDS} s", self.target);
        let mut command = self.command(SHRINKING_SECONDS);
        command.arg("-minimize_crash=1").arg(format!("-exact_artifact_path={}", kept.display())).arg(input);
        // The file has a failing input in any case: the shorter one if the command found one.
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        Ok(kept)
    }
}

pub(crate) fn host(workspace: &Workspace) -> Result<String> {
    let lines = workspace::read(&mut workspace.cargo(["-vV"]))?;
    let host = lines.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(ToOwned::to_owned).context("cargo does not say what it runs on")
}

/// The output of libFuzzer so far.
#[derive(Default)]
struct Progress {
    executions: u64,
    edges: u64,
    a_second: u64,
    /// The message of the target's panic.
    panic: Vec<String>,
    /// The path of the input that broke the target.
    input: Option<String>,
}

impl Progress {
    fn read(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix('#') {
            let number = |text: Option<&str>| text.and_then(|text| text.trim_end_matches(':').parse().ok());
            let words: Vec<&str> = rest.split_whitespace().collect();
            let behind = |name: &str| {
                let place = words.iter().position(|word| *word == name);
                number(place.and_then(|place| words.get(place + 1).copied()))
            };
            self.executions = number(words.first().copied()).unwrap_or(self.executions);
            self.edges = behind("cov:").unwrap_or(self.edges);
            self.a_second = behind("exec/s:").unwrap_or(self.a_second);
        } else if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or(self.executions);
        } else if let Some((_, input)) = line.split_once("Test unit written to ") {
            self.input = Some(input.trim().to_owned());
        } else if line.contains("panicked at") || (1..6).contains(&self.panic.len()) {
            self.panic.push(line.chars().take(300).collect());
        }
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { executions, edges, a_second, .. } = self;
        write!(f, "{executions} executions, {edges} edges covered, {a_second} a second")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libfuzzer_says_is_read() {
        let mut progress = Progress::default();
        for line in [
            "INFO: Seed: 1",
            "#16694\tNEW    cov: 3437 ft: 18501 corp: 1544/520Kb lim: 600 exec/s: 273 rss: 41Mb",
            "stat::number_of_executed_units: 16700",
        ] {
            progress.read(line);
        }
        assert_eq!(progress.to_string(), "16700 executions, 3437 edges covered, 273 a second");
        assert_eq!((progress.panic.len(), progress.input.as_deref()), (0, None));
        progress.read("thread '<unnamed>' panicked at src/lib.rs:1:2:");
        progress.read("assertion failed");
        progress.read("artifact_prefix='found/'; Test unit written to found/crash-1");
        assert_eq!(progress.panic[1], "assertion failed");
        assert_eq!(progress.input.as_deref(), Some("found/crash-1"));
    }
}
