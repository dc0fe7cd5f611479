//! The memory that a run took, and how sure the numbers are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use blockyard_answers::{DryRunHolder, Keeper, ProgramLine};
use blockyard_gpus::{GpuProfile, NonPytorchHolder, pytorch_memory_beside};
use blockyard_record::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::run::crossed;
use crate::run_log::Records;
use crate::{ChildPeak, EstimateNote, HolderCount, Iteration, NonPytorchMemory, PrintedLine, ReplayedOrders};

/// The sentence of a report in which nothing was assumed.
pub const EXACT: &str =
    "exact: nothing was assumed except the order of the addresses that a driver gives segments";

/// PyTorch's exception for a request that found no memory.
const OOM_ERROR: &str = "OutOfMemoryError";

/// The bytes of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceReport {
    /// Most bytes of allocated blocks at one time.
    pub peak_allocated: Bytes,
    /// Most bytes of segments at one time.
    pub peak_reserved: Bytes,
    /// Bytes of allocated blocks at the end.
    pub allocated: Bytes,
    /// All statistics of PyTorch by PyTorch's names; empty if the process crashed.
    pub stats: Map<String, Value>,
}

/// The place at which segments exceeded a number of bytes for the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CapacityCrossing {
    /// The number of bytes.
    pub total: Bytes,
    /// The line of the program; `None` where it is not known.
    pub at: Option<ProgramLine>,
}

/// The request that ran out of memory and ended the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RunOom {
    /// The index of the device.
    pub device: u32,
    /// The bytes that the allocator wanted for the request.
    pub bytes: Bytes,
    /// The line of the program, where it is known.
    pub at: Option<ProgramLine>,
    /// Whether a thread without a line of the program asked, as the threads of backward do; `at` is then the
    /// line of the main thread.
    pub is_of_other_thread: bool,
}

/// Whether a program fits on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFit {
    /// The GPU.
    pub gpu: GpuProfile,
    /// The bytes of the GPU that the program may reserve.
    pub left: Bytes,
    /// Whether the program fits; `None` where the run ended before the answer was known.
    pub fits: Option<bool>,
    /// The line at which the program exceeds the GPU, if the program does not fit and the line is known.
    pub at: Option<ProgramLine>,
}

/// The memory that a run took.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the run by itself")]
pub struct Report {
    /// The program's exit status; 128 and the signal's number for a crash.
    pub status: i32,
    /// The name of the exception that ended the program, or of the signal.
    pub error: Option<String>,
    /// The line of the program that raised the exception.
    pub error_at: Option<ProgramLine>,
    /// The bytes by device; empty if the program used no device. If the process ended before its memory was
    /// counted, the bytes are those of its iterations.
    pub devices: Vec<DeviceReport>,
    /// Whether the process ended before the statistics were written.
    pub is_cut: bool,
    /// Why numbers may be estimates.
    pub notes: Vec<EstimateNote>,
    /// The lines that the program printed, if the report keeps them.
    pub lines: Vec<PrintedLine>,
    /// The iterations, counted by the steps of the first optimizer; empty if they were not counted.
    pub iterations: Vec<Iteration>,
    /// Who holds the peak of the last iteration, if iterations were counted; the bytes add up to the peak.
    pub holders: Vec<DryRunHolder>,
    /// The objects that kept blocks, where blocks were seen to become more, as JSON that the crate `lab`
    /// reads; null where they did not.
    pub found_keepers: Value,
    /// Whether blocks were seen to become more.
    pub is_growth_seen: bool,
    /// The objects that keep more from iteration to iteration, by descending growth, as far as the iterations
    /// are known.
    pub keepers: Vec<Keeper>,
    /// The bytes that iterations after the first two kept; 0 where nothing grows.
    pub growth: Bytes,
    /// Where segments exceeded the GPUs that the run was compared with.
    pub crossings: Vec<CapacityCrossing>,
    /// The request that ran out of memory, if the run ends at such a request.
    pub failed: Option<RunOom>,
    /// Files of the program that Python loaded, if the run ends at the first request that runs out of memory.
    pub files: Vec<PathBuf>,
    /// The memory that the driver and CUDA's libraries took beside PyTorch's segments; no other number has
    /// these bytes.
    pub holder_counts: Vec<HolderCount>,
    /// Whether the GPUs had less memory for PyTorch by these bytes.
    pub counts_non_pytorch: bool,
    /// Sentences that a person should read and that make no number an estimate.
    pub remarks: Vec<String>,
    /// The memory of processes that the program started; no other number counts it, unless
    /// [`Report::is_of_children`].
    pub children: Vec<ChildPeak>,
    /// Whether `devices` are those of the processes in `children`: the program's own process used no device,
    /// and no two processes used the same.
    pub is_of_children: bool,
    /// A snapshot of PyTorch's with the requests from the beginning, where they were asked for and kept.
    pub requests: Option<Vec<u8>>,
    /// The results of replays of the run's requests under other orders of addresses; `None` where nothing was
    /// replayed.
    pub replayed_orders: Option<ReplayedOrders>,
    /// The most bytes of the host's memory that the program's own process had when the memory was measured.
    pub host_peak: Bytes,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the process.
    pub conf: Option<String>,
}

