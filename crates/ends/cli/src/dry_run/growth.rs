//! What a program keeps from iteration to iteration, and the object that keeps it.

use std::fmt::{self, Write as _};
use std::ops::ControlFlow;

use blockyard_dry_run::{DryRunKeeper, IterationEnds, Report};
use blockyard_lab::{IterationSource, Run, growth_text, is_much_growth, leaks};
use blockyard_pytorch::snapshot::{self, DeviceSnapshot};
use blockyard_record::{Bytes, TraceAction, counted, shortened_path};
use blockyard_workload::Request;
use serde_json::Value;

use super::is_interrupted;

/// A keeper of less than one in this many of the bytes at the peak is in the JSON alone.
const MIN_KEPT_DIVISOR: u64 = 1000;
/// How many keepers are named.
const MAX_KEEPERS: usize = 4;

/// Adds what grows to the report, by the requests that PyTorch kept. Nothing is read unless the stand-in saw
/// that blocks became more.
pub(super) fn add_growth(report: &mut Report) {
    if !report.is_growth_seen || report.is_of_children {
        return;
    }
    // Without the requests nothing is known about iterations.
    let Some((ends, growth)) = iterations(report) else { return };
    report.keepers = report.found_keepers.growing(&ends);
    let kept: Bytes = report.keepers.iter().map(|keeper| keeper.growth).sum();
    // Growth whose keeper was not found counts as in the verdict about a file.
    report.growth = if is_much_growth(growth, peak(report)) { kept.max(growth) } else { kept };
}

fn peak(report: &Report) -> Bytes {
    report.devices.iter().map(|device| device.peak_allocated).max().unwrap_or_default()
}

/// The ends of the iterations of each device, and the bytes that known iterations kept to the end.
fn iterations(report: &Report) -> Option<(Vec<IterationEnds>, Bytes)> {
    let go_on = || if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let file = snapshot::read(report.requests.as_deref()?, &mut |_done| go_on()).ok()?;
    let runs = Run::from_snapshot("", &file, &mut |_progress| go_on()).ok()?;
    let mut ends = vec![IterationEnds::default(); report.devices.len()];
    let mut growth = Bytes::ZERO;
    for (device, run) in file.devices.iter().zip(&runs).filter(|(_, run)| run.has_requests()) {
        let found = leaks(run, &mut |_progress| go_on()).ok()?;
        if found.answer.steps == IterationSource::Parts || found.are_layers {
            continue;
        }
        let index = usize::try_from(device.index).ok()?;
        let counts = report.devices.get(index)?;
        let all = counts.stats.get("allocation.all.allocated").and_then(Value::as_u64)?;
        let served = served_requests(device, run);
        // A history that is full has the last requests alone.
        let before = all.checked_sub(served.len() as u64)?;
        let allocations = found.answer.boundaries.iter().map(|boundary| {
            before.saturating_add(served.partition_point(|request| (*request as u64) < *boundary) as u64)
        });
        if let Some(place) = ends.get_mut(index) {
            *place =
                IterationEnds { allocations: allocations.collect(), are_known: found.has_known_iterations };
        }
        if found.has_known_iterations {
            let grown: Bytes = found.growing().map(|(site, _)| site.growth).sum();
            growth = growth.saturating_add(grown);
        }
    }
    Some((ends, growth))
}

/// The indices of the requests that the entries of the trace are, without failed ones.
fn served_requests(device: &DeviceSnapshot, run: &Run) -> Vec<usize> {
    let is_asked = |action: &TraceAction| matches!(action, TraceAction::Alloc | TraceAction::OutOfMemory);
    let entries = device.trace.iter().rev().map(|entry| entry.entry.action).filter(is_asked);
    let requests = run.requests().iter().enumerate().rev();
    let asked =
        requests.filter(|(_, request)| matches!(request, Request::Allocate { .. })).map(|(index, _)| index);
    let mut served: Vec<usize> = entries
        .zip(asked)
        .filter(|(action, _)| *action == TraceAction::Alloc)
        .map(|(_, index)| index)
        .collect();
    served.reverse();
    served
}

/// The sentences about growth; none where nothing grows, or little.
pub(super) fn write_growth(text: &mut String, report: &Report) -> fmt::Result {
    let peak = peak(report);
    let is_shown =
        |keeper: &&DryRunKeeper| keeper.growth.get().saturating_mul(MIN_KEPT_DIVISOR) >= peak.get();
    let shown: Vec<&DryRunKeeper> = report.keepers.iter().filter(is_shown).take(MAX_KEEPERS).collect();
    let has_ended_well = report.error.is_none() && report.status == 0 && !report.is_cut;
    let head = if has_ended_well { "it fits so far, and grows" } else { "memory grew" };
    match shown.first() {
        Some(most) => {
            let grown = growth_text(most.iterations, "iteration", most.growth_tensors, most.growth);
            writeln!(text, "  {head}: {grown}")?;
        }
        None if is_much_growth(report.growth, peak) && !report.growth.is_zero() => {
            return writeln!(
                text,
                "  {head}: iterations after the first two kept {}; which object keeps it was not found",
                report.growth
            );
        }
        None => {}
    }
    for keeper in shown {
        writeln!(text, "  {}", keeper_text(keeper))?;
    }
    Ok(())
}

