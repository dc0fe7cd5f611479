//! `blockyard dry-run`: a program with the PyTorch that is installed, on a machine without a GPU.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use blockyard_dry_run::{Program, Report, Torch, find_standin, prepare, run};
use blockyard_gpus::GpuProfile;
use blockyard_record::Bytes;

use crate::options::DryRunOptions;
use crate::output;

pub(crate) fn dry_run(options: &DryRunOptions) -> anyhow::Result<ExitCode> {
    let gpu = gpu(options)?;
    if !options.file.is_file() {
        bail!("{}: there is no such file", options.file.display());
    }
    let torch = Torch::find(&options.python)?;
    let prepared = prepare(&torch, &find_standin()?)?;
    let program = Program {
        file: options.file.clone(),
        arguments: options.arguments.clone(),
        python: options.python.clone(),
        gpu,
        devices: u32::from(options.devices),
        conf: options.conf.clone(),
        snapshot: options.snapshot.clone(),
        environment: Vec::new(),
        output: None,
    };
    // The program gets the signal too, and its report is still to come.
    ctrlc::set_handler(|| ()).context("Ctrl-C cannot be handed to the program")?;
    let report = run(&program, &torch, &prepared)?;
    std::io::stderr().lock().write_all(text(&report, &program, &torch)?.as_bytes())?;
    if let Some(path) = &options.json {
        let json = report.to_json().to_string() + "\n";
        std::fs::write(path, json).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::from(u8::try_from(report.status).unwrap_or(1)))
}

fn gpu(options: &DryRunOptions) -> anyhow::Result<GpuProfile> {
    let Some(mut gpu) = GpuProfile::from_id(&options.gpu) else {
        let known: Vec<&str> = GpuProfile::ALL.iter().map(|profile| profile.id).collect();
        bail!("there is no GPU {:?} here; there are {}", options.gpu, known.join(", "));
    };
    if let Some(total) = options.total_memory {
        gpu.total_memory = total;
    }
    if !gpu.is_proved {
        output::warn(&format!(
            "the numbers of {} are derived; those of the H200 were checked against recordings",
            gpu.name
        ))?;
    }
    Ok(gpu)
}

/// The report for a person.
fn text(report: &Report, program: &Program, torch: &Torch) -> anyhow::Result<String> {
    let mut text = String::new();
    writeln!(text, "\ndry run: PyTorch {} on {}, kernels not run", torch.version, program.gpu.name)?;
    if report.is_cut {
        writeln!(text, "  the process ended with status {} before its memory was counted", report.status)?;
    } else if let Some(error) = &report.error {
        writeln!(text, "  the program ended with {error}; this is what ran")?;
    }
    if report.devices.is_empty() && !report.is_cut {
        writeln!(text, "  the program did not use the GPU")?;
    }
    for (at, device) in report.devices.iter().enumerate() {
        writeln!(
            text,
            "  cuda:{at}: peak allocated {}, peak reserved {}, allocated at the end {}",
            shown(device.peak_allocated),
            shown(device.peak_reserved),
            shown(device.allocated)
        )?;
    }
    if report.is_exact() {
        writeln!(
            text,
            "  exact: nothing was assumed, but for the order of the addresses that a driver gives segments"
        )?;
    } else {
        writeln!(text, "  an estimate, because:")?;
        for sentence in report.sentences() {
            writeln!(text, "    {sentence}")?;
        }
    }
    Ok(text)
}

fn shown(bytes: Bytes) -> String {
    format!("{} ({bytes})", bytes.get())
}
