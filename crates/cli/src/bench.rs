//! `blockyard bench`: what allocations cost on a device, ours and the driver's own, in one run.

mod chart;
mod contenders;
mod measure;
mod report;
mod sections;
mod trace;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use blockyard_device::VirtualDevice;
use blockyard_record::Bytes;

use crate::bench::report::{Machine, Report};
use crate::bench::sections::BenchPlan;
use crate::bench::trace::Trace;
use crate::device::{DeviceName, open_cuda};
use crate::options::BenchOptions;
use crate::output;
use crate::progress::Bar;

const VIRTUAL_MEMORY: Bytes = Bytes::gib(128);

pub(crate) fn bench(options: &BenchOptions) -> anyhow::Result<ExitCode> {
    let device = options.device;
    // Before anything is measured: a device that does not exist is reported at once.
    let machine = Machine::of(device)?;
    let traces = options
        .recordings
        .iter()
        .map(|path| Trace::read(path).with_context(|| path.display().to_string()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let plan = BenchPlan { rounds: options.rounds, traces };
    let bar = Bar::new("bench");
    let rows = match device {
        DeviceName::Virtual => sections::measure(&plan, &|| Ok(VirtualDevice::new(VIRTUAL_MEMORY)), &bar)?,
        DeviceName::Cuda(index) => sections::measure(&plan, &|| open_cuda(index), &bar)?,
    };
    drop(bar);
    let report = Report { machine, rounds: options.rounds, rows };
    let mut out = output::stdout();
    report.write_table(&mut out)?;
    if let Some(folder) = &options.out {
        write_files(&report, folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_files(report: &Report, folder: &Path) -> anyhow::Result<()> {
    let place = || folder.display().to_string();
    std::fs::create_dir_all(folder).with_context(place)?;
    let mut table = Vec::new();
    report.write_table(&mut table)?;
    std::fs::write(folder.join("bench.md"), table).with_context(place)?;
    std::fs::write(folder.join("bench.json"), report.json()).with_context(place)?;
    std::fs::write(folder.join("bench.svg"), chart::svg(report)).with_context(place)?;
    Ok(())
}
