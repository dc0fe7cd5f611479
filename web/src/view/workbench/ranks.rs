//! Several recordings that were opened together, one for each rank: small timelines on one scale.

use std::collections::{BTreeMap, HashMap};

use blockyard_figure::{Point, TimelineView, small_timeline, timeline_strip_step_at};
use blockyard_lab::WITHOUT_PROGRAM_LINE;
use blockyard_record::{BlockState, Bytes, StackId};
use leptos::html;
use leptos::prelude::*;

use crate::files::Rank;
use crate::files::deciding_rank;
use crate::lab::line_of_stack;
use crate::run::Run;
use crate::session::{Session, Source};
use crate::surface;
use crate::view::figure::gesture::{self, Gesture};
use crate::view::kit::{click, text};

/// The strip of ranks; empty for fewer than two ranks.
pub(crate) fn ranks(session: Session) -> AnyView {
    let content = move || {
        let ranks = session.files().ranks.get();
        if ranks.len() < 2 {
            return None;
        }
        let top = ranks.iter().map(|rank| rank.opened.run.series.peaks().1).max().unwrap_or_default();
        let steps = ranks.iter().map(|rank| rank.opened.run.series.step_count()).max().unwrap_or_default();
        let words = summary(&ranks);
        let whole = TimelineView::fit(steps);
        let scale = Scale { top, whole, view: RwSignal::new(whole) };
        let rows: Vec<AnyView> = ranks.into_iter().map(|rank| row(session, rank, scale)).collect();
        let label = format!("Ranks: {} timelines on one scale", rows.len());
        Some(
            view! { <section class="panel" aria-label=label data-testid="ranks">
                <p class="ranks-summary" data-testid="ranks-summary">{words}</p>
                <div class="ranks">{rows}</div>
            </section> }
            .into_any(),
        )
    };
    view! { {content} }.into_any()
}

/// Which ranks ran out of memory, and where most is allocated.
fn summary(ranks: &[Rank]) -> String {
    let peak = |rank: &Rank| rank.opened.run.series.peaks().0;
    let name = |rank: &Rank| rank.opened.name.clone();
    let failed: Vec<String> = ranks.iter().filter(|rank| rank.has_failed()).map(name).collect();
    let failed =
        if failed.is_empty() { String::new() } else { format!("Out of memory: {}. ", failed.join(", ")) };
    let (Some(largest), Some(smallest)) =
        (ranks.iter().rev().max_by_key(|rank| peak(rank)), ranks.iter().min_by_key(|rank| peak(rank)))
    else {
        return failed;
    };
    if peak(largest) == peak(smallest) {
        return format!("{failed}All {} ranks have {} allocated at their peaks.", ranks.len(), peak(largest));
    }
    let line = line_that_differs(&largest.opened.run, &smallest.opened.run).map(|(line, [more, less])| {
        format!(
            " The line that differs most is {line}: {more} on {}, {less} on {}.",
            name(largest),
            name(smallest)
        )
    });
    format!(
        "{failed}Most is allocated on {}: {} at its peak; least on {}: {}.{}",
        name(largest),
        peak(largest),
        name(smallest),
        peak(smallest),
        line.unwrap_or_default()
    )
}

/// The line of the program whose allocated bytes at the peaks of two runs differ most, with its bytes in
/// both; `None` without stacks.
fn line_that_differs(one: &Run, other: &Run) -> Option<(String, [Bytes; 2])> {
    let (one, other) = (lines_at_peak(one)?, lines_at_peak(other)?);
    let bytes = |lines: &BTreeMap<String, Bytes>, line: &str| lines.get(line).copied().unwrap_or_default();
    let both = one.keys().chain(other.keys()).map(|line| (line, [bytes(&one, line), bytes(&other, line)]));
    // The first line is taken of those with equal differences.
    let differs = |[one, other]: [Bytes; 2]| one.get().abs_diff(other.get());
    let found = both.rev().max_by_key(|(_, bytes)| differs(*bytes))?;
    (differs(found.1) > 0).then(|| (found.0.clone(), found.1))
}

