//! The part of the report about several orders of addresses.

use std::fmt::{self, Write as _};

use blockyard_answers::BytesRange;
use blockyard_answers::{DryRunOrders, DryRunResult};
use blockyard_dry_run::{OtherOrders, Report};
use blockyard_gpus::{DriverAddressOrder, GpuProfile};

use super::text::{may_fit, shown};

/// Adds the runs under other orders to the answer. A line whose text depends on the order is not exact, and
/// neither is a run with such a number.
pub(super) fn add_orders(run: &mut DryRunResult, others: DryRunOrders) {
    run.exact &= others.equal;
    for at in &others.lines {
        let line = usize::try_from(*at).ok().and_then(|at| run.lines.get_mut(at));
        if let Some(line) = line.filter(|line| line.exact) {
            line.exact = false;
            line.why = Some("the text depends on the driver's addresses".to_owned());
        }
    }
    run.address_orders = Some(others);
}

/// Which numbers depend on the addresses that a driver gives segments, and within which bounds.
pub(super) fn write_text(
    text: &mut String,
    report: &Report,
    others: &OtherOrders,
    gpus: &[GpuProfile],
) -> fmt::Result {
    if others.runs.is_empty() {
        return writeln!(text, "  the run was interrupted before another order of addresses was tried");
    }
    let count = others.runs.len() + 1;
    if others.is_equal(report) {
        return writeln!(
            text,
            "  {count} orders of addresses (the driver's, rising, falling) give these same numbers"
        );
    }
    writeln!(text, "  {count} orders of addresses (the driver's, rising, falling):")?;
    let ended: Vec<&str> = others.ended_otherwise(report).into_iter().map(DriverAddressOrder::name).collect();
    if !ended.is_empty() {
        writeln!(text, "    the program ended otherwise with addresses that are {}", ended.join(", "))?;
    }
    let devices = others.devices(report);
    for (at, device) in devices.iter().enumerate() {
        for (what, range) in device.named() {
            writeln!(text, "    cuda:{at}: {what} {}", of_range(range))?;
        }
    }
    let lines = others.lines(report).len();
    if lines > 0 {
        writeln!(
            text,
            "    {lines} of {} printed lines depend on the driver's addresses",
            report.lines.len()
        )?;
    }
    let most = devices.iter().map(|device| device.reserved.most).max().unwrap_or_default();
    for gpu in gpus.iter().filter(|gpu| may_fit(report, gpu, most)) {
        writeln!(text, "    {}: whether the program fits depends on the driver's addresses", gpu.name)?;
    }
    Ok(())
}

fn of_range(range: BytesRange) -> String {
    if range.is_one() {
        return format!("{}, always", shown(range.least));
    }
    format!("from {} to {}, depends on the driver's addresses", shown(range.least), shown(range.most))
}

#[cfg(test)]
mod tests {
    use blockyard_dry_run::{DeviceReport, OtherOrders, Report};
    use blockyard_gpus::{DriverAddressOrder, GpuProfile};
    use blockyard_record::Bytes;

    fn report(reserved: u64) -> Report {
        let device = DeviceReport { peak_reserved: Bytes::mib(reserved), ..DeviceReport::default() };
        Report { devices: vec![device], ..Report::default() }
    }

    fn said(others: [u64; 2], total: u64) -> String {
        let [rising, falling] = others.map(report);
        let runs = vec![(DriverAddressOrder::Rising, rising), (DriverAddressOrder::Falling, falling)];
        let gpu = GpuProfile { total_memory: Bytes::mib(total), ..GpuProfile::H200 };
        let mut text = String::new();
        super::write_text(&mut text, &report(20), &OtherOrders { runs }, &[gpu]).unwrap();
        text
    }

    #[test]
    fn what_depends_on_addresses_is_a_range() {
        let text = said([22, 20], 80);
        assert!(
            text.contains("peak reserved from 20971520 (20 MiB) to 23068672 (22 MiB), depends on"),
            "{text}"
        );
        assert!(text.contains("peak allocated 0 (0 B), always") && !text.contains("fits"), "{text}");
        assert!(said([22, 20], 21).contains("whether the program fits depends on the driver's addresses"));
        assert!(said([20, 20], 21).contains("give these same numbers"));
    }
}
