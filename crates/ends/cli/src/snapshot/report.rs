//! The report about one device.

use std::ops::ControlFlow;

use anyhow::bail;
use blockyard_answers::{CertificateAnswer, DeviceAnswer, DifferingFact, MomentAnswer, OutOfMemoryEvent};
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_pytorch::trace::DeviceRecording;
use blockyard_record::{Breakdown, Event, MemoryState, Recording, StepOutcome, TraceAction};
use blockyard_replay::{Certificate, Difference, OnProgress, Progress, certify};

use super::MomentChoice;
use super::stacks::{Holder, holders};

/// The options of the command for one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribeOptions {
    pub(crate) at: Option<MomentChoice>,
    pub(crate) top: usize,
    pub(crate) has_certificate: bool,
}

/// One device of a snapshot.
pub(crate) struct DeviceReport {
    pub(crate) place: usize,
    pub(crate) found: DeviceRecording,
    pub(crate) certificate: Option<Certificate>,
    pub(crate) counts: Counts,
    pub(crate) peaks: Peaks,
    pub(crate) moment: Moment,
}

/// The sums over the trace and the segments.
pub(crate) struct Counts {
    pub(crate) events: usize,
    pub(crate) allocations: usize,
    pub(crate) ooms: usize,
    pub(crate) segments: usize,
    pub(crate) streams: usize,
    pub(crate) reserved: u64,
    pub(crate) allocated: u64,
    /// The time from the first to the last event, in microseconds.
    pub(crate) elapsed_us: u64,
}

/// The peaks, each with the number of events of the trace before it.
pub(crate) struct Peaks {
    pub(crate) allocated: u64,
    pub(crate) allocated_event: usize,
    pub(crate) reserved: u64,
    pub(crate) reserved_event: usize,
    /// Whether sizes of all blocks are certain.
    pub(crate) is_exact: bool,
}

/// One moment of the run.
pub(crate) struct Moment {
    /// `the peak of allocated memory`.
    pub(crate) name: String,
    /// The number of events of the trace before the moment.
    pub(crate) event: usize,
    pub(crate) breakdown: Breakdown,
    pub(crate) holders: Vec<Holder>,
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
        let peaks = peaks(&found.recording, certificate.as_ref());
        let moment = moment(&found.recording, question, &peaks)?;
        Ok(Self { place, counts: counts(file, place, &found.recording)?, found, certificate, peaks, moment })
    }

    pub(crate) fn json(&self, file: &SnapshotFile) -> DeviceAnswer {
        let Self { counts, peaks, moment, .. } = self;
        let oom_events = file.memory(self.place).ok().map(|device| {
            let entries = device.trace.iter().enumerate();
            let ooms = entries.filter(|(_, entry)| entry.entry.action == TraceAction::OutOfMemory);
            ooms.map(|(event, entry)| OutOfMemoryEvent {
                event: event as u64,
                size: entry.entry.size.get(),
                stream: entry.entry.stream.get(),
                device_free: entry.entry.addr,
                frames: super::stacks::frames_json(&file.stacks, entry.stack),
            })
            .collect()
        });
        DeviceAnswer {
            index: self.found.device,
            events: counts.events as u64,
            allocations: counts.allocations as u64,
            streams: counts.streams as u64,
            elapsed_us: counts.elapsed_us,
            peak_allocated: peaks.allocated,
            peak_allocated_event: peaks.allocated_event as u64,
            peak_reserved: peaks.reserved,
            peak_reserved_event: peaks.reserved_event as u64,
            peaks_are_exact: peaks.is_exact,
            segments: counts.segments as u64,
            reserved: counts.reserved,
            allocated: counts.allocated,
            ooms: counts.ooms as u64,
            oom_events,
            at: moment.json(file),
            certificate: self.certificate.as_ref().map(certificate_json),
            open_sizes: self.found.recording.open_sizes().len() as u64,
            notes: self.found.notes.clone(),
        }
    }
}

