//! Reads files into the parts that a report is made of: names, facts, and a recording for each device.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

use blockyard_lab::{Conditions, LabError, Run, RunSource, Simulation};
use blockyard_pytorch::snapshot::{self, DeviceSnapshot, SnapshotFile};
use blockyard_pytorch::{MemoryFile, RecordedRun};
use blockyard_record::{Bytes, Recording, exact_size};
use blockyard_replay::{Difference, OnProgress, Progress, RunSettings, certify, run, verify};
use blockyard_rules::conf_text;
use blockyard_workload::Workload;

use crate::{ReportError, ReportOptions, redact};

/// The subject of a report: a file that was read, a workload or a simulated run.
#[derive(Default)]
pub(crate) struct ReportFile {
    /// The file's name; `None` where it is left out.
    pub(crate) name: Option<String>,
    /// Facts about the file, by name, which the last part of a report lists.
    pub(crate) facts: Vec<(String, String)>,
    /// Sentences about the parts of the file that were passed over.
    pub(crate) notes: Vec<String>,
    /// The text of the program that was simulated; `None` for files, and where it is left out.
    pub(crate) program: Option<String>,
    pub(crate) devices: Vec<ReportDevice>,
}

/// One device of the file.
pub(crate) struct ReportDevice {
    /// `device 0` where the file names devices.
    pub(crate) name: Option<String>,
    pub(crate) recording: Arc<Recording>,
    /// The requests of the recording, or why its requests are not known.
    pub(crate) run: Result<Run, LabError>,
    pub(crate) certificate: ReportCertificate,
    /// Sentences about unknown facts of the recording.
    pub(crate) notes: Vec<String>,
}

/// Whether a replay makes the same placements.
#[derive(Default)]
pub(crate) struct ReportCertificate {
    /// The result in one line; empty if there is nothing to compare, as for a workload.
    pub(crate) headline: String,
    pub(crate) is_identical: bool,
    /// Whether the program ran in Blockyard's own PyTorch, so that no recorded run exists.
    pub(crate) is_simulated: bool,
    pub(crate) first_difference: Option<Difference>,
    pub(crate) notes: Vec<String>,
}

pub(crate) fn open(
    source: RunSource,
    options: &ReportOptions,
    conditions_of: &dyn Fn(&Run) -> Conditions,
    on_progress: OnProgress,
) -> Result<ReportFile, ReportError> {
    match source {
        RunSource::Simulated { name, bytes, simulation } => {
            let file =
                snapshot::read(&bytes[..], &mut |_| ControlFlow::Continue(())).map_err(LabError::from)?;
            open_simulation(&name, &file, *simulation, options, on_progress)
        }
        RunSource::Workload { name, workload, conf, capacity } => {
            let workload = Workload::clone(&workload);
            open_workload(&name, workload, (&conf, capacity), options, conditions_of, on_progress)
        }
        RunSource::File { name, bytes } => {
            let whole = bytes.len();
            let mut tell = |done: u64| {
                on_progress(Progress::new("reading", usize::try_from(done).unwrap_or(whole), whole))
            };
            let mut opened = match MemoryFile::read(&bytes[..], &mut tell).map_err(LabError::from)? {
                MemoryFile::Snapshot(file) => open_snapshot(&name, *file, options, on_progress)?,
                MemoryFile::Recording(recorded) => open_recording(&name, *recorded, options, on_progress)?,
                MemoryFile::Text(text) => {
                    let workload = Workload::parse(&text).map_err(LabError::from)?;
                    let conf = workload.conf().unwrap_or_default().to_owned();
                    let capacity = workload.capacity().unwrap_or(Workload::DEFAULT_CAPACITY);
                    open_workload(&name, workload, (&conf, capacity), options, conditions_of, on_progress)?
                }
            };
            let size = exact_size(Bytes::new(bytes.len() as u64));
            opened.facts.insert(0, ("Size of the file".to_owned(), size));
            Ok(opened)
        }
    }
}

