//! Starts a program and waits for its end.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use blockyard_gpus::{GpuProfile, pytorch_memory};
use blockyard_hooks::variables;
use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, Release};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::orders::kilobytes;
use crate::preloaded::{PreloadedProcess, ProcessCopy};
use crate::{DryRunError, LibraryFolder, Report, StoreServer, Torch};

/// The release of Python that keeps a generator's variables after `close` (CPython's issue 118272).
const KEEPS_CLOSED_GENERATORS: &str = "3.12.3";

/// A program to run.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command by itself")]
pub struct Program {
    /// The file of the program.
    pub file: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// The folder in which the program starts; `None` for the folder of this process. A relative `file` is a
    /// path from this folder.
    pub folder: Option<PathBuf>,
    /// The Python that runs the program.
    pub python: String,
    /// The GPU that the program sees.
    pub gpu: GpuProfile,
    /// How many GPUs the program sees.
    pub devices: u32,
    /// `PYTORCH_CUDA_ALLOC_CONF`; `None` for the environment's.
    pub conf: Option<String>,
    /// The file for a snapshot with stacks.
    pub snapshot: Option<PathBuf>,
    /// Whether the report has the allocator's requests, from which other addresses can be tried. PyTorch
    /// keeps a history without stacks then.
    pub keeps_requests: bool,
    /// After how many iterations (steps of the first optimizer) the program ends; the report then has the
    /// peaks of each iteration. `None` for a program that runs to its end.
    pub iterations: Option<u32>,
    /// Bytes of GPUs: the report says at which line segments exceeded each for the first time.
    pub totals: Vec<Bytes>,
    /// Whether the report has the lines that the program prints.
    pub lists_lines: bool,
    /// Further variables of the program's environment.
    pub environment: Vec<(String, String)>,
    /// The file for what the program prints; `None` where it is shown.
    pub output: Option<PathBuf>,
    /// The share of each device that may be reserved, as `torch.cuda.set_per_process_memory_fraction` takes
    /// it.
    pub fraction: Option<f64>,
    /// Whether each device has less memory by the bytes that the driver and CUDA's libraries take, as
    /// recorded on an H100. The GPUs of `totals` have less by these bytes, too.
    pub counts_non_pytorch: bool,
    /// Whether the process ends at the first request that runs out of memory, even if the program would catch
    /// the error. The run then writes no snapshot.
    pub ends_at_oom: bool,
    /// The process that has loaded modules: the program runs in a copy of it. Without one, the program gets a
    /// new process.
    pub preloaded: Option<PreloadedProcess>,
}

impl Program {
    /// A program that a Python runs on one GPU to its end, without any options; the output of the program is
    /// shown.
    #[must_use]
    pub fn new(file: PathBuf, python: String, gpu: GpuProfile) -> Self {
        Self {
            file,
            arguments: Vec::new(),
            folder: None,
            python,
            gpu,
            devices: 1,
            conf: None,
            snapshot: None,
            keeps_requests: false,
            iterations: None,
            totals: Vec::new(),
            lists_lines: false,
            fraction: None,
            counts_non_pytorch: false,
            ends_at_oom: false,
            environment: Vec::new(),
            output: None,
            preloaded: None,
        }
    }
}

/// A folder for the files of one run, removed at its end.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Result<Self, DryRunError> {
        let folder = tempfile::Builder::new().prefix("blockyard-dry-run-").tempdir();
        folder.map(Self).map_err(DryRunError::NoScratch)
    }

    /// The file of the runner's counts at the program's end.
    fn counted(&self) -> PathBuf {
        self.0.path().join("counted.json")
    }

    /// The file of the allocator's requests.
    fn requests(&self) -> PathBuf {
        self.0.path().join("requests.pickle")
    }

    /// The file of the lines that are written while the program runs.
    fn lines(&self) -> PathBuf {
        self.0.path().join("report.jsonl")
    }
}