/// The runner's report.
#[derive(Debug, Default, Deserialize)]
struct RunnerReport {
    error: Option<String>,
    error_at: Option<ProgramLine>,
    /// The program's exit status, if the program had ended when its memory was counted.
    ended_with: Option<i32>,
    #[serde(default)]
    devices: Vec<Map<String, Value>>,
    #[serde(default)]
    holders: Vec<DryRunHolder>,
    #[serde(default)]
    growth: Value,
    #[serde(default)]
    is_growth_seen: bool,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the process.
    conf: Option<String>,
    #[serde(default)]
    crossings: Vec<CapacityCrossing>,
    failed: Option<RunOom>,
    #[serde(default)]
    files: Vec<PathBuf>,
    fault: Option<String>,
}

impl Report {
    /// The report from the texts of the runner and the libraries; `signal` is the signal that ended the
    /// process, if one did.
    pub(crate) fn of(status: i32, signal: Option<i32>, counted: Option<&str>, records: &str) -> Self {
        let found = counted.map(serde_json::from_str::<RunnerReport>);
        let records = Records::read(records);
        let mut report = Self {
            status,
            is_cut: found.is_none(),
            notes: records.notes,
            lines: records.lines,
            iterations: records.iterations,
            holder_counts: records.taken,
            remarks: records.remarks,
            children: records.children,
            ..Self::default()
        };
        let found = found.unwrap_or_else(|| Ok(RunnerReport::default())).unwrap_or_else(|error| {
            RunnerReport { fault: Some(error.to_string()), ..RunnerReport::default() }
        });
        if let Some(fault) = found.fault {
            report.is_cut = true;
            report.notes.push(EstimateNote::estimate(format!("the statistics were not read: {fault}")));
        }
        (report.error, report.error_at) = (found.error, found.error_at);
        (report.holders, report.crossings) = (found.holders, found.crossings);
        (report.found_keepers, report.is_growth_seen) = (found.growth, found.is_growth_seen);
        (report.failed, report.files) = (found.failed, found.files);
        report.conf = found.conf;
        report.devices = found.devices.into_iter().map(device).collect();
        if report.is_cut && report.devices.is_empty() {
            report.devices = devices_of(&report.iterations);
        }
        if report.devices.is_empty()
            && let Some(devices) = devices_of_children(&report.children)
        {
            (report.devices, report.is_of_children) = (devices, true);
        }
        if report.failed.is_none()
            && let Some(failed) = records.failed_in_child
        {
            (report.error, report.error_at) = (Some(OOM_ERROR.to_owned()), failed.at.clone());
            report.failed = Some(failed);
        }
        // An alarm may have ended the process while it handled another signal, which the run log names.
        let signal = signal.map(|signal| records.signal.unwrap_or(signal));
        if let (Some(signal), Some(status)) = (signal, found.ended_with) {
            report.status = status;
            report.remarks.push(format!(
                "the process crashed ({}) after the program had ended and its memory was counted",
                signal_name(signal)
            ));
        } else if let Some(signal) = signal {
            report.status = signal.saturating_add(128);
            report.error.get_or_insert_with(|| signal_name(signal));
        }
        report
    }

