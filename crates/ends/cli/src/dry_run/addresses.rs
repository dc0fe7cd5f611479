//! A run's own requests under other orders of the addresses that a driver gives segments.

use std::ops::ControlFlow;

use anyhow::{Context as _, bail, ensure};
use blockyard_answers::{BytesRange, DeviceRange};
use blockyard_dry_run::{DeviceReport, Program, ReplayedOrders, Report};
use blockyard_lab::{AddressDependence, Run, RunBytes, address_dependence};
use blockyard_pytorch::snapshot::{self, SnapshotEntry};
use blockyard_record::{Bytes, TraceAction};
use serde_json::Value;

use super::is_interrupted;

/// The most events that are replayed: more would take longer than the run. Without `--snapshot` the runner
/// keeps no more.
const MAX_EVENTS: usize = 200_000;

/// Replays the requests that PyTorch kept under other orders of addresses, and adds the results to the
/// report.
pub(super) fn replay(report: &mut Report, program: &Program) {
    let requests = report.requests.take();
    if report.devices.is_empty() || report.is_of_children {
        return;
    }
    let found = replayed(report, requests.as_deref(), program);
    report.add_replayed_orders(found.unwrap_or_else(|error| ReplayedOrders {
        why_not: Some(format!("{error:#}")),
        ..ReplayedOrders::default()
    }));
}

fn replayed(report: &Report, requests: Option<&[u8]>, program: &Program) -> anyhow::Result<ReplayedOrders> {
    let has_all = program.totals.is_empty() || program.snapshot.is_some();
    ensure!(has_all, "with further GPUs, segments alone are kept of the run");
    ensure!(!report.has_run_out(), "a request ran out of memory");
    let requests = requests.context("the requests were not kept")?;
    let go_on = || if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let file = snapshot::read(requests, &mut |_done| go_on()).context("the requests cannot be read")?;
    let events: usize = file.devices.iter().map(|device| device.trace.len()).sum();
    ensure!(events <= MAX_EVENTS, "there are {events} events, and more than {MAX_EVENTS} are not replayed");
    let kept = |at: usize| file.devices.iter().find(|device| usize::try_from(device.index) == Ok(at));
    for (at, device) in report.devices.iter().enumerate() {
        let allocated = count(device, "allocation.all.allocated");
        let is_allocation = |entry: &SnapshotEntry| entry.entry.action == TraceAction::Alloc;
        let in_trace = kept(at).map_or(0, |device| device.trace.iter().filter(is_allocation).count() as u64);
        if in_trace != allocated {
            bail!(
                "PyTorch's history has {in_trace} of {allocated} requests of cuda:{at}: it is too short, or \
                 the program switched it off or on itself"
            );
        }
    }
    let runs = if events == 0 {
        Vec::new()
    } else {
        Run::from_snapshot("", &file, &mut |_progress| go_on()).context("the requests cannot be replayed")?
    };
    let traced = file.devices.iter().filter(|device| !device.trace.is_empty());
    let of_runs = traced.map(|device| device.index).zip(&runs);
    let mut found = ReplayedOrders::default();
    for (at, device) in report.devices.iter().enumerate() {
        let own = RunBytes {
            peak_allocated: device.peak_allocated,
            peak_reserved: device.peak_reserved,
            allocated_at_end: device.allocated,
        };
        let run = of_runs.clone().find(|(index, _)| usize::try_from(*index) == Ok(at));
        let dependence = match run {
            Some((_, run)) => {
                address_dependence(run, &mut |_done| go_on()).context("the requests cannot be replayed")?
            }
            None => AddressDependence::default(),
        };
        ensure!(
            dependence.recorded == own,
            "our allocator gives other numbers for the requests of cuda:{at} at the run's own addresses"
        );
        found.count = found.count.max(dependence.orders);
        found.first_differences.push(dependence.first_difference);
        found.devices.push(ranges(at, &dependence));
    }
    Ok(found)
}

fn count(device: &DeviceReport, name: &str) -> u64 {
    device.stats.get(name).and_then(Value::as_u64).unwrap_or(0)
}