/// Runs the program to its end and reports the memory that it took. A program that fails has a report too.
///
/// # Errors
///
/// A Python that does not start, and files that cannot be written.
pub fn run(program: &Program, torch: &Torch, prepared: &LibraryFolder) -> Result<Report, DryRunError> {
    run_interruptible(program, torch, prepared, || false)
}

/// How long a program may go on after Ctrl-C before the signal is passed on to the program.
const MAX_WAIT_AFTER_INTERRUPT: Duration = Duration::from_secs(3);

/// [`run`]; where `is_interrupted` becomes true and the program goes on, the program gets the signal of Ctrl-C.
///
/// A terminal sends this signal to the program too, which then ends by itself. A second signal could end what
/// the program does at its end, and so it comes only to a program that goes on.
///
/// # Errors
///
/// The errors of [`run`].
pub fn run_interruptible(
    program: &Program,
    torch: &Torch,
    prepared: &LibraryFolder,
    is_interrupted: impl Fn() -> bool,
) -> Result<Report, DryRunError> {
    let mut started = RunningProgram::start(program.clone(), torch, prepared)?;
    let mut interrupted = None;
    let mut has_gone_on = || {
        let at = is_interrupted().then(|| *interrupted.get_or_insert_with(Instant::now));
        at.is_some_and(|at| at.elapsed() >= MAX_WAIT_AFTER_INTERRUPT)
    };
    if wait_until(&mut started, &mut has_gone_on)? {
        started.process.end(Signal::INT);
    }
    started.finish(torch)
}

/// [`run`], until `is_stopped` is true: then the process is killed, and the report has the iterations that
/// were made.
///
/// # Errors
///
/// The errors of [`run`].
pub fn run_until(
    program: &Program,
    torch: &Torch,
    prepared: &LibraryFolder,
    is_stopped: impl Fn() -> bool,
) -> Result<Report, DryRunError> {
    let mut started = RunningProgram::start(program.clone(), torch, prepared)?;
    wait(&mut started, &is_stopped)?;
    started.finish(torch)
}

/// Waits for the end of the process, or ends it once `is_stopped` is true; returns whether the process was
/// ended.
pub(crate) fn wait(
    started: &mut RunningProgram,
    is_stopped: &impl Fn() -> bool,
) -> Result<bool, DryRunError> {
    let is_running = wait_until(started, &mut || is_stopped())?;
    if is_running {
        started.end(true);
    }
    Ok(is_running)
}

/// Waits for the end of the process, or until `is_over` is true; returns whether the process still runs.
fn wait_until(started: &mut RunningProgram, is_over: &mut dyn FnMut() -> bool) -> Result<bool, DryRunError> {
    while started.poll()?.is_none() {
        if is_over() {
            return Ok(true);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(false)
}

/// Starts a new process for a program.
fn new_process(
    program: &Program,
    prepared: &LibraryFolder,
    settings: &Value,
    environment: Vec<(OsString, OsString)>,
) -> Result<Child, DryRunError> {
    let mut command = Command::new(&program.python);
    command.arg(prepared.runner()).arg(settings.to_string());
    command.arg(&program.file).args(&program.arguments);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command.envs(environment);
    if let Some(path) = &program.output {
        let file = fs::File::create(path).map_err(DryRunError::file(path))?;
        let errors = file.try_clone().map_err(DryRunError::file(path))?;
        command.stdout(Stdio::from(file)).stderr(Stdio::from(errors)).stdin(Stdio::null());
    }
    command.spawn().map_err(|error| no_python(program, error))
}

/// A process that was started for a program, or copied from one that has loaded modules.
enum Process {
    Own(Child),
    Copy(ProcessCopy),
}

impl Process {
    fn id(&self) -> u32 {
        match self {
            Self::Own(child) => child.id(),
            Self::Copy(copied) => copied.id(),
        }
    }

    fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        match self {
            Self::Own(child) => child.try_wait(),
            Self::Copy(copied) => copied.try_wait(),
        }
    }

    fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match self {
            Self::Own(child) => child.wait(),
            Self::Copy(copied) => copied.wait(),
        }
    }

    fn end(&mut self, signal: Signal) {
        let _ = match self {
            Self::Own(child) => kill_process(Pid::from_child(child), signal),
            Self::Copy(copied) => copied.end(signal),
        };
    }
}

