//! A process that has loaded modules once: programs run in copies of the process, which saves the time of
//! loading the modules.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Error, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::run::{environment, no_python};
use crate::{DryRunError, LibraryFolder, Program, Torch};

/// A process that has loaded modules and runs each program in a copy of itself, until the last of these
/// values is dropped.
///
/// Modules that are loaded before the program begins do not see variables that the program sets for them.
#[derive(Clone, Debug)]
pub struct PreloadedProcess(Arc<SharedProcess>);

/// The process, which all handles and the thread that reads its reports share.
#[derive(Debug)]
struct SharedProcess {
    process: Mutex<Child>,
    /// The process's standard input, to which jobs are written; `None` once the process is to end.
    jobs: Mutex<Option<ChildStdin>>,
    state: Mutex<State>,
    /// Notified of each change of the state.
    changed: Condvar,
}

/// What the process has reported so far.
#[derive(Debug, Default)]
struct State {
    /// How many jobs were begun, which is the number of the last job.
    begun: u64,
    /// The copies by the number of their job.
    copies: HashMap<u64, CopyState>,
    /// Why no further copy can be made.
    fault: Option<String>,
}

/// A copy of the process, which runs one program.
#[derive(Clone, Copy, Debug, Default)]
struct CopyState {
    pid: u32,
    /// The status of `waitpid`; `None` while the copy runs.
    wait_status: Option<i32>,
}

/// A line that the process reports.
#[derive(Debug, Deserialize)]
struct ProcessReport {
    job: Option<u64>,
    pid: Option<u32>,
    ended: Option<i32>,
    fault: Option<String>,
}

impl PreloadedProcess {
    /// Starts a process that loads the modules that a program imports first, up to its first other statement,
    /// and does not wait for them.
    ///
    /// # Errors
    ///
    /// Python does not start.
    pub fn load_imports(
        program: &Program,
        torch: &Torch,
        prepared: &LibraryFolder,
    ) -> Result<Self, DryRunError> {
        Self::begin(program, &json!({"preload": [], "program": program.file}), torch, prepared)
    }

    /// Starts a process that loads these modules with the Python, the settings and the GPU of a program, and
    /// does not wait for the modules.
    ///
    /// # Errors
    ///
    /// Python does not start.
    pub fn load(
        program: &Program,
        modules: &[String],
        torch: &Torch,
        prepared: &LibraryFolder,
    ) -> Result<Self, DryRunError> {
        Self::begin(program, &json!({"preload": modules, "program": null}), torch, prepared)
    }

    fn begin(
        program: &Program,
        modules: &Value,
        torch: &Torch,
        prepared: &LibraryFolder,
    ) -> Result<Self, DryRunError> {
        let mut command = Command::new(&program.python);
        command.arg(prepared.runner()).arg(modules.to_string());
        command.envs(environment(program, torch, prepared, Path::new("/dev/null")));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|error| no_python(program, error))?;
        let (jobs, answers) = (process.stdin.take(), process.stdout.take());
        let shared = Arc::new(SharedProcess {
            process: Mutex::new(process),
            jobs: Mutex::new(jobs),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        });
        if let Some(answers) = answers {
            let kept = Arc::downgrade(&shared);
            std::thread::spawn(move || listen(answers, || kept.upgrade()));
        }
        Ok(Self(shared))
    }

    /// Begins a copy that runs a program.
    pub(crate) fn start(
        &self,
        program: &Program,
        settings: &Value,
        environment: &[(OsString, OsString)],
    ) -> Result<ProcessCopy, DryRunError> {
        let failed = |error: Error| no_python(program, error);
        let text = |text: &OsString| text.to_string_lossy().into_owned();
        let job = {
            let mut state = self.0.state();
            state.begun += 1;
            state.begun
        };
        let mut arguments = vec![program.file.display().to_string()];
        arguments.extend(program.arguments.iter().cloned());
        if let Some(path) = &program.output {
            std::fs::write(path, "").map_err(DryRunError::file(path))?;
        }
        let variables: HashMap<String, String> =
            environment.iter().map(|(name, value)| (text(name), text(value))).collect();
        let line = json!({
            "job": job,
            "settings": settings,
            "arguments": arguments,
            "environment": variables,
            "output": program.output.as_deref().map(|path| std::path::absolute(path).unwrap_or_else(|_error| path.to_owned())),
            "folder": program.folder,
        });
        let sent = {
            let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            match jobs.as_mut() {
                Some(jobs) => jobs.write_all((line.to_string() + "\n").as_bytes()),
                None => Err(Error::other("the process that loads modules takes no programs")),
            }
        };
        let mut state = self.0.state();
        loop {
            if let Some(copy) = state.copies.get(&job) {
                return Ok(ProcessCopy { shared: Arc::clone(&self.0), job, pid: copy.pid });
            }
            if let Some(fault) = &state.fault {
                return Err(failed(Error::other(fault.clone())));
            }
            if let Err(error) = &sent {
                // A process that has ended may still have reported why.
                let words = error.to_string();
                let (next, waited) = self.0.wait(state, Some(std::time::Duration::from_secs(1)));
                state = next;
                if waited && state.fault.is_none() {
                    return Err(failed(Error::other(words)));
                }
                continue;
            }
            state = self.0.wait(state, None).0;
        }
    }
}

