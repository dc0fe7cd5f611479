//! Files that PyTorch wrote, opened once for many questions.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use blockyard_lab::Run;
use blockyard_pytorch::snapshot::{self, DeviceSnapshot, FileKind, SnapshotFile};
use blockyard_record::{BlockState, StackId, TraceAction, with_causes};
use blockyard_replay::Progress;
use blockyard_report::ReportSource;
use pyo3::exceptions::{PyIndexError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{Table, texts};
use crate::error::BlockyardError;
use crate::page::memory;
use crate::report::ReportArguments;
use crate::run::{RunData, answer_json};
use crate::signals::Signals;

/// A snapshot file, opened and read.
#[pyclass(module = "blockyard", frozen)]
pub(crate) struct SnapshotData {
    pub(crate) file: SnapshotFile,
}

/// Whether the file is a recording of Blockyard's and not a snapshot of PyTorch's, by its content.
#[pyfunction]
pub(crate) fn is_recording(path: PathBuf) -> PyResult<bool> {
    let mut head = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(1 << 16).read_to_end(&mut head))
        .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string(), path)))?;
    Ok(snapshot::file_kind(&head) == FileKind::Recording)
}

/// [`is_recording`] for the bytes of a file.
#[pyfunction]
pub(crate) fn is_recording_bytes(bytes: &[u8]) -> bool {
    snapshot::file_kind(bytes) == FileKind::Recording
}

/// Reads a snapshot from a file.
#[pyfunction]
pub(crate) fn open_path(py: Python<'_>, path: PathBuf) -> PyResult<SnapshotData> {
    let reader = File::open(&path)
        .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string(), path)))?;
    read(py, BufReader::with_capacity(1 << 20, reader))
}

/// Reads a snapshot from the bytes of a file.
#[pyfunction]
pub(crate) fn open_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<SnapshotData> {
    read(py, bytes)
}

fn read(py: Python<'_>, reader: impl Read + Send) -> PyResult<SnapshotData> {
    let mut signals = Signals::new(py);
    let found = py.detach(|| {
        snapshot::read(reader, &mut |done| {
            signals.check(&Progress { phase: "reading".to_owned(), done, total: 0 })
        })
    });
    signals.into_result()?;
    let file = found.map_err(|error| BlockyardError::new_err(with_causes(&error)))?;
    Ok(SnapshotData { file })
}

#[pymethods]
impl SnapshotData {
    /// The indices of the devices that have segments or a trace, ascending.
    #[getter]
    fn devices(&self) -> Vec<u32> {
        self.file.devices.iter().map(|device| device.index).collect()
    }

    /// The place of host (pinned) memory after `devices`; `None` where the file has no host memory.
    #[getter]
    fn host(&self) -> Option<usize> {
        self.file.host_place()
    }

    /// The parts of the file that were passed over, in sentences.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.file.notes.clone()
    }

    /// The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them.
    #[getter]
    fn conf(&self) -> &str {
        &self.file.settings.conf
    }

    /// The snapshot as a pickle, as PyTorch writes it.
    fn pickle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut content = Vec::new();
        let written = py.detach(|| self.file.write_pickle(&mut content));
        written.map_err(|error| BlockyardError::new_err(with_causes(&error)))?;
        Ok(PyBytes::new(py, &content))
    }

    /// The report about the snapshot, as HTML; `device` is the number of a device or `host`, none for all
    /// devices.
    fn report(
        &self,
        py: Python<'_>,
        name: &str,
        device: Option<&str>,
        arguments: &ReportArguments,
    ) -> PyResult<String> {
        arguments.write(py, ReportSource::Snapshot(Box::new(self.file.clone()), name), memory(device)?)
    }

    /// The requests of each device, in the order of `devices`.
    fn runs(&self, py: Python<'_>, name: &str) -> PyResult<Vec<RunData>> {
        let mut signals = Signals::new(py);
        let found =
            py.detach(|| Run::from_snapshot(name, &self.file, &mut |progress| signals.check(&progress)));
        signals.into_result()?;
        let runs = found.map_err(|error| BlockyardError::new_err(with_causes(&error)))?;
        Ok(runs.into_iter().map(RunData::from).collect())
    }

    /// The command's answer about the device at `place` of `devices`, as JSON; see `describe_device` of the
    /// command.
    #[pyo3(signature = (place, at, top))]
    fn describe(&self, py: Python<'_>, place: usize, at: Option<&str>, top: usize) -> PyResult<String> {
        self.device(place)?;
        answer_json(py, |on_progress| blockyard_cli::describe_device(&self.file, place, at, top, on_progress))
    }

    /// The decisions of Blockyard's allocator about each placement of the device at `place` of `devices`, as
    /// the command's JSON.
    fn certify(&self, py: Python<'_>, place: usize) -> PyResult<String> {
        self.device(place)?;
        answer_json(py, |on_progress| blockyard_cli::certify_device(&self.file, place, on_progress))
    }

    /// The trace of the device at `place` of `devices`, an entry a row.
    fn events(&self, place: usize) -> PyResult<Table> {
        let trace = &self.device(place)?.trace;
        let actions: Vec<TraceAction> = TraceAction::all().collect();
        let action_key = |action: TraceAction| {
            actions.iter().position(|known| *known == action).and_then(|at| i32::try_from(at).ok())
        };
        let address: UInt64Array = trace.iter().map(|entry| Some(entry.entry.addr)).collect();
        let size: UInt64Array = trace.iter().map(|entry| Some(entry.entry.size.get())).collect();
        let stream: UInt64Array = trace.iter().map(|entry| Some(entry.entry.stream.get())).collect();
        let time: UInt64Array =
            trace.iter().map(|entry| Some(entry.time_us).filter(|time| *time > 0)).collect();
        Table::new(vec![
            (
                "action",
                texts(
                    trace.iter().map(|entry| action_key(entry.entry.action)),
                    actions.iter().map(|action| action.name().to_owned()),
                )?,
            ),
            ("address", Arc::new(address) as ArrayRef),
            ("size", Arc::new(size)),
            ("stream", Arc::new(stream)),
            ("time_us", Arc::new(time)),
            ("stack", self.stacks(trace.iter().map(|entry| entry.stack))?),
        ])
    }

    /// The allocations of the device at `place` of `devices`, by the entry of the trace that made them;
    /// allocations from before the trace that are freed in the trace or live at its end come first, by
    /// address.
    fn allocations(&self, place: usize) -> PyResult<Table> {
        let rows = lifetimes(self.device(place)?);
        let column = |part: fn(&Lifetime) -> Option<u64>| {
            Arc::new(rows.iter().map(part).collect::<UInt64Array>()) as ArrayRef
        };
        let entries = |part: fn(&Lifetime) -> Option<u32>| {
            Arc::new(rows.iter().map(part).collect::<UInt32Array>()) as ArrayRef
        };
        Table::new(vec![
            ("address", column(|row| Some(row.address))),
            ("size", column(|row| Some(row.size))),
            ("stream", column(|row| Some(row.stream))),
            ("allocated_at", entries(|row| row.allocated_at)),
            ("freed_at", entries(|row| row.freed_at)),
            ("stack", self.stacks(rows.iter().map(|row| row.stack))?),
        ])
    }
}

