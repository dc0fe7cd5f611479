//! The report of a dry run for a person.

use std::fmt::{self, Write as _};

use blockyard_dry_run::{EXACT, GpuFit, OtherOrders, Report, Torch};
use blockyard_gpus::{GpuProfile, left_for_pytorch_text};
use blockyard_record::Bytes;

use super::growth::write_growth;
use super::orders;

/// The sentence for a run whose only uncertainty is the order of addresses.
const IN_ONE_ORDER: &str = "  exact for the order of addresses of this run alone: nothing else was assumed";

/// The sentence for a run in which no value was assumed and several orders of addresses were tried.
const EXACT_IN_ORDER: &str = "exact for each order of addresses: nothing was assumed";

/// The most iterations that are listed; iterations in the middle are left out.
const MAX_STEPS: usize = 10;
/// The report warns if less than this is left: the driver's context takes a part of it.
const MIN_MARGIN: Bytes = Bytes::gib(1);

/// The report. The first of `gpus` is the GPU of the run; the others are compared with the peaks.
pub(super) fn text(
    report: &Report,
    others: Option<&OtherOrders>,
    gpus: &[GpuProfile],
    torch: &Torch,
) -> Result<String, fmt::Error> {
    let mut text = head_text(gpus, torch)?;
    write_end(&mut text, report)?;
    write_growth(&mut text, report)?;
    write_peaks(&mut text, report)?;
    write_addresses(&mut text, report, gpus, "")?;
    if let Some(others) = others {
        orders::write_text(&mut text, report, others, gpus)?;
    }
    write_details(&mut text, report, gpus, others.is_some_and(|others| !others.runs.is_empty()))?;
    Ok(text)
}

/// The first lines.
pub(super) fn head_text(gpus: &[GpuProfile], torch: &Torch) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let name = gpus.first().map_or("no GPU", |gpu| gpu.name);
    let python = if torch.python.is_empty() { String::new() } else { format!(", Python {}", torch.python) };
    writeln!(text, "\ndry run: PyTorch {}{python} on {name}, kernels not run", torch.version)?;
    Ok(text)
}

/// The part of the report after the peaks.
pub(super) fn write_details(
    text: &mut String,
    report: &Report,
    gpus: &[GpuProfile],
    has_orders: bool,
) -> fmt::Result {
    if let Some(gpu) = gpus.first() {
        for (at, (non_pytorch, device)) in report.non_pytorch(gpu).iter().zip(&report.devices).enumerate() {
            for sentence in non_pytorch.sentences(&format!("cuda:{at}"), device.peak_reserved) {
                writeln!(text, "  {sentence}")?;
            }
        }
        if report.counts_non_pytorch && !report.devices.is_empty() {
            let left = report.left_for_pytorch(gpu);
            writeln!(text, "  {}", left_for_pytorch_text(left, gpu.total_memory, gpu.name))?;
        }
    }
    write_steps(text, report)?;
    write_holders(text, report)?;
    if gpus.len() > 1 {
        write_fits(text, report, gpus)?;
    }
    for child in &report.children {
        let counted = child.counted.map_or_else(
            || ", and ended before its peaks were counted".to_owned(),
            |counted| {
                let (allocated, reserved) = (shown(counted.peak_allocated), shown(counted.peak_reserved));
                format!(": peak allocated {allocated}, peak reserved {reserved}")
            },
        );
        let rest = if report.is_of_children { "" } else { "; no other number has these bytes" };
        writeln!(
            text,
            "  process {}, which the program started, took {} of cuda:{}{counted}{rest}",
            child.process, child.bytes, child.device
        )?;
    }
    for remark in &report.remarks {
        writeln!(text, "  {remark}")?;
    }
    if report.is_exact() {
        write_exactness(text, report, has_orders)?;
    } else if report.notes.is_empty() && !report.is_cut {
        writeln!(text, "{IN_ONE_ORDER}")?;
    } else if !report.notes.is_empty() {
        writeln!(text, "  an estimate, because:")?;
        for sentence in report.sentences() {
            writeln!(text, "    {sentence}")?;
        }
    }
    Ok(())
}