fn fact(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn settings_fact(conf: &str) -> (String, String) {
    fact("PYTORCH_CUDA_ALLOC_CONF", conf_text(conf))
}

pub(crate) fn open_snapshot(
    name: &str,
    mut file: SnapshotFile,
    options: &ReportOptions,
    on_progress: OnProgress,
) -> Result<ReportFile, ReportError> {
    if let Some(wanted) = options.device {
        let known = file.memory_names();
        if file.place_of(wanted).is_none() {
            return Err(ReportError::NoDevice { wanted, known });
        }
        file.retain(wanted);
    }
    if file.memories().next().is_none() {
        return Err(ReportError::Empty);
    }
    if options.is_redacted {
        file = redact::snapshot(file);
    }
    let has_several = file.devices.len() > 1;
    let mut facts = vec![fact("Kind of file", "memory snapshot of PyTorch")];
    let is_known = !(file.settings.conf.is_empty() && file.settings.values.is_empty());
    facts.push(if is_known {
        settings_fact(&file.settings.conf)
    } else {
        fact("PYTORCH_CUDA_ALLOC_CONF", "not in the file; default settings are assumed")
    });
    let notes = file.notes.clone();
    let mut devices = Vec::new();
    let host = file.host.take();
    let is_named = has_several || host.is_some();
    // Together, the runs of several devices know of each other.
    let runs = match has_several.then(|| Run::from_snapshot("", &file, on_progress)) {
        Some(Err(LabError::Cancelled)) => return Err(LabError::Cancelled.into()),
        Some(Ok(runs)) => runs,
        _ => Vec::new(),
    };
    let mut runs = runs.into_iter();
    for device in std::mem::take(&mut file.devices) {
        let one = SnapshotFile { devices: vec![device], notes: Vec::new(), ..file.clone() };
        devices.push(open_device(&one, is_named, runs.next(), on_progress)?);
    }
    // As the other answers have them: first what failed, then what holds most.
    devices.sort_by_key(|device| Reverse(device.run.as_ref().ok().map(Run::device_order)));
    if host.is_some() {
        let one = SnapshotFile { host, notes: Vec::new(), ..file };
        devices.push(open_device(&one, is_named, None, on_progress)?);
    }
    Ok(ReportFile {
        name: (!options.is_redacted).then(|| name.to_owned()),
        facts,
        notes,
        program: None,
        devices,
    })
}

/// The only device of a snapshot, and its run where it is known.
fn open_device(
    file: &SnapshotFile,
    is_named: bool,
    known: Option<Run>,
    on_progress: OnProgress,
) -> Result<ReportDevice, ReportError> {
    let total = file.trace_len(0);
    let mut on_done = |done| on_progress(Progress::new("recording", done, total));
    let found = blockyard_pytorch::trace::record(file, 0, "", &mut on_done).map_err(LabError::from)?;
    let runs = match known {
        Some(run) => Ok(vec![run]),
        None => Run::from_snapshot("", file, on_progress),
    };
    let run = match runs {
        Err(LabError::Cancelled) => return Err(LabError::Cancelled.into()),
        runs => runs.and_then(|runs| runs.into_iter().next().ok_or(LabError::NoTrace)),
    };
    let has_trace = file.memories().next().is_some_and(|device: &DeviceSnapshot| !device.trace.is_empty());
    let certificate = if has_trace {
        let mut found = certify(file, 0, &mut |progress| -> ControlFlow<()> { on_progress(progress) })
            .map_err(LabError::from)?
            .answer;
        found.reasons.append(&mut found.notes);
        ReportCertificate {
            headline: found.sentence,
            is_identical: found.is_complete,
            is_simulated: false,
            first_difference: found.first_difference,
            notes: found.reasons,
        }
    } else {
        ReportCertificate::default()
    };
    Ok(ReportDevice {
        name: file.memories().next().filter(|_| is_named).map(DeviceSnapshot::name),
        recording: Arc::new(found.recording),
        run,
        certificate,
        notes: found.notes,
    })
}

/// The GPUs of a program that ran without one.
fn open_simulation(
    name: &str,
    file: &SnapshotFile,
    mut simulation: Simulation,
    options: &ReportOptions,
    on_progress: OnProgress,
) -> Result<ReportFile, ReportError> {
    let file = if options.is_redacted { redact::snapshot(file.clone()) } else { file.clone() };
    if options.is_redacted {
        // Remarks name lines and operators of the program, and a line without the name of its file says
        // nothing.
        simulation.caveats.clear();
        simulation.failed_lines.clear();
    }
    let mut facts = vec![
        fact("Kind of run", "simulated: the program ran in Blockyard's own PyTorch, without a GPU"),
        fact("Rules of", format!("PyTorch {}", simulation.release)),
        fact("Memory of the GPU", exact_size(simulation.total)),
        fact("Memory that PyTorch has", exact_size(simulation.capacity)),
        settings_fact(&file.settings.conf),
    ];
    if !simulation.gpu.is_empty() {
        facts.push(fact("GPU", simulation.gpu.clone()));
    }
    if !simulation.arguments.trim().is_empty() && !options.is_redacted {
        facts.push(fact("Arguments of the program", simulation.arguments.clone()));
    }
    let mut devices = Vec::new();
    for place in 0..file.devices.len() {
        let total = file.trace_len(place);
        let mut on_done = |done| on_progress(Progress::new("recording", done, total));
        let found =
            blockyard_pytorch::trace::record(&file, place, "", &mut on_done).map_err(LabError::from)?;
        // The lines of requests that failed have this file.
        let program = if options.is_redacted { "" } else { name };
        let run = match Run::from_simulation(program, &file, &simulation, on_progress) {
            Err(LabError::Cancelled) => return Err(LabError::Cancelled.into()),
            runs => runs.and_then(|runs| runs.into_iter().nth(place).ok_or(LabError::NoTrace)),
        };
        devices.push(ReportDevice {
            name: file.devices.get(place).filter(|_| file.devices.len() > 1).map(DeviceSnapshot::name),
            recording: Arc::new(found.recording),
            run,
            certificate: ReportCertificate { is_simulated: true, ..ReportCertificate::default() },
            notes: found.notes,
        });
    }
    Ok(ReportFile {
        name: (!options.is_redacted).then(|| name.to_owned()),
        facts,
        notes: Vec::new(),
        program: (!options.is_redacted).then_some(simulation.program),
        devices,
    })
}

fn open_recording(
    name: &str,
    read: RecordedRun,
    options: &ReportOptions,
    on_progress: OnProgress,
) -> Result<ReportFile, ReportError> {
    let recorded = if options.is_redacted { redact::recorded(read) } else { read };
    let verified = verify(&recorded, on_progress).map_err(LabError::from)?;
    let run = match Run::from_recorded(&recorded, on_progress) {
        Err(LabError::Cancelled) => return Err(LabError::Cancelled.into()),
        run => run,
    };
    let meta = &recorded.meta;
    let mut facts = vec![fact("Kind of file", "recording of PyTorch's allocator"), settings_fact(&meta.conf)];
    for (name, value) in [("PyTorch", &meta.torch), ("GPU", &meta.device)] {
        if !value.is_empty() {
            facts.push(fact(name, value));
        }
    }
    facts.push(fact("Memory of the GPU", exact_size(meta.total_memory)));
    let device = ReportDevice {
        name: None,
        recording: Arc::new(verified.recording),
        run,
        certificate: ReportCertificate {
            headline: verified.comparison.headline(),
            is_identical: verified.comparison.is_identical(),
            is_simulated: false,
            first_difference: verified.comparison.first_difference,
            notes: verified.comparison.notes,
        },
        notes: Vec::new(),
    };
    let name = (!options.is_redacted).then(|| name.to_owned());
    Ok(ReportFile { name, facts, devices: vec![device], ..ReportFile::default() })
}

fn open_workload(
    name: &str,
    workload: Workload,
    own: (&str, Bytes),
    options: &ReportOptions,
    conditions_of: &dyn Fn(&Run) -> Conditions,
    on_progress: OnProgress,
) -> Result<ReportFile, ReportError> {
    let workload = if options.is_redacted { redact::workload(&workload) } else { workload };
    let title = if options.is_redacted { "" } else { name };
    let requests = Run::from_workload(title, workload.clone(), own.0, own.1);
    let conditions = conditions_of(&requests);
    let capacity = conditions.capacity_of(&requests);
    let config = conditions.config(&requests).map_err(LabError::from)?;
    let settings = RunSettings { title: title.to_owned(), config, capacity };
    let recording = run(&workload, &settings, on_progress).map_err(LabError::from)?;
    let facts = vec![
        fact("Kind of file", "workload: requests as a text, which Blockyard's allocator serves"),
        settings_fact(&conditions.conf),
        fact("Memory of the device", exact_size(capacity)),
    ];
    let device = ReportDevice {
        name: None,
        recording: Arc::new(recording),
        run: Ok(requests),
        certificate: ReportCertificate::default(),
        notes: Vec::new(),
    };
    let name = (!options.is_redacted).then(|| name.to_owned());
    Ok(ReportFile { name, facts, devices: vec![device], ..ReportFile::default() })
}
