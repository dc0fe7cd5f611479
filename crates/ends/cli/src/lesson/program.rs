//! Python in lessons: the program of an exercise is graded by its recording, and the program of the cards gives
//! them their requests.

use std::time::Duration;

use anyhow::{anyhow, bail};
use blockyard_gpus::GpuProfile;
use blockyard_lessons::{EndedProgram, Exercise, Grade, LessonProgram, split_recorded, with_recorded};
use blockyard_python::Output::Taken;
use blockyard_python::{ProgramOutcome, ProgramSettings, ProgramSource, run as run_program};
use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, Release};

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
    // Somebody else wrote the answer.
    let settings = ProgramSettings {
        is_confined: true,
        host_memory: Some(PROCESS_MEMORY),
        time_limit: Some(TIME_LIMIT),
        ..settings(Some(&exercise.profile), exercise.capacity, exercise.config().clone())?
    };
    let (finished, printed) = run(&settings, name, source)?;
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

/// The text of a lesson with the requests of the program of its cards, which is run where the text has none of
/// it.
pub(crate) fn with_requests(name: &str, text: String) -> anyhow::Result<String> {
    let (own, block) = split_recorded(&text);
    let Some(program) = LessonProgram::of(&own).filter(|program| !program.has_run(&block)) else {
        return Ok(text);
    };
    let failed = |why: String| anyhow!("{name}: the program of its cards: {why}");
    let config = AllocatorConfig::parse(&program.conf, Release::OF_RECORDED_OPERATORS);
    let config = config.map_err(|error| failed(error.to_string()))?;
    let (ended, _) =
        run(&settings(program.profile.as_deref(), program.capacity, config)?, name, &program.source)?;
    let device = ended.devices.into_iter().next();
    let run = device.and_then(|device| Some((device.recording?, device.step_lines)));
    let (recording, lines) = run.ok_or_else(|| failed("it used no GPU".to_owned()))?;
    let block =
        program.record(&recording, &lines, ended.traceback.as_deref()).map_err(|error| {
            match error.line().and_then(|line| LessonProgram::line_in(&own, line)) {
                Some(line) => anyhow!("{name}: line {line}: {error}"),
                None => failed(error.to_string()),
            }
        })?;
    Ok(with_recorded(&own, &block))
}

/// A GPU with this memory, an H200 where none is named.
fn settings(
    profile: Option<&str>,
    capacity: Bytes,
    config: AllocatorConfig,
) -> anyhow::Result<ProgramSettings> {
    let id = profile.unwrap_or("h200");
    let Some(mut gpu) = GpuProfile::from_id(id) else {
        bail!("the lesson names a GPU {id:?}, which does not exist in Blockyard");
    };
    gpu.total_memory = capacity;
    Ok(ProgramSettings { gpu, config, is_recorded: true, ..ProgramSettings::default() })
}

/// Runs the program; returns its outcome and its output.
fn run(settings: &ProgramSettings, name: &str, source: &str) -> anyhow::Result<(ProgramOutcome, String)> {
    let program = ProgramSource { file: name.to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let mut printed = String::new();
    let outcome = run_program(&program, settings, Taken(&mut |text: &str| printed.push_str(text)))?;
    Ok((outcome, printed))
}
