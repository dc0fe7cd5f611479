//! Replays a recording under the rules of a release, for valgrind to count: `docs/releases.md` has the
//! command.
#![allow(clippy::print_stdout, reason = "the answer")]

use std::error::Error;

use blockyard_device::VirtualDevice;
use blockyard_pytorch::RecordedRun;
use blockyard_pytorch::trace::requests;
use blockyard_record::{NullSink, Stats};
use blockyard_replay::{PreparedWorkload, Replayer};
use blockyard_rules::{AllocatorConfig, Release};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(release), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("a release and the file of a recording".into());
    };
    let release: Release = release.parse()?;
    let run = RecordedRun::read(&std::fs::read(file)?)?;
    let config = AllocatorConfig::parse(&run.meta.conf, release)?;
    let plan = PreparedWorkload::new(&requests(&run)?.workload);
    // The first replay only warms up the caches and is not counted.
    replay(&plan, &config, &run)?;
    let stats = counted_replay(&plan, &config, &run)?;
    println!("{} requests, peak reserved {}", plan.len(), stats.reserved_bytes.all.peak);
    Ok(())
}

/// The replay whose instructions valgrind counts, by the name of this function.
#[inline(never)]
fn counted_replay(
    plan: &PreparedWorkload,
    config: &AllocatorConfig,
    run: &RecordedRun,
) -> Result<Stats, Box<dyn Error>> {
    replay(plan, config, run)
}

fn replay(
    plan: &PreparedWorkload,
    config: &AllocatorConfig,
    run: &RecordedRun,
) -> Result<Stats, Box<dyn Error>> {
    let device = VirtualDevice::new(run.meta.total_memory);
    let mut replayer = Replayer::new(plan, config, device, NullSink)?;
    while replayer.run_to(plan.len())?.is_some() {}
    Ok(replayer.stats())
}
