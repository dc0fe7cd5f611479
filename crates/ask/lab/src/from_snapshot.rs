//! Runs of PyTorch's memory snapshots.

use std::sync::Arc;

use blockyard_pytorch::snapshot::{DeviceSnapshot, SnapshotFile};
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
    let devices = 0..file.devices.len();
    let runs = devices.map(|place| from_device(name, file, place, simulation, on_progress));
    let mut runs: Vec<Run> = runs.collect::<Result<_, _>>()?;
    // A snapshot that was taken before anything was allocated lists no device.
    if runs.is_empty() {
        let state = DeviceState::of(file, &DeviceSnapshot::default());
        runs.push(Run::from_state(name, &file.settings.conf, file.release(), state));
    }
    if file.devices.len() > 1 {
        let numbers: Vec<u32> = file.devices.iter().map(|device| device.index).collect();
        set_devices(&mut runs, &numbers);
    }
    Ok(runs)
}

fn from_device(
    name: &str,
    file: &SnapshotFile,
    place: usize,
    simulation: Option<&Simulation>,
    on_progress: OnProgress,
) -> Result<Run, LabError> {
    let device = file.devices.get(place).ok_or(LabError::NoTrace)?;
    let program = name;
    let name =
        if file.devices.len() > 1 { format!("{name}, cuda:{}", device.index) } else { name.to_owned() };
    let has_requests = device
        .trace
        .iter()
        .any(|entry| matches!(entry.entry.action, TraceAction::Alloc | TraceAction::OutOfMemory));
    if !has_requests && simulation.is_none() {
        let state = DeviceState::of(file, device);
        let mut run = Run::from_state(&name, file.conf_of(device), file.release(), state);
        program.clone_into(&mut run.file);
        run.recorded.held_at_end = device.active_at_end();
        run.add_notes(&file.notes);
        return Ok(run);
    }
    let mut recorded = blockyard_pytorch::trace::recorded_run(file, place, &name)?;
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
    let is_capacity_known = full.is_some();
    let recorded_reserved = most_reserved(device);
    let mut run = Run::from_recorded_as(&recorded, Figures::OfTrace, on_progress)?;
    program.clone_into(&mut run.file);
    run.set_device(device.index);
    run.recorded.reserved = Some(recorded_reserved);
    run.recorded.held_at_end = device.active_at_end();
    let entries: Vec<_> = device
        .trace
        .iter()
        .filter(|entry| matches!(entry.entry.action, TraceAction::Alloc | TraceAction::OutOfMemory))
        .collect();
    // If the beginning of the trace was cut off, only the last entries have requests.
    let allocations: Vec<usize> = run.allocation_requests().collect();
    let kept = entries.len().min(allocations.len());
    let pairs = allocations.iter().rev().zip(entries.iter().rev()).take(kept);
    let mut failures = Failures::of(file, program, simulation);
    let mut stacks = vec![StackId::EMPTY; run.requests().len()];
    let mut times = Vec::with_capacity(kept);
    let mut served = Vec::with_capacity(kept);
    for (request, entry) in pairs {
        if let Some(stack) = stacks.get_mut(*request) {
            *stack = failures.stack_of(entry.entry.action).unwrap_or(entry.stack);
        }
        times.push((entry.time_us, *request));
        if entry.entry.action == TraceAction::Alloc {
            served.push(*request);
        }
    }
    times.reverse();
    let begins =
        file.annotations.iter().filter(|at| !at.is_end && at.device.is_none_or(|on| on == device.index));
    let labels = begins.filter_map(|begin| {
        let next = times.partition_point(|(time, _)| *time < begin.time_us);
        let request = times.get(next).map_or(run.requests().len(), |(_, request)| *request);
        Some((u32::try_from(request).ok()?, file.stacks.texts().get(begin.name).to_owned()))
    });
    let labels = labels.collect();
    run.set_stacks(failures.stacks, stacks, labels);
    if !is_capacity_known {
        run.assume_capacity("a snapshot");
    }
    if let Some(note) = left_out_note(&left_out) {
        run.add_note(note);
    }
    run.add_notes(&file.notes);
    if let Some(simulation) = simulation {
        served.reverse();
        let request = |number: &u32| served.get(*number as usize).copied();
        run.set_unfreeable(simulation.unfreeable.iter().filter_map(request).collect());
        run.device_words = Some(simulation.device_text());
        // No trace was read: the program itself asked.
        run.drop_note_on_failed_sizes();
        run.add_notes(&simulation.caveats);
    }
    Ok(run)
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

impl Run {
    /// The requests that ask for memory and are not from before the recording, as indices.
    fn allocation_requests(&self) -> impl Iterator<Item = usize> + '_ {
        let requests = self.requests().iter().enumerate().skip(self.requests_from_before());
        requests.filter(|(_, request)| matches!(request, Request::Allocate { .. })).map(|(index, _)| index)
    }
}
