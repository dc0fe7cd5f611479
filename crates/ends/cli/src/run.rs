//! `blockyard run`: operations through our allocator, with the results in the format of the input.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use blockyard_device::{Advance, DeviceMemory, VirtualDevice};
use blockyard_pytorch::trace::{InferredRun, requests};
use blockyard_pytorch::{OperationKind, RecordedOperation, RecordedRun, log, memory_summary, stat_values};
use blockyard_record::{Backend, Bytes, Snapshot};
use blockyard_replay::{Progress, RunSettings, Runner, device_of};
use blockyard_rules::{AllocatorConfig, Environment};
use blockyard_workload::{Request, Workload};
use clap::Args;

use crate::device::{DeviceName, open_cuda};
use crate::options::size;
use crate::output;
use crate::progress::Bar;

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Operations, one JSON value a line, plain or gzip; `-` for standard input. Recorded results are
    /// ignored.
    operations: PathBuf,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`. Without the option, those of the environment, where the
    /// first variable that is set counts, as for PyTorch: `PYTORCH_CUDA_ALLOC_CONF`, `PYTORCH_HIP_ALLOC_CONF`
    /// (for settings that all devices have), `PYTORCH_ALLOC_CONF`; without any, those that the file names.
    ///
    /// `PYTORCH_NO_CUDA_MEMORY_CACHING=1` switches caching off.
    #[arg(long, value_name = "SETTINGS")]
    conf: Option<String>,
    /// The device's memory, as bytes or with a unit ("80 GiB"); without it, what the file names, or a real
    /// device's own.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    total_memory: Option<Bytes>,
    /// Place segments by the virtual device's own rule, even if the file says where the driver placed them.
    #[arg(long)]
    virtual_addresses: bool,
    /// Where segments are taken from: `virtual`, or `cuda:0` for real ones where the driver places them.
    #[arg(long, default_value = "virtual", conflicts_with = "virtual_addresses")]
    device: DeviceName,
}

pub(crate) fn run(options: &RunOptions) -> anyhow::Result<ExitCode> {
    let name = options.operations.display().to_string();
    let mut run = RecordedRun::read(&output::read(&options.operations)?).with_context(|| name.clone())?;
    let config = config(options.conf.as_deref(), &run.meta.conf).context("settings")?;
    config.text().clone_into(&mut run.meta.conf);
    if let Some(total) = options.total_memory {
        run.meta.total_memory = total;
    }
    let mut inferred = requests(&run).with_context(|| name.clone())?;
    if run.operations.is_empty() {
        make_operations(&mut run, &mut inferred).with_context(|| name.clone())?;
    }
    let settings = RunSettings { title: run.meta.name.clone(), config, capacity: run.meta.total_memory };
    let bar = Bar::new(&name);
    match options.device {
        DeviceName::Cuda(index) => {
            let device = open_cuda(index)?;
            let device = match options.total_memory {
                Some(total) => device.with_capacity(total),
                None => device,
            };
            run.meta.total_memory = device.total_memory();
            device.name().clone_into(&mut run.meta.device);
            write_on(device, &run, &inferred, settings, &bar)?;
        }
        DeviceName::Virtual if options.virtual_addresses => {
            write_on(VirtualDevice::new(settings.capacity), &run, &inferred, settings, &bar)?;
        }
        DeviceName::Virtual => {
            let device = device_of(&run, &inferred);
            let settings = RunSettings { capacity: device.total_memory(), ..settings };
            let runner = Runner::new(device, &settings, &inferred.workload);
            let runner = runner.with_placements(&inferred.placements).with_trace();
            write_run(&run, &inferred, runner, &bar)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write_on<D: DeviceMemory + Advance>(
    device: D,
    run: &RecordedRun,
    inferred: &InferredRun,
    settings: RunSettings,
    bar: &Bar,
) -> anyhow::Result<()> {
    let settings = RunSettings { capacity: device.total_memory(), ..settings };
    write_run(run, inferred, Runner::new(device, &settings, &inferred.workload).with_trace(), bar)
}

/// The settings of the command line, or else of the environment, or else of the file.
fn config(conf: Option<&str>, of_file: &str) -> anyhow::Result<AllocatorConfig> {
    let found = Environment::read(|name| std::env::var(name).ok());
    // Other variables say whether memory is cached.
    let with = |text: &str| Environment {
        cuda_alloc_conf: Some(text.to_owned()),
        hip_alloc_conf: None,
        alloc_conf: None,
        ..found.clone()
    };
    let environment = match conf {
        Some(conf) => with(conf),
        None if found.has_settings() => found.clone(),
        None => with(of_file),
    };
    let config = environment.config()?;
    for warning in config.warnings().iter().map(String::as_str).chain(config.warning_about_pair()) {
        output::warn(warning)?;
    }
    Ok(config)
}

fn write_run<D>(
    run: &RecordedRun,
    inferred: &InferredRun,
    mut runner: Runner<'_, D>,
    bar: &Bar,
) -> anyhow::Result<()>
where
    D: DeviceMemory + Advance,
{
    let mut out = output::stdout();
    output::line(&mut out, &log::meta(&run.meta))?;
    let mut before = stat_values(&runner.stats());
    // The first line has every statistic, so that a reader can fold the changes of the others into it.
    let all: Vec<(usize, i64)> = before.iter().copied().enumerate().collect();
    output::line(&mut out, &log::operation(&OperationKind::Start, None, &all))?;
    let total = inferred.workload.requests().len();
    let mut answer = None;
    for index in 0..total {
        if Progress::is_due(index) {
            let _ = bar.report(&Progress::new("running", index, total));
        }
        answer = answer.or(runner.step()?.and_then(|outcome| runner.answer(&outcome)));
        let operation = inferred.operations.get(index).copied();
        // One operation may be several requests: its line comes after the last of them.
        if inferred.operations.get(index + 1).copied() == operation {
            continue;
        }
        let Some(kind) =
            operation.and_then(|index| run.operations.get(index)).map(|operation| &operation.kind)
        else {
            continue;
        };
        let after = stat_values(&runner.stats());
        let pairs = before.iter().zip(&after).enumerate();
        let changed: Vec<(usize, i64)> = pairs
            .filter(|(_, (before, after))| before != after)
            .map(|(key, (_, after))| (key, *after))
            .collect();
        before = after;
        output::line(&mut out, &log::operation(kind, answer.take().as_ref(), &changed))?;
    }
    output::line(&mut out, &log::operation(&OperationKind::End, None, &[]))?;
    // PyTorch has neither a trace nor a snapshot of the driver's pool.
    let is_native = runner.allocator().config().backend() == Backend::Native;
    let (trace, snapshot) =
        if is_native { (runner.trace(), runner.snapshot()) } else { (&[][..], Snapshot::default()) };
    output::line(&mut out, &log::trace(trace))?;
    output::line(&mut out, &log::segments(&snapshot))?;
    output::line(&mut out, &log::memory_summary(&memory_summary(&runner.stats(), 0, false)))?;
    out.flush()?;
    Ok(())
}

/// Makes the operations of a program's recording, which has none, from its trace.
///
/// Snapshots are left out: they change nothing, and recordings have no operation for them.
fn make_operations(run: &mut RecordedRun, inferred: &mut InferredRun) -> anyhow::Result<()> {
    let requests = inferred.workload.requests().iter().filter(|request| **request != Request::Snapshot);
    inferred.workload = Workload::from_requests(requests.copied().collect());
    for (index, request) in inferred.workload.requests().iter().enumerate() {
        // The wait of a recorded stream has no operation that ends it, so `record_stream` cannot be written
        // either.
        let is_written = !matches!(request, Request::RecordStream { .. });
        let Some(kind) = OperationKind::of(request).filter(|_| is_written) else {
            bail!(
                "the recording has waits for other streams or private pools, which cannot be written as \
                 operations; `verify` replays it"
            );
        };
        inferred.operations.push(run.operations.len());
        run.operations.push(RecordedOperation { line: index + 1, kind, stats: Vec::new() });
    }
    Ok(())
}
