//! Makes runs of files and workloads.

use std::ops::ControlFlow;

use blockyard_gpus::non_pytorch_measured_text;
use blockyard_pytorch::snapshot::{self, SnapshotError};
use blockyard_pytorch::{MemoryFile, OpenError, PastedText, timeline_workload, unpack};
use blockyard_record::Bytes;
use blockyard_replay::{OnProgress, Progress, RunError};
use blockyard_rules::Release;
use blockyard_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::{LabError, Run};

/// A source of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunSource {
    /// A file: a recording, a memory snapshot, or the text of a workload.
    File {
        /// The name of the file.
        name: String,
        /// The content of the file.
        bytes: Vec<u8>,
    },
    /// A program that ran in Blockyard's own PyTorch, without a GPU.
    Simulated {
        /// The name of the program.
        name: String,
        /// The snapshot that PyTorch would have taken at the end.
        bytes: Vec<u8>,
        /// The program, and the device on which it ran.
        simulation: Box<Simulation>,
    },
    /// A workload with its device and settings.
    Workload {
        /// The name of the workload.
        name: String,
        /// The requests, with names and labels.
        workload: Box<Workload>,
        /// `PYTORCH_CUDA_ALLOC_CONF`.
        conf: String,
        /// All bytes of the device.
        capacity: Bytes,
    },
}

/// A run without a GPU: the facts that its snapshot does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulation {
    /// The program's text.
    pub program: String,
    /// The program's arguments, as a shell has them after the name.
    pub arguments: String,
    /// The name of the GPU; empty where a person typed how much memory it has.
    pub gpu: String,
    /// All bytes of the GPU.
    pub total: Bytes,
    /// The bytes of the GPU that the driver and CUDA's libraries leave for PyTorch.
    pub capacity: Bytes,
    /// The release of PyTorch whose rules held.
    pub release: Release,
    /// Why numbers may differ from those of a real GPU, in sentences.
    pub caveats: Vec<String>,
    /// The line of the program at each failed request, in their order; 0 if it is not known. They are kept
    /// here because a snapshot that is made of a recording has no stacks of failed requests.
    pub failed_lines: Vec<u32>,
    /// The allocations of parameters and states of an optimizer, which a training cannot free: their indices
    /// among all allocations that did not fail, ascending.
    pub unfreeable: Vec<u32>,
}

impl Simulation {
    /// The device in words, as a part of a sentence.
    pub(crate) fn device_text(&self) -> String {
        let (total, capacity, gpu) = (self.total, self.capacity, &self.gpu);
        let non_pytorch = total.saturating_sub(capacity);
        if non_pytorch == Bytes::ZERO {
            return format!("the device is {} of {total}", with_article(gpu));
        }
        let measured = non_pytorch_measured_text(gpu);
        let gpu = with_article(gpu);
        format!(
            "the device is {gpu} of {total}, of which {non_pytorch} are set aside for the CUDA context and libraries ({measured}): PyTorch has {capacity}"
        )
    }
}

/// The name of a GPU after its article; `a GPU` without a name.
pub(crate) fn with_article(gpu: &str) -> String {
    let gpu = if gpu.is_empty() { "GPU" } else { gpu };
    let article = if gpu.starts_with("NVIDIA") { "an" } else { "a" };
    format!("{article} {gpu}")
}

impl RunSource {
    /// The runs: for a snapshot, one for each device; otherwise one.
    ///
    /// # Errors
    ///
    /// The errors of [`Run::read`] for files; a workload gives no error.
    pub fn runs(&self, on_progress: OnProgress) -> Result<Vec<Run>, LabError> {
        match self {
            Self::File { name, bytes } => Run::read(name, bytes, on_progress),
            Self::Simulated { name, bytes, simulation } => {
                let file = snapshot::read(&bytes[..], &mut |_| ControlFlow::Continue(()))?;
                Run::from_simulation(name, &file, simulation, on_progress)
            }
            Self::Workload { name, workload, conf, capacity } => {
                Ok(vec![Run::from_workload(name, (**workload).clone(), conf, *capacity)])
            }
        }
    }
}

impl Run {
    /// The runs of a file: a recording, a snapshot with one run for each device, or the text of a workload,
    /// which may be packed with gzip.
    ///
    /// # Errors
    ///
    /// [`LabError::Snapshot`], [`LabError::Run`] or [`LabError::Text`] where the file cannot be read,
    /// [`LabError::NoTrace`], [`LabError::Cancelled`].
    pub fn read(name: &str, bytes: &[u8], on_progress: OnProgress) -> Result<Vec<Self>, LabError> {
        let whole = bytes.len();
        let mut tell =
            |done: u64| on_progress(Progress::new("reading", usize::try_from(done).unwrap_or(whole), whole));
        match MemoryFile::read(bytes, &mut tell) {
            Ok(MemoryFile::Snapshot(file)) => Self::from_snapshot(name, &file, on_progress),
            Ok(MemoryFile::Recording(recorded)) => Ok(vec![Self::from_recorded(&recorded, on_progress)?]),
            Ok(MemoryFile::Text(text)) => Self::from_text(name, &text)
                .map(|run| vec![run])
                .map_err(|error| PastedText::read(&text).map_or(error, LabError::Pasted)),
            // The events of a profiler's memory timeline are a list, too.
            Err(OpenError::Snapshot(error)) if !matches!(error, SnapshotError::Cancelled) => {
                let text = unpack(bytes).ok().and_then(|text| timeline_workload(&text));
                let mut run = Self::from_text(name, &text.ok_or(error)?)?;
                run.assume_capacity("a memory timeline");
                run.add_note(
                    "a memory timeline has no stacks and no streams, and of several tensors of one size \
                     and kind the last one is freed first: sums are the run's, and addresses are not"
                        .to_owned(),
                );
                Ok(vec![run])
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The run of a workload's text.
    fn from_text(name: &str, text: &str) -> Result<Self, LabError> {
        let workload = Workload::parse(text)?;
        let capacity = workload.capacity().unwrap_or(Workload::DEFAULT_CAPACITY);
        let conf = workload.conf().unwrap_or_default().to_owned();
        Ok(Self::from_workload(name, workload, &conf, capacity))
    }
}

impl From<SnapshotError> for LabError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Cancelled => Self::Cancelled,
            error => Self::Snapshot(error),
        }
    }
}

impl From<OpenError> for LabError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Snapshot(error) => error.into(),
            OpenError::Recording(error) => RunError::Read(error).into(),
            error @ OpenError::Unknown(_) => Self::UnknownFile(error),
        }
    }
}