/// Writes that nothing was assumed, and the known facts about other orders of addresses.
fn write_exactness(text: &mut String, report: &Report, has_orders: bool) -> fmt::Result {
    let Some(replayed) = &report.replayed_orders else {
        return writeln!(text, "  {}", if has_orders { EXACT_IN_ORDER } else { EXACT });
    };
    match &replayed.why_not {
        Some(why) => writeln!(text, "  {EXACT}; other orders were not tried: {why}"),
        None => writeln!(
            text,
            "  exact: nothing was assumed, and {} other orders of the addresses that a driver gives \
             segments have these same numbers",
            replayed.count
        ),
    }
}

/// Which numbers depend on the addresses that a driver gives segments, by the run's own requests.
pub(super) fn write_addresses(
    text: &mut String,
    report: &Report,
    gpus: &[GpuProfile],
    before: &str,
) -> fmt::Result {
    let Some(replayed) = &report.replayed_orders else { return Ok(()) };
    for sentence in replayed.sentences() {
        writeln!(text, "  {before}{sentence}")?;
    }
    let most = replayed.devices.iter().map(|device| device.reserved.most).max().unwrap_or_default();
    for gpu in gpus.iter().filter(|gpu| may_fit(report, gpu, most)) {
        writeln!(text, "  {before}{}: whether the program fits depends on the driver's addresses", gpu.name)?;
    }
    Ok(())
}

/// Whether a program fits on a GPU in this run, and does not where it reserves this many bytes.
pub(super) fn may_fit(report: &Report, gpu: &GpuProfile, most: Bytes) -> bool {
    let left = report.left_for_pytorch(gpu);
    report.peak_reserved() <= left && most > left
}

pub(super) fn write_end(text: &mut String, report: &Report) -> fmt::Result {
    let error = report.error.as_deref().unwrap_or("no exception");
    let at = report.error_at.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    if report.is_cut {
        let status = report.status;
        writeln!(text, "  the process ended with status {status} ({error}) before its memory was counted")?;
        if let Some(step) = report.iterations.last() {
            writeln!(text, "  the numbers are those at the end of step {}", step.number)?;
        }
    } else if report.error.is_some() {
        writeln!(text, "  the program ended with {error}{at}; the numbers are those of the part that ran")?;
    } else if report.status != 0 {
        writeln!(
            text,
            "  the program ended with status {}; the numbers are those of the part that ran",
            report.status
        )?;
    }
    Ok(())
}

fn write_peaks(text: &mut String, report: &Report) -> fmt::Result {
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
    Ok(())
}

fn write_steps(text: &mut String, report: &Report) -> fmt::Result {
    let Some(last) = report.iterations.len().checked_sub(1) else { return Ok(()) };
    writeln!(text, "  steps of the first optimizer:")?;
    for (at, step) in report.iterations.iter().enumerate() {
        let is_left_out = |at: usize| at >= MAX_STEPS / 2 && at + MAX_STEPS / 2 <= last;
        if is_left_out(at) {
            if !is_left_out(at.saturating_sub(1)) {
                writeln!(text, "    ...")?;
            }
            continue;
        }
        for (device, peak) in step.devices.iter().enumerate() {
            let on = if step.devices.len() > 1 { format!(", cuda:{device}") } else { String::new() };
            writeln!(
                text,
                "    step {}{on}: peak allocated {}, peak reserved {}, allocated at its end {}",
                step.number, peak.peak_allocated, peak.peak_reserved, peak.allocated
            )?;
        }
    }
    match report.is_steady() {
        Some(true) => writeln!(text, "    the last two steps are equal"),
        Some(false) => writeln!(text, "    the last two steps are not equal: more steps may take more"),
        None => writeln!(text, "    one step shows nothing about the next"),
    }
}

