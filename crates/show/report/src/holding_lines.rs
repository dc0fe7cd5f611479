//! The holders of the memory at one moment: the program's own lines first, with the frames of libraries
//! folded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use blockyard_figure::{AllocationFilter, Allocations, Collector, frame_text, rows_in};
use blockyard_lab::{BEFORE_RECORDING, LabError, WITHOUT_PROGRAM_LINE, WORKSPACES};
use blockyard_record::{Bytes, FrameId, Recording, StackHolder, StackId, counted};
use blockyard_replay::{OnProgress, Progress};

use crate::figures::write_row;
use crate::html::{escaped, percent};
use crate::moment::Moment;

/// How many places have a separate row; one more row has the rest.
const ROWS: usize = 10;
/// How many frames of a stack are shown.
const FRAMES: usize = 60;
/// How many events are read between two reports of progress.
const BETWEEN_REPORTS: usize = 1 << 16;

/// The holder that a row is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowHolder {
    /// A line of the program, or of a library where there is no other.
    Line(FrameId),
    /// A tensor of a workload.
    Name(String),
    /// Blocks of one size, of which nothing else is known, in a recording without stacks.
    Size(Bytes),
    /// Blocks that no line of the program allocated, in a recording whose other blocks have one.
    WithoutStack,
    /// Blocks from before the recording, in a recording whose other blocks have a line.
    BeforeRecording,
    /// Blocks that a library keeps to work in.
    Workspaces,
}

/// The bytes that one place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceBytes {
    pub(crate) place: RowHolder,
    pub(crate) bytes: Bytes,
    pub(crate) blocks: usize,
    /// The stack that holds most of the place's bytes.
    stack: StackId,
}

/// All places that hold bytes, those that hold most first. Their bytes add up to the allocated bytes of the
/// moment.
pub(crate) fn held(
    recording: &Arc<Recording>,
    moment: &Moment,
    on_progress: OnProgress,
) -> Result<Vec<PlaceBytes>, LabError> {
    let mut collector = Collector::new(recording.clone());
    while collector.advance(BETWEEN_REPORTS) {
        let (done, total) = collector.progress();
        if on_progress(Progress::new("looking for holders", done, total)).is_break() {
            return Err(LabError::Cancelled);
        }
    }
    let allocations = collector.finish();
    let rows = rows_in(&allocations, AllocationFilter::At(moment.steps));
    Ok(grouped_rows(recording, &allocations, &rows))
}

fn grouped_rows(recording: &Recording, allocations: &Allocations, rows: &[usize]) -> Vec<PlaceBytes> {
    let mut of_stacks: BTreeMap<StackId, Option<RowHolder>> = BTreeMap::new();
    let has_stacks = !recording.stacks().is_empty();
    // The bytes of each stack of a place.
    let mut places: BTreeMap<RowHolder, BTreeMap<StackId, (Bytes, usize)>> = BTreeMap::new();
    for row in rows {
        let Some(allocation) = allocations.get(*row) else { continue };
        let stack = recording.allocation_stack(allocation.id);
        let of_stack = of_stacks.entry(stack).or_insert_with(|| place_of_stack(recording, stack));
        let place = match (of_stack, recording.name(allocation.id)) {
            (Some(place), _) => place.clone(),
            (None, Some(name)) => RowHolder::Name(name.to_owned()),
            (None, None) if has_stacks && recording.allocated_at(allocation.id).is_none() => {
                RowHolder::BeforeRecording
            }
            (None, None) if has_stacks => RowHolder::WithoutStack,
            (None, None) => RowHolder::Size(allocation.size),
        };
        let (bytes, blocks) = places.entry(place).or_default().entry(stack).or_default();
        *bytes = bytes.saturating_add(allocation.size);
        *blocks += 1;
    }
    let mut held: Vec<PlaceBytes> = places
        .into_iter()
        .map(|(place, stacks)| {
            let largest = stacks.iter().max_by_key(|(_, (bytes, _))| *bytes);
            PlaceBytes {
                place,
                bytes: stacks.values().map(|(bytes, _)| *bytes).sum(),
                blocks: stacks.values().map(|(_, blocks)| blocks).sum(),
                stack: largest.map(|(stack, _)| *stack).unwrap_or_default(),
            }
        })
        .collect();
    held.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.place.cmp(&other.place)));
    held
}

