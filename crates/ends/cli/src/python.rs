//! `blockyard python`: a PyTorch program on the machine's Python, without PyTorch and without a GPU.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use blockyard_answers::{Keeper, ProgramAnswer, ProgramDevice};
use blockyard_gpus::GpuProfile;
use blockyard_lab::{FoundKeepers, Run, leaks};
use blockyard_python::{DeviceRun, Output, ProgramOutcome, ProgramSettings, ProgramSource, run};
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_pytorch::{Meta, log, stat_values};
use blockyard_record::{Bytes, Recording, StreamId};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_torch::memory::LogEntry;
use blockyard_workload::{Request, TensorId, Workload};
use clap::Args;
use serde_json::json;

use crate::dry_run::gpu_of;
use crate::dry_run::growth::write_keepers;
use crate::exit_status::ExitStatus;
use crate::options::{MemoryOption, gpu_help, size};
use crate::output;
use crate::questions::json_line;

/// The most of the computer's memory that a program's own data may take, unless the user says otherwise.
const MAX_HOST_MEMORY: Bytes = Bytes::gib(4);

#[derive(Debug, Args)]
pub(crate) struct PythonOptions {
    /// The program; `-` for standard input.
    file: PathBuf,
    /// The program's arguments, in `sys.argv` after the program's name.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// The Python that runs the program, 3.10 or later; without it, `python3`.
    #[arg(long, value_name = "PYTHON")]
    python: Option<String>,
    #[arg(long, default_value = "h200", value_name = "GPU", value_parser = gpu_of, help = gpu_help("The GPU"))]
    gpu: GpuProfile,
    /// How many GPUs the program sees.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    devices: u8,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`.
    #[arg(long, value_name = "SETTINGS")]
    conf: Option<String>,
    /// The release of PyTorch that runs the program.
    #[arg(long, value_name = "RELEASE", default_value_t = Release::OF_RECORDED_OPERATORS)]
    release: Release,
    /// The device's memory, as bytes or with a unit ("24 GiB"); without it, the GPU's own.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    total_memory: Option<Bytes>,
    #[command(flatten)]
    memory: MemoryOption,
    /// Write a recording of the first device to this file; the page and `verify` read the recording.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print one JSON value in the place of the program's output: the output, notes, estimates, statistics.
    #[arg(long)]
    json: bool,
    /// Stop the program after it has called this many operators.
    #[arg(long, default_value_t = 5_000_000, value_name = "COUNT")]
    max_operators: u64,
    /// Stop the program after it has asked for this many allocations and frees of GPU memory.
    #[arg(long, default_value_t = 10_000_000, value_name = "COUNT")]
    max_requests: u64,
    /// Stop the program if its own data takes this much of the computer's memory.
    #[arg(long, default_value_t = MAX_HOST_MEMORY, value_name = "SIZE", value_parser = size)]
    max_host_memory: Bytes,
    /// Stop the program after this many seconds.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    time_limit: u64,
}

pub(crate) fn python(options: &PythonOptions) -> anyhow::Result<ExitCode> {
    let program = program(&options.file, &options.arguments)?;
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
        let recorded = recording(&program.file, &settings.gpu, device, &outcome.keepers)
            .with_context(|| path.display().to_string())?;
        std::fs::write(path, recorded).with_context(|| path.display().to_string())?;
    }
    if options.json {
        output::line(&mut output::stdout(), &json_line(&summary(&text, &outcome))?)?;
    } else {
        report(&outcome, &keepers(&outcome))?;
    }
    Ok(ExitStatus::of_program(outcome.status))
}

fn program(file: &Path, arguments: &[String]) -> anyhow::Result<ProgramSource> {
    let name = file.display().to_string();
    let source = String::from_utf8(output::read(file)?).with_context(|| format!("{name} is not UTF-8"))?;
    Ok(ProgramSource { file: name, source, arguments: arguments.to_vec() })
}

fn settings(options: &PythonOptions) -> anyhow::Result<ProgramSettings> {
    let gpu = with_memory(&options.gpu, options.total_memory);
    let conf = options.conf.as_deref().unwrap_or_default();
    Ok(ProgramSettings {
        python: options.python.clone(),
        devices: options.devices,
        is_recorded: options.record.is_some(),
        max_operators: options.max_operators,
        max_requests: options.max_requests,
        host_memory: Some(options.max_host_memory),
        time_limit: Some(Duration::from_secs(options.time_limit)),
        ..settings_on(gpu, conf, options.release, options.memory, &options.file)?
    })
}

/// The GPU, with this memory if it is given.
fn with_memory(gpu: &GpuProfile, total_memory: Option<Bytes>) -> GpuProfile {
    GpuProfile { total_memory: total_memory.unwrap_or(gpu.total_memory), ..gpu.clone() }
}