fn write_holders(text: &mut String, report: &Report) -> fmt::Result {
    if report.holders.is_empty() {
        return Ok(());
    }
    writeln!(text, "  who holds the peak of the last measured step:")?;
    for row in &report.holders {
        writeln!(text, "    {:>10}  {}", row.bytes.to_string(), row.what)?;
    }
    Ok(())
}

fn write_fits(text: &mut String, report: &Report, gpus: &[GpuProfile]) -> fmt::Result {
    let peak = report.peak_reserved();
    for fit in report.fits(gpus) {
        let all = report.peak_of_all_processes();
        writeln!(text, "  {}: {}", fit.gpu.name, fit_text(&fit, peak, all, report.counts_non_pytorch))?;
    }
    let own = gpus.first().map_or("the first", |gpu| gpu.name);
    writeln!(
        text,
        "  one run, on {own}: PyTorch may choose other kernels for another architecture, with other workspaces"
    )
}

fn fit_text(fit: &GpuFit, peak: Bytes, all: Bytes, is_without_non_pytorch: bool) -> String {
    let total = fit.left;
    let at = fit.at.as_ref().map(|place| format!(", first at {place}")).unwrap_or_default();
    match fit.fits {
        Some(true) if total.saturating_sub(peak) < MIN_MARGIN && !is_without_non_pytorch => {
            format!(
                "fits barely: peak reserved {peak} of {total}, of which the driver's own context takes a part"
            )
        }
        Some(true) => format!("fits: peak reserved {peak} of {total}"),
        Some(false) if peak > total => format!("does not fit: peak reserved {peak} of {total}{at}"),
        Some(false) => {
            format!("does not fit: the program ran out of memory{at}, with {peak} of {total} reserved")
        }
        None if all > total && peak <= total => {
            format!(
                "not known: {peak} of {total} without the processes that the program started, up to {all} with them"
            )
        }
        None => format!("not known: the run ended early, at {peak} of {total}"),
    }
}