/// The line of a stack, or the row for everything that no line holds; `None` for the empty stack.
fn place_of_stack(recording: &Recording, stack: StackId) -> Option<RowHolder> {
    let stacks = recording.stacks();
    let line = stacks.own_frame(stack)?;
    Some(match StackHolder::of(stacks.frames(stack).map(|frame| stacks.frame(frame))) {
        StackHolder::Program => RowHolder::Line(line),
        StackHolder::Workspace => RowHolder::Workspaces,
        StackHolder::PyTorch => RowHolder::WithoutStack,
    })
}

impl PlaceBytes {
    /// The line of the program that called the place, in the stack that holds most; a call from the top level
    /// says no more than the place.
    fn caller(&self, recording: &Recording) -> Option<String> {
        let stacks = recording.stacks();
        let frames = || stacks.frames(self.stack).map(|frame| stacks.frame(frame));
        let mut own = frames().filter(|frame| !frame.is_of_library());
        own.next()?;
        let caller = own.next().filter(|frame| frame.name != "<module>")?;
        Some(frame_text(caller).trim_end().to_owned())
    }

    /// The place in words.
    pub(crate) fn text(&self, recording: &Recording) -> String {
        match &self.place {
            RowHolder::Line(frame) => {
                let line = frame_text(recording.stacks().frame(*frame)).trim_end().to_owned();
                match self.caller(recording) {
                    Some(caller) => format!("{line}, called at {caller}"),
                    None => line,
                }
            }
            RowHolder::Name(name) => format!("tensor {name}"),
            RowHolder::Size(size) => format!("blocks of {size}; no stack was recorded"),
            RowHolder::WithoutStack => WITHOUT_PROGRAM_LINE.to_owned(),
            RowHolder::BeforeRecording => BEFORE_RECORDING.to_owned(),
            RowHolder::Workspaces => WORKSPACES.to_owned(),
        }
    }
}

pub(crate) fn write(
    out: &mut String,
    place: usize,
    recording: &Recording,
    moment: &Moment,
    held: &[PlaceBytes],
    has_stacks: bool,
) {
    let _ = writeln!(out, "<h3 id=\"holders-{place}\">Who holds the memory {}</h3>", moment.when());
    let allocated = moment.state.breakdown().allocated();
    if held.is_empty() {
        out.push_str("<p>Nothing is allocated.</p>\n");
        return;
    }
    out.push_str(
        "<table class=\"numbers\">\n<thead><tr><th>Bytes</th><th>of allocated</th><th>Where they were allocated</th></tr></thead>\n\
         <tbody>\n",
    );
    for one in held.iter().take(ROWS) {
        let mut what = format!(
            "<code>{}</code> <span class=\"quiet\">{}</span>",
            escaped(&one.text(recording)),
            counted(one.blocks, "block")
        );
        if has_stacks {
            what.push_str(&folded_stack(recording, one.stack));
        }
        write_row(out, one.bytes, &percent(one.bytes, allocated), &what);
    }
    let rest = held.get(ROWS..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes: Bytes = rest.iter().map(|one| one.bytes).sum();
        let blocks: usize = rest.iter().map(|one| one.blocks).sum();
        let what = format!("{}, {}", counted(rest.len(), "more place"), counted(blocks, "block"));
        write_row(out, bytes, &percent(bytes, allocated), &what);
    }
    out.push_str("</tbody>\n</table>\n");
}

/// The whole stack, closed until a reader opens it; nothing for a stack of one frame.
fn folded_stack(recording: &Recording, stack: StackId) -> String {
    let stacks = recording.stacks();
    let frames: Vec<_> = stacks.frames(stack).map(|frame| stacks.frame(frame)).collect();
    if frames.len() < 2 {
        return String::new();
    }
    let of_libraries = frames.iter().filter(|frame| frame.is_of_library()).count();
    let mut out = format!(
        "<details><summary>{}, {} of libraries</summary><ol>",
        counted(frames.len(), "frame"),
        of_libraries
    );
    for frame in frames.iter().take(FRAMES) {
        let class = if frame.is_of_library() { " class=\"quiet\"" } else { "" };
        let _ = write!(out, "<li{class}><code>{}</code></li>", escaped(&frame_text(*frame)));
    }
    if frames.len() > FRAMES {
        let _ = write!(out, "<li>{}</li>", counted(frames.len() - FRAMES, "more frame"));
    }
    out.push_str("</ol></details>");
    out
}
