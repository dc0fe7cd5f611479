//! The same program under several orders of the addresses that a driver gives segments: which numbers depend
//! on them.

use std::fs;
use std::path::PathBuf;

use blockyard_answers::{BytesRange, DeviceRange, DryRunAddresses, DryRunOrders};
use blockyard_gpus::DriverAddressOrder;
use blockyard_hooks::variables;
use blockyard_record::Bytes;

use crate::run::{RunningProgram, wait};
use crate::{DeviceReport, DryRunError, LibraryFolder, Program, Report, Torch};

/// The results of replays of a run's own requests under other orders of addresses, without a second run of
/// the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayedOrders {
    /// How many orders were tried beside that of the run; 0 where nothing could be replayed.
    pub count: usize,
    /// The bytes of each device over all orders, by the device's number.
    pub devices: Vec<DeviceRange>,
    /// By device: how many allocations came before numbers differed for the first time; `None` where they
    /// never did.
    pub first_differences: Vec<Option<u64>>,
    /// Why nothing was replayed; `None` where something was.
    pub why_not: Option<String>,
}

impl ReplayedOrders {
    /// Whether some number depends on the addresses.
    pub fn has_differences(&self) -> bool {
        self.first_differences.iter().any(Option::is_some)
    }

    /// A sentence for each number of a device that depends on the addresses.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for (at, device) in self.devices.iter().enumerate() {
            for (what, range) in device.named() {
                if !range.is_one() {
                    let BytesRange { least, most } = range;
                    sentences.push(format!(
                        "cuda:{at}: {what} depends on the driver's addresses: between {} ({least}) and {} ({most})",
                        least.get(),
                        most.get()
                    ));
                }
            }
            let is_only_meanwhile = device.named().iter().all(|(_, range)| range.is_one());
            if is_only_meanwhile && self.first_differences.get(at).is_some_and(Option::is_some) {
                sentences.push(format!(
                    "cuda:{at}: peaks are those of all orders of the driver's addresses; what is allocated or reserved between them depends on \
                     the order"
                ));
            }
        }
        sentences
    }

    /// The results for JSON.
    pub fn to_answer(&self) -> DryRunAddresses {
        DryRunAddresses {
            orders: self.count as u64,
            equal: self.why_not.is_none().then(|| !self.has_differences()),
            peaks: self.devices.clone(),
            why_not: self.why_not.clone(),
        }
    }
}

impl Report {
    /// Adds the results of replays under other orders of addresses: lines that were printed after numbers
    /// differed for the first time are not exact.
    pub fn add_replayed_orders(&mut self, replayed: ReplayedOrders) {
        if replayed.has_differences() {
            let why = replayed.sentences().join("; ");
            for line in self.lines.iter_mut().filter(|line| line.why.is_none()) {
                let mut counts = replayed.first_differences.iter().zip(&line.allocations);
                if counts.any(|(first, done)| first.is_some_and(|first| *done >= first)) {
                    line.why = Some(why.clone());
                }
            }
        }
        self.replayed_orders = Some(replayed);
    }
}

/// The runs of one program under other orders than the driver's.
#[derive(Clone, Debug, Default)]
pub struct OtherOrders {
    /// Each order with its report.
    pub runs: Vec<(DriverAddressOrder, Report)>,
}

impl OtherOrders {
    /// The bytes of each device over all orders whose runs ended as `own` ended.
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
                device: at as u64,
                allocated: range(|device| device.peak_allocated),
                reserved: range(|device| device.peak_reserved),
                allocated_at_end: range(|device| device.allocated),
            }
        });
        ranges.collect()
    }

    /// The orders under which the program ended otherwise: their numbers are not compared.
    pub fn ended_otherwise(&self, own: &Report) -> Vec<DriverAddressOrder> {
        let others = self.runs.iter().filter(|(_, report)| !is_like(report, own));
        others.map(|(order, _)| *order).collect()
    }

    /// The printed lines, counted from 0, whose text depends on the order.
    pub fn lines(&self, own: &Report) -> Vec<usize> {
        let differs = |at: usize, text: &str| {
            self.like(own).any(|report| report.lines.get(at).is_none_or(|line| line.text != text))
        };
        let lines = own.lines.iter().enumerate();
        lines.filter(|(at, line)| differs(*at, &line.text)).map(|(at, _)| at).collect()
    }

    /// Whether no number and no line depends on the order.
    pub fn is_equal(&self, own: &Report) -> bool {
        let is_one = |range: &DeviceRange| {
            range.allocated.is_one() && range.reserved.is_one() && range.allocated_at_end.is_one()
        };
        self.ended_otherwise(own).is_empty()
            && self.lines(own).is_empty()
            && self.devices(own).iter().all(is_one)
            && self.like(own).all(|report| report.iterations == own.iterations)
    }

    fn like<'a>(&'a self, own: &'a Report) -> impl Iterator<Item = &'a Report> {
        self.runs.iter().map(|(_, report)| report).filter(|report| is_like(report, own))
    }

    /// The runs for JSON.
    pub fn to_answer(&self, own: &Report) -> DryRunOrders {
        let orders =
            std::iter::once(DriverAddressOrder::Driver).chain(self.runs.iter().map(|(order, _)| *order));
        let name = |order: DriverAddressOrder| order.name().to_owned();
        DryRunOrders {
            orders: orders.map(name).collect(),
            equal: self.is_equal(own),
            peaks: self.devices(own),
            lines: self.lines(own).into_iter().map(|line| line as u64).collect(),
            ended_otherwise: self.ended_otherwise(own).into_iter().map(name).collect(),
        }
    }
}