/// Reads the reports of the process into the state until the process ends.
fn listen(answers: ChildStdout, shared: impl Fn() -> Option<Arc<SharedProcess>>) {
    for line in BufReader::new(answers).lines() {
        let Ok(line) = line else { break };
        let (Some(shared), Ok(said)) = (shared(), serde_json::from_str::<ProcessReport>(&line)) else {
            continue;
        };
        let mut state = shared.state();
        if let Some(job) = said.job {
            let copy = state.copies.entry(job).or_default();
            copy.pid = said.pid.unwrap_or(copy.pid);
            copy.wait_status = said.ended.or(copy.wait_status);
        }
        state.fault = said.fault.or_else(|| state.fault.take());
        drop(state);
        shared.changed.notify_all();
    }
    if let Some(shared) = shared() {
        let mut state = shared.state();
        state.fault.get_or_insert_with(|| "the process that loads modules has ended".to_owned());
        drop(state);
        shared.changed.notify_all();
    }
}

impl SharedProcess {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change of the state; returns whether the time was over before a change.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        most: Option<std::time::Duration>,
    ) -> (MutexGuard<'a, State>, bool) {
        match most {
            None => (self.changed.wait(state).unwrap_or_else(PoisonError::into_inner), false),
            Some(most) => {
                let (state, waited) =
                    self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner);
                (state, waited.timed_out())
            }
        }
    }
}

impl Drop for SharedProcess {
    fn drop(&mut self) {
        // Without further jobs the process ends by itself, and its copies end with it.
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.process.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

/// A copy that runs a program.
pub(crate) struct ProcessCopy {
    shared: Arc<SharedProcess>,
    job: u64,
    pid: u32,
}

impl ProcessCopy {
    /// The process id of the copy.
    pub(crate) fn id(&self) -> u32 {
        self.pid
    }

    /// The status of the copy; `None` while it runs.
    pub(crate) fn try_wait(&self) -> std::io::Result<Option<ExitStatus>> {
        Self::status(&self.shared.state(), self.job)
    }

    /// Waits for the end of the copy; an error where the process that makes the copies failed.
    pub(crate) fn wait(&self) -> std::io::Result<ExitStatus> {
        let mut state = self.shared.state();
        loop {
            if let Some(status) = Self::status(&state, self.job)? {
                return Ok(status);
            }
            state = self.shared.wait(state, None).0;
        }
    }

    fn status(state: &State, job: u64) -> std::io::Result<Option<ExitStatus>> {
        match (state.copies.get(&job).and_then(|copy| copy.wait_status), &state.fault) {
            (Some(status), _) => Ok(Some(ExitStatus::from_raw(status))),
            (None, Some(fault)) => Err(Error::other(fault.clone())),
            (None, None) => Ok(None),
        }
    }

    /// Sends a signal to the copy.
    pub(crate) fn end(&self, signal: Signal) -> rustix::io::Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.map_or(Ok(()), |pid| kill_process(pid, signal))
    }
}