impl Moment {
    fn json(&self, file: &SnapshotFile) -> MomentAnswer {
        let Breakdown { requested, rounding, pending, cached, .. } = self.breakdown;
        MomentAnswer {
            name: self.name.clone(),
            event: self.event as u64,
            allocated: self.breakdown.allocated().get(),
            reserved: self.breakdown.reserved().get(),
            requested: requested.get(),
            rounding: rounding.get(),
            pending: pending.get(),
            cached: cached.get(),
            top: self.holders.iter().map(|holder| holder.json(&file.stacks)).collect(),
        }
    }
}

/// The certificate as JSON, for the command and for the Python package.
pub(crate) fn certificate_json(certificate: &Certificate) -> CertificateAnswer {
    CertificateAnswer {
        sentence: certificate.headline(),
        release: certificate.release.to_string(),
        placements: certificate.placements,
        identical: certificate.identical,
        is_complete: certificate.is_complete,
        first_difference: certificate.first_difference.as_ref().map(difference_json),
        reasons: certificate.reasons.clone(),
        notes: certificate.notes.clone(),
    }
}

/// A difference as JSON, whose step is counted from 1.
pub(crate) fn difference_json(difference: &Difference) -> DifferingFact {
    DifferingFact {
        step: difference.step.map(|step| u64::from(step).saturating_add(1)),
        what: difference.what.clone(),
        expected: difference.expected.clone(),
        found: difference.found.clone(),
    }
}

fn counts(file: &SnapshotFile, place: usize, recording: &Recording) -> anyhow::Result<Counts> {
    let device = file.memory(place)?;
    let count = |action| device.trace.iter().filter(|entry| entry.entry.action == action).count();
    let end = recording.state_at(recording.event_count())?.breakdown();
    let times = || device.trace.iter().map(|entry| entry.time_us).filter(|time| *time > 0);
    let elapsed_us = times().max().unwrap_or(0).saturating_sub(times().min().unwrap_or(0));
    Ok(Counts {
        events: device.trace.len(),
        allocations: count(TraceAction::Alloc),
        ooms: count(TraceAction::OutOfMemory),
        segments: device.segments.len(),
        streams: device.trace.streams().len(),
        reserved: end.reserved().get(),
        allocated: end.allocated().get(),
        elapsed_us,
    })
}

fn peaks(recording: &Recording, certificate: Option<&Certificate>) -> Peaks {
    let exact =
        certificate.filter(|certificate| certificate.is_complete).and_then(|found| found.recording.as_ref());
    let has_open = recording.open_sizes().len() > 0;
    // If all placements of our allocator are identical, its blocks have PyTorch's sizes.
    let source = exact.filter(|_| has_open).unwrap_or(recording);
    let all = || {
        let before = std::iter::once(source.breakdown_before());
        before.chain(source.breakdowns_from(0)).enumerate()
    };
    let first_most = |value: fn(&Breakdown) -> u64| {
        all().fold((0, 0), |(step, most), (at, breakdown)| {
            let value = value(&breakdown);
            if value > most { (at, value) } else { (step, most) }
        })
    };
    let (allocated_step, allocated) = first_most(|breakdown| breakdown.allocated().get());
    let (reserved_step, reserved) = first_most(|breakdown| breakdown.reserved().get());
    let event = |step: usize| {
        let events = step.checked_sub(1).and_then(|step| source.step(step)).map_or(0, |step| step.end);
        entries_until(source, events)
    };
    Peaks {
        allocated,
        allocated_event: event(allocated_step),
        reserved,
        reserved_event: event(reserved_step),
        is_exact: !has_open || exact.is_some(),
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

fn moment(recording: &Recording, question: DescribeOptions, peaks: &Peaks) -> anyhow::Result<Moment> {
    let (name, entries) = match question.at {
        None | Some(MomentChoice::Peak) => ("the peak of allocated memory".to_owned(), peaks.allocated_event),
        Some(MomentChoice::Event(event)) => {
            let all = entries_until(recording, recording.event_count());
            if event > all {
                bail!("the trace has {all} events, so there is no moment after {event}");
            }
            (format!("event {event}"), event)
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
    let holders = holders(recording, &state, question.top);
    Ok(Moment { name, event: entries, breakdown: state.breakdown(), holders })
}
