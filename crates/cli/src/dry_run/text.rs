//! The report of a dry run for a person.

use std::fmt::{self, Write as _};

use blockyard_dry_run::{Fit, Report, Torch};
use blockyard_gpus::GpuProfile;
use blockyard_record::Bytes;

/// Steps that are listed; those between the first and the last ones are left out.
const MOST_STEPS: usize = 10;
/// Where less than this is left, the report says so: the driver's own context takes a part of it.
const CLOSE: Bytes = Bytes::gib(1);

/// The report: the first GPU was stood for.
pub(super) fn text(report: &Report, gpus: &[GpuProfile], torch: &Torch) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let name = gpus.first().map_or("no GPU", |gpu| gpu.name);
    writeln!(text, "\ndry run: PyTorch {} on {name}, kernels not run", torch.version)?;
    ended(&mut text, report)?;
    peaks(&mut text, report)?;
    steps(&mut text, report)?;
    holders(&mut text, report)?;
    if gpus.len() > 1 {
        fits(&mut text, report, gpus)?;
    }
    for remark in &report.remarks {
        writeln!(text, "  {remark}")?;
    }
    if report.is_exact() {
        writeln!(
            text,
            "  exact: nothing was assumed, but for the order of the addresses that a driver gives segments"
        )?;
    } else if !report.notes.is_empty() {
        writeln!(text, "  an estimate, because:")?;
        for sentence in report.sentences() {
            writeln!(text, "    {sentence}")?;
        }
    }
    Ok(text)
}

fn ended(text: &mut String, report: &Report) -> fmt::Result {
    let error = report.error.as_deref().unwrap_or("no exception");
    let at = report.error_at.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    if report.is_cut {
        let status = report.status;
        writeln!(text, "  the process ended with status {status} ({error}) before its memory was counted")?;
        if let Some(step) = report.steps.last() {
            writeln!(text, "  this is what it had taken by the end of step {}", step.number)?;
        }
    } else if report.error.is_some() {
        writeln!(text, "  the program ended with {error}{at}; this is what ran")?;
    } else if report.status != 0 {
        writeln!(text, "  the program ended with status {}; this is what ran", report.status)?;
    }
    Ok(())
}

fn peaks(text: &mut String, report: &Report) -> fmt::Result {
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

fn steps(text: &mut String, report: &Report) -> fmt::Result {
    let Some(last) = report.steps.len().checked_sub(1) else { return Ok(()) };
    writeln!(text, "  steps of the first optimizer:")?;
    for (at, step) in report.steps.iter().enumerate() {
        let is_left_out = |at: usize| at >= MOST_STEPS / 2 && at + MOST_STEPS / 2 <= last;
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
        None => writeln!(text, "    one step says nothing about the next"),
    }
}

fn holders(text: &mut String, report: &Report) -> fmt::Result {
    if report.holders.is_empty() {
        return Ok(());
    }
    writeln!(text, "  who holds the peak of the last step that was looked at:")?;
    for row in &report.holders {
        writeln!(text, "    {:>10}  {}", row.bytes.to_string(), row.what)?;
    }
    Ok(())
}

fn fits(text: &mut String, report: &Report, gpus: &[GpuProfile]) -> fmt::Result {
    let peak = report.peak_reserved();
    for fit in report.fits(gpus) {
        writeln!(text, "  {}: {}", fit.gpu.name, verdict(&fit, peak))?;
    }
    let own = gpus.first().map_or("the first", |gpu| gpu.name);
    writeln!(
        text,
        "  one run, on {own}: PyTorch may choose other kernels for another architecture, with other workspaces"
    )
}

fn verdict(fit: &Fit, peak: Bytes) -> String {
    let total = fit.gpu.total_memory;
    let at = fit.at.as_ref().map(|place| format!(", first at {place}")).unwrap_or_default();
    match fit.is_fitting {
        Some(true) if total.saturating_sub(peak) < CLOSE => {
            format!(
                "fits barely: peak reserved {peak} of {total}, of which the driver's own context takes a part"
            )
        }
        Some(true) => format!("fits: peak reserved {peak} of {total}"),
        Some(false) if peak > total => format!("does not fit: peak reserved {peak} of {total}{at}"),
        Some(false) => {
            format!("does not fit: the program ran out of memory{at}, with {peak} of {total} reserved")
        }
        None => format!("not known: the run ended early, at {peak} of {total}"),
    }
}

fn shown(bytes: Bytes) -> String {
    format!("{} ({bytes})", bytes.get())
}
