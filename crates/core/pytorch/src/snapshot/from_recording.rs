//! Recordings as snapshots, to be written as PyTorch would have written them.

use std::sync::Arc;

use blockyard_record::{
    BlockState, Bytes, Event, FrameId, MemoryState, PoolId, Recording, RecordingError, SegmentSnapshot,
    StackId, Stacks,
};
use blockyard_rules::{AllocatorConfig, Release, setting_values};
use rustc_hash::FxHashMap;

use super::{
    Annotation, DeviceSnapshot, DeviceTrace, EntryContext, SnapshotBlock, SnapshotEntry, SnapshotFile,
    SnapshotSegment, SnapshotSettings, keys,
};

impl SnapshotFile {
    /// The snapshot that PyTorch would have taken at the end of these recordings, one for each index of a
    /// device.
    ///
    /// Entries have the stacks and times that the recordings know; those that free memory have no stack.
    /// Settings are those of the first recording, as far as questions need them, and so is the release:
    /// entries name their memory pool from 2.12 on, and from 2.14 on the snapshot has (empty) lists of host
    /// memory.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] when a recording does not add up.
    pub fn from_recordings(recordings: &[(u32, &Recording)]) -> Result<Self, RecordingError> {
        let release = recordings.first().map(|(_, recording)| recording.info().release).unwrap_or_default();
        let mut stacks = keys::stacks();
        let mut contexts = Contexts { release, known: Vec::new() };
        let mut devices = Vec::new();
        let mut annotations = Vec::new();
        for (index, recording) in recordings {
            let mut own =
                OwnStacks { from: recording.stacks(), into: &mut stacks, numbers: FxHashMap::default() };
            devices.push(device(*index, recording, &mut own, &mut contexts)?);
            annotations.extend(markers(*index, recording, &mut stacks));
        }
        devices.sort_by_key(|device| device.index);
        annotations.sort_by_key(|annotation| annotation.time_us);
        let settings = recordings.first().map(|(_, recording)| settings(recording)).unwrap_or_default();
        let host = release
            .snapshots_host_memory()
            .then(|| DeviceSnapshot { is_host: true, ..DeviceSnapshot::default() });
        let (stacks, notes) = (Arc::new(stacks), Vec::new());
        Ok(Self {
            devices,
            host,
            settings,
            dialect: release.dialect(),
            annotations,
            stacks,
            contexts: contexts.known,
            keepers: String::new(),
            notes,
        })
    }
}

/// The contexts of entries: one for each memory pool where entries name pools, else one for all.
struct Contexts {
    release: Release,
    known: Vec<EntryContext>,
}

impl Contexts {
    fn of(&mut self, pool: PoolId) -> u32 {
        let context = EntryContext {
            pool_id: self.release.traces_pools().then_some(pool),
            lacks_user_metadata: !self.release.traces_user_metadata(),
            lacks_compile_context: !self.release.traces_compile_context(),
            ..EntryContext::default()
        };
        let place = self.known.iter().position(|known| *known == context).unwrap_or_else(|| {
            self.known.push(context);
            self.known.len().saturating_sub(1)
        });
        u32::try_from(place).unwrap_or(u32::MAX)
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
    contexts: &mut Contexts,
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
        if let Some((entry, pool)) = state.pooled_trace_entry(&event) {
            let stack = stacks.get(stack_of(&event, recording));
            let context = contexts.of(pool);
            trace.push(&SnapshotEntry { entry, time_us: time, stack, context });
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
        // An annotation that neither begins nor ends within the recording has no moment.
        let has_begun = marker.start_us > 0;
        let start = Annotation { name, is_end: false, device: Some(device), time_us: marker.start_us };
        annotations.extend(has_begun.then_some(start));
        annotations.extend(marker.end_us.map(|time_us| Annotation { is_end: true, time_us, ..start }));
    }
    annotations
}

/// The settings that questions about the snapshot need; [`SnapshotFile::list_settings`] adds the others.
fn settings(recording: &Recording) -> SnapshotSettings {
    let info = recording.info();
    let is_on =
        setting_values(&info.conf).any(|(key, value)| key == "expandable_segments" && value == "True");
    let mut values = vec![
        ("PYTORCH_CUDA_ALLOC_CONF", info.conf.clone()),
        ("max_split_size", info.max_split_size.to_string()),
        ("expandable_segments", if is_on { "True" } else { "False" }.to_owned()),
    ];
    if info.release.knows_setting("pinned_max_round_threshold_mb") {
        // Their presence tells the release.
        values.extend(["max_round_threshold", "max_cached_size"].map(|name| (name, "-1".to_owned())));
    }
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    SnapshotSettings { conf: info.conf.clone(), values }
}

impl SnapshotFile {
    /// Lists all settings that a snapshot of the release has, in PyTorch's order, as far as the release can
    /// read the text of the settings.
    pub fn list_settings(&mut self, release: Release) {
        let Ok(config) = AllocatorConfig::parse(&self.settings.conf, release) else { return };
        let limit = self.settings.max_split_size();
        self.settings.values = SnapshotSettings::listed(&config);
        // The recording has this limit even if its settings text does not name it.
        if let Some((_, value)) = self.settings.values.iter_mut().find(|(name, _)| name == "max_split_size") {
            *value = limit.to_string();
        }
    }
}

impl SnapshotSettings {
    /// The settings that a snapshot of the config's release lists, each with its value as Python prints it,
    /// in PyTorch's order. The value of `roundup_power2_divisions` has the divisions of each power of two:
    /// `1:0,2:0,...`.
    #[must_use]
    pub fn listed(config: &AllocatorConfig) -> Vec<(String, String)> {
        let flag = |is_on: bool| if is_on { "True" } else { "False" }.to_owned();
        // No limit is -1.
        let bytes = |limit: Bytes| limit.get().cast_signed().to_string();
        let pinned = config.pinned();
        let mut values = vec![
            ("PYTORCH_CUDA_ALLOC_CONF", config.text().to_owned()),
            ("max_split_size", config.max_split_size_signed().to_string()),
            ("garbage_collection_threshold", config.garbage_collection_threshold().to_string()),
            ("expandable_segments", flag(config.expandable_segments())),
            ("pinned_num_register_threads", pinned.register_threads.to_string()),
            ("release_lock_on_cudamalloc", flag(config.release_lock_on_device_malloc())),
            ("pinned_use_cuda_host_register", flag(pinned.use_host_register)),
        ];
        if config.release().knows_setting("graph_capture_record_stream_reuse") {
            values.push((
                "graph_capture_record_stream_reuse",
                flag(config.graph_capture_record_stream_reuse()),
            ));
        }
        if config.release().knows_setting("pinned_max_round_threshold_mb") {
            values.push(("max_round_threshold", bytes(pinned.max_round_threshold)));
            values.push(("max_cached_size", bytes(pinned.max_cached_size)));
        }
        let divisions = config.roundup_table().iter().enumerate();
        let divisions: Vec<String> =
            divisions.map(|(power, value)| format!("{}:{value}", 1_u64 << power)).collect();
        values.push(("roundup_power2_divisions", divisions.join(",")));
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
