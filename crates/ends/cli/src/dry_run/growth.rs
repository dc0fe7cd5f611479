//! What a program keeps from iteration to iteration, and the object that keeps it.

use std::fmt::{self, Write as _};
use std::ops::ControlFlow;

use blockyard_answers::Keeper;
use blockyard_dry_run::Report;
use blockyard_lab::{
    FoundKeepers, IterationEnds, Run, is_much_growth, keeper_growth_text, keeper_text, leaks, shown_keepers,
};
use blockyard_pytorch::snapshot;
use blockyard_record::Bytes;

use super::is_interrupted;

/// Adds what grows to the report, by the requests that PyTorch kept. Nothing is read unless the stand-in saw
/// that blocks became more.
pub(super) fn add_growth(report: &mut Report) {
    if !report.is_growth_seen || report.is_of_children {
        return;
    }
    // Without the requests nothing is known about iterations.
    let keepers = FoundKeepers::read(&report.found_keepers.to_string());
    let Some((ends, growth)) = iterations(report, &keepers) else { return };
    report.keepers = keepers.growing(&ends);
    let kept: Bytes = report.keepers.iter().map(|keeper| keeper.growth).sum();
    // Growth whose keeper was not found counts as in the verdict about a file.
    report.growth = if is_much_growth(growth, peak(report)) { kept.max(growth) } else { kept };
}

fn peak(report: &Report) -> Bytes {
    report.devices.iter().map(|device| device.peak_allocated).max().unwrap_or_default()
}

/// The ends of the iterations of each device, and the bytes that known iterations kept to the end.
fn iterations(report: &Report, keepers: &FoundKeepers) -> Option<(Vec<IterationEnds>, Bytes)> {
    let go_on = || if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let file = snapshot::read(report.requests.as_deref()?, &mut |_done| go_on()).ok()?;
    let runs = Run::from_snapshot("", &file, &mut |_progress| go_on()).ok()?;
    let mut ends = vec![IterationEnds::default(); report.devices.len()];
    let mut growth = Bytes::ZERO;
    for (device, run) in file.devices.iter().zip(&runs).filter(|(_, run)| run.has_requests()) {
        let found = leaks(run, &mut |_progress| go_on()).ok()?;
        let index = usize::try_from(device.index).ok()?;
        if let Some(place) = ends.get_mut(index) {
            *place = keepers.iteration_ends(index, run, &found);
        }
        if found.has_known_iterations {
            let grown: Bytes = found.growing().map(|(site, _)| site.growth).sum();
            growth = growth.saturating_add(grown);
        }
    }
    Some((ends, growth))
}

/// The sentences about growth; none where nothing grows, or little.
pub(super) fn write_growth(text: &mut String, report: &Report) -> fmt::Result {
    let peak = peak(report);
    let has_ended_well = report.error.is_none() && report.status == 0 && !report.is_cut;
    if !write_keepers(text, &report.keepers, peak, has_ended_well, "  ")?
        && is_much_growth(report.growth, peak)
        && !report.growth.is_zero()
    {
        writeln!(
            text,
            "  {}: iterations after the first two kept {}; which object keeps it was not found",
            head(has_ended_well),
            report.growth
        )?;
    }
    Ok(())
}

fn head(has_ended_well: bool) -> &'static str {
    if has_ended_well { "it fits so far, and grows" } else { "memory grew" }
}

/// The sentences about the objects that keep much of the peak, each line after `indent`; returns whether there
/// is any.
pub(crate) fn write_keepers(
    text: &mut String,
    keepers: &[Keeper],
    peak: Bytes,
    has_ended_well: bool,
    indent: &str,
) -> Result<bool, fmt::Error> {
    let shown: Vec<&Keeper> = shown_keepers(keepers, peak).collect();
    let Some(most) = shown.first() else { return Ok(false) };
    writeln!(text, "{indent}{}: {}", head(has_ended_well), keeper_growth_text(most))?;
    for keeper in shown {
        writeln!(text, "{indent}{}", keeper_text(keeper))?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use blockyard_answers::{Keeper, ProgramLine, PutLine};
    use blockyard_dry_run::{DeviceReport, Report};
    use blockyard_record::Bytes;

    use super::write_growth;

    fn keeper() -> Keeper {
        let file = "train.py".to_owned();
        Keeper {
            name: "history".to_owned(),
            kind: "list".to_owned(),
            tensors: 60,
            bytes: Bytes::kib(600),
            iterations: 58,
            growth_tensors: 58,
            growth: Bytes::kib(580),
            made_at: vec![ProgramLine { file: file.clone(), line: 10 }],
            put_at: vec![PutLine { file, line: 17, action: "appends".to_owned() }],
            ..Keeper::default()
        }
    }

    fn text(peak: Bytes, keepers: Vec<Keeper>, growth: Bytes, error: Option<&str>) -> String {
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
        let graph = Keeper {
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