/// The allocated bytes of each line of the program at the peak of a run; `None` where the run has no stacks.
fn lines_at_peak(run: &Run) -> Option<BTreeMap<String, Bytes>> {
    let recording = &run.recording;
    if recording.stacks().is_empty() {
        return None;
    }
    let last = recording.step(run.series.peak_steps(recording).0.checked_sub(1)?)?;
    let state = recording.state_at(last.end).ok()?;
    let mut of_stacks: HashMap<StackId, String> = HashMap::new();
    let mut lines: BTreeMap<String, Bytes> = BTreeMap::new();
    let blocks =
        state.segments().filter_map(|info| state.segment(info.id)).flat_map(|segment| segment.blocks);
    for block in blocks.filter(|block| block.state == BlockState::Allocated) {
        let stack = recording.allocation_stack(block.allocation?);
        let line = of_stacks
            .entry(stack)
            .or_insert_with(|| line_of_stack(run, stack).unwrap_or_else(|| WITHOUT_PROGRAM_LINE.to_owned()));
        let sum = lines.entry(line.clone()).or_default();
        *sum = sum.saturating_add(block.size);
    }
    Some(lines)
}

/// The words that name the rank that the verdict is about; empty if a single file is open. Reads signals.
pub(crate) fn verdict_is_about(session: Session) -> String {
    let (ranks, shown) = (session.files().ranks.get(), session.shown_recording());
    let Some(rank) = ranks.iter().find(|rank| ranks.len() > 1 && Some(&rank.opened) == shown.as_ref()) else {
        return String::new();
    };
    let decides = deciding_rank(&ranks).is_some_and(|decides| decides.opened == rank.opened);
    let why = match (rank.has_failed(), decides) {
        (true, _) => ", which ran out of memory",
        (false, true) => ", where most is allocated",
        (false, false) => "",
    };
    format!("About {}{why}, one of {} ranks.", rank.opened.name, ranks.len())
}

/// The scale of all ranks: equal bytes have the same height, and equal counts of steps the same width.
#[derive(Clone, Copy)]
struct Scale {
    top: Bytes,
    /// All steps of the longest rank.
    whole: TimelineView,
    /// The steps that are shown, which gestures on any rank change.
    view: RwSignal<TimelineView>,
}

impl Scale {
    /// Does what the gesture means on a figure of this width. Returns whether the figures changed.
    fn act(self, gesture: Gesture, at: Point, width_px: f32) -> bool {
        let steps = timeline_strip_step_at(&self.whole, 1.0);
        let before = self.view.get_untracked();
        let after = match gesture {
            Gesture::Zoom(factor) => before.zoom_at(f64::from(at.x_px / width_px), factor, steps),
            Gesture::Pan(by) => before.pan(-f64::from(by.x_px / width_px), steps),
            Gesture::Whole => self.whole,
            _ => before,
        };
        if after != before {
            self.view.set(after);
        }
        after != before
    }
}

fn row(session: Session, rank: Rank, scale: Scale) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let run = rank.opened.run.clone();
    let drawn = run.clone();
    surface::keep_drawn(session, canvas, size, move |size| {
        Some(small_timeline(&drawn.series, &drawn.recording, scale.top, &scale.view.get(), size))
    });
    // A click reaches the button around the figure, except after a drag.
    gesture::listen(area, move |gesture, at, _| {
        scale.act(gesture, at, size.get_untracked().width_px.max(1.0))
    });
    let (allocated, reserved) = run.series.peaks();
    let name = rank.opened.name.clone();
    let of = rank.opened.clone();
    let is_shown = text(move || {
        let is_shown =
            session.source.with(|source| matches!(source, Source::Recording(shown) if *shown == of));
        is_shown.to_string()
    });
    let title = format!("{name}: at most {allocated} allocated, {reserved} reserved. Click to show it.");
    view! {
        <button type="button" class="rank" aria-pressed=is_shown title=title
            on:click=click(move || session.files().show_rank(&rank))>
            <span class="name">{name}</span>
            <div class="canvas-box" node_ref=area><canvas node_ref=canvas aria-hidden="true"></canvas></div>
            <span class="peak">{allocated.to_string()}</span>
        </button>
    }
    .into_any()
}
