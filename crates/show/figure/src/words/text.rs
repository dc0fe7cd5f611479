//! Figures as text, for screen readers, for terminals and for tests.

use std::fmt::Write as _;

use blockyard_record::{
    BlockState, Bytes, MemoryState, PoolId, PoolKind, Recording, SegmentSnapshot, StepOutcome, grouped,
};

use crate::apportion::apportion;
use crate::conversions::percent;
use crate::role::BreakdownClass;
use crate::timeline::Series;
use crate::words::names::{counted, pool_heading};

/// The breakdown as two sentences: every class, then the sums and peaks.
pub fn breakdown_text(state: &MemoryState, recording: &Recording) -> String {
    let breakdown = state.breakdown();
    let capacity = recording.known_capacity();
    let classes: Vec<_> = BreakdownClass::ALL
        .iter()
        // How much is free on a device of unknown size is not known.
        .filter(|class| capacity.is_some() || **class != BreakdownClass::Free)
        .map(|class| {
            let bytes = class.bytes(&breakdown);
            let share = capacity.map(|capacity| format!(" ({})", percent(bytes, capacity)));
            format!("{} {bytes}{}", class.name(), share.unwrap_or_default())
        })
        .collect();
    let of = match capacity {
        Some(capacity) => format!("Of {capacity}"),
        None => "Of a device whose memory is not known".to_owned(),
    };
    let peak = |count: i64| Bytes::new(u64::try_from(count).unwrap_or(0));
    let mut text = format!(
        "{of}: {}. Allocated {} (peak {}), reserved {} (peak {}).",
        classes.join(", "),
        breakdown.allocated(),
        peak(state.stats().allocated_bytes.all.peak),
        breakdown.reserved(),
        peak(state.stats().reserved_bytes.all.peak),
    );
    if let Some(limit) = state.limit() {
        let _ = write!(text, " At most {limit} may be reserved.");
    }
    text
}

/// The segments as PyTorch's snapshot shows them: each mapped run of an expandable segment is a segment.
/// Segments of a memory pool are neighbors.
fn mapped_segments(state: &MemoryState) -> Vec<SegmentSnapshot> {
    let segments = state.snapshot().segments;
    let mut segments: Vec<_> = segments.iter().flat_map(SegmentSnapshot::mapped_runs).collect();
    segments.sort_by_key(|segment| segment.pool_id);
    segments
}

/// The width of a segment's bar in [`map_text`], in characters.
const BAR: usize = 60;

