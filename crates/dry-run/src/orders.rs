//! The same program under several orders of the addresses that a driver gives segments: which numbers depend on them.

use std::fs;
use std::path::PathBuf;

use blockyard_answers::{DryRunOrders, DryRunPeakRanges, DryRunRange};
use blockyard_record::Bytes;

use crate::run::{RunningProgram, wait};
use crate::{DeviceReport, DryRunError, Prepared, Program, Report, Torch};

/// The order of the addresses of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressOrder {
    /// As NVIDIA's driver puts them.
    Driver,
    /// Each new segment above the others.
    Rising,
    /// Each new segment below the others.
    Falling,
}

impl AddressOrder {
    /// All orders, the driver's first.
    pub const ALL: [Self; 3] = [Self::Driver, Self::Rising, Self::Falling];

    /// The name of the order, as `STANDIN_ADDRESSES` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Rising => "rising",
            Self::Falling => "falling",
        }
    }
}

/// The least and the most bytes over the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesRange {
    /// The least.
    pub least: Bytes,
    /// The most.
    pub most: Bytes,
}

impl BytesRange {
    /// Whether all orders gave the same bytes.
    #[must_use]
    pub fn is_one(self) -> bool {
        self.least == self.most
    }
}

/// The bytes of a device over all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// Most bytes of allocated blocks.
    pub allocated: BytesRange,
    /// Most bytes of segments.
    pub reserved: BytesRange,
    /// Bytes of allocated blocks at the end.
    pub allocated_at_end: BytesRange,
}

/// The runs of one program under other orders than the driver's.
#[derive(Clone, Debug, Default)]
pub struct OtherOrders {
    /// Each order with its report.
    pub runs: Vec<(AddressOrder, Report)>,
}

impl OtherOrders {
    /// The bytes of each device over all orders whose runs ended as `own` ended.
    #[must_use]
    pub fn devices(&self, own: &Report) -> Vec<DeviceRange> {
        let ranges = own.devices.iter().enumerate().map(|(at, device)| {
            let range = |of: fn(&DeviceReport) -> Bytes| {
                let others = self.like(own).filter_map(|report| report.devices.get(at)).map(of);
                others.fold(BytesRange { least: of(device), most: of(device) }, |range, bytes| BytesRange {
                    least: range.least.min(bytes),
                    most: range.most.max(bytes),
                })
            };
            DeviceRange {
                allocated: range(|device| device.peak_allocated),
                reserved: range(|device| device.peak_reserved),
                allocated_at_end: range(|device| device.allocated),
            }
        });
        ranges.collect()
    }

    /// The orders under which the program ended otherwise: their numbers are not compared.
    #[must_use]
    pub fn ended_otherwise(&self, own: &Report) -> Vec<AddressOrder> {
        let others = self.runs.iter().filter(|(_, report)| !is_like(report, own));
        others.map(|(order, _)| *order).collect()
    }

    /// The printed lines, counted from 0, whose text depends on the order.
    #[must_use]
    pub fn lines(&self, own: &Report) -> Vec<usize> {
        let differs = |at: usize, text: &str| {
            self.like(own).any(|report| report.lines.get(at).is_none_or(|line| line.text != text))
        };
        let lines = own.lines.iter().enumerate();
        lines.filter(|(at, line)| differs(*at, &line.text)).map(|(at, _)| at).collect()
    }

    /// Whether no number and no line depends on the order.
    #[must_use]
    pub fn are_equal(&self, own: &Report) -> bool {
        let is_one = |range: &DeviceRange| {
            range.allocated.is_one() && range.reserved.is_one() && range.allocated_at_end.is_one()
        };
        self.ended_otherwise(own).is_empty()
            && self.lines(own).is_empty()
            && self.devices(own).iter().all(is_one)
            && self.like(own).all(|report| report.steps == own.steps)
    }

    fn like<'a>(&'a self, own: &'a Report) -> impl Iterator<Item = &'a Report> {
        self.runs.iter().map(|(_, report)| report).filter(|report| is_like(report, own))
    }

    /// The runs for JSON.
    #[must_use]
    pub fn to_answer(&self, own: &Report) -> DryRunOrders {
        let range = |range: BytesRange| DryRunRange { least: range.least.get(), most: range.most.get() };
        let orders = std::iter::once(AddressOrder::Driver).chain(self.runs.iter().map(|(order, _)| *order));
        let name = |order: AddressOrder| order.name().to_owned();
        let peaks = self.devices(own).into_iter().zip(0..).map(|(device, at)| DryRunPeakRanges {
            device: at,
            allocated: range(device.allocated),
            reserved: range(device.reserved),
            allocated_at_end: range(device.allocated_at_end),
        });
        DryRunOrders {
            orders: orders.map(name).collect(),
            equal: self.are_equal(own),
            peaks: peaks.collect(),
            lines: self.lines(own).into_iter().map(|line| line as u64).collect(),
            ended_otherwise: self.ended_otherwise(own).into_iter().map(name).collect(),
        }
    }
}

