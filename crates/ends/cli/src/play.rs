//! `blockyard play`: a workload, a recording or a snapshot step by step, as text or as JSON.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use blockyard_device::DeviceMemory;
use blockyard_figure::{StateCursor, breakdown_text, describe_step, map_text};
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_pytorch::{MemoryFile, RecordedRun};
use blockyard_record::{Bytes, Recording, StepOutcome};
use blockyard_replay::{Progress, RunSettings, run, run_on, verify};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;
use blockyard_workload::presets::presets;
use clap::Args;
use serde_json::json;

use crate::device::{DeviceName, open_cuda};
use crate::options::size;
use crate::output;
use crate::progress::Bar;
use crate::snapshot::open_file;

#[derive(Debug, Args)]
pub(crate) struct PlayOptions {
    /// A workload's text or a recording, one JSON value a line, plain or gzip; `-` for standard input; or the
    /// name of a preset. A recording is played under its own settings.
    workload: PathBuf,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`.
    #[arg(long, value_name = "SETTINGS")]
    conf: Option<String>,
    /// The release of PyTorch whose rules hold for a workload.
    #[arg(long, value_name = "RELEASE", default_value_t)]
    release: Release,
    /// The device's memory, as bytes or with a unit; 1 GiB without it, or what a preset names.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    total_memory: Option<Bytes>,
    /// Where segments are taken from: `virtual`, or `cuda:0` for real ones where the driver places them.
    #[arg(long, default_value = "virtual")]
    device: DeviceName,
    /// Print only the end, not every step.
    #[arg(long)]
    last: bool,
    /// One JSON value a step instead of pictures for people.
    #[arg(long)]
    json: bool,
}

pub(crate) fn play(options: &PlayOptions) -> anyhow::Result<ExitCode> {
    let name = options.workload.display().to_string();
    let preset = presets().iter().find(|preset| preset.id == name);
    let (text, conf, capacity) = match preset {
        Some(preset) if !options.workload.exists() => {
            (preset.text.to_owned(), String::new(), preset.capacity)
        }
        _ => {
            let bytes = output::read(&options.workload).with_context(|| with_presets(&name))?;
            match open_file(&bytes).with_context(|| name.clone())? {
                MemoryFile::Snapshot(file) => return play_snapshot(&name, &file, options),
                MemoryFile::Recording(run) => return play_recording(&name, &run, options),
                MemoryFile::Text(text) => (text, String::new(), Workload::DEFAULT_CAPACITY),
            }
        }
    };
    let workload = Workload::parse(&text).map_err(|error| anyhow!("{name}: {error}"))?;
    // Options of the command line override the header of the text.
    let conf = workload.conf().map_or(conf, str::to_owned);
    let conf = options.conf.clone().unwrap_or(conf);
    let settings = RunSettings {
        title: name.clone(),
        config: AllocatorConfig::parse(&conf, options.release).context("settings")?,
        capacity: options.total_memory.or(workload.capacity()).unwrap_or(capacity),
    };
    let bar = Bar::new(&name);
    let on_progress = &mut |progress| bar.report(&progress);
    let recording = match options.device {
        DeviceName::Virtual => run(&workload, &settings, on_progress)?,
        DeviceName::Cuda(index) => {
            let device = open_cuda(index)?.with_capacity(settings.capacity);
            let settings = RunSettings { capacity: device.total_memory(), ..settings };
            run_on(device, &workload, &settings, on_progress)?
        }
    };
    drop(bar);
    write_steps(recording, options)?;
    Ok(ExitCode::SUCCESS)
}

fn play_recording(name: &str, run: &RecordedRun, options: &PlayOptions) -> anyhow::Result<ExitCode> {
    if options.conf.is_some() || options.total_memory.is_some() {
        bail!("{name}: a recording is played under its own settings, on its own device");
    }
    let bar = Bar::new(name);
    let verified = verify(run, &mut |progress| bar.report(&progress)).with_context(|| name.to_owned())?;
    drop(bar);
    eprintln!("{name}: {}", verified.comparison.headline());
    for note in &verified.comparison.notes {
        eprintln!("  note: {note}");
    }
    write_steps(verified.recording, options)?;
    Ok(ExitCode::SUCCESS)
}

/// The events of a snapshot, device by device, without our allocator.
fn play_snapshot(name: &str, file: &SnapshotFile, options: &PlayOptions) -> anyhow::Result<ExitCode> {
    if options.conf.is_some() || options.total_memory.is_some() {
        bail!("{name}: a snapshot is played as it was recorded; `what-if` answers for other settings");
    }
    for (place, memory) in file.memories().enumerate() {
        let bar = Bar::new(name);
        let total = file.trace_len(place);
        let on_done = &mut |done| bar.report(&Progress::new("recording", done, total));
        let found =
            blockyard_pytorch::trace::record(file, place, name, on_done).with_context(|| name.to_owned())?;
        drop(bar);
        eprintln!("{name}: {}", memory.name());
        for note in &found.notes {
            eprintln!("  note: {note}");
        }
        write_steps(found.recording, options)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn with_presets(name: &str) -> String {
    let ids: Vec<&str> = presets().iter().map(|preset| preset.id).collect();
    format!("{name} (neither a workload's file nor one of the presets {})", ids.join(", "))
}

fn write_steps(recording: Recording, options: &PlayOptions) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let recording = std::sync::Arc::new(recording);
    let mut cursor = StateCursor::new(recording.clone());
    let count = recording.step_count();
    let first = if options.last { count.saturating_sub(1) } else { 0 };
    let mut labels = recording.labels().iter().skip_while(|label| (label.step as usize) < first).peekable();
    if recording.begins_late() && first == 0 && !options.json {
        output::line(&mut out, "0. before the recording")?;
        let state = cursor.at(0)?;
        output::line(&mut out, &map_text(state, &recording))?;
        output::line(&mut out, &format!("{}\n", breakdown_text(state, &recording)))?;
    }
    for index in first..count {
        while let Some(label) = labels.next_if(|label| label.step as usize <= index) {
            if !options.json {
                output::line(&mut out, &format!("== {} ==\n", label.text))?;
            }
        }
        let Some(step) = recording.step(index) else { break };
        let state = cursor.at(step.end)?;
        if options.json {
            output::line(&mut out, &json_step(&recording, index))?;
            continue;
        }
        let words = describe_step(&recording, index);
        output::line(&mut out, &format!("{}. {}", index + 1, words.title))?;
        output::line(&mut out, &format!("   {}", words.sentence))?;
        output::line(&mut out, &map_text(state, &recording))?;
        output::line(&mut out, &format!("{}\n", breakdown_text(state, &recording)))?;
    }
    out.flush()?;
    Ok(())
}

fn json_step(recording: &Recording, index: usize) -> String {
    let words = describe_step(recording, index);
    let breakdown = recording.breakdown_after(index).unwrap_or_default();
    let (outcome, message) = match recording.outcome(index) {
        StepOutcome::Done => ("done", None),
        StepOutcome::OutOfMemory(text) => ("out_of_memory", Some(text)),
        StepOutcome::Refused(text) => ("refused", Some(text)),
        StepOutcome::Skipped(text) => ("skipped", Some(text)),
    };
    json!({
        "step": index + 1,
        "request": words.title,
        "words": words.sentence,
        "outcome": outcome,
        "message": message,
        "requested": breakdown.requested.get(),
        "allocated": breakdown.allocated().get(),
        "pending": breakdown.pending.get(),
        "cached": breakdown.cached.get(),
        "reserved": breakdown.reserved().get(),
        "free": breakdown.free.get(),
    })
    .to_string()
}