/// A program that runs.
pub(crate) struct RunningProgram {
    program: Program,
    process: Process,
    status: Option<ExitStatus>,
    scratch: Scratch,
    /// The store in which processes that the program itself starts find each other; `None` for a rank, since
    /// all ranks share one.
    _store: Option<StoreServer>,
    /// Most bytes of the host's memory so far.
    host_peak: u64,
}

impl RunningProgram {
    /// Starts the program, as a copy of the preloaded process where the program has one. A program that is
    /// not a rank gets a store for the values that its own processes exchange.
    pub(crate) fn start(
        program: Program,
        torch: &Torch,
        prepared: &LibraryFolder,
    ) -> Result<Self, DryRunError> {
        let scratch = Scratch::new()?;
        let lines = scratch.lines();
        fs::write(&lines, "").map_err(DryRunError::file(&lines))?;
        let settings = settings(&program, &scratch);
        let mut environment = environment(&program, torch, prepared, &lines);
        let is_rank = program.environment.iter().any(|(name, _)| name == variables::STORE);
        // Without a store, the values that processes receive from each other are unknown, and no number is
        // wrong.
        let store = if is_rank { None } else { StoreServer::start(None, &[], 0).ok() };
        if let Some(store) = &store {
            environment.push((variables::STORE.into(), format!("127.0.0.1:{}", store.port()).into()));
        }
        let process = match &program.preloaded {
            Some(preloaded) => Process::Copy(preloaded.start(&program, &settings, &environment)?),
            None => Process::Own(new_process(&program, prepared, &settings, environment)?),
        };
        Ok(Self { program, process, status: None, scratch, _store: store, host_peak: 0 })
    }

    /// Whether the process is known to have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    /// Whether the process ended well; `None` while it runs.
    pub(crate) fn poll(&mut self) -> Result<Option<bool>, DryRunError> {
        if self.status.is_none() {
            let status =
                fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
            self.host_peak = self.host_peak.max(kilobytes(&status, "VmHWM:").unwrap_or(0));
            self.status = self.process.try_wait().map_err(|error| no_python(&self.program, error))?;
        }
        Ok(self.status.map(|status| status.success()))
    }

    /// Tells the process to end, which then counts its memory; kills the process where `at_once` is true.
    pub(crate) fn end(&mut self, at_once: bool) {
        if self.has_ended() {
            return;
        }
        // The process may have ended already.
        self.process.end(if at_once { Signal::KILL } else { Signal::TERM });
    }

    /// Waits for the end and reports the memory that the program took.
    pub(crate) fn finish(mut self, torch: &Torch) -> Result<Report, DryRunError> {
        let waited = self.process.wait().map_err(|error| no_python(&self.program, error))?;
        let status = self.status.unwrap_or(waited);
        let code =
            status.code().or_else(|| status.signal().map(|signal| signal.saturating_add(128))).unwrap_or(1);
        let counted = fs::read_to_string(self.scratch.counted()).ok();
        let lines = self.scratch.lines();
        let lines = fs::read_to_string(&lines).map_err(DryRunError::file(&lines))?;
        let mut report = Report::of(code, status.signal(), counted.as_deref(), &lines);
        let read = |conf: &str| AllocatorConfig::parse(conf, Release::nearest(&torch.version)).ok();
        let config = report.conf.as_deref().and_then(read);
        report.remarks.extend(config.and_then(|config| config.warning_about_pair()).map(str::to_owned));
        report.host_peak = Bytes::new(self.host_peak);
        report.counts_non_pytorch = self.program.counts_non_pytorch;
        if self.program.keeps_requests {
            // Without the requests, the report says nothing about other addresses.
            let path = self.program.snapshot.clone().unwrap_or_else(|| self.scratch.requests());
            report.requests = fs::read(path).ok();
        }
        if !report.devices.is_empty() {
            report.remarks.extend(remarks(&self.program, torch));
        }
        Ok(report)
    }
}

