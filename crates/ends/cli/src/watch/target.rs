//! The program that is watched: one that this command starts, one that runs, or the one that started this command.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail, ensure};
use blockyard_watch::ATTACH;

use crate::exit_status::ExitStatus;

/// Lets a Python run a file in another one, by their ids.
const RUN_IN: &str = "import sys\n\
    if not hasattr(sys, 'remote_exec'):\n    \
    sys.exit(77)\n\
    sys.remote_exec(int(sys.argv[1]), sys.argv[2])";
/// The exit status of a Python that cannot: one before 3.14.
const CANNOT_RUN_IN: i32 = 77;

/// The program that is watched.
#[derive(Debug)]
pub(super) enum Target {
    Started(Child),
    /// By its process id. The value says whether the watching was ended by Ctrl-C.
    Running(u32, Arc<AtomicBool>),
    /// It holds the other end of standard input. The value says whether it has ended.
    Parent(Arc<AtomicBool>),
}

impl Target {
    /// Starts a program with these variables.
    pub(super) fn start(command: &[String], variables: Vec<(&str, OsString)>) -> anyhow::Result<Self> {
        let [name, arguments @ ..] = command else { bail!("no program is named") };
        let child = Command::new(name).args(arguments).envs(variables).spawn();
        child.map(Self::Started).with_context(|| name.clone())
    }

    /// Makes a Python that runs load the files of this folder.
    pub(super) fn attach(pid: u32, folder: &Path, is_interrupted: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        let program = program.with_context(|| format!("the process {pid}"))?;
        let is_python = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
        ensure!(is_python, "the process {pid} is not a Python, but {}", program.display());
        let mut command = Command::new(&program);
        command.args(["-I", "-c", RUN_IN, &pid.to_string()]).arg(folder.join(ATTACH));
        let output = command.output().with_context(|| program.display().to_string())?;
        if output.status.code() == Some(CANNOT_RUN_IN) {
            attach_by_debugger(pid, &folder.join(ATTACH))?;
            return Ok(Self::Running(pid, is_interrupted));
        }
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().last().unwrap_or("it says nothing");
        ensure!(output.status.success(), "the process {pid} is not watched: {why}");
        Ok(Self::Running(pid, is_interrupted))
    }

    /// The program that started this command.
    pub(super) fn parent() -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let ends = has_ended.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ends.store(true, Ordering::Relaxed);
        });
        Self::Parent(has_ended)
    }

    /// The exit status, once the program has ended.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitCode>> {
        let done = |has_ended: bool| has_ended.then_some(ExitCode::SUCCESS);
        Ok(match self {
            Self::Started(child) => child
                .try_wait()?
                .map(|status| status.code().map_or(ExitStatus::Negative.into(), ExitStatus::of_program)),
            Self::Running(pid, is_interrupted) => {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let is_over = status.is_empty() || status.contains("\nState:\tZ");
                done(is_over || is_interrupted.load(Ordering::Relaxed))
            }
            Self::Parent(has_ended) => done(has_ended.load(Ordering::Relaxed)),
        })
    }
}

/// Makes a Python before 3.14 run a file: the debugger adds a call that the program's main thread makes between two
/// of its instructions, as a signal's handler, and lets the program go on.
fn attach_by_debugger(pid: u32, file: &Path) -> anyhow::Result<()> {
    let code = format!("exec(open({}).read())", serde_json::to_string(&file.to_string_lossy())?);
    let run = serde_json::to_string(&code)?;
    let call = format!("print (int) Py_AddPendingCall((int (*)(void *)) PyRun_SimpleString, {run})");
    let mut command = Command::new("gdb");
    // The symbols of CUDA's libraries would take minutes.
    command.args(["-nx", "-batch", "-iex", "set auto-solib-add off", "-p", &pid.to_string()]);
    for done in ["sharedlibrary libpython", "sharedlibrary libc\\.", &call] {
        command.args(["-ex", done]);
    }
    let output = command.output().context("a Python before 3.14 is watched by gdb once it runs")?;
    if String::from_utf8_lossy(&output.stdout).lines().any(|line| line == "$1 = 0") {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let why = why.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    bail!("the process {pid} is not watched: gdb: {why}")
}
