//! The options of the figures of allocations, the data that they draw, and the chosen allocations.

use std::sync::Arc;

use blockyard_figure::{
    AddressMap, Allocations, Collector, ColorBy, GridKind, GroupBy, Groups, PlayerAction, Role, Scene, Scope,
};
use blockyard_record::{AllocationId, MemoryState, Recording};
use leptos::prelude::*;

use crate::browser;
use crate::jobs;
use crate::ptr_eq::PtrEq;
use crate::session::{CATEGORIES, Session};

/// The allocations of a recording in columns, made for the figures and for the table of holders.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) recording: Arc<Recording>,
    pub(crate) allocations: Allocations,
    pub(crate) map: AddressMap,
    /// Whether any allocation has a stack.
    pub(crate) has_stacks: bool,
}

/// The chosen allocations. All figures show the same ones.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) title: String,
    /// Rows of [`Columns::allocations`], ascending.
    pub(crate) rows: Vec<usize>,
}

/// The moment, or the time, whose holders the table shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    #[default]
    Cursor,
    PeakAllocated,
    PeakReserved,
    /// Allocations that are alive all the time between the mark and the cursor.
    Throughout,
    /// Allocations that were made between the mark and the cursor.
    New,
}

impl Wanted {
    pub(crate) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Cursor, "cursor", "at the cursor"),
        (Self::PeakAllocated, "peak-allocated", "at the peak of allocated bytes"),
        (Self::PeakReserved, "peak-reserved", "at the peak of reserved bytes"),
        (Self::Throughout, "throughout", "all the time from the mark to the cursor"),
        (Self::New, "new", "new between the mark and the cursor"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(wanted, ..)| *wanted == self).map_or("", |(_, name, _)| name)
    }
}

/// The signals of the figures of allocations.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    /// The columns of the shown run, or of a former run while they are being made.
    pub(crate) columns: RwSignal<Option<PtrEq<Columns>>>,
    pub(crate) kind: RwSignal<GridKind>,
    /// What colors mean; `None` if the reader has not chosen, see [`Session::color_by`].
    pub(crate) color_by: RwSignal<Option<ColorBy>>,
    /// The entries of the legend that are hidden, a bit for each.
    pub(crate) filtered: RwSignal<u16>,
    /// The lowest and the highest byte of the vertical axis, or `None` for all bytes.
    pub(crate) range: RwSignal<Option<(f64, f64)>>,
    /// What holders are grouped by; `None` if the reader has not chosen, see [`Session::group_by`].
    pub(crate) by: RwSignal<Option<GroupBy>>,
    pub(crate) is_flame: RwSignal<bool>,
    pub(crate) wanted: RwSignal<Wanted>,
    /// Whether memory over time is drawn by the wall clock.
    pub(crate) is_by_clock: RwSignal<bool>,
    /// The step of the mark, a second cursor.
    pub(crate) mark: RwSignal<Option<usize>>,
    pub(crate) search: RwSignal<String>,
    pub(crate) picked: RwSignal<Option<PtrEq<Picked>>>,
    collector: StoredValue<Option<Collector>, LocalStorage>,
}

impl Figures {
    pub(crate) fn new() -> Self {
        Self {
            columns: RwSignal::new(None),
            kind: RwSignal::new(GridKind::default()),
            color_by: RwSignal::new(None),
            filtered: RwSignal::new(0),
            range: RwSignal::new(None),
            by: RwSignal::new(None),
            is_flame: RwSignal::new(false),
            wanted: RwSignal::new(Wanted::default()),
            is_by_clock: RwSignal::new(false),
            mark: RwSignal::new(None),
            search: RwSignal::new(String::new()),
            picked: RwSignal::new(None),
            collector: StoredValue::new_local(None),
        }
    }

    /// Resets the choices that belong to a run, when another run is shown.
    pub(crate) fn forget(self) {
        self.filtered.set(0);
        self.range.set(None);
        self.mark.set(None);
        self.picked.set(None);
    }
}

/// How many events are read before the clock is read again.
const SLICE: usize = 4000;
/// After so long, the effects of a newly opened recording have begun to make its figures.
const FIGURES_BEGIN_MILLIS: i32 = 100;
/// How long the page's thread works on the columns at a time.
const SLICE_MILLIS: f64 = 5.0;

impl Session {
    /// Makes the columns of the shown run, in slices between other work of the page's thread, unless they have been made.
    pub(crate) fn collect_allocations(self) {
        let recording = self.run.get_untracked().recording.clone();
        let is_made = self.figures.columns.with_untracked(|columns| {
            columns.as_ref().is_some_and(|columns| Arc::ptr_eq(&columns.recording, &recording))
        });
        let is_begun = self.figures.collector.with_value(|collector| {
            collector.as_ref().is_some_and(|collector| Arc::ptr_eq(collector.recording(), &recording))
        });
        if is_made || is_begun {
            return;
        }
        self.figures.collector.set_value(Some(Collector::new(recording)));
        let _ = browser::after_millis(0, move || self.collect_more());
    }

