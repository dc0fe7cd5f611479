//! A snapshot for people.

use std::io::Write;

use blockyard_pytorch::snapshot::{SnapshotFile, memory_name};
use blockyard_record::{Breakdown, Bytes, counted, grouped};
use blockyard_rules::conf_text;

use super::FileSummary;
use super::report::{DeviceReport, Moment};
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
    let DeviceReport { counts, peaks, .. } = report;
    let count = |number: usize| grouped(number as u64);
    let millis = counts.elapsed_us / 1000;
    line(
        out,
        &format!(
            "  {}: {} in {}.{:03} s, {}, {} out of memory, {}",
            memory_name(report.found.device, report.found.is_host),
            counted(counts.events, "event"),
            millis / 1000,
            millis % 1000,
            counted(counts.allocations, "allocation"),
            count(counts.ooms),
            counted(counts.streams, "stream"),
        ),
    )?;
    let about = if peaks.is_exact { "" } else { " or a little more" };
    line(
        out,
        &format!(
            "    peak allocated  {}{about}, after event {}",
            size(peaks.allocated),
            count(peaks.allocated_event)
        ),
    )?;
    line(
        out,
        &format!("    peak reserved   {}, after event {}", size(peaks.reserved), count(peaks.reserved_event)),
    )?;
    line(
        out,
        &format!(
            "    at the end      {} allocated, {} reserved in {} segments",
            size(counts.allocated),
            size(counts.reserved),
            count(counts.segments)
        ),
    )?;
    write_certificate(out, report)?;
    write_moment(out, file, &report.moment)?;
    for note in &report.found.notes {
        line(out, &format!("    note: {note}"))?;
    }
    Ok(())
}

fn write_certificate(out: &mut impl Write, report: &DeviceReport) -> anyhow::Result<()> {
    let Some(certificate) = &report.certificate else { return Ok(()) };
    let release = if certificate.placements > 0 {
        format!(", as PyTorch {}", certificate.release)
    } else {
        String::new()
    };
    line(out, &format!("    certificate     {}{release}", certificate.headline()))?;
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

fn write_moment(out: &mut impl Write, file: &SnapshotFile, moment: &Moment) -> anyhow::Result<()> {
    line(out, &format!("    at {} (after event {}):", moment.name, grouped(moment.event as u64)))?;
    let Breakdown { requested, rounding, pending, cached, .. } = moment.breakdown;
    for (name, bytes) in
        [("requested", requested), ("rounding", rounding), ("pending", pending), ("cached", cached)]
    {
        line(out, &format!("      {name:<10} {}", size(bytes.get())))?;
    }
    if !moment.holders.is_empty() {
        line(out, "      held by")?;
    }
    for holder in &moment.holders {
        let blocks = grouped(holder.blocks as u64);
        let noun = if holder.blocks == 1 { "block" } else { "blocks" };
        let stack = stack_line(&file.stacks, holder.stack);
        let names = match holder.names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        line(out, &format!("        {} in {blocks} {noun}{names}: {stack}", size(holder.bytes)))?;
    }
    Ok(())
}

/// A size for people, with its bytes.
fn size(bytes: u64) -> String {
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else {
        format!("{} ({} bytes)", Bytes::new(bytes), grouped(bytes))
    }
}
