//! `blockyard bench`: the cost of allocations on a device, with our allocator and the driver's own, in one
//! run.

mod contenders;
mod sections;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use blockyard_device::VirtualDevice;
use blockyard_device_cuda::driver_version;
use blockyard_measure::{BenchReport, Machine, OperationList, OperationListError, markdown};
use blockyard_pytorch::RecordedRun;
use blockyard_record::Bytes;
use clap::Args;

use crate::bench::sections::BenchPlan;
use crate::device::{DeviceName, open_cuda};
use crate::output;
use crate::progress::Bar;

const VIRTUAL_MEMORY: Bytes = Bytes::gib(128);

#[derive(Debug, Args)]
pub(crate) struct BenchOptions {
    /// Recordings whose requests are replayed, plain or gzip; without any, only single calls are measured.
    #[arg(value_name = "FILE")]
    recordings: Vec<PathBuf>,
    /// What to measure: `cuda:0`, or `virtual` for the allocator without a driver.
    #[arg(long, default_value = "virtual")]
    device: DeviceName,
    /// How many turns each contender has.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// A folder for the table, `bench.json` and `bench.svg`.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(crate) fn bench(options: &BenchOptions) -> anyhow::Result<ExitCode> {
    let device = options.device;
    // This comes before all measurements, so that a device that does not exist is reported at once.
    let machine = machine(device)?;
    let traces = options
        .recordings
        .iter()
        .map(|path| trace(&output::read(path)?).with_context(|| path.display().to_string()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let rounds = usize::try_from(options.rounds)?;
    let plan = BenchPlan { rounds, traces };
    let bar = Bar::new("bench");
    let sections = match device {
        DeviceName::Virtual => sections::measure(&plan, &|| Ok(VirtualDevice::new(VIRTUAL_MEMORY)), &bar)?,
        DeviceName::Cuda(index) => sections::measure(&plan, &|| open_cuda(index), &bar)?,
    };
    drop(bar);
    let report = BenchReport { machine, command: command(), rounds, sections };
    let mut out = output::stdout();
    std::io::Write::write_all(&mut out, markdown(&report).as_bytes())?;
    std::io::Write::flush(&mut out)?;
    if let Some(folder) = &options.out {
        report.write(folder, "bench")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The operations of a recording, for contenders that know neither memory pools nor settings.
fn trace(bytes: &[u8]) -> anyhow::Result<OperationList> {
    let run = RecordedRun::read(bytes)?;
    let trace = match OperationList::recorded(&run.meta.name, &run) {
        Err(OperationListError::MemoryPool { .. }) => {
            bail!("it has memory pools, which the driver's own allocators do not")
        }
        trace => trace?,
    };
    if trace.pairs() == 0 {
        bail!("it allocates nothing");
    }
    Ok(trace)
}

fn machine(device: DeviceName) -> anyhow::Result<Machine> {
    let (device, software) = match device {
        DeviceName::Virtual => ("virtual".to_owned(), Vec::new()),
        DeviceName::Cuda(index) => {
            let version = driver_version()?;
            let driver = format!("driver for CUDA {}.{}", version / 1000, version % 1000 / 10);
            (open_cuda(index)?.name().to_owned(), vec![driver])
        }
    };
    Ok(Machine { device: Some(device), software, ..Machine::here() })
}

fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once("blockyard".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}