    /// Whether nothing was assumed, and no number is known to depend on the addresses that a driver gives
    /// segments.
    pub fn is_exact(&self) -> bool {
        let depends = self.replayed_orders.as_ref().is_some_and(ReplayedOrders::has_differences);
        self.notes.is_empty() && !self.is_cut && !depends
    }

    /// The peak reserved of the device whose peak reserved is the largest.
    pub fn peak_reserved(&self) -> Bytes {
        self.devices.iter().map(|device| device.peak_reserved).max().unwrap_or_default()
    }

    /// [`Report::peak_reserved`] with the bytes of the processes that the program started, as if each process
    /// had its peak at that time.
    pub fn peak_of_all_processes(&self) -> Bytes {
        let devices =
            self.devices.len().max(self.children.iter().map(|child| child.device + 1).max().unwrap_or(0));
        let of_device = |device: usize| {
            let own = self.devices.get(device).map(|device| device.peak_reserved).unwrap_or_default();
            let children =
                self.children.iter().filter(|child| child.device == device && !self.is_of_children);
            children.fold(own, |sum, child| sum.saturating_add(child.bytes))
        };
        (0..devices).map(of_device).max().unwrap_or_default()
    }

    /// The bytes of the contexts of the processes that the program started, which a GPU has less: those of the
    /// device with most of them. Their libraries' memory is not known.
    fn contexts_of_children(&self) -> Bytes {
        if !self.counts_non_pytorch || self.is_of_children {
            return Bytes::ZERO;
        }
        let on = |device| self.children.iter().filter(|child| child.device == device).count() as u64;
        let most = self.children.iter().map(|child| on(child.device)).max().unwrap_or(0);
        let context = NonPytorchHolder::Context.bytes(0, 1).unwrap_or_default();
        Bytes::new(context.get().saturating_mul(most))
    }

    /// Whether the last two iterations were equal; `None` for fewer than two.
    pub fn is_steady(&self) -> Option<bool> {
        match self.iterations.as_slice() {
            [.., before, last] => Some(before.devices == last.devices),
            _ => None,
        }
    }

    /// Whether PyTorch's exception for a request that found no memory ended the program.
    pub fn has_oom_error(&self) -> bool {
        self.error.as_deref() == Some(OOM_ERROR)
    }

    /// Whether the program fits on each of these GPUs; the program saw the first.
    pub fn fits(&self, gpus: &[GpuProfile]) -> Vec<GpuFit> {
        let Some(own) = gpus.first() else { return Vec::new() };
        gpus.iter().map(|gpu| self.fit(gpu, own)).collect()
    }

    fn fit(&self, gpu: &GpuProfile, own: &GpuProfile) -> GpuFit {
        let left = self.left_for_pytorch(gpu);
        let is_above = self.peak_reserved() > left;
        let (is_fitting, at) = if is_above {
            let total = crossed(gpu.total_memory, self.counts_non_pytorch);
            let crossing = self.crossings.iter().find(|crossing| crossing.total == total);
            (Some(false), crossing.and_then(|crossing| crossing.at.clone()))
        } else if self.has_oom_error() && gpu.total_memory <= own.total_memory {
            (Some(false), self.error_at.clone())
        } else if self.is_cut || (gpu.total_memory > own.total_memory && self.has_run_out()) {
            // With more memory the program would have continued after the request that failed.
            (None, None)
        } else if self.peak_of_all_processes().saturating_add(self.contexts_of_children()) > left {
            // The processes need not have their peaks at one time.
            (None, None)
        } else {
            (Some(true), None)
        };
        GpuFit { gpu: gpu.clone(), left, fits: is_fitting, at }
    }