/// The map as text with a line for each segment: pool, stream, size and a bar of its blocks, `#` for
/// allocated, `~` for pending and `.` for cached bytes. Where there are several memory pools, each has a line
/// over its segments.
///
/// Names are written in their blocks if there is room. If a bar has more blocks than characters, each
/// character shows the class of most of its bytes, and the number of blocks follows the bar.
pub fn map_text(state: &MemoryState, recording: &Recording) -> String {
    let segments = mapped_segments(state);
    if segments.is_empty() {
        return "no segments\n".to_owned();
    }
    let names: Vec<_> = segments.iter().map(|segment| recording.stream_name(segment.stream)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let has_pools = segments.iter().any(|segment| segment.pool_id != PoolId::DEFAULT);
    let mut pool_before = None;
    for (segment, name) in segments.iter().zip(names) {
        if has_pools && pool_before != Some(segment.pool_id) {
            pool_before = Some(segment.pool_id);
            let same = segments.iter().filter(|other| other.pool_id == segment.pool_id);
            let reserved: Bytes = same.clone().map(|other| other.size).sum();
            let heading = pool_heading(segment.pool_id, None);
            let _ = writeln!(text, "{heading}: {}, {reserved} reserved", counted(same.count(), "segment"));
        }
        let pool = if segment.pool == PoolKind::Small { 'S' } else { 'L' };
        let bar = bar(segment, recording);
        let size = segment.size.to_string();
        let _ = writeln!(text, "{pool} {name:name_width$} {size:>10} {bar}");
    }
    text
}

fn glyph(state: BlockState) -> char {
    match state {
        BlockState::Allocated => '#',
        BlockState::PendingFree => '~',
        BlockState::Inactive => '.',
        BlockState::Unmapped => ' ',
    }
}

fn bar(segment: &SegmentSnapshot, recording: &Recording) -> String {
    let blocks = &segment.blocks;
    // A border before each block but the first takes a character too.
    if blocks.len() * 2 > BAR {
        return format!("[{}] {}", dense_bar(segment), counted(blocks.len(), "block"));
    }
    let sizes: Vec<_> = blocks.iter().map(|block| block.size).collect();
    let widths = apportion(&sizes, BAR + 1 - blocks.len());
    let cells: Vec<_> = blocks
        .iter()
        .zip(widths)
        .map(|(block, width)| {
            let named =
                block.allocation.filter(|_| block.state.is_active()).and_then(|id| recording.name(id));
            let fill = glyph(block.state);
            match named.filter(|name| name.chars().count() <= width) {
                Some(name) => {
                    let missing = width - name.chars().count();
                    let before: String = std::iter::repeat_n(fill, missing / 2).collect();
                    let after: String = std::iter::repeat_n(fill, missing - missing / 2).collect();
                    format!("{before}{name}{after}")
                }
                None => std::iter::repeat_n(fill, width).collect(),
            }
        })
        .collect();
    format!("[{}]", cells.join("|"))
}

/// A bar in which each character shows the class of most of its bytes.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a number of 64 bits times the count of cells fits 128 bits"
)]
fn dense_bar(segment: &SegmentSnapshot) -> String {
    let mut sums = [[0_u128; 3]; BAR];
    let size = u128::from(segment.size.get()).max(1);
    let cells = BAR as u128;
    for block in &segment.blocks {
        // Lengths are in units of which each character has `size`, so that edges are exact.
        let mut at = u128::from(block.addr.offset_from(segment.addr).get()) * cells;
        let end = at + u128::from(block.size.get()) * cells;
        let state = match block.state {
            BlockState::Allocated => 0,
            BlockState::PendingFree => 1,
            BlockState::Inactive => 2,
            BlockState::Unmapped => continue,
        };
        while at < end {
            let cell = at / size;
            let next = ((cell + 1) * size).min(end);
            if let Some(sum) = usize::try_from(cell).ok().and_then(|cell| sums.get_mut(cell)) {
                sum[state] += next - at;
            }
            at = next;
        }
    }
    let glyphs = [BlockState::Allocated, BlockState::PendingFree, BlockState::Inactive].map(glyph);
    sums.iter()
        .map(|sum| {
            // Ties go to the first class, so that allocated bytes win.
            let most = sum.iter().max().copied().unwrap_or(0);
            glyphs[sum.iter().position(|part| *part == most).unwrap_or(2)]
        })
        .collect()
}

/// The timeline as text: its length, its end, its peaks, its labels and its failures.
pub fn timeline_text(series: &Series, recording: &Recording) -> String {
    text_over_time(series, recording, "request")
}

/// The same about a run that a reader knows by its steps.
pub fn read_timeline_text(series: &Series, recording: &Recording) -> String {
    text_over_time(series, recording, "step")
}

/// The words about the run, each moment of which is a `moment`: a request or a step.
fn text_over_time(series: &Series, recording: &Recording, moment_name: &str) -> String {
    let steps = series.step_count();
    let Some(last) = steps.checked_sub(1).and_then(|step| recording.breakdown_after(step)) else {
        return format!("No {moment_name}s.");
    };
    let mut text = format!(
        "{}. At the end {} are allocated and {} reserved{}.",
        counted(steps, moment_name),
        last.allocated(),
        last.reserved(),
        recording.known_capacity().map(|capacity| format!(", of {capacity}")).unwrap_or_default()
    );
    for (name, border) in [("allocated", 1), ("reserved", 3)] {
        let (bytes, moment) = series.highest(recording, border, None);
        let _ = write!(text, " Most {name}: {bytes} after {moment_name} {}.", grouped(moment));
    }
    let labels = recording.labels();
    if !labels.is_empty() {
        let shown: Vec<_> = labels
            .iter()
            .take(20)
            .map(|label| format!("{} from {moment_name} {}", label.text, grouped(label.step as usize + 1)))
            .collect();
        let more = labels.len() - shown.len();
        let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
        let _ = write!(text, " Labels: {}{more}.", shown.join(", "));
    }
    let failures: Vec<_> = recording
        .failed_steps()
        .iter()
        .filter(|(_, outcome)| matches!(outcome, StepOutcome::OutOfMemory(_)))
        .map(|(step, _)| grouped(*step as usize + 1))
        .collect();
    if !failures.is_empty() {
        let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
        let _ = write!(text, " Out of memory {}: at request {shown}.", counted(failures.len(), "time"));
    }
    text
}