fn ranges(device: usize, found: &AddressDependence) -> DeviceRange {
    let AddressDependence { least, most, .. } = found;
    let range = |of: fn(&RunBytes) -> Bytes| BytesRange { least: of(least), most: of(most) };
    DeviceRange {
        device: device as u64,
        allocated: range(|bytes| bytes.peak_allocated),
        reserved: range(|bytes| bytes.peak_reserved),
        allocated_at_end: range(|bytes| bytes.allocated_at_end),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::PathBuf;

    use blockyard_dry_run::{DeviceReport, PrintedLine, Program, Report};
    use blockyard_gpus::GpuProfile;
    use blockyard_pytorch::snapshot::SnapshotFile;
    use blockyard_record::Bytes;
    use blockyard_replay::{RunSettings, run};
    use blockyard_rules::AllocatorConfig;
    use blockyard_workload::Workload;

    /// Two segments of 20 MiB have a free block of 14 MiB each. The lower one is taken, and only the other
    /// segment can become whole again.
    const TIE: &str = "a = alloc 6 MiB; b = alloc 14 MiB; c = alloc 6 MiB; d = alloc 14 MiB; free b, d; e = alloc 14 MiB; free a; f = alloc 20 MiB";

    /// The report of a run of these requests, with two lines: before the last allocation and after it.
    fn report(text: &str, allocations: u64, peak_allocated: u64, peak_reserved: u64) -> Report {
        let settings =
            RunSettings { title: String::new(), config: AllocatorConfig::default(), capacity: Bytes::gib(1) };
        let workload = Workload::parse(text).unwrap();
        let recording = run(&workload, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        let mut requests = Vec::new();
        SnapshotFile::from_recordings(&[(0, &recording)]).unwrap().write_pickle(&mut requests).unwrap();
        let mut device = DeviceReport {
            peak_allocated: Bytes::mib(peak_allocated),
            peak_reserved: Bytes::mib(peak_reserved),
            allocated: Bytes::mib(peak_allocated),
            ..DeviceReport::default()
        };
        device.stats.insert("allocation.all.allocated".to_owned(), allocations.into());
        let line = |allocations| PrintedLine { allocations: vec![allocations], ..PrintedLine::default() };
        Report {
            devices: vec![device],
            requests: Some(requests),
            lines: vec![line(allocations - 1), line(allocations)],
            ..Report::default()
        }
    }

    fn replayed(mut report: Report) -> Report {
        let program = Program::new(PathBuf::from("a.py"), "python3".to_owned(), GpuProfile::H200);
        super::replay(&mut report, &program);
        assert!(report.requests.is_none(), "the requests are not kept longer");
        report
    }

    #[test]
    fn a_run_whose_peak_depends_on_addresses_is_not_exact() {
        let found = replayed(report(TIE, 6, 40, 60));
        let orders = found.replayed_orders.as_ref().unwrap();
        assert_eq!(orders.why_not, None);
        let range = "between 41943040 (40 MiB) and 62914560 (60 MiB)";
        assert_eq!(
            orders.sentences(),
            [format!("cuda:0: peak reserved depends on the driver's addresses: {range}")]
        );
        assert!(!found.is_exact());
        let exact: Vec<bool> = found.lines.iter().map(|line| line.why.is_none()).collect();
        assert_eq!(exact, [true, false]);
    }

    #[test]
    fn a_run_without_a_tie_is_exact() {
        let found = replayed(report("a = alloc 6 MiB; b = alloc 30 MiB", 2, 36, 50));
        let orders = found.replayed_orders.as_ref().unwrap();
        assert_eq!((orders.count, orders.why_not.clone(), orders.sentences()), (8, None, vec![]));
        assert!(found.is_exact() && found.lines.iter().all(|line| line.why.is_none()));
    }

    #[test]
    fn requests_that_are_not_all_there_are_not_replayed() {
        for (other, why) in [
            (report(TIE, 7, 40, 60), "PyTorch's history has 6 of 7 requests of cuda:0"),
            (report(TIE, 6, 40, 62), "our allocator gives other numbers for the requests of cuda:0"),
            (Report { requests: None, ..report(TIE, 6, 40, 60) }, "the requests were not kept"),
        ] {
            let found = replayed(other).replayed_orders.unwrap();
            assert!(found.why_not.as_ref().is_some_and(|said| said.starts_with(why)), "{found:?}");
            assert!(found.devices.is_empty() && !found.has_differences());
        }
    }
}
