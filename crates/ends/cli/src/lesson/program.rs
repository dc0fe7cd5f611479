//! An exercise in Python: the reader's program is run on the exercise's device, and its recording is graded.

use std::time::Duration;

use anyhow::{anyhow, bail};
use blockyard_lessons::{EndedProgram, Exercise, Grade};
use blockyard_python::Output::Taken;
use blockyard_python::{ProgramOutcome, ProgramSettings, ProgramSource, run as run_program};
use blockyard_record::Bytes;
use blockyard_torch::GpuProfile;

use crate::output;

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
        output::line(&mut output::stdout(), without_control(&printed).trim_end())?;
        if let Some(traceback) = &finished.traceback {
            eprint!("{}", without_control(traceback));
        }
    }
    let (status, traceback) = (finished.status, finished.traceback);
    let recording = finished.devices.into_iter().next().and_then(|device| device.recording);
    let Some(recording) = recording else { bail!("{name}: the program's run could not be recorded") };
    let end = EndedProgram { recording, status, traceback };
    exercise.grade_program(source, end).map_err(|error| anyhow!("{name}: {error}"))
}

/// The text without control characters, which a terminal would obey.
fn without_control(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}

/// Runs the program; returns its outcome and its output.
fn run(exercise: &Exercise, name: &str, source: &str) -> anyhow::Result<(ProgramOutcome, String)> {
    let Some(mut gpu) = GpuProfile::from_id(&exercise.profile) else {
        bail!("the lesson names a GPU {:?}, which does not exist in Blockyard", exercise.profile);
    };
    gpu.total_memory = exercise.capacity;
    let settings = ProgramSettings {
        gpu,
        config: exercise.config().clone(),
        is_recorded: true,
        // Somebody else wrote the answer.
        is_confined: true,
        host_memory: Some(PROCESS_MEMORY),
        time_limit: Some(TIME_LIMIT),
        ..ProgramSettings::default()
    };
    let program = ProgramSource { file: name.to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let mut printed = String::new();
    let outcome = run_program(&program, &settings, Taken(&mut |text: &str| printed.push_str(text)))?;
    Ok((outcome, printed))
}