/// The settings of a program on this GPU, under a text of `PYTORCH_CUDA_ALLOC_CONF`. Prints warnings.
fn settings_on(
    gpu: GpuProfile,
    conf: &str,
    release: Release,
    memory: MemoryOption,
    file: &Path,
) -> anyhow::Result<ProgramSettings> {
    let config = AllocatorConfig::parse(conf, release).context("settings")?;
    for warning in config.warnings().iter().map(String::as_str).chain(config.warning_about_pair()) {
        output::warn(warning)?;
    }
    if !gpu.is_proved {
        output::warn(&format!(
            "the numbers of {} are derived; those of the H200 were checked against recordings",
            gpu.name
        ))?;
    }
    Ok(ProgramSettings {
        gpu,
        config,
        folder: Some(file.parent().unwrap_or(Path::new("")).to_owned()),
        non_pytorch: if memory.leaves_out_non_pytorch() {
            blockyard_gpus::context_and_libraries()
        } else {
            Bytes::ZERO
        },
        host_memory: Some(MAX_HOST_MEMORY),
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

/// A program to run, and the GPUs that it sees.
#[derive(Clone, Debug)]
pub struct ProgramCall {
    /// The program.
    pub file: PathBuf,
    /// The program's own arguments.
    pub arguments: Vec<String>,
    /// The Python that runs the program.
    pub python: String,
    /// The name of the GPU.
    pub gpu: String,
    /// How many GPUs the program sees, 1 to 16.
    pub devices: u8,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The memory of each GPU; `None` for the GPU's own.
    pub total_memory: Option<Bytes>,
    /// How long the program may run.
    pub time_limit: Duration,
}

/// Runs a program as the command does, and hands out each piece of printed text as soon as the program prints
/// it.
///
/// # Errors
///
/// The errors of the command: an unknown GPU, wrong settings, a file that cannot be read. A program that
/// fails has a traceback and is not an error.
pub fn play_program(
    call: &ProgramCall,
    mut on_text: impl FnMut(&str) + Send,
) -> anyhow::Result<PlayedProgram> {
    if !(1..=16).contains(&call.devices) {
        bail!("a program sees 1 to 16 GPUs, not {}", call.devices);
    }
    let gpu = with_memory(&gpu_of(&call.gpu)?, call.total_memory);
    let settings = ProgramSettings {
        python: Some(call.python.clone()),
        devices: call.devices,
        is_recorded: true,
        time_limit: Some(call.time_limit),
        ..settings_on(gpu, &call.conf, Release::OF_RECORDED_OPERATORS, MemoryOption::default(), &call.file)?
    };
    let program = program(&call.file, &call.arguments)?;
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
    snapshot.keepers.clone_from(&finished.keepers);
    Ok(PlayedProgram { summary: summary(&text, &finished), snapshot })
}

/// The text after the program's own output, on standard error: the traceback, our remarks, estimates.
fn report(finished: &ProgramOutcome, keepers: &[Keeper]) -> anyhow::Result<()> {
    let mut text = finished.traceback.clone().unwrap_or_default();
    for note in finished.notes.iter().chain(&finished.cause) {
        writeln!(text, "note: line {}: {}", note.line, note.text)?;
    }
    for estimate in &finished.estimates {
        writeln!(text, "estimated: line {}: {}: {}", estimate.line, estimate.operator, estimate.reason)?;
    }
    let peak = finished.devices.iter().map(|device| device.stats.allocated_bytes.all.peak_bytes()).max();
    let has_ended_well = finished.status == 0;
    write_keepers(&mut text, keepers, peak.unwrap_or_default(), has_ended_well, "")?;
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
        traceback: finished.traceback.clone().filter(|text| !text.is_empty()),
        notes: notes.cloned().collect(),
        estimated: finished.estimates.clone(),
        keepers: keepers(finished),
        devices: finished.devices.iter().map(device).collect(),
    }
}

/// The objects of the program that keep more and more.
fn keepers(finished: &ProgramOutcome) -> Vec<Keeper> {
    if finished.keepers.is_empty() {
        return Vec::new();
    }
    let found = FoundKeepers::read(&finished.keepers);
    let ends = (0..).zip(&finished.devices).map(|(index, device)| {
        let run = Run::from_workload("", workload(device), "", Bytes::new(u64::MAX));
        // Without its ends of iterations, a device's keepers are left out.
        let grows = leaks(&run, &mut |_progress| ControlFlow::Continue(()));
        grows.map(|grows| found.iteration_ends(index, &run, &grows)).unwrap_or_default()
    });
    found.growing(&ends.collect::<Vec<_>>())
}

fn workload(device: &DeviceRun) -> Workload {
    let requests = device.requests.iter().filter_map(|request| match *request {
        LogEntry::Allocate(number, bytes) => Some(Request::Allocate {
            tensor: TensorId::new(number),
            size: Bytes::new(bytes),
            stream: StreamId::DEFAULT,
        }),
        LogEntry::Free(number) => Some(Request::Free { tensor: TensorId::new(number) }),
        LogEntry::Unordered(_) => None,
    });
    Workload::from_requests(requests.collect())
}

/// A recording in the format of recorded runs, and a line with the source line of each allocation.
fn recording(name: &str, gpu: &GpuProfile, device: &DeviceRun, keepers: &str) -> anyhow::Result<String> {
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
    let keepers = Some(keepers).filter(|keepers| !keepers.is_empty()).map(log::keepers);
    Ok(parts.into_iter().chain(keepers).map(|part| part + "\n").collect())
}