fn is_like(report: &Report, own: &Report) -> bool {
    report.status == own.status && report.is_cut == own.is_cut && report.devices.len() == own.devices.len()
}

/// Runs the program under the orders that are not the driver's, without output and snapshot. The runs go side
/// by side if the host has twice the memory that the program took under the driver's order, else one after
/// the other. Once `is_stopped` is true no further run begins, and the result leaves out the runs that have
/// begun.
///
/// # Errors
///
/// A Python that does not start, and files that cannot be written.
pub fn run_other_orders(
    program: &Program,
    own: &Report,
    torch: &Torch,
    prepared: &LibraryFolder,
    is_stopped: impl Fn() -> bool,
) -> Result<OtherOrders, DryRunError> {
    let others: Vec<DriverAddressOrder> =
        DriverAddressOrder::ALL.into_iter().filter(|order| *order != DriverAddressOrder::Driver).collect();
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
            program.environment.push((variables::ADDRESSES.to_owned(), order.name().to_owned()));
            started.push((*order, RunningProgram::start(program, torch, prepared)?));
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

/// Bytes of the host's memory that new processes may take; `None` where the host does not say.
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

    use super::{BytesRange, DeviceRange, DriverAddressOrder, OtherOrders, ReplayedOrders, kilobytes};
    use crate::{DeviceReport, PrintedLine, Report};

    fn report(reserved: u64, line: &str) -> Report {
        let device = DeviceReport {
            peak_reserved: Bytes::new(reserved),
            peak_allocated: Bytes::new(5),
            ..DeviceReport::default()
        };
        let lines =
            ["first", line].map(|text| PrintedLine { text: text.to_owned(), ..PrintedLine::default() });
        Report { devices: vec![device], lines: lines.into(), ..Report::default() }
    }

    #[test]
    fn numbers_that_differ_are_ranges() {
        let own = report(20, "reserved 20");
        let rising = (DriverAddressOrder::Rising, report(22, "reserved 22"));
        let falling = (DriverAddressOrder::Falling, report(18, "reserved 20"));
        let others = OtherOrders { runs: vec![rising, falling] };
        let [device] = others.devices(&own)[..] else { unreachable!() };
        assert_eq!((device.reserved.least.get(), device.reserved.most.get()), (18, 22));
        assert!(device.allocated.is_one() && !others.is_equal(&own));
        assert_eq!(others.lines(&own), [1]);
        let answer = others.to_answer(&own);
        assert_eq!((answer.peaks[0].reserved.least.get(), answer.peaks[0].reserved.most.get()), (18, 22));
        assert_eq!(answer.orders, ["driver", "rising", "falling"]);
    }

    #[test]
    fn lines_after_the_first_difference_are_not_exact() {
        let mut own = report(20, "second");
        (own.lines[0].allocations, own.lines[1].allocations) = (vec![3], vec![4]);
        let one = |bytes| BytesRange { least: Bytes::new(bytes), most: Bytes::new(bytes) };
        let reserved = BytesRange { least: Bytes::new(18), most: Bytes::new(20) };
        let device = DeviceRange { device: 0, allocated: one(5), reserved, allocated_at_end: one(0) };
        let replayed = ReplayedOrders {
            count: 8,
            devices: vec![device],
            first_differences: vec![Some(4)],
            why_not: None,
        };
        let mut equal = own.clone();
        own.add_replayed_orders(replayed.clone());
        let why = "cuda:0: peak reserved depends on the driver's addresses: between 18 (18 B) and 20 (20 B)";
        assert_eq!((own.lines[0].why.as_deref(), own.lines[1].why.as_deref()), (None, Some(why)));
        assert!(!own.is_exact() && own.notes.is_empty());
        let device = DeviceRange { reserved: one(20), ..device };
        equal.add_replayed_orders(ReplayedOrders {
            devices: vec![device],
            first_differences: vec![None],
            ..replayed
        });
        assert!(equal.is_exact() && equal.lines.iter().all(|line| line.why.is_none()));
    }

    #[test]
    fn a_run_that_ended_otherwise_is_named_and_not_compared() {
        let own = report(20, "a");
        let failed = Report { status: 1, ..report(99, "b") };
        let others = OtherOrders { runs: vec![(DriverAddressOrder::Rising, failed)] };
        assert_eq!(others.ended_otherwise(&own), [DriverAddressOrder::Rising]);
        assert!(others.devices(&own)[0].reserved.is_one() && !others.is_equal(&own));
    }

    #[test]
    fn sizes_of_proc_are_read() {
        let text = "MemFree:   1 kB\nMemAvailable:   20 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(20 * 1024));
        assert_eq!(kilobytes(text, "VmHWM:"), None);
    }
}
