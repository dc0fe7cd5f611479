//! Runs of PyTorch's memory snapshots.

use std::sync::Arc;

use blockyard_pytorch::snapshot::{DeviceSnapshot, SnapshotEntry, SnapshotFile};
use blockyard_record::{Bytes, StackId, Stacks, TraceAction, TraceEntry};
use blockyard_replay::OnProgress;
use blockyard_rules::{AllocatorConfig, Release, known_config, left_out_note, size};
use blockyard_workload::Request;

use crate::devices::set_devices;
use crate::run::Figures;
use crate::source::Simulation;
use crate::state::DeviceState;
use crate::{LabError, Run};

/// The memory that is assumed for a device where nothing states it: more than any GPU has.
const MIN_CAPACITY: Bytes = Bytes::gib(256);

impl Run {
    /// The runs of a snapshot: one for each device, in their order. The run of a device whose trace has no
    /// request has a verdict alone.
    ///
    /// # Errors
    ///
    /// The errors of [`Run::from_recorded`].
    pub fn from_snapshot(
        name: &str,
        file: &SnapshotFile,
        on_progress: OnProgress,
    ) -> Result<Vec<Self>, LabError> {
        from_devices(name, file, None, on_progress)
    }

    /// The runs of a simulated program, whose devices are known.
    ///
    /// # Errors
    ///
    /// The errors of [`Run::from_snapshot`].
    pub fn from_simulation(
        name: &str,
        file: &SnapshotFile,
        simulation: &Simulation,
        on_progress: OnProgress,
    ) -> Result<Vec<Self>, LabError> {
        from_devices(name, file, Some(simulation), on_progress)
    }
}

fn from_devices(
    name: &str,
    file: &SnapshotFile,
    simulation: Option<&Simulation>,
    on_progress: OnProgress,
) -> Result<Vec<Run>, LabError> {
    let of_state = |name: &str, device: &DeviceSnapshot| {
        Run::from_state(name, file.conf_of(device), file.release(), DeviceState::of(file, device))
    };
    let mut runs = Vec::with_capacity(file.devices.len());
    for (place, device) in file.devices.iter().enumerate() {
        let is_only = file.devices.len() == 1;
        let of_device = if is_only { name.to_owned() } else { format!("{name}, cuda:{}", device.index) };
        let mut run = if simulation.is_some() || device.trace.iter().any(asks) {
            from_device(&of_device, name, (file, place, device), simulation, on_progress)?
        } else {
            let mut run = of_state(&of_device, device);
            run.add_notes(&file.notes);
            run
        };
        name.clone_into(&mut run.file);
        run.recorded.held_at_end = device.active_at_end();
        runs.push(run);
    }
    // A snapshot that was taken before anything was allocated lists no device.
    if runs.is_empty() {
        runs.push(of_state(name, &DeviceSnapshot::default()));
    }
    if file.devices.len() > 1 {
        let numbers: Vec<u32> = file.devices.iter().map(|device| device.index).collect();
        set_devices(&mut runs, &numbers);
    }
    Ok(runs)
}

/// Whether an entry is of a request for memory.
fn asks(entry: SnapshotEntry) -> bool {
    matches!(entry.entry.action, TraceAction::Alloc | TraceAction::OutOfMemory)
}

/// The run of a device of a program's snapshot whose requests are known.
fn from_device(
    name: &str,
    program: &str,
    (file, place, device): (&SnapshotFile, usize, &DeviceSnapshot),
    simulation: Option<&Simulation>,
    on_progress: OnProgress,
) -> Result<Run, LabError> {
    let mut recorded = blockyard_pytorch::trace::recorded_run(file, place, name)?;
    let (config, left_out) = known_config(&recorded.meta.conf, recorded.meta.release());
    let full = match simulation {
        Some(simulation) => {
            recorded.meta.torch = simulation.release.with_dialect_of(file.release()).to_string();
            Some(simulation.capacity)
        }
        None => full_device(device, &config, recorded.meta.release())?,
    };
    recorded.meta.conf = config;
    let needed = recorded.meta.total_memory;
    recorded.meta.total_memory = full.unwrap_or_else(|| MIN_CAPACITY.max(needed));
    let mut run = Run::from_recorded_as(&recorded, Figures::OfTrace, on_progress)?;
    run.set_device(device.index);
    run.recorded.reserved = Some(most_reserved(device));
    let requests = requests_of_entries(&run, device);
    set_stacks(&mut run, file, device, &requests, Failures::of(file, program, simulation));
    if full.is_none() {
        run.assume_capacity("a snapshot");
    }
    if let Some(note) = left_out_note(&left_out) {
        run.add_note(note);
    }
    run.add_notes(&file.notes);
    if let Some(simulation) = simulation {
        let served = requests.iter().filter(|(_, entry)| entry.entry.action == TraceAction::Alloc);
        let served: Vec<usize> = served.map(|(request, _)| *request).collect();
        let request = |number: &u32| served.get(*number as usize).copied();
        run.set_unfreeable(simulation.unfreeable.iter().filter_map(request).collect());
        run.device_words = Some(simulation.device_text());
        // No trace was read: the program itself asked.
        run.drop_note_on_failed_sizes();
        run.add_notes(&simulation.caveats);
    }
    Ok(run)
}