    /// The bytes of a GPU that the program may reserve: all, or those beside the non-PyTorch memory of the
    /// device whose peak reserved is the largest.
    pub fn left_for_pytorch(&self, gpu: &GpuProfile) -> Bytes {
        if !self.counts_non_pytorch {
            return gpu.total_memory;
        }
        pytorch_memory_beside(self.largest_non_pytorch(gpu).bytes(), gpu.total_memory)
    }

    /// The non-PyTorch memory of the device whose peak reserved is the largest, the first of several.
    pub fn largest_non_pytorch(&self, gpu: &GpuProfile) -> NonPytorchMemory {
        let of_devices = self.non_pytorch(gpu).into_iter().zip(&self.devices).rev();
        let largest = of_devices.max_by_key(|(_, device)| device.peak_reserved);
        largest.map(|(non_pytorch, _)| non_pytorch).unwrap_or_default()
    }

    /// Whether a request found no memory, even if the program went on.
    pub fn has_run_out(&self) -> bool {
        self.has_counted("num_ooms")
    }

    /// Whether cached segments were released to serve a request.
    pub fn has_released(&self) -> bool {
        self.has_counted("num_alloc_retries")
    }

    fn has_counted(&self, name: &str) -> bool {
        let count = |device: &DeviceReport| device.stats.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.devices.iter().any(|device| count(device) > 0)
    }

    /// The notes as sentences, each once, in alphabetical order.
    pub fn sentences(&self) -> Vec<String> {
        let seen: BTreeSet<String> = self.notes.iter().map(EstimateNote::sentence).collect();
        seen.into_iter().collect()
    }
}

fn device(stats: Map<String, Value>) -> DeviceReport {
    let bytes = |name: &str| Bytes::new(stats.get(name).and_then(Value::as_u64).unwrap_or(0));
    DeviceReport {
        peak_allocated: bytes("allocated_bytes.all.peak"),
        peak_reserved: bytes("reserved_bytes.all.peak"),
        allocated: bytes("allocated_bytes.all.current"),
        stats,
    }
}

/// The devices of processes that the program started, where each device has one process and all were counted.
fn devices_of_children(children: &[ChildPeak]) -> Option<Vec<DeviceReport>> {
    let count = children.iter().map(|child| child.device + 1).max()?;
    let mut devices = vec![None; count];
    for child in children {
        let counted = child.counted?;
        let device = devices.get_mut(child.device)?;
        if device.is_some() {
            return None;
        }
        let mut stats = Map::new();
        stats.insert("num_ooms".to_owned(), u64::from(counted.has_run_out).into());
        *device = Some(DeviceReport {
            peak_allocated: counted.peak_allocated,
            peak_reserved: counted.peak_reserved,
            allocated: counted.allocated,
            stats,
        });
    }
    Some(devices.into_iter().map(Option::unwrap_or_default).collect())
}

/// The bytes by device of a run whose process ended before its end.
fn devices_of(iterations: &[Iteration]) -> Vec<DeviceReport> {
    let mut devices: Vec<DeviceReport> = Vec::new();
    for iteration in iterations {
        devices.resize(iteration.devices.len().max(devices.len()), DeviceReport::default());
        for (device, peak) in devices.iter_mut().zip(&iteration.devices) {
            device.peak_allocated = device.peak_allocated.max(peak.peak_allocated);
            device.peak_reserved = device.peak_reserved.max(peak.peak_reserved);
            device.allocated = peak.allocated;
        }
    }
    devices
}

