//! Runs and comparisons as messages to a worker thread.

mod error;

use std::io::Read;

use blockyard_pytorch::snapshot::{self, DeviceSnapshot, SnapshotError, SnapshotFile};
use blockyard_pytorch::{MemoryFile, OpenError, RecordedRun};
use blockyard_record::{Bytes, Recording, TraceAction};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::{
    Comparison, Count, OnProgress, Progress, RunError, RunSettings, StepDataCheck, certify, run, verify,
};

use self::error::{job_error, text_error};

pub use self::error::JobError;
pub use blockyard_pytorch::snapshot::PartialTrace;
pub use blockyard_pytorch::trace::{UnplacedStack, UnplacedTrace};

/// The work of one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Runs a workload's text on a virtual device.
    Run {
        /// The name of the run.
        title: String,
        /// The workload.
        text: String,
        /// `PYTORCH_CUDA_ALLOC_CONF`.
        conf: String,
        /// All bytes of the device.
        capacity: Bytes,
    },
    /// Replays a recording through the allocator and compares.
    Open {
        /// The file's name.
        name: String,
        /// The content of the file, plain or gzip.
        bytes: Vec<u8>,
        /// The index of the device in the file, for a snapshot of several devices; `None` for the one that
        /// answers are about.
        device: Option<usize>,
    },
}

/// The result of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobOutput {
    /// The requests.
    pub workload: Workload,
    /// The run of the allocator.
    pub recording: Recording,
    /// For an opened recording: its properties, and the comparison.
    pub opened: Option<OpenedRecording>,
    /// For a run that checks data: what was filled and checked in each step.
    pub data_checks: Option<Vec<StepDataCheck>>,
}

/// The properties of an opened recording, and its comparison with the replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedRecording {
    /// The release of PyTorch.
    pub torch: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    pub conf: String,
    /// The device's name, or empty.
    pub device: String,
    /// The comparison with the replay; `None` until it is made. The figures do not wait for it.
    pub comparison: Option<Comparison>,
    /// The devices of a snapshot, in the order of the file, then host memory; empty for a recording of one
    /// device.
    pub devices: Vec<OpenedDevice>,
    /// The index of the opened device in `devices`.
    pub shown_device: usize,
    /// Why nothing of this device can be drawn, and what its trace says; `None` if there is anything to draw.
    pub unplaced: Option<UnplacedTrace>,
}

/// A device of a snapshot, or host memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedDevice {
    /// PyTorch's number of the device; 0 for host memory.
    pub index: u32,
    /// Whether this is host (pinned) memory, which is drawn and not replayed.
    pub is_host: bool,
    /// How many entries the trace of the device has.
    pub events: usize,
    /// Whether a request ran out of memory in this trace.
    pub has_oom: bool,
}

impl OpenedDevice {
    /// `device 0`, or `host (pinned memory)`.
    pub fn name(&self) -> String {
        snapshot::memory_name(self.index, self.is_host)
    }
}

impl OpenedRecording {
    /// Whether the opened recording is that of host memory.
    pub fn shows_host(&self) -> bool {
        self.devices.get(self.shown_device).is_some_and(|device| device.is_host)
    }
}

/// Runs the job, and calls `on_progress` every few thousand requests.
///
/// # Errors
///
/// [`JobError`] names the cause and its place.
pub fn perform(job: &Job, on_progress: OnProgress) -> Result<JobOutput, JobError> {
    match job {
        Job::Run { title, text, conf, capacity } => run_text(title, text, conf, *capacity, on_progress),
        Job::Open { name, bytes, device } => {
            let file = OpenFile { name, length: bytes.len() as u64, device: *device };
            let (mut output, pending) = open(&file, bytes.as_slice(), on_progress, &mut |_| ())?;
            let comparison = pending.compare(on_progress)?;
            if let Some(opened) = &mut output.opened {
                opened.comparison = Some(comparison);
            }
            Ok(output)
        }
    }
}

/// A file to be opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenFile<'a> {
    /// The file's name.
    pub name: &'a str,
    /// The length of the file in bytes.
    pub length: u64,
    /// The index of the device in the file, for a snapshot of several devices; `None` for the one that
    /// answers are about.
    pub device: Option<usize>,
}

/// An opened file whose comparison with our allocator has not been made yet, because the figures come first.
#[derive(Debug)]
pub struct PendingComparison(ComparisonSource);

