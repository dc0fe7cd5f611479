//! Recordings as snapshots, to be written as PyTorch would have written them.

use std::sync::Arc;

use blockyard_record::{
    BlockState, Event, FrameId, MemoryState, Recording, RecordingError, SegmentSnapshot, StackId, Stacks,
};
use rustc_hash::FxHashMap;

use super::{
    Annotation, DeviceSnapshot, DeviceTrace, EntryContext, SnapshotBlock, SnapshotEntry, SnapshotFile,
    SnapshotSegment, SnapshotSettings, keys,
};

impl SnapshotFile {
    /// The snapshot that PyTorch would have taken at the end of these recordings, one for each index of a device.
    ///
    /// Entries have the stacks and times that the recordings know; those that free memory have no stack. Settings are those of
    /// the first recording.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] when a recording does not add up.
    pub fn from_recordings(recordings: &[(u32, &Recording)]) -> Result<Self, RecordingError> {
        let mut stacks = keys::stacks();
        let mut devices = Vec::new();
        let mut annotations = Vec::new();
        for (index, recording) in recordings {
            let mut own =
                OwnStacks { from: recording.stacks(), into: &mut stacks, numbers: FxHashMap::default() };
            devices.push(device(*index, recording, &mut own)?);
            annotations.extend(markers(*index, recording, &mut stacks));
        }
        devices.sort_by_key(|device| device.index);
        annotations.sort_by_key(|annotation| annotation.time_us);
        let settings = recordings.first().map(|(_, recording)| settings(recording)).unwrap_or_default();
        let contexts = vec![EntryContext::default()];
        let (stacks, notes) = (Arc::new(stacks), Vec::new());
        Ok(Self { devices, host: None, settings, annotations, stacks, contexts, notes })
    }
}

/// The stacks of a recording among those of all recordings.
struct OwnStacks<'a> {
    from: &'a Stacks,
    into: &'a mut Stacks,
    numbers: FxHashMap<StackId, StackId>,
}

impl OwnStacks<'_> {
    fn get(&mut self, stack: StackId) -> StackId {
        if stack == StackId::EMPTY {
            return stack;
        }
        if let Some(known) = self.numbers.get(&stack) {
            return *known;
        }
        let frames: Option<Vec<u32>> =
            self.from.frames(stack).map(|frame| self.frame(frame).map(FrameId::get)).collect();
        let number = frames.and_then(|frames| self.into.intern_stack(&frames)).unwrap_or_default();
        self.numbers.insert(stack, number);
        number
    }

    fn frame(&mut self, frame: FrameId) -> Option<FrameId> {
        let frame = self.from.frame(frame);
        let name = self.into.intern_text(frame.name)?;
        let filename = self.into.intern_text(frame.filename)?;
        self.into.intern_frame(name, filename, frame.line)
    }
}

fn device(
    index: u32,
    recording: &Recording,
    stacks: &mut OwnStacks<'_>,
) -> Result<DeviceSnapshot, RecordingError> {
    let mut trace = DeviceTrace::default();
    let mut state = recording.initial_state();
    let mut times = recording.times_us_from(0);
    let (mut step, mut time) = (None, 0);
    for (place, event) in recording.events_from(0).enumerate() {
        let now = recording.step_of_event(place);
        while step != now && now.is_some_and(|now| step.is_none_or(|step| step < now)) {
            time = times.next().unwrap_or(time);
            step = Some(step.map_or(0, |step| step + 1));
        }
        if let Some(entry) = state.trace_entry(&event) {
            let stack = stacks.get(stack_of(&event, recording));
            trace.push(&SnapshotEntry { entry, time_us: time, stack, context: 0 });
        }
        state.apply(&event).map_err(|source| RecordingError::Damaged { event: place, source })?;
    }
    trace.shrink();
    let segments = segments(index, &state, recording, stacks);
    Ok(DeviceSnapshot { index, is_host: false, trace, segments })
}

fn stack_of(event: &Event, recording: &Recording) -> StackId {
    match *event {
        Event::Allocated { allocation, .. } => recording.allocation_stack(allocation),
        Event::SegmentAllocated { segment, .. } => recording.segment_stack(segment),
        _ => StackId::EMPTY,
    }
}

fn segments(
    device: u32,
    state: &MemoryState,
    recording: &Recording,
    stacks: &mut OwnStacks<'_>,
) -> Vec<SnapshotSegment> {
    let segments = state.snapshot().segments;
    let runs = segments.iter().flat_map(SegmentSnapshot::mapped_runs);
    runs.map(|run| SnapshotSegment {
        device,
        addr: run.addr.get(),
        size: run.size,
        stream: run.stream,
        pool_id: run.pool_id,
        pool: run.pool,
        is_expandable: run.is_expandable,
        sums: [run.allocated(), run.active(), run.requested()],
        stack: stacks.get(recording.segment_stack(run.id)),
        blocks: run
            .blocks
            .iter()
            .map(|block| SnapshotBlock {
                addr: Some(block.addr.get()),
                size: block.size,
                requested: Some(block.requested),
                state: block.state,
                stack: match block.allocation {
                    Some(allocation) if block.state != BlockState::Inactive => {
                        stacks.get(recording.allocation_stack(allocation))
                    }
                    _ => StackId::EMPTY,
                },
            })
            .collect(),
    })
    .collect()
}

fn markers(device: u32, recording: &Recording, stacks: &mut Stacks) -> Vec<Annotation> {
    let mut annotations = Vec::new();
    for marker in recording.markers() {
        let Some(name) = stacks.intern_text(&marker.text) else { continue };
        // One that has neither begun nor ended within the recording has no moment.
        let has_begun = marker.start_us > 0;
        let start = Annotation { name, is_end: false, device: Some(device), time_us: marker.start_us };
        annotations.extend(has_begun.then_some(start));
        annotations.extend(marker.end_us.map(|time_us| Annotation { is_end: true, time_us, ..start }));
    }
    annotations
}

/// The settings as PyTorch lists them, as far as a recording knows them.
fn settings(recording: &Recording) -> SnapshotSettings {
    let info = recording.info();
    let has = |setting: &str| info.config.split_whitespace().collect::<String>().contains(setting);
    let values = [
        ("PYTORCH_CUDA_ALLOC_CONF", info.config.clone()),
        ("max_split_size", info.max_split_size.to_string()),
        ("expandable_segments", if has("expandable_segments:True") { "True" } else { "False" }.to_owned()),
    ];
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    SnapshotSettings { config: info.config.clone(), values }
}