    fn collect_more(self) {
        let Some(mut collector) = self.figures.collector.try_update_value(Option::take).flatten() else {
            return;
        };
        let begun = browser::now_millis();
        let mut has_more = true;
        while has_more && browser::now_millis() - begun < SLICE_MILLIS {
            has_more = collector.advance(SLICE);
        }
        if has_more {
            self.figures.collector.set_value(Some(collector));
            let _ = browser::after_millis(0, move || self.collect_more());
            return;
        }
        let recording = collector.recording().clone();
        // Another run may have been shown while the columns were made.
        if !Arc::ptr_eq(&recording, &self.run.get_untracked().recording) {
            return self.collect_allocations();
        }
        let allocations = collector.finish();
        let map = AddressMap::new(&allocations);
        let has_stacks = !recording.stacks().is_empty();
        let columns = Columns { recording, allocations, map, has_stacks };
        self.figures.columns.set(Some(PtrEq::new(columns)));
        jobs::compare();
    }

    /// Asks the worker to compare the opened file: at once if no figure of allocations is being made, and otherwise after it.
    pub(crate) fn compare_when_drawn(self) {
        let _ = browser::after_millis(FIGURES_BEGIN_MILLIS, move || {
            if self.figures.collector.with_value(Option::is_none) {
                jobs::compare();
            }
        });
    }

    /// The columns of the shown run, if they have been made. Reads signals.
    pub(crate) fn columns(self) -> Option<PtrEq<Columns>> {
        let run = self.run.get();
        self.figures.columns.get().filter(|columns| Arc::ptr_eq(&columns.recording, &run.recording))
    }

    /// What colors mean: the reader's choice, or else stacks, categories or sizes, whichever the run has. Reads signals.
    pub(crate) fn color_by(self) -> ColorBy {
        let has_stacks = self.columns().is_some_and(|columns| columns.has_stacks);
        let chosen = self.figures.color_by.get();
        chosen.unwrap_or_else(|| match (has_stacks, self.shown_program().is_some()) {
            // Of a Python program the categories are known, and the lines stand beside its text.
            (_, true) => ColorBy::Category,
            (true, false) => ColorBy::Stack,
            (false, false) => ColorBy::Size,
        })
    }

    /// The groups of allocations that have a color each, if the columns have been made. Reads signals.
    pub(crate) fn color_groups(self) -> Option<Groups> {
        let columns = self.columns()?;
        let by = self.color_by();
        Some(match self.shown_program().filter(|_| by == ColorBy::Category) {
            Some(program) => {
                Groups::named(&columns.allocations, &CATEGORIES, |allocation| program.category(allocation))
            }
            None => Groups::new(&columns.allocations, &columns.recording, by),
        })
    }

    /// Gives the blocks of a program the colors of their categories, if colors mean categories. Reads signals.
    pub(crate) fn color_blocks(self, scene: &mut Scene, state: &MemoryState) {
        let Some(program) = self.shown_program().filter(|_| self.color_by() == ColorBy::Category) else {
            return;
        };
        scene.color_blocks(|block| {
            let place = program.category(state.block(block)?.allocation?)?;
            Some(Role::Group(u8::try_from(place).ok()?))
        });
    }

    /// What holders are grouped by: the reader's choice, or else stacks if there are any, or else sizes. Reads signals.
    pub(crate) fn group_by(self) -> GroupBy {
        let has_stacks = self.columns().is_some_and(|columns| columns.has_stacks);
        let chosen = self.figures.by.get();
        chosen.unwrap_or(if has_stacks { GroupBy::Stack } else { GroupBy::Size })
    }

    /// The moment, or the time, whose holders the table shows. Reads signals.
    pub(crate) fn scope(self) -> Scope {
        let run = self.run.get();
        let cursor = self.player.with(|player| player.steps);
        let mark = self.figures.mark.get().unwrap_or(0);
        match self.figures.wanted.get() {
            Wanted::Cursor => Scope::At(cursor),
            Wanted::PeakAllocated => Scope::At(run.series.peak_steps(&run.recording).0),
            Wanted::PeakReserved => Scope::At(run.series.peak_steps(&run.recording).1),
            Wanted::Throughout => Scope::Throughout(mark, cursor),
            Wanted::New => Scope::NewBetween(mark, cursor),
        }
    }

    /// Chooses allocations in all figures. Choosing the same ones again, or none, releases them.
    pub(crate) fn pick(self, title: String, rows: Vec<usize>) {
        let is_same = self.figures.picked.with_untracked(|picked| {
            picked.as_ref().is_some_and(|picked| picked.rows == rows && picked.title == title)
        });
        let picked = (!is_same && !rows.is_empty()).then(|| PtrEq::new(Picked { title, rows }));
        let ids: Vec<AllocationId> = match (&picked, self.figures.columns.get_untracked()) {
            (Some(picked), Some(columns)) => {
                picked.rows.iter().filter_map(|row| columns.allocations.id(*row)).collect()
            }
            _ => Vec::new(),
        };
        self.figures.picked.set(picked);
        self.map_view.update(|view| view.picked = Arc::new(ids));
    }

    /// Releases the chosen allocations. Returns whether there were any.
    pub(crate) fn unpick(self) -> bool {
        let was_picked = self.figures.picked.with_untracked(Option::is_some);
        if was_picked {
            self.pick(String::new(), Vec::new());
        }
        was_picked
    }

    /// Sets the mark at the cursor, or removes the mark if it is there.
    pub(crate) fn set_mark(self) {
        let now = self.player.with_untracked(|player| player.steps);
        self.figures.mark.update(|mark| *mark = if *mark == Some(now) { None } else { Some(now) });
    }

    /// Goes to a moment.
    pub(crate) fn seek_moment(self, moment: usize) {
        self.dispatch(PlayerAction::Pause);
        self.dispatch(PlayerAction::SeekStep(moment));
    }
}