/// The name of a signal that ends a process, with Linux's numbers.
fn signal_name(number: i32) -> String {
    let name = match number {
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use blockyard_gpus::GpuProfile;
    use blockyard_record::Bytes;

    use super::Report;

    const COUNTED: &str = r#"{"error": null, "error_at": null, "devices": [
        {"allocated_bytes.all.peak": 1024, "reserved_bytes.all.peak": 2097152}],
        "crossings": [{"total": 2000000, "at": {"file": "train.py", "line": 7}}]}"#;

    fn gpu(total: u64) -> GpuProfile {
        GpuProfile { total_memory: Bytes::new(total), ..GpuProfile::H200 }
    }

    #[test]
    fn a_report_says_what_was_assumed() {
        let exact = Report::of(0, None, Some(COUNTED), "");
        assert!(exact.is_exact());
        assert_eq!(exact.peak_reserved().get(), 2_097_152);
        let marked = Report::of(0, None, Some(COUNTED), "{\"kind\":\"function\",\"name\":\"cusolverX\"}\n");
        assert!(!marked.is_exact());
        let cut = Report::of(139, Some(11), None, "");
        assert!(cut.is_cut && !cut.is_exact());
        assert_eq!(cut.error.as_deref(), Some("SIGSEGV"));
    }

    #[test]
    fn processes_that_the_program_starts_are_its_devices_where_each_has_one() {
        let counted = |process: u32, device: u32, reserved: u64| {
            format!(
                "{{\"kind\":\"child\",\"process\":{process},\"device\":{device},\"bytes\":{reserved}}}\n{{\"kind\":\"child_counted\",\
                 \"process\":{process},\"device\":{device},\"peak_allocated\":7,\"peak_reserved\":{reserved},\"allocated\":3,\
                 \"has_run_out\":false}}\n"
            )
        };
        let none = "{\"error\": null, \"error_at\": null, \"devices\": []}";
        let apart = Report::of(0, None, Some(none), &(counted(5, 1, 20) + &counted(4, 0, 10)));
        assert!(apart.is_of_children);
        let peaks: Vec<u64> = apart.devices.iter().map(|device| device.peak_reserved.get()).collect();
        assert_eq!((peaks, apart.peak_of_all_processes().get()), (vec![10, 20], 20));
        let fits =
            |report: &Report| report.fits(&[gpu(25), gpu(15)]).iter().map(|fit| fit.fits).collect::<Vec<_>>();
        assert_eq!(fits(&apart), [Some(true), Some(false)]);
        // Two processes of one device, whose peaks need not be at one time; and one that was not counted.
        let together = Report::of(0, None, Some(none), &(counted(4, 0, 10) + &counted(5, 0, 20)));
        assert!(!together.is_of_children && together.devices.is_empty());
        assert_eq!((together.peak_of_all_processes().get(), fits(&together)), (30, vec![None, None]));
        let lost = counted(4, 0, 10) + "{\"kind\":\"child\",\"process\":5,\"device\":1,\"bytes\":20}\n";
        assert!(!Report::of(0, None, Some(none), &lost).is_of_children);
    }

    #[test]
    fn a_process_that_runs_out_of_memory_is_the_reason_of_the_end() {
        let error =
            "{\"error\": \"ProcessExitedException\", \"error_at\": {\"file\": \"train.py\", \"line\": 9}}";
        let failed = "{\"kind\":\"child_failed\",\"device\":1,\"bytes\":64,\"at\":{\"file\":\"train.py\",\"line\":4},\"is_of_other_thread\":false}\n";
        let report = Report::of(1, None, Some(error), failed);
        assert_eq!(
            (report.error.as_deref(), report.error_at.map(|place| place.line)),
            (Some("OutOfMemoryError"), Some(4))
        );
        assert_eq!(report.failed.map(|failed| (failed.device, failed.bytes.get())), Some((1, 64)));
    }

    #[test]
    fn a_crash_keeps_its_own_signal_and_what_its_steps_said() {
        let step = |number, peak| {
            format!(
                "{{\"kind\":\"step\",\"number\":{number},\"devices\":[{{\"peak_allocated\":{peak},\"peak_reserved\":9,\"allocated\":3}}]}}\n"
            )
        };
        let lines = [step(1, 8), step(2, 6), "{\"kind\":\"signal\",\"number\":6}\n".to_owned()].concat();
        let report = Report::of(142, Some(14), None, &lines);
        assert_eq!((report.status, report.error.as_deref()), (134, Some("SIGABRT")));
        assert_eq!(report.devices[0].peak_allocated.get(), 8);
        assert_eq!(report.is_steady(), Some(false));
        assert_eq!(report.fits(&[gpu(1 << 30)])[0].fits, None);
        assert_eq!(report.fits(&[gpu(8)])[0].fits, Some(false));
    }

    #[test]
    fn a_crash_after_the_end_leaves_the_programs_status() {
        let counted = COUNTED.replace("\"error_at\": null", "\"error_at\": null, \"ended_with\": 3");
        let report = Report::of(139, Some(11), Some(&counted), "{\"kind\":\"signal\",\"number\":11}\n");
        assert_eq!((report.status, report.error.as_deref(), report.is_cut), (3, None, false));
        assert!(report.remarks[0].contains("SIGSEGV"), "{:?}", report.remarks);
        assert_eq!(Report::of(139, Some(11), Some(COUNTED), "").status, 139, "the program had not ended");
    }

    #[test]
    fn a_gpu_that_is_too_small_names_the_line() {
        let report = Report::of(0, None, Some(COUNTED), "");
        let fits = report.fits(&[gpu(3_000_000), gpu(2_097_152), gpu(2_000_000), gpu(1_000_000)]);
        let found: Vec<Option<bool>> = fits.iter().map(|fit| fit.fits).collect();
        assert_eq!(found, [Some(true), Some(true), Some(false), Some(false)]);
        let lines: Vec<Option<String>> =
            fits.iter().map(|fit| fit.at.as_ref().map(ToString::to_string)).collect();
        assert_eq!(lines, [None, None, Some("train.py:7".to_owned()), None]);
    }

    #[test]
    fn non_pytorch_memory_is_left_out_of_every_gpu() {
        let mut report = Report::of(0, None, Some(COUNTED), "");
        report.counts_non_pytorch = true;
        let context = 552_402_944;
        let fits = report.fits(&[gpu(context + 2_097_152), gpu(context + 2_097_151)]);
        let found: Vec<_> = fits.iter().map(|fit| (fit.left.get(), fit.fits)).collect();
        assert_eq!(found, [(2_097_152, Some(true)), (2_097_151, Some(false))]);
    }

    #[test]
    fn what_the_program_started_may_not_fit_beside_it() {
        let child = "{\"kind\":\"child\",\"process\":7,\"device\":0,\"bytes\":1000000}\n";
        let report = Report::of(0, None, Some(COUNTED), child);
        assert_eq!(
            (report.peak_reserved().get(), report.peak_of_all_processes().get()),
            (2_097_152, 3_097_152)
        );
        let found = |report: &Report, gpus: [u64; 3]| gpus.map(|bytes| report.fits(&[gpu(bytes)])[0].fits);
        assert_eq!(found(&report, [4_000_000, 3_000_000, 2_000_000]), [Some(true), None, Some(false)]);
        // Each process has a context of its own.
        let counting = Report { counts_non_pytorch: true, ..report };
        let context = 552_402_944;
        let gpus = [2 * context + 3_097_152, 2 * context + 3_097_151, context + 2_097_151];
        assert_eq!(found(&counting, gpus), [Some(true), None, Some(false)]);
    }

    #[test]
    fn a_program_that_ran_out_says_nothing_about_larger_gpus() {
        let counted = COUNTED
            .replace("\"error\": null", "\"error\": \"OutOfMemoryError\"")
            .replace("\"allocated_bytes.all.peak\"", "\"num_ooms\": 1, \"allocated_bytes.all.peak\"");
        let report = Report::of(1, None, Some(&counted), "");
        let fits = report.fits(&[gpu(3_000_000), gpu(4_000_000), gpu(2_500_000)]);
        let found: Vec<Option<bool>> = fits.iter().map(|fit| fit.fits).collect();
        assert_eq!(found, [Some(false), None, Some(false)]);
    }
}