#[derive(Debug)]
enum ComparisonSource {
    /// The comparison of a recorded run, which is made while the run is opened: its figures show the replay
    /// by our allocator.
    Made(Comparison),
    Snapshot {
        file: Box<SnapshotFile>,
        place: usize,
        name: String,
        notes: Vec<String>,
    },
}

impl PendingComparison {
    /// Lets our allocator decide each placement again, and compares.
    ///
    /// # Errors
    ///
    /// [`JobError`] names the cause and its place.
    pub fn compare(self, on_progress: OnProgress) -> Result<Comparison, JobError> {
        match self.0 {
            ComparisonSource::Made(comparison) => Ok(comparison),
            ComparisonSource::Snapshot { file, place, name, notes } => {
                compare_snapshot(*file, place, &name, notes, on_progress)
            }
        }
    }
}

/// Opens a snapshot or a recorded run. Returns the recording for the figures, and the comparison with our
/// allocator, which the caller starts.
///
/// A snapshot is read in pieces, so that a file is never in memory as a whole. While it is read, `on_trace`
/// gets the part of its longest trace that has been read, for a figure that grows.
///
/// # Errors
///
/// [`JobError`] names the cause and its place.
pub fn open(
    file: &OpenFile<'_>,
    content: impl Read,
    on_progress: OnProgress,
    on_trace: &mut dyn FnMut(&PartialTrace),
) -> Result<(JobOutput, PendingComparison), JobError> {
    if on_progress(Progress::new("reading", 0, 0)).is_break() {
        return Err(JobError::Cancelled);
    }
    let name = file.name;
    let mut read =
        |done: u64| on_progress(Progress { phase: "reading".to_owned(), done, total: file.length });
    let recorded = match MemoryFile::read_with_partial_trace(content, &mut read, on_trace) {
        Ok(MemoryFile::Snapshot(snapshot)) => return open_snapshot(file, snapshot, on_progress),
        Err(OpenError::Snapshot(error)) => return Err(snapshot_error(name, error)),
        Ok(MemoryFile::Recording(recorded)) => Ok(*recorded),
        // The error says why the text is not a recording.
        Ok(MemoryFile::Text(text)) => RecordedRun::read(text.as_bytes()),
        Err(OpenError::Recording(error) | OpenError::Unknown(error)) => Err(error),
    };
    let recorded = recorded.map_err(|error| job_error(error.into(), Some(name)))?;
    open_recorded_run(name, recorded, on_progress)
}

fn snapshot_error(name: &str, error: SnapshotError) -> JobError {
    match error {
        SnapshotError::Cancelled => JobError::Cancelled,
        other => JobError::File { name: name.to_owned(), message: other.to_string() },
    }
}

/// Opens a recorded run: replays it through our allocator and compares.
fn open_recorded_run(
    name: &str,
    recorded: RecordedRun,
    on_progress: OnProgress,
) -> Result<(JobOutput, PendingComparison), JobError> {
    let verified = verify(&recorded, on_progress).map_err(|error| job_error(error, Some(name)))?;
    let opened = OpenedRecording {
        torch: recorded.meta.torch,
        conf: recorded.meta.conf,
        device: recorded.meta.device,
        comparison: None,
        devices: Vec::new(),
        shown_device: 0,
        unplaced: None,
    };
    let output = JobOutput {
        workload: verified.workload,
        recording: verified.recording,
        opened: Some(opened),
        data_checks: None,
    };
    Ok((output, PendingComparison(ComparisonSource::Made(verified.comparison))))
}

/// Runs a workload's text on a virtual device, as [`Job::Run`] does.
///
/// # Errors
///
/// The errors of [`perform`].
pub fn run_text(
    title: &str,
    text: &str,
    conf: &str,
    capacity: Bytes,
    on_progress: OnProgress,
) -> Result<JobOutput, JobError> {
    if on_progress(Progress::new("reading", 0, 0)).is_break() {
        return Err(JobError::Cancelled);
    }
    let (workload, settings) = read(title, text, conf, capacity)?;
    let recording = run(&workload, &settings, on_progress)?;
    Ok(JobOutput { workload, recording, opened: None, data_checks: None })
}

