//! The process that runs a program.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use crate::interpreter::Interpreter;
use crate::{ProcessJob, ProgramOutcome, ProgramSettings, ProgramSource, RunError, library};

/// How long a program that has to stop may continue before its process is ended.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// The time between two looks at a process that has a limit.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Where the output of a program goes.
#[allow(missing_debug_implementations, reason = "a function has none")]
pub enum Output<'a> {
    /// To the output and the errors of this process, as it does of any process that is started.
    Shown,
    /// Each piece of standard output to a function. Errors, such as warnings, go to those of this process.
    Taken(&'a mut (dyn FnMut(&str) + Send)),
    /// Nowhere.
    Hidden,
}

/// Runs a program in a new process to its end.
///
/// # Errors
///
/// There is no Python that can run the program, files of the run cannot be written, or the process ended
/// before the program did: each [`RunError`] says what to do.
pub fn run(
    program: &ProgramSource,
    settings: &ProgramSettings,
    output: Output<'_>,
) -> Result<ProgramOutcome, RunError> {
    run_job(program, settings, None, output)
}

/// Runs a program to its end, prints nothing, and gives why memory of the first GPU is alive before the step
/// that follows the first `step` steps of the recording; at the end, if the recording has fewer steps
/// ([`ProgramOutcome::referrers`]). Every run of a program is the same, so the step is the step of an earlier
/// run.
///
/// # Errors
///
/// As of [`run`].
pub fn run_to_step(
    program: &ProgramSource,
    settings: &ProgramSettings,
    step: usize,
) -> Result<ProgramOutcome, RunError> {
    // Only a recording has steps.
    let settings = ProgramSettings { is_recorded: true, ..settings.clone() };
    run_job(program, &settings, Some(step), Output::Hidden)
}

fn run_job(
    program: &ProgramSource,
    settings: &ProgramSettings,
    referrers_at: Option<usize>,
    output: Output<'_>,
) -> Result<ProgramOutcome, RunError> {
    let interpreter = Interpreter::find(settings.python.as_deref())?;
    let extension = library::extension()?;
    // The files of one run, which other users cannot read.
    let folder = tempfile::Builder::new().prefix("blockyard-run-").tempdir();
    let folder = folder.map_err(RunError::file(&env::temp_dir()))?;
    let library = library::folder(folder.path())?;
    let readable = settings.is_confined.then(|| {
        let own = [library.clone(), extension.clone()].into_iter();
        let all = own.chain(interpreter.folders.iter().cloned()).chain(settings.folder.clone());
        // Python looks into archives and folders that may not exist.
        all.filter(|path| path.exists()).collect()
    });
    let job = ProcessJob {
        file: program.file.clone(),
        source: program.source.clone(),
        arguments: program.arguments.clone(),
        folder: settings.folder.clone(),
        gpu: settings.gpu.id.to_owned(),
        total_memory: settings.gpu.total_memory,
        devices: settings.devices,
        release: settings.config.release(),
        conf: settings.config.text().to_owned(),
        non_pytorch: settings.non_pytorch,
        is_recorded: settings.is_recorded,
        readable,
        max_operators: settings.max_operators,
        max_requests: settings.max_requests,
        time_limit: settings.time_limit,
        host_memory: settings.host_memory,
        referrers_at,
    };
    let bytes = postcard::to_allocvec(&job).map_err(|error| RunError::Job(error.to_string()))?;
    let path = folder.path().join("job");
    fs::write(&path, bytes).map_err(RunError::file(&path))?;
    let mut command = Command::new(&interpreter.command);
    command.args(["-X", "utf8"]).arg(library.join("lib/_boot.py")).arg(&extension).arg(folder.path());
    if settings.is_confined {
        // The program sees its environment, which may hold secrets.
        command.env_clear();
        command.envs(["PATH", "HOME", "LANG"].map(|name| (name, env::var_os(name).unwrap_or_default())));
        // A confined process has one thread.
        command.env("OPENBLAS_NUM_THREADS", "1").stdin(Stdio::null());
    }
    // Every run of a program is the same.
    command.env("PYTHONHASHSEED", "0").env_remove("PYTHONPATH").env_remove("PYTHONSTARTUP");
    if settings.has_rules_of_recordings {
        command.env("BLOCKYARD_RECORDED_PYTHON", "1");
    }
    match output {
        Output::Shown => {}
        Output::Taken(_) => drop(command.stdout(Stdio::piped())),
        Output::Hidden => drop(command.stdout(Stdio::null()).stderr(Stdio::null())),
    }
    let mut child =
        command.spawn().map_err(|error| RunError::Start { command: interpreter.command, error })?;
    let limit = settings.time_limit.map(|limit| limit.saturating_add(STOP_GRACE));
    let status = wait(&mut child, output, limit)?;
    // A process that ends early has written nothing.
    let bytes = fs::read(folder.path().join("outcome")).unwrap_or_default();
    if let Ok(reason) = fs::read_to_string(folder.path().join("refused")) {
        return Err(RunError::NotConfined(reason));
    }
    if bytes.is_empty() {
        return Err(RunError::Ended(status));
    }
    postcard::from_bytes(&bytes).map_err(|error| RunError::Job(error.to_string()))
}

/// Hands out the output and waits for the end of the process, which is ended after `limit`.
fn wait(child: &mut Child, output: Output<'_>, limit: Option<Duration>) -> Result<ExitStatus, RunError> {
    let pipe = child.stdout.take();
    thread::scope(|scope| {
        if let (Output::Taken(take), Some(mut pipe)) = (output, pipe) {
            scope.spawn(move || hand_out(&mut pipe, take));
        }
        let Some(limit) = limit else { return child.wait().map_err(RunError::Wait) };
        let begin = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(RunError::Wait)? {
                return Ok(status);
            }
            if begin.elapsed() >= limit {
                child.kill().map_err(RunError::Wait)?;
                child.wait().map_err(RunError::Wait)?;
                return Err(RunError::Time(limit.saturating_sub(STOP_GRACE)));
            }
            thread::sleep(LOOK_INTERVAL);
        }
    })
}

/// Hands out text as it comes; a character that came in part waits for its end.
fn hand_out(pipe: &mut impl Read, take: &mut (dyn FnMut(&str) + Send)) {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let whole = match std::str::from_utf8(&kept) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_invalid) => kept.len(),
        };
        let rest = kept.split_off(whole);
        take(&String::from_utf8_lossy(&kept));
        kept = rest;
    }
    if !kept.is_empty() {
        take(&String::from_utf8_lossy(&kept));
    }
}

impl RunError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}