pub(super) fn shown(bytes: Bytes) -> String {
    format!("{} ({bytes})", bytes.get())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use blockyard_answers::{BytesRange, DeviceRange, ProgramLine};
    use blockyard_dry_run::{
        CapacityCrossing, DeviceReport, EstimateNote, Iteration, IterationPeak, ReplayedOrders, Report, Torch,
    };
    use blockyard_gpus::GpuProfile;
    use blockyard_record::Bytes;

    use super::text;

    fn report(reserved: Bytes) -> Report {
        let device = DeviceReport { peak_reserved: reserved, ..DeviceReport::default() };
        Report { devices: vec![device], ..Report::default() }
    }

    fn shown(report: &Report, gpus: &[GpuProfile]) -> String {
        let version = "2.11.0+cu130".to_owned();
        let torch =
            Torch { folder: PathBuf::new(), version, cuda: 13_000, cudnn: None, python: "3.12.7".to_owned() };
        text(report, None, gpus, &torch).unwrap()
    }

    fn gpus(totals: &[Bytes]) -> Vec<GpuProfile> {
        totals.iter().map(|total| GpuProfile { total_memory: *total, ..GpuProfile::H200 }).collect()
    }

    #[test]
    fn each_gpu_has_a_verdict() {
        let mut found = report(Bytes::gib(20));
        let at = Some(ProgramLine { file: "train.py".to_owned(), line: 7 });
        found.crossings = vec![CapacityCrossing { total: Bytes::gib(16), at }];
        let text =
            shown(&found, &gpus(&[Bytes::gib(80), Bytes::mib(20_500), Bytes::gib(16), Bytes::gib(15)]));
        for line in [
            "NVIDIA H200: fits: peak reserved 20 GiB of 80 GiB\n",
            "NVIDIA H200: fits barely: peak reserved 20 GiB of 20.02 GiB, of which the driver's own context takes a part\n",
            "NVIDIA H200: does not fit: peak reserved 20 GiB of 16 GiB, first at train.py:7\n",
            "NVIDIA H200: does not fit: peak reserved 20 GiB of 15 GiB\n",
            "one run, on NVIDIA H200: PyTorch may choose other kernels for another architecture",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!shown(&found, &gpus(&[Bytes::gib(80)])).contains("fits"), "nobody asked");
        found.counts_non_pytorch = true;
        let text = shown(&found, &gpus(&[Bytes::gib(80), Bytes::gib(20)]));
        for line in [
            "79.49 GiB of the GPU's 80 GiB are left for PyTorch: each run leaves out the non-PyTorch memory",
            "NVIDIA H200: fits: peak reserved 20 GiB of 79.49 GiB\n",
            "NVIDIA H200: does not fit: peak reserved 20 GiB of 19.49 GiB\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn long_runs_list_their_first_and_last_steps() {
        let mut found = report(Bytes::gib(1));
        found.iterations =
            (1..=30).map(|number| Iteration { number, devices: vec![IterationPeak::default()] }).collect();
        let text = shown(&found, &gpus(&[Bytes::gib(80)]));
        let listed: Vec<&str> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("step "))
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(listed, ["1", "2", "3", "4", "5", "26", "27", "28", "29", "30"]);
        assert_eq!(text.matches("...\n").count(), 1);
        assert!(text.contains("the last two steps are equal"));
    }

    #[test]
    fn what_depends_on_addresses_is_not_exact() {
        let range = |least, most| BytesRange { least: Bytes::gib(least), most: Bytes::gib(most) };
        let replayed = |reserved, first| ReplayedOrders {
            count: 8,
            devices: vec![DeviceRange { allocated: range(1, 1), reserved, ..DeviceRange::default() }],
            first_differences: vec![first],
            why_not: None,
        };
        let mut found = report(Bytes::gib(2));
        found.replayed_orders = Some(replayed(range(2, 2), None));
        let text = shown(&found, &gpus(&[Bytes::gib(80)]));
        assert!(text.contains("  exact: nothing was assumed, and 8 other orders of the addresses"), "{text}");
        found.replayed_orders = Some(replayed(range(2, 3), Some(7)));
        let text = shown(&found, &gpus(&[Bytes::gib(2)]));
        let range = "between 2147483648 (2 GiB) and 3221225472 (3 GiB)";
        assert!(
            text.contains(&format!("  cuda:0: peak reserved depends on the driver's addresses: {range}\n")),
            "{text}"
        );
        assert!(text.contains("whether the program fits depends on the driver's addresses"), "{text}");
        assert!(
            text.ends_with(
                "  exact for the order of addresses of this run alone: nothing else was assumed\n"
            ),
            "{text}"
        );
        found.replayed_orders =
            Some(ReplayedOrders { why_not: Some("a reason".to_owned()), ..ReplayedOrders::default() });
        assert!(
            shown(&found, &gpus(&[Bytes::gib(80)])).ends_with("; other orders were not tried: a reason\n")
        );
    }

    #[test]
    fn an_estimate_says_why_and_a_crash_is_no_exact_answer() {
        let mut found = report(Bytes::gib(1));
        assert!(shown(&found, &gpus(&[Bytes::gib(80)])).contains("  exact: nothing was assumed"));
        let note = EstimateNote { text: "a size is assumed to be 0".to_owned(), ..EstimateNote::default() };
        found.notes = vec![note.clone(), note];
        let text = shown(&found, &gpus(&[Bytes::gib(80)]));
        assert!(text.ends_with("an estimate, because:\n    a size is assumed to be 0\n"), "{text}");
        let cut =
            Report { is_cut: true, status: 137, error: Some("SIGKILL".to_owned()), ..Report::default() };
        let text = shown(&cut, &gpus(&[Bytes::gib(80)]));
        assert!(text.contains("the process ended with status 137 (SIGKILL) before its memory was counted"));
        assert!(!text.contains("exact") && !text.contains("did not use the GPU"), "{text}");
    }
}