/// Opens a memory snapshot of PyTorch. The recording is made from the snapshot alone.
///
/// If the snapshot has several devices, the device of `opening` is opened, or else the one that answers are about.
fn open_snapshot(
    opening: &OpenFile<'_>,
    file: Box<SnapshotFile>,
    on_progress: OnProgress,
) -> Result<(JobOutput, PendingComparison), JobError> {
    let name = opening.name;
    let failed = |error| snapshot_error(name, error);
    let place = shown_device(&file, opening.device);
    let total = file.trace_len(place);
    let found = blockyard_pytorch::trace::record(&file, place, name, &mut |done| {
        on_progress(Progress::new("making the recording", done, total))
    })
    .map_err(failed)?;
    let unplaced = blockyard_pytorch::trace::unplaced(&file, place).map_err(failed)?;
    let opened = OpenedRecording {
        torch: String::new(),
        conf: file
            .memory(place)
            .map_or_else(|_| file.settings.conf.clone(), |memory| file.conf_of(memory).to_owned()),
        device: String::new(),
        comparison: None,
        devices: file.memories().map(opened_device).collect(),
        shown_device: place,
        unplaced,
    };
    let pending = ComparisonSource::Snapshot { file, place, name: name.to_owned(), notes: found.notes };
    let workload = Workload::default();
    let output = JobOutput { workload, recording: found.recording, opened: Some(opened), data_checks: None };
    Ok((output, PendingComparison(pending)))
}

/// Lets our allocator decide each placement of a snapshot again. The notes of the recording, `found`, are
/// part of the result.
fn compare_snapshot(
    file: SnapshotFile,
    place: usize,
    name: &str,
    found: Vec<String>,
    on_progress: OnProgress,
) -> Result<Comparison, JobError> {
    let certificate =
        certify(&file, place, on_progress).map_err(|error| job_error(error, Some(name)))?.answer;
    let mut notes = Vec::new();
    notes.extend(certificate.reasons);
    notes.extend(certificate.notes);
    notes.extend(found);
    notes.extend(file.notes);
    let counts = (certificate.placements > 0).then(|| Count {
        kind: "placements".to_owned(),
        identical: certificate.identical,
        total: certificate.placements,
    });
    Ok(Comparison {
        counts: counts.into_iter().collect(),
        first_difference: certificate.first_difference,
        notes,
    })
}

/// The place of the device that the caller asked for, or else of the one that answers are about: one that ran out
/// of memory, or else the one that holds most at its end, or else the one with the longest trace. Host memory is
/// shown where a file has nothing else.
fn shown_device(file: &SnapshotFile, asked: Option<usize>) -> usize {
    let first = || {
        let order = |device: &DeviceSnapshot| (has_oom(device), device.active_at_end(), device.trace.len());
        // Of equal ones the first.
        (0..file.devices.len()).rev().max_by_key(|place| file.devices.get(*place).map(order))
    };
    asked.filter(|place| *place < file.memories().count()).or_else(first).unwrap_or(0)
}

fn has_oom(device: &DeviceSnapshot) -> bool {
    device.trace.iter().any(|entry| entry.entry.action == TraceAction::OutOfMemory)
}

fn opened_device(device: &DeviceSnapshot) -> OpenedDevice {
    OpenedDevice {
        index: device.index,
        is_host: device.is_host,
        events: device.trace.len(),
        has_oom: has_oom(device),
    }
}

/// Parses the texts of the workload and of the settings.
///
/// # Errors
///
/// [`JobError::Text`] and [`JobError::Config`].
pub fn read(
    title: &str,
    text: &str,
    conf: &str,
    capacity: Bytes,
) -> Result<(Workload, RunSettings), JobError> {
    let workload = Workload::parse(text).map_err(|error| text_error(&error))?;
    // Settings and capacity in the text take precedence over those of the caller.
    let config = AllocatorConfig::parse(workload.conf().unwrap_or(conf), Release::default())
        .map_err(RunError::Config)?;
    let capacity = workload.capacity().unwrap_or(capacity);
    Ok((workload, RunSettings { title: title.to_owned(), config, capacity }))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    #[test]
    fn of_several_devices_the_one_that_ran_out_of_memory_is_shown() {
        let entry = |action: &str| format!(r#"{{"action":"{action}","addr":512,"size":512,"stream":0}}"#);
        let [alloc, oom] = [entry("alloc"), entry("oom")];
        let shown = |traces: [&[&str]; 2]| {
            let traces = traces.map(|entries| format!("[{}]", entries.join(","))).join(",");
            let text = format!(r#"{{"segments":[],"device_traces":[{traces}]}}"#);
            let file = snapshot::read(text.as_bytes(), &mut |_| ControlFlow::Continue(())).unwrap();
            [None, Some(0), Some(1)].map(|asked| shown_device(&file, asked))
        };
        assert_eq!(shown([&[&alloc, &alloc], &[&oom]]), [1, 0, 1]);
        assert_eq!(shown([&[&alloc, &alloc], &[&alloc]]), [0, 0, 1]);
    }
}