/// The requests for memory, each with its entry of the trace.
fn requests_of_entries(run: &Run, device: &DeviceSnapshot) -> Vec<(usize, SnapshotEntry)> {
    let all = run.requests().iter().enumerate().skip(run.requests_from_before()).rev();
    let all = all.filter(|(_, request)| matches!(request, Request::Allocate { .. })).map(|(index, _)| index);
    // If the beginning of the trace was cut off, only the last entries have requests.
    let mut pairs: Vec<_> = all.zip(device.trace.iter().rev().filter(|entry| asks(*entry))).collect();
    pairs.reverse();
    pairs
}

/// Gives requests their stacks, and labels where the program's annotations begin.
fn set_stacks(
    run: &mut Run,
    file: &SnapshotFile,
    device: &DeviceSnapshot,
    requests: &[(usize, SnapshotEntry)],
    mut failures: Failures,
) {
    let total = run.requests().len();
    let mut stacks = vec![StackId::EMPTY; total];
    for (request, entry) in requests.iter().rev() {
        if let Some(stack) = stacks.get_mut(*request) {
            *stack = failures.stack_of(entry.entry.action).unwrap_or(entry.stack);
        }
    }
    let begins =
        file.annotations.iter().filter(|at| !at.is_end && at.device.is_none_or(|on| on == device.index));
    let labels = begins.filter_map(|begin| {
        let next = requests.partition_point(|(_, entry)| entry.time_us < begin.time_us);
        let request = requests.get(next).map_or(total, |(request, _)| *request);
        Some((u32::try_from(request).ok()?, file.stacks.texts().get(begin.name).to_owned()))
    });
    run.set_stacks(failures.stacks, stacks, labels.collect());
}

/// The stacks of a simulated program's snapshot, with those of its failed requests.
struct Failures {
    stacks: Arc<Stacks>,
    /// The stacks of the failed requests, in their order.
    of: Vec<StackId>,
}

impl Failures {
    fn of(file: &SnapshotFile, program: &str, simulation: Option<&Simulation>) -> Self {
        let lines = simulation.map_or(&[][..], |simulation| &simulation.failed_lines);
        if lines.is_empty() {
            return Self { stacks: file.stacks.clone(), of: Vec::new() };
        }
        let mut stacks = Stacks::clone(&file.stacks);
        let mut stack = |line: u32| {
            let (name, file) = (stacks.intern_text("")?, stacks.intern_text(program)?);
            let frame = stacks.intern_frame(name, file, line).filter(|_| line > 0)?;
            stacks.intern_stack(&[frame.get()])
        };
        let of = lines.iter().map(|line| stack(*line).unwrap_or_default()).collect();
        Self { stacks: Arc::new(stacks), of }
    }

    /// The stack of the next entry, counted from the end of the trace, if the entry is a failed request with
    /// a known stack.
    fn stack_of(&mut self, action: TraceAction) -> Option<StackId> {
        (action == TraceAction::OutOfMemory).then(|| self.of.pop()).flatten()
    }
}

/// The entries of the trace, the last one first, each with the bytes of segments before the entry. The walk
/// begins at the end, where these bytes are known.
fn back_with_reserved(device: &DeviceSnapshot) -> impl Iterator<Item = (TraceEntry, Bytes)> + '_ {
    let end: Bytes = device.segments.iter().map(|segment| segment.size).sum();
    device.trace.iter().rev().map(|entry| entry.entry).scan(end, |reserved, entry| {
        *reserved = match entry.action {
            TraceAction::SegmentAlloc | TraceAction::SegmentMap => reserved.saturating_sub(entry.size),
            TraceAction::SegmentFree | TraceAction::SegmentUnmap => reserved.saturating_add(entry.size),
            _ => *reserved,
        };
        Some((entry, *reserved))
    })
}

/// The most bytes that the segments had in the time of the trace.
fn most_reserved(device: &DeviceSnapshot) -> Bytes {
    let end: Bytes = device.segments.iter().map(|segment| segment.size).sum();
    back_with_reserved(device).fold(end, |most, (_, reserved)| most.max(reserved))
}

/// The bytes that the device had for PyTorch, if a request failed because the device had no more; `None`
/// otherwise.
fn full_device(device: &DeviceSnapshot, conf: &str, release: Release) -> Result<Option<Bytes>, LabError> {
    let config = AllocatorConfig::parse(conf, release)?;
    // The entries come from the end, so that the earliest failure is the last one found.
    let mut full = None;
    for (TraceEntry { action, size, addr, .. }, reserved) in back_with_reserved(device) {
        if action == TraceAction::OutOfMemory && Bytes::new(addr) < size::segment_size(size, &config) {
            full = Some(reserved.saturating_add(Bytes::new(addr)));
        }
    }
    Ok(full)
}
