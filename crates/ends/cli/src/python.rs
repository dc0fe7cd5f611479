//! `blockyard python`: a PyTorch program on the machine's Python, without PyTorch and without a GPU.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use blockyard_answers::{ProgramAnswer, ProgramDevice};
use blockyard_python::{DeviceRun, Output, ProgramOutcome, ProgramSettings, ProgramSource, run};
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_pytorch::{Meta, log, stat_values};
use blockyard_record::Recording;
use blockyard_rules::AllocatorConfig;
use blockyard_torch::GpuProfile;
use clap::Parser as _;
use serde_json::json;

use crate::exit_status::ExitStatus;
use crate::options::{Command, Options, PythonOptions};
use crate::output;
use crate::questions::json_line;

pub(crate) fn python(options: &PythonOptions) -> anyhow::Result<ExitCode> {
    let program = program(options)?;
    let settings = settings(options)?;
    // A Ctrl-C is for the program, which ends with its traceback.
    let _kept = ctrlc::set_handler(|| {});
    let mut text = String::new();
    let outcome = if options.json {
        run(&program, &settings, Output::Taken(&mut |piece: &str| text.push_str(piece)))?
    } else {
        run(&program, &settings, Output::Shown)?
    };
    if let Some(path) = &options.record {
        let Some(device) = outcome.devices.first() else { bail!("there is no device to record") };
        let recorded =
            recording(&program.file, &settings.gpu, device).with_context(|| path.display().to_string())?;
        std::fs::write(path, recorded).with_context(|| path.display().to_string())?;
    }
    if options.json {
        output::line(&mut output::stdout(), &json_line(&summary(&text, &outcome))?)?;
    } else {
        report(&outcome)?;
    }
    Ok(ExitStatus::of_program(outcome.status))
}

fn program(options: &PythonOptions) -> anyhow::Result<ProgramSource> {
    let file = options.file.display().to_string();
    let source =
        String::from_utf8(output::read(&options.file)?).with_context(|| format!("{file} is not UTF-8"))?;
    Ok(ProgramSource { file, source, arguments: options.arguments.clone() })
}

fn settings(options: &PythonOptions) -> anyhow::Result<ProgramSettings> {
    let Some(mut gpu) = GpuProfile::from_id(&options.gpu) else {
        let known: Vec<&str> = GpuProfile::ALL.iter().map(|profile| profile.id).collect();
        bail!("no GPU has the name {:?}; the names are {}", options.gpu, known.join(", "));
    };
    if let Some(total) = options.total_memory {
        gpu.total_memory = total;
    }
    let conf = options.conf.as_deref().unwrap_or_default();
    let config = AllocatorConfig::parse(conf, options.release).context("settings")?;
    for warning in config.warnings() {
        output::warn(warning)?;
    }
    if !gpu.is_proved {
        output::warn(&format!(
            "the numbers of {} are derived; those of the H200 were checked against recordings",
            gpu.name
        ))?;
    }
    Ok(ProgramSettings {
        python: options.python.clone(),
        gpu,
        devices: options.devices,
        config,
        folder: Some(options.file.parent().unwrap_or(Path::new("")).to_owned()),
        non_pytorch: blockyard_gpus::context_and_libraries(),
        is_recorded: options.record.is_some(),
        max_operators: options.max_operators,
        max_requests: options.max_requests,
        host_memory: Some(options.max_host_memory),
        time_limit: Some(Duration::from_secs(options.time_limit)),
        ..ProgramSettings::default()
    })
}

/// A program that has run.
#[derive(Clone, Debug)]
pub struct PlayedProgram {
    /// The answer that the command prints with `--json`.
    pub summary: ProgramAnswer,
    /// The devices as a snapshot of PyTorch would have them, with the trace from the program's start.
    pub snapshot: SnapshotFile,
}

/// Runs a program as the command does, and hands out each piece of printed text as soon as the program prints
/// it.
///
/// `arguments` are the command's options, then the program, then the program's own arguments.
///
/// # Errors
///
/// The errors of the command: a wrong option, a file that cannot be read. A program that fails has a
/// traceback and is not an error.
pub fn play_program(
    arguments: &[String],
    mut on_text: impl FnMut(&str) + Send,
) -> anyhow::Result<PlayedProgram> {
    let words = ["blockyard", "python"].into_iter().chain(arguments.iter().map(String::as_str));
    let Command::Python(options) = Options::try_parse_from(words)?.into_command() else {
        bail!("these are not the options of `blockyard python`");
    };
    let settings = ProgramSettings { is_recorded: true, ..settings(&options)? };
    let program = program(&options)?;
    let mut text = String::new();
    let mut take = |piece: &str| {
        on_text(piece);
        text.push_str(piece);
    };
    let finished = run(&program, &settings, Output::Taken(&mut take))?;
    let recordings: Vec<(u32, &Recording)> = (0..)
        .zip(&finished.devices)
        .filter_map(|(at, device)| Some((at, device.recording.as_ref()?)))
        .collect();
    let mut snapshot = SnapshotFile::from_recordings(&recordings)?;
    if let Some((_, first)) = recordings.first() {
        snapshot.list_settings(first.info().release);
    }
    Ok(PlayedProgram { summary: summary(&text, &finished), snapshot })
}

/// The text after the program's own output, on standard error: the traceback, our remarks, estimates.
fn report(finished: &ProgramOutcome) -> anyhow::Result<()> {
    let mut text = finished.traceback.clone().unwrap_or_default();
    for note in finished.notes.iter().chain(&finished.cause) {
        writeln!(text, "note: line {}: {}", note.line, note.text)?;
    }
    for estimate in &finished.estimates {
        writeln!(text, "estimated: line {}: {}: {}", estimate.line, estimate.operator, estimate.reason)?;
    }
    std::io::stderr().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn summary(printed: &str, finished: &ProgramOutcome) -> ProgramAnswer {
    let notes = finished.notes.iter().chain(&finished.cause);
    let device = |device: &DeviceRun| {
        let stats = blockyard_pytorch::memory_stats(&device.stats).into_iter();
        ProgramDevice {
            requests: device.requests.len() as u64,
            stats: stats.map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    };
    ProgramAnswer {
        stdout: printed.to_owned(),
        status: finished.status,
        traceback: finished.traceback.clone(),
        notes: notes.cloned().collect(),
        estimated: finished.estimates.clone(),
        devices: finished.devices.iter().map(device).collect(),
    }
}

/// A recording in the format of recorded runs, and a line with the source line of each allocation.
fn recording(name: &str, gpu: &GpuProfile, device: &DeviceRun) -> anyhow::Result<String> {
    let Some(recording) = &device.recording else { bail!("the run was not recorded") };
    let meta = Meta {
        name: name.to_owned(),
        torch: recording.info().release.version().to_owned(),
        conf: device.conf.clone(),
        // The bytes that the driver and CUDA's libraries leave.
        total_memory: recording.info().capacity,
        device: gpu.name.to_owned(),
        ..Meta::default()
    };
    let lines: Vec<u32> = device.origins.iter().map(|origin| origin.line).collect();
    let values = stat_values(&device.stats);
    let parts = [
        log::meta(&meta),
        log::trace(&recording.trace()?),
        log::segments(&device.snapshot),
        log::final_stats(&values),
        json!({"lines": lines}).to_string(),
    ];
    Ok(parts.join("\n") + "\n")
}
