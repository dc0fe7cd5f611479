//! What the figures of allocations show, and which allocations are chosen.

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

/// The allocations of a recording, ready to be drawn and asked.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) recording: Arc<Recording>,
    pub(crate) allocations: Allocations,
    pub(crate) map: AddressMap,
    /// Whether any allocation has a stack.
    pub(crate) has_stacks: bool,
}

/// Chosen allocations, wherever they were chosen.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) title: String,
    /// Rows of the columns, ascending.
    pub(crate) rows: Vec<usize>,
}

/// Whose holders are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    #[default]
    Cursor,
    PeakAllocated,
    PeakReserved,
    /// All the time between the mark and the cursor.
    Throughout,
    /// Made between the mark and the cursor.
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
    /// The columns of the run that is shown, once they are made.
    pub(crate) columns: RwSignal<Option<PtrEq<Columns>>>,
    pub(crate) kind: RwSignal<GridKind>,
    /// What colors say; `None` for what the recording has.
    pub(crate) color_by: RwSignal<Option<ColorBy>>,
    /// The places of the legend that are not drawn, as bits.
    pub(crate) filtered: RwSignal<u16>,
    /// The bytes from bottom to top, or `None` for all.
    pub(crate) range: RwSignal<Option<(f64, f64)>>,
    pub(crate) by: RwSignal<Option<GroupBy>>,
    pub(crate) is_flame: RwSignal<bool>,
    pub(crate) wanted: RwSignal<Wanted>,
    /// Whether memory over time is drawn by the wall clock.
    pub(crate) is_by_clock: RwSignal<bool>,
    /// A second cursor.
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

    /// Another run is shown: what was chosen in the one before means nothing there.
    pub(crate) fn forget(self) {
        self.filtered.set(0);
        self.range.set(None);
        self.mark.set(None);
        self.picked.set(None);
    }
}

/// Events that are read between two looks at the clock.
const SLICE: usize = 4000;
/// Figures of what was opened have begun to be made by then.
const FIGURES_BEGIN_MILLIS: i32 = 100;
/// How long the page's thread is used at a time.
const SLICE_MILLIS: f64 = 5.0;

impl Session {
    /// Makes the columns of the run that is shown, in slices between other work, unless they are made.
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
        // Another run may be shown by now.
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

    /// Lets the worker compare what was opened, once the figures of allocations are made or where none is in sight.
    pub(crate) fn compare_when_drawn(self) {
        // The figures begin to be made in effects of what was opened, which have run by then.
        let _ = browser::after_millis(FIGURES_BEGIN_MILLIS, move || {
            if self.figures.collector.with_value(Option::is_none) {
                jobs::compare();
            }
        });
    }

    /// The columns of the run that is shown, if they are made, following.
    pub(crate) fn columns(self) -> Option<PtrEq<Columns>> {
        let run = self.run.get();
        self.figures.columns.get().filter(|columns| Arc::ptr_eq(&columns.recording, &run.recording))
    }

    /// What colors say: what was chosen, or else stacks if there are any.
    pub(crate) fn color_by(self) -> ColorBy {
        let has_stacks = self.columns().is_some_and(|columns| columns.has_stacks);
        let chosen = self.figures.color_by.get();
        chosen.unwrap_or_else(|| match (has_stacks, self.shown_program().is_some()) {
            (true, _) => ColorBy::Stack,
            // A program's allocations have no stacks, and what each holds is known.
            (false, true) => ColorBy::Category,
            (false, false) => ColorBy::Size,
        })
    }

    /// The groups that colors stand for, of all allocations, following.
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

    /// Gives the blocks of a program the colors of their categories, where colors say categories.
    pub(crate) fn color_blocks(self, scene: &mut Scene, state: &MemoryState) {
        let Some(program) = self.shown_program().filter(|_| self.color_by() == ColorBy::Category) else {
            return;
        };
        scene.color_blocks(|block| {
            let place = program.category(state.block(block)?.allocation?)?;
            Some(Role::Group(u8::try_from(place).ok()?))
        });
    }

    /// What holders are grouped by: what was chosen, or else stacks if there are any.
    pub(crate) fn group_by(self) -> GroupBy {
        let has_stacks = self.columns().is_some_and(|columns| columns.has_stacks);
        let chosen = self.figures.by.get();
        chosen.unwrap_or(if has_stacks { GroupBy::Stack } else { GroupBy::Size })
    }

    /// The moments that are asked about, following.
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

    /// Chooses allocations everywhere; the same ones again, or none, lets go of them.
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

    /// Lets go of chosen allocations. Returns whether there were any.
    pub(crate) fn unpick(self) -> bool {
        let was_picked = self.figures.picked.with_untracked(Option::is_some);
        if was_picked {
            self.pick(String::new(), Vec::new());
        }
        was_picked
    }

    /// Puts the second cursor where the first one is, or takes it away if it is there.
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
