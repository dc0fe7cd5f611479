//! An exercise in Python: the reader's program is run on the exercise's device, and its recording is graded.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use blockyard_lessons::{EndedProgram, Exercise, Grade};
use blockyard_python::{HostMemoryLimit, ProgramOutcome, ProgramSettings, ProgramSource, run_on_thread};
use blockyard_record::Bytes;
use blockyard_torch::GpuProfile;

use crate::{heap, output};

/// How long an answer may run.
const TIME_LIMIT: Duration = Duration::from_mins(1);
/// How much of the host's memory an answer may use.
const PROCESS_MEMORY: Bytes = Bytes::gib(4);

/// Whether the output of an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// The program's output is shown, and its traceback on standard error.
    Shown,
    /// Neither is shown, because each of many answers has one line.
    Hidden,
}

/// Runs the program and says which goals are met.
pub(super) fn grade(exercise: &Exercise, name: &str, source: &str, shown: Output) -> anyhow::Result<Grade> {
    exercise.check_locked(source).map_err(|error| anyhow!("{name}: {error}"))?;
    let (finished, printed) = run(exercise, name, source)?;
    if shown == Output::Shown {
        output::line(&mut output::stdout(), printed.trim_end())?;
        if let Some(traceback) = &finished.traceback {
            eprint!("{traceback}");
        }
    }
    let (status, traceback) = (finished.status, finished.traceback);
    let recording = finished.devices.into_iter().next().and_then(|device| device.recording);
    let Some(recording) = recording else { bail!("{name}: the program's run could not be recorded") };
    let end = EndedProgram { recording, status, traceback };
    exercise.grade_program(source, end).map_err(|error| anyhow!("{name}: {error}"))
}

/// Runs the program; returns its outcome and its output.
fn run(exercise: &Exercise, name: &str, source: &str) -> anyhow::Result<(ProgramOutcome, String)> {
    let Some(mut gpu) = GpuProfile::from_id(&exercise.profile) else {
        bail!("the lesson names a GPU {:?}, which does not exist in Blockyard", exercise.profile);
    };
    gpu.total_memory = exercise.capacity;
    heap::limit(PROCESS_MEMORY);
    let settings = ProgramSettings {
        gpu,
        config: exercise.config().clone(),
        is_recorded: true,
        process_memory: Some(HostMemoryLimit { used: heap::used, most: PROCESS_MEMORY }),
        time_limit: Some(TIME_LIMIT),
        ..ProgramSettings::default()
    };
    let program = ProgramSource { file: name.to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let (send, printed) = mpsc::channel::<String>();
    let finished = run_on_thread(program, settings, move |text: &str| {
        // The receiver lives until the program has ended.
        let _gone = send.send(text.to_owned());
    })?;
    Ok((finished, printed.try_iter().collect()))
}
