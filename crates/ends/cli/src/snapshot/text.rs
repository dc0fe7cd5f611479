//! A snapshot for people.

use std::io::Write;

use blockyard_answers::CertificateAnswer;
use blockyard_pytorch::snapshot::{SnapshotFile, memory_name};
use blockyard_record::{counted, exact_size, grouped};
use blockyard_rules::conf_text;

use super::FileSummary;
use super::report::DeviceReport;
use super::stacks::line as stack_line;
use crate::output::line;

pub(crate) fn write(
    out: &mut impl Write,
    name: &str,
    summary: &FileSummary,
    reports: &[DeviceReport],
) -> anyhow::Result<()> {
    let file = &summary.file;
    let has_settings = !(file.settings.conf.is_empty() && file.settings.values.is_empty());
    let settings = if has_settings { conf_text(&file.settings.conf) } else { "the snapshot has no settings" };
    line(out, &format!("{name}: {settings}"))?;
    for note in &file.notes {
        line(out, &format!("  note: {note}"))?;
    }
    for report in reports {
        write_device(out, file, report)?;
    }
    if reports.is_empty() {
        line(
            out,
            "  the snapshot has neither segments nor traces: memory history was not recorded, or was recorded on another device",
        )?;
    }
    Ok(())
}

fn write_device(out: &mut impl Write, file: &SnapshotFile, report: &DeviceReport) -> anyhow::Result<()> {
    let device = &report.answer;
    let millis = device.elapsed_us / 1000;
    line(
        out,
        &format!(
            "  {}: {} in {}.{:03} s, {}, {} out of memory, {}",
            memory_name(device.index, report.is_host),
            counted(device.events, "event"),
            millis / 1000,
            millis % 1000,
            counted(device.allocations, "allocation"),
            grouped(device.ooms),
            counted(device.streams, "stream"),
        ),
    )?;
    let about = if device.peaks_are_exact { "" } else { " or a little more" };
    line(
        out,
        &format!(
            "    peak allocated  {}{about}, after {}",
            exact_size(device.peak_allocated),
            place(device.peak_allocated_request, device.peak_allocated_event)
        ),
    )?;
    line(
        out,
        &format!(
            "    peak reserved   {}, after {}",
            exact_size(device.peak_reserved),
            place(device.peak_reserved_request, device.peak_reserved_event)
        ),
    )?;
    line(
        out,
        &format!(
            "    at the end      {} allocated, {} reserved in {} segments",
            exact_size(device.allocated),
            exact_size(device.reserved),
            grouped(device.segments)
        ),
    )?;
    if let Some(certificate) = &device.certificate {
        write_certificate(out, certificate)?;
    }
    write_moment(out, file, report)?;
    for note in &device.notes {
        line(out, &format!("    note: {note}"))?;
    }
    Ok(())
}

/// A place in the trace, as answers count and as the trace does.
fn place(request: u64, event: u64) -> String {
    format!("request {}, event {}", grouped(request), grouped(event))
}

fn write_certificate(out: &mut impl Write, certificate: &CertificateAnswer) -> anyhow::Result<()> {
    let release = if certificate.placements > 0 {
        format!(", as PyTorch {}", certificate.release)
    } else {
        String::new()
    };
    line(out, &format!("    certificate     {}{release}", certificate.sentence))?;
    if let Some(difference) = &certificate.first_difference {
        line(out, &format!("      first difference, {}", difference.what))?;
        line(out, &format!("        PyTorch  {}", difference.expected))?;
        line(out, &format!("        replay   {}", difference.found))?;
    }
    for reason in &certificate.reasons {
        line(out, &format!("      {reason}"))?;
    }
    Ok(())
}

fn write_moment(out: &mut impl Write, file: &SnapshotFile, report: &DeviceReport) -> anyhow::Result<()> {
    let moment = &report.answer.at;
    line(out, &format!("    at {} (after {}):", moment.name, place(moment.request, moment.event)))?;
    for (name, bytes) in [
        ("requested", moment.requested),
        ("rounding", moment.rounding),
        ("pending", moment.pending),
        ("cached", moment.cached),
    ] {
        line(out, &format!("      {name:<10} {}", exact_size(bytes)))?;
    }
    if !moment.top.is_empty() {
        line(out, "      held by")?;
    }
    for (holder, stack) in moment.top.iter().zip(&report.stacks) {
        let blocks = counted(holder.blocks, "block");
        let stack = stack_line(&file.stacks, *stack);
        let names = match holder.names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        line(out, &format!("        {} in {blocks}{names}: {stack}", exact_size(holder.bytes)))?;
    }
    Ok(())
}