impl SnapshotData {
    /// The device at `place` of `devices`, or host memory at `host`.
    pub(crate) fn device(&self, place: usize) -> PyResult<&DeviceSnapshot> {
        self.file.memory(place).map_err(|_| PyIndexError::new_err("the snapshot has no such device"))
    }

    /// Stacks as texts, a line a frame, innermost first; no text for the stack without frames.
    fn stacks(&self, stacks: impl Iterator<Item = StackId>) -> PyResult<ArrayRef> {
        let known = &self.file.stacks;
        let all = (0..u32::try_from(known.len()).unwrap_or(u32::MAX)).map(|number| {
            let frames = known.frames(StackId::new(number)).map(|frame| {
                let frame = known.frame(frame);
                format!("{}:{} {}", frame.filename, frame.line, frame.name)
            });
            frames.collect::<Vec<_>>().join("\n")
        });
        let keys = stacks.map(|stack| i32::try_from(stack.get()).ok().filter(|_| stack != StackId::EMPTY));
        texts(keys, all)
    }
}

/// One allocation from its request to its free, by entries of the trace.
struct Lifetime {
    address: u64,
    size: u64,
    stream: u64,
    allocated_at: Option<u32>,
    freed_at: Option<u32>,
    stack: StackId,
}

fn lifetimes(device: &DeviceSnapshot) -> Vec<Lifetime> {
    let mut live = std::collections::BTreeMap::new();
    let (mut before, mut rows) = (Vec::new(), Vec::<Lifetime>::new());
    for (at, entry) in device.trace.iter().enumerate() {
        let at = u32::try_from(at).ok();
        let (address, size, stream) = (entry.entry.addr, entry.entry.size.get(), entry.entry.stream.get());
        match entry.entry.action {
            TraceAction::Alloc => {
                live.insert(address, rows.len());
                rows.push(Lifetime {
                    address,
                    size,
                    stream,
                    allocated_at: at,
                    freed_at: None,
                    stack: entry.stack,
                });
            }
            TraceAction::FreeRequested => match live.remove(&address).and_then(|row| rows.get_mut(row)) {
                Some(row) => row.freed_at = at,
                None => before.push(Lifetime {
                    address,
                    size,
                    stream,
                    allocated_at: None,
                    freed_at: at,
                    stack: StackId::EMPTY,
                }),
            },
            _ => {}
        }
    }
    for segment in &device.segments {
        let allocated = segment.blocks.iter().filter(|block| block.state == BlockState::Allocated);
        before.extend(allocated.filter(|block| !live.contains_key(&block.addr())).map(|block| Lifetime {
            address: block.addr(),
            size: block.requested.unwrap_or(block.size).get(),
            stream: segment.stream.get(),
            allocated_at: None,
            freed_at: None,
            stack: block.stack,
        }));
    }
    // Blocks that are never freed come last.
    before.sort_by_key(|row| (row.address, row.freed_at.unwrap_or(u32::MAX)));
    before.append(&mut rows);
    before
}
