//! The report about one device.

use std::ops::ControlFlow;

use anyhow::bail;
use blockyard_answers::{DeviceAnswer, MomentAnswer, OutOfMemoryEvent};
use blockyard_pytorch::snapshot::{DeviceSnapshot, SnapshotFile};
use blockyard_record::{Breakdown, Bytes, Event, MemoryState, Recording, StackId, StepOutcome, TraceAction};
use blockyard_replay::{Certificate, OnProgress, Progress, certify};

use super::MomentChoice;
use super::stacks::holders;

/// The options of the command for one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribeOptions {
    pub(crate) at: Option<MomentChoice>,
    pub(crate) top: usize,
    pub(crate) has_certificate: bool,
}

/// One device of a snapshot, or host memory.
pub(crate) struct DeviceReport {
    pub(crate) is_host: bool,
    pub(crate) answer: DeviceAnswer,
    /// The stack of each holder of the answer's moment.
    pub(crate) stacks: Vec<StackId>,
}

/// The peaks, each with the number of events of the trace before it.
struct Peaks {
    allocated: (usize, Bytes),
    reserved: (usize, Bytes),
    /// Whether sizes of all blocks are certain.
    are_exact: bool,
}

impl DeviceReport {
    pub(crate) fn of(
        file: &SnapshotFile,
        place: usize,
        question: DescribeOptions,
        on_progress: OnProgress,
    ) -> anyhow::Result<Self> {
        let total = file.trace_len(place);
        let found = blockyard_pytorch::trace::record(file, place, "", &mut |done| {
            on_progress(Progress::new("recording", done, total))
        })?;
        let certificate = if question.has_certificate {
            Some(certify(file, place, &mut |progress| -> ControlFlow<()> { on_progress(progress) })?)
        } else {
            None
        };
        let recording = &found.recording;
        let peaks = peaks(recording, certificate.as_ref());
        let (at, stacks) = moment(file, recording, question, &peaks)?;
        let device = file.memory(place)?;
        let count = |action| device.trace.iter().filter(|entry| entry.entry.action == action).count() as u64;
        let end = recording.state_at(recording.event_count())?.breakdown();
        let times = || device.trace.iter().map(|entry| entry.time_us).filter(|time| *time > 0);
        let answer = DeviceAnswer {
            index: found.device,
            events: device.trace.len() as u64,
            allocations: count(TraceAction::Alloc),
            streams: device.trace.streams().len() as u64,
            elapsed_us: times().max().unwrap_or(0).saturating_sub(times().min().unwrap_or(0)),
            peak_allocated: peaks.allocated.1,
            peak_allocated_event: peaks.allocated.0 as u64,
            peak_allocated_request: requests_until(recording, peaks.allocated.0),
            peak_reserved: peaks.reserved.1,
            peak_reserved_event: peaks.reserved.0 as u64,
            peak_reserved_request: requests_until(recording, peaks.reserved.0),
            peaks_are_exact: peaks.are_exact,
            segments: device.segments.len() as u64,
            reserved: end.reserved(),
            allocated: end.allocated(),
            ooms: count(TraceAction::OutOfMemory),
            oom_events: Some(oom_events(file, device)),
            at,
            certificate: certificate.map(|certificate| certificate.answer),
            open_sizes: recording.open_sizes().len() as u64,
            notes: found.notes,
        };
        Ok(Self { is_host: found.is_host, answer, stacks })
    }
}

fn oom_events(file: &SnapshotFile, device: &DeviceSnapshot) -> Vec<OutOfMemoryEvent> {
    let entries = device.trace.iter().enumerate();
    let ooms = entries.filter(|(_, entry)| entry.entry.action == TraceAction::OutOfMemory);
    ooms.map(|(event, entry)| OutOfMemoryEvent {
        event: event as u64,
        size: entry.entry.size,
        stream: entry.entry.stream,
        device_free: Bytes::new(entry.entry.addr),
        frames: super::stacks::frames_json(&file.stacks, entry.stack),
    })
    .collect()
}

