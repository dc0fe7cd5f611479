//! A played text, and the picture of the memory after it: segments, blocks, statistics.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use blockyard_record::{
    BlockSnapshot, BlockState, Bytes, Recording, SegmentSnapshot, Stat, Stats, StepOutcome, TraceEntry,
};
use blockyard_replay::{RunSettings, run};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;
use expect_test::Expect;

/// The device and the settings to play a text with: 1 GiB and the defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    capacity: Bytes,
    conf: &'static str,
    release: Release,
}

pub(crate) const DEVICE: Device = Device { capacity: Bytes::gib(1), conf: "", release: Release::LATEST };

impl Device {
    pub(crate) const fn of(capacity: Bytes) -> Self {
        Self { capacity, ..DEVICE }
    }

    pub(crate) const fn with(self, config: &'static str) -> Self {
        Self { conf: config, ..self }
    }

    pub(crate) const fn under(self, release: Release) -> Self {
        Self { release, ..self }
    }

    #[track_caller]
    pub(crate) fn play(self, text: &str) -> WorkloadRun {
        let workload = Workload::parse(text).unwrap();
        let settings = RunSettings {
            title: String::new(),
            config: AllocatorConfig::parse(self.conf, self.release).unwrap(),
            capacity: self.capacity,
        };
        let recording = run(&workload, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        let state = recording.state_at(recording.event_count()).unwrap();
        WorkloadRun { stats: *state.stats(), segments: state.snapshot().segments, recording }
    }

    /// Plays the text and compares the picture that it leaves.
    #[track_caller]
    pub(crate) fn check(self, text: &str, expect: &Expect) -> WorkloadRun {
        let played = self.play(text);
        expect.assert_eq(&played.picture());
        played
    }
}

/// [`Device::check`] on 1 GiB with the default settings.
#[track_caller]
pub(crate) fn check(text: &str, expect: &Expect) -> WorkloadRun {
    DEVICE.check(text, expect)
}

/// The result of a workload.
#[derive(Debug)]
pub(crate) struct WorkloadRun {
    pub(crate) recording: Recording,
    pub(crate) stats: Stats,
    pub(crate) segments: Vec<SegmentSnapshot>,
}

impl WorkloadRun {
    /// PyTorch's trace.
    pub(crate) fn trace(&self) -> Vec<TraceEntry> {
        self.recording.trace().unwrap()
    }

    /// The trace with segments as `S1`, `S2` in order of creation: `alloc S1+512 400`.
    pub(crate) fn trace_lines(&self) -> Vec<String> {
        let mut bases: Vec<(u64, u64)> = Vec::new();
        let lines = self.trace().into_iter().map(|entry| {
            if entry.action.name() == "segment_alloc" {
                bases.push((entry.addr, entry.size.get()));
            }
            let (action, size) = (entry.action, entry.size.get());
            let place = bases.iter().rposition(|(base, length)| (*base..base + length).contains(&entry.addr));
            match place {
                Some(place) if entry.addr == bases[place].0 => format!("{action} S{} {size}", place + 1),
                Some(place) => format!("{action} S{}+{} {size}", place + 1, entry.addr - bases[place].0),
                None => format!("{action} {} {size}", entry.addr),
            }
        });
        lines.collect()
    }

    /// The messages of the steps that failed or were skipped.
    pub(crate) fn messages(&self) -> Vec<&str> {
        let failed_steps = self.recording.failed_steps().iter();
        let messages = failed_steps.map(|(_, outcome)| match outcome {
            StepOutcome::Done => "",
            StepOutcome::OutOfMemory(text) | StepOutcome::Refused(text) | StepOutcome::Skipped(text) => text,
        });
        messages.collect()
    }

    /// A line for each segment: `S1 small default: 0..512 a (1) | 512..1024 cached (0)`, with offsets in
    /// bytes and the requested bytes in parentheses; then the statistics that are not zero, as
    /// current/peak/allocated/freed.
    pub(crate) fn picture(&self) -> String {
        let mut text = String::new();
        for segment in &self.segments {
            let blocks: Vec<String> = segment.blocks.iter().map(|block| self.block(segment, block)).collect();
            let _ = writeln!(
                text,
                "S{} {} {}: {}",
                segment.id.get() + 1,
                segment.pool,
                self.recording.stream_name(segment.stream),
                blocks.join(" | ")
            );
        }
        text + &statistics(&self.stats)
    }

    fn block(&self, segment: &SegmentSnapshot, block: &BlockSnapshot) -> String {
        let start = block.addr.offset_from(segment.addr);
        let end = start + block.size;
        let name = block.allocation.and_then(|allocation| self.recording.name(allocation)).unwrap_or("?");
        let what = match block.state {
            BlockState::Allocated => name.to_owned(),
            BlockState::PendingFree => format!("{name} pending"),
            BlockState::Inactive => "cached".to_owned(),
            BlockState::Unmapped => "unmapped".to_owned(),
        };
        format!("{}..{} {what} ({})", start.get(), end.get(), block.requested.get())
    }
}

fn statistics(stats: &Stats) -> String {
    let mut text = String::new();
    let quantities = [
        ("allocation", stats.allocation.all),
        ("segment", stats.segment.all),
        ("active", stats.active.all),
        ("inactive_split", stats.inactive_split.all),
        ("allocated_bytes", stats.allocated_bytes.all),
        ("reserved_bytes", stats.reserved_bytes.all),
        ("active_bytes", stats.active_bytes.all),
        ("inactive_split_bytes", stats.inactive_split_bytes.all),
        ("requested_bytes", stats.requested_bytes.all),
        ("oversize_allocations", stats.oversize_allocations),
        ("oversize_segments", stats.oversize_segments),
    ];
    for (name, stat) in quantities.into_iter().filter(|(_, stat)| *stat != Stat::default()) {
        let Stat { current, peak, allocated, freed } = stat;
        let _ = writeln!(text, "{name} {current}/{peak}/{allocated}/{freed}");
    }
    let counts = [
        ("num_alloc_retries", stats.num_alloc_retries),
        ("num_ooms", stats.num_ooms),
        ("num_sync_all_streams", stats.num_sync_all_streams),
        ("num_device_alloc", stats.num_device_alloc),
        ("num_device_free", stats.num_device_free),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count != 0);
    let counts: Vec<String> = counts.map(|(name, count)| format!("{name} {count}")).collect();
    if !counts.is_empty() {
        let _ = writeln!(text, "{}", counts.join(", "));
    }
    text
}

/// `[current, peak, allocated, freed]`, as the worked examples write them.
pub(crate) fn values(stat: Stat) -> [i64; 4] {
    [stat.current, stat.peak, stat.allocated, stat.freed]
}