/// The error for a Python that does not start or cannot be waited for.
pub(crate) fn no_python(program: &Program, error: std::io::Error) -> DryRunError {
    DryRunError::NoPython { python: program.python.clone(), error }
}

/// The time between two questions whether a process is to be stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Sentences about properties of the run that were never compared with a recording.
fn remarks(program: &Program, torch: &Torch) -> Vec<String> {
    let mut remarks = Vec::new();
    if !program.gpu.is_proved {
        remarks.push(format!(
            "the numbers of {} are derived; those of the H200 were checked against recordings",
            program.gpu.name
        ));
    }
    let (major, minor) = torch.version_pair();
    let (own, recorded) = (format!("{major}.{minor}"), Release::OF_RECORDED_OPERATORS.name());
    if own != recorded {
        remarks.push(format!(
            "the requests of NVIDIA's libraries were recorded with PyTorch {recorded}; those of {own} may have other sizes"
        ));
    }
    if torch.python == KEEPS_CLOSED_GENERATORS {
        remarks.push(format!(
            "Python {KEEPS_CLOSED_GENERATORS} keeps the objects of a closed generator until the generator \
             dies; other releases free them when the generator is closed"
        ));
    }
    remarks
}

/// The number of bytes at whose first crossing a program no longer fits on a GPU with this much memory.
pub(crate) fn crossed(total: Bytes, counts_non_pytorch: bool) -> Bytes {
    // The non-PyTorch memory of the run is known at its end.
    if counts_non_pytorch { pytorch_memory(total) } else { total }
}

/// The settings for the runner. The program may change its folder, so paths are absolute.
fn settings(program: &Program, scratch: &Scratch) -> Value {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_error| path.to_owned());
    json!({
        "out": scratch.counted(),
        "requests": program.keeps_requests.then(|| scratch.requests()),
        "snapshot": program.snapshot.as_deref().map(absolute),
        "steps": program.iterations,
        "totals": program.totals.iter().map(|total| crossed(*total, program.counts_non_pytorch)).collect::<Vec<_>>(),
        "lines": program.lists_lines,
        "fraction": program.fraction,
        "ends_at_oom": program.ends_at_oom,
    })
}

/// The variables that make the process load the stand-in, and that say which GPU the stand-in stands for.
pub(crate) fn environment(
    program: &Program,
    torch: &Torch,
    prepared: &LibraryFolder,
    lines: &Path,
) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: OsString| all.push((name.into(), value));
    let with_before = |name: &str, value: OsString| match std::env::var_os(name) {
        Some(before) if !before.is_empty() => {
            let mut joined = value;
            joined.push(":");
            joined.push(before);
            joined
        }
        _ => value,
    };
    // PyTorch's libraries search their own folder before the library path; a library that is loaded already
    // is not searched.
    set("LD_LIBRARY_PATH", with_before("LD_LIBRARY_PATH", prepared.folder.clone().into_os_string()));
    set("LD_PRELOAD", with_before("LD_PRELOAD", prepared.preload.join(":").into()));
    let gpu = &program.gpu;
    set(variables::REPORT, lines.as_os_str().to_owned());
    set(variables::GPU, gpu.id.into());
    set(variables::DEVICES, program.devices.to_string().into());
    set(variables::MEMORY, gpu.total_memory.get().to_string().into());
    if program.counts_non_pytorch {
        set(variables::NON_PYTORCH, "1".into());
    }
    set(variables::CUDA, torch.cuda.to_string().into());
    if let Some(cudnn) = torch.cudnn {
        set(variables::CUDNN, cudnn.to_string().into());
    }
    if let Some(conf) = &program.conf {
        let name =
            if torch.version_pair() >= (2, 10) { "PYTORCH_ALLOC_CONF" } else { "PYTORCH_CUDA_ALLOC_CONF" };
        set(name, conf.into());
    }
    for (name, value) in &program.environment {
        set(name, value.into());
    }
    all
}