fn peaks(recording: &Recording, certificate: Option<&Certificate>) -> Peaks {
    let exact = certificate
        .filter(|certificate| certificate.answer.is_complete)
        .and_then(|found| found.recording.as_ref());
    let has_open = recording.open_sizes().len() > 0;
    // If all placements of our allocator are identical, its blocks have PyTorch's sizes.
    let source = exact.filter(|_| has_open).unwrap_or(recording);
    let first_most = |value: fn(&Breakdown) -> Bytes| {
        let before = std::iter::once(source.breakdown_before());
        let all = before.chain(source.breakdowns_from(0)).enumerate();
        let (step, most) = all.fold((0, Bytes::ZERO), |(step, most), (at, breakdown)| {
            let value = value(&breakdown);
            if value > most { (at, value) } else { (step, most) }
        });
        let events = step.checked_sub(1).and_then(|step| source.step(step)).map_or(0, |step| step.end);
        (entries_until(source, events), most)
    };
    Peaks {
        allocated: first_most(Breakdown::allocated),
        reserved: first_most(Breakdown::reserved),
        are_exact: !has_open || exact.is_some(),
    }
}

/// Whether the event is an entry of PyTorch's trace.
fn is_entry(event: &Event) -> bool {
    matches!(
        event,
        Event::SegmentAllocated { .. }
            | Event::SegmentReleased { .. }
            | Event::Mapped { .. }
            | Event::Unmapped { .. }
            | Event::Allocated { .. }
            | Event::FreeRequested { .. }
            | Event::FreeCompleted { .. }
            | Event::OutOfMemory { is_rejected: false, .. }
            | Event::SnapshotTaken { .. }
    )
}

/// How many of the first `events` events are entries of PyTorch's trace.
fn entries_until(recording: &Recording, events: usize) -> usize {
    recording.events_from(0).take(events).filter(is_entry).count()
}

/// How many events the first `entries` entries of the trace are, including the merges after the last entry.
fn events_until(recording: &Recording, entries: usize) -> usize {
    let mut left = entries;
    let before = recording.events_from(0).take_while(|event| {
        if !is_entry(event) {
            return left > 0 || matches!(event, Event::Merged { .. });
        }
        let is_before = left > 0;
        left = left.saturating_sub(1);
        is_before
    });
    before.count()
}

/// The last request of the first `entries` entries of the trace, as answers and figures count requests.
fn requests_until(recording: &Recording, entries: usize) -> u64 {
    let last = events_until(recording, entries).checked_sub(1);
    let step = last.and_then(|event| recording.step_of_event(event));
    step.map_or(0, |step| (step as u64).saturating_add(1))
}

/// The moment of the question, and the stacks of its holders.
fn moment(
    file: &SnapshotFile,
    recording: &Recording,
    question: DescribeOptions,
    peaks: &Peaks,
) -> anyhow::Result<(MomentAnswer, Vec<StackId>)> {
    let (name, entries) = match question.at {
        None | Some(MomentChoice::Peak) => ("the peak of allocated memory".to_owned(), peaks.allocated.0),
        Some(MomentChoice::Event(event)) => {
            let all = entries_until(recording, recording.event_count());
            if event > all {
                bail!("the trace has {all} events, so there is no moment after {event}");
            }
            (format!("event {event}"), event)
        }
        Some(MomentChoice::Request(request)) => {
            let Some(step) = request.checked_sub(1).and_then(|step| recording.step(step)) else {
                let all = recording.step_count();
                bail!("the trace has {all} requests, so there is no request {request}");
            };
            (format!("request {request}"), entries_until(recording, step.end))
        }
        Some(MomentChoice::OutOfMemory) => {
            let failed = |outcome: &StepOutcome| matches!(outcome, StepOutcome::OutOfMemory(_));
            let Some((step, _)) = recording.failed_steps().iter().find(|(_, outcome)| failed(outcome)) else {
                bail!("no request of the trace ran out of memory");
            };
            let events = recording.step(*step as usize).map_or(0, |step| step.end);
            ("the first request that ran out of memory".to_owned(), entries_until(recording, events))
        }
    };
    let state: MemoryState = recording.state_at(events_until(recording, entries))?;
    let (stacks, top) = holders(file, recording, &state, question.top);
    let breakdown = state.breakdown();
    let (allocated, reserved) = (breakdown.allocated(), breakdown.reserved());
    let Breakdown { requested, rounding, pending, cached, .. } = breakdown;
    let (event, request) = (entries as u64, requests_until(recording, entries));
    let moment =
        MomentAnswer { name, event, request, allocated, reserved, requested, rounding, pending, cached, top };
    Ok((moment, stacks))
}