fn is_like(report: &Report, own: &Report) -> bool {
    report.status == own.status && report.is_cut == own.is_cut && report.devices.len() == own.devices.len()
}

/// Runs the program under the orders that are not the driver's, without output and snapshot. The runs go side by side if the host has twice the
/// memory that the program took under the driver's order, else one after the other. Once `is_stopped` is true no further run begins, and the
/// result leaves out the runs that have begun.
///
/// # Errors
///
/// A Python that does not start, and files that cannot be written.
pub fn run_other_orders(
    program: &Program,
    own: &Report,
    torch: &Torch,
    prepared: &Prepared,
    is_stopped: impl Fn() -> bool,
) -> Result<OtherOrders, DryRunError> {
    let others: Vec<AddressOrder> =
        AddressOrder::ALL.into_iter().filter(|order| *order != AddressOrder::Driver).collect();
    let count = u64::try_from(others.len()).unwrap_or(u64::MAX);
    let wanted = own.host_peak.get().saturating_mul(count);
    let at_once =
        if available_memory().is_some_and(|available| wanted < available) { others.len() } else { 1 };
    let mut runs = Vec::new();
    for orders in others.chunks(at_once) {
        let mut started = Vec::new();
        for order in orders {
            let mut program =
                Program { snapshot: None, output: Some(PathBuf::from("/dev/null")), ..program.clone() };
            program.environment.push(("STANDIN_ADDRESSES".to_owned(), order.name().to_owned()));
            started.push((*order, RunningProgram::new(program, torch, prepared)?));
        }
        for (order, mut started) in started {
            let was_stopped = wait(&mut started, &is_stopped)?;
            let report = started.finish(torch)?;
            if !was_stopped && !is_stopped() {
                runs.push((order, report));
            }
        }
    }
    Ok(OtherOrders { runs })
}

/// Bytes of the host's memory that new processes may take; none where the host does not say.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    kilobytes(&text, "MemAvailable:")
}

/// A size of a file of `/proc`, whose lines are a name and kilobytes.
pub(crate) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use blockyard_record::Bytes;

    use super::{AddressOrder, OtherOrders, kilobytes};
    use crate::{DeviceReport, PrintedLine, Report};

    fn report(reserved: u64, line: &str) -> Report {
        let device = DeviceReport {
            peak_reserved: Bytes::new(reserved),
            peak_allocated: Bytes::new(5),
            ..DeviceReport::default()
        };
        let lines = ["first", line].map(|text| PrintedLine { text: text.to_owned(), why: None });
        Report { devices: vec![device], lines: lines.into(), ..Report::default() }
    }

    #[test]
    fn numbers_that_differ_are_ranges() {
        let own = report(20, "reserved 20");
        let rising = (AddressOrder::Rising, report(22, "reserved 22"));
        let falling = (AddressOrder::Falling, report(18, "reserved 20"));
        let others = OtherOrders { runs: vec![rising, falling] };
        let [device] = others.devices(&own)[..] else { unreachable!() };
        assert_eq!((device.reserved.least.get(), device.reserved.most.get()), (18, 22));
        assert!(device.allocated.is_one() && !others.are_equal(&own));
        assert_eq!(others.lines(&own), [1]);
        let answer = others.to_answer(&own);
        assert_eq!((answer.peaks[0].reserved.least, answer.peaks[0].reserved.most), (18, 22));
        assert_eq!(answer.orders, ["driver", "rising", "falling"]);
    }

    #[test]
    fn a_run_that_ended_otherwise_is_named_and_not_compared() {
        let own = report(20, "a");
        let failed = Report { status: 1, ..report(99, "b") };
        let others = OtherOrders { runs: vec![(AddressOrder::Rising, failed)] };
        assert_eq!(others.ended_otherwise(&own), [AddressOrder::Rising]);
        assert!(others.devices(&own)[0].reserved.is_one() && !others.are_equal(&own));
    }

    #[test]
    fn sizes_of_proc_are_read() {
        let text = "MemFree:   1 kB\nMemAvailable:   20 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(20 * 1024));
        assert_eq!(kilobytes(text, "VmHWM:"), None);
    }
}