/// ``` `history` in `main` (train.py:17 appends) keeps 60 tensors, 600 KiB, made at train.py:10```.
fn keeper_text(keeper: &DryRunKeeper) -> String {
    let function = keeper.function.as_ref().map_or_else(String::new, |name| format!(" in `{name}`"));
    let put: Vec<String> = keeper
        .put_at
        .iter()
        .map(|line| format!("{}:{} {}", shortened_path(&line.file), line.line, line.action))
        .collect();
    let put = if put.is_empty() { String::new() } else { format!(" ({})", put.join(", ")) };
    let made: Vec<String> =
        keeper.made_at.iter().map(|line| format!("{}:{}", shortened_path(&line.file), line.line)).collect();
    let made = match made.split_last() {
        None => String::new(),
        Some((last, [])) => format!(", made at {last}"),
        Some((last, others)) => format!(", made at {} and {last}", others.join(", ")),
    };
    let graphs = match keeper.of_graphs {
        0 => String::new(),
        some if keeper.kind == "graph" => format!(", {some} of them through its graph"),
        some => format!(", {some} of them through the graphs of the others"),
    };
    let tensors = counted(keeper.tensors, "tensor");
    format!("`{}`{function}{put} keeps {tensors}, {}{graphs}{made}", keeper.name, keeper.bytes)
}

#[cfg(test)]
mod tests {
    use blockyard_dry_run::{DeviceReport, DryRunKeeper, DryRunPutLine, ProgramLine, Report};
    use blockyard_record::Bytes;

    use super::write_growth;

    fn keeper() -> DryRunKeeper {
        let file = "train.py".to_owned();
        DryRunKeeper {
            name: "history".to_owned(),
            kind: "list".to_owned(),
            tensors: 60,
            bytes: Bytes::kib(600),
            iterations: 58,
            growth_tensors: 58,
            growth: Bytes::kib(580),
            made_at: vec![ProgramLine { file: file.clone(), line: 10 }],
            put_at: vec![DryRunPutLine { file, line: 17, action: "appends".to_owned() }],
            ..DryRunKeeper::default()
        }
    }

    fn text(peak: Bytes, keepers: Vec<DryRunKeeper>, growth: Bytes, error: Option<&str>) -> String {
        let device = DeviceReport { peak_allocated: peak, ..DeviceReport::default() };
        let error = error.map(str::to_owned);
        let report = Report { devices: vec![device], keepers, growth, error, ..Report::default() };
        let mut text = String::new();
        write_growth(&mut text, &report).unwrap();
        text
    }

    #[test]
    fn a_keeper_is_named_with_the_lines_that_put_and_made() {
        assert_eq!(
            text(Bytes::mib(100), vec![keeper()], Bytes::kib(580), None),
            "  it fits so far, and grows: each of 58 iterations kept 1 tensor (10 KiB)\n\
             \x20 `history` (train.py:17 appends) keeps 60 tensors, 600 KiB, made at train.py:10\n"
        );
        let graph = DryRunKeeper {
            name: "total".to_owned(),
            function: Some("main".to_owned()),
            kind: "graph".to_owned(),
            of_graphs: 59,
            put_at: Vec::new(),
            ..keeper()
        };
        let failed = text(Bytes::mib(1), vec![graph], Bytes::kib(580), Some("OutOfMemoryError"));
        assert_eq!(
            failed,
            "  memory grew: each of 58 iterations kept 1 tensor (10 KiB)\n\
             \x20 `total` in `main` keeps 60 tensors, 600 KiB, 59 of them through its graph, made at train.py:10\n"
        );
    }

    #[test]
    fn little_growth_is_not_said_and_growth_without_a_keeper_is() {
        assert_eq!(text(Bytes::gib(1), vec![keeper()], Bytes::kib(580), None), "");
        assert_eq!(text(Bytes::gib(1), vec![], Bytes::ZERO, None), "");
        assert_eq!(
            text(Bytes::gib(1), vec![], Bytes::mib(20), None),
            "  it fits so far, and grows: iterations after the first two kept 20 MiB; which object keeps it was not found\n"
        );
    }
}
