//! The parts of the run that the figures show: the steps, the bytes and the colors, and the chosen block and
//! allocations.

mod bytes;
mod columns;
mod timeline;

pub(crate) use columns::Columns;

use std::sync::Arc;

use blockyard_figure::{
    AllocationFilter, Blame, Clock, Collector, ColorBy, GridKind, GroupBy, Groups, MapView, Role, Scene,
    TargetId, Term, TimelineView,
};
use blockyard_record::{AllocationId, BlockId, MemoryState};
use leptos::prelude::*;

use crate::browser;
use crate::lessons::category_of;
use crate::program::CATEGORIES;
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::Feature;

/// The chosen allocations, which all figures show.
#[derive(Debug)]
pub(crate) struct Pick {
    pub(crate) title: String,
    /// Rows of [`Columns::allocations`], ascending.
    pub(crate) rows: Vec<usize>,
}

/// The choices for the moment, or the stretch of steps, whose holders the table shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HolderMoment {
    #[default]
    Cursor,
    PeakAllocated,
    PeakReserved,
    /// Allocations that were made in the brushed range.
    Made,
    /// Those of them that are still there at its end.
    New,
    /// Allocations that are alive throughout the brushed range.
    Throughout,
}

/// The range of moments that the reader brushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brushed {
    pub(crate) first: usize,
    /// Equal to `first` if the range is begun by a key.
    pub(crate) last: usize,
    /// Whether the button is up again.
    pub(crate) is_done: bool,
}

impl HolderMoment {
    pub(crate) const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::Cursor, "cursor", "at the cursor"),
        (Self::PeakAllocated, "peak-allocated", "at the peak of allocated bytes"),
        (Self::PeakReserved, "peak-reserved", "at the peak of reserved bytes"),
        (Self::Made, "made", "allocated in the range"),
        (Self::New, "new", "allocated in the range and still there"),
        (Self::Throughout, "throughout", "there throughout the range"),
    ];

    /// Whether the choice is about the brushed range.
    pub(crate) fn is_of_range(self) -> bool {
        matches!(self, Self::Made | Self::New | Self::Throughout)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(moment, ..)| *moment == self).map_or("", |(_, name, _)| name)
    }
}

/// Draws the allocations under a title, as HTML for paper.
pub(crate) type PaperFigure = fn(crate::session::Session, &str) -> String;

/// The sheet of the workbench for a printer, as HTML.
pub(crate) type PaperSheet = fn(crate::session::Session) -> String;

/// The groups that were computed last, with the columns, the meaning of colors and the blamed line that they
/// belong to.
type LastGroups = (PtrEq<Columns>, ColorBy, Option<Blame>, PtrEq<Groups>);

/// The parts of the run that the figures show, the colors, and the chosen block and allocations.
pub(crate) struct FigureSignals {
    /// The steps that figures over time show, or `None` for all steps.
    pub(crate) timeline_view: RwSignal<Option<TimelineView>>,
    /// Whether memory over time is drawn by the wall clock.
    pub(crate) is_by_clock: RwSignal<bool>,
    /// The wall clock for the axis of memory over time; `None` if the axis counts steps.
    pub(crate) clock: Memo<Option<PtrEq<Clock>>>,
    pub(crate) map_view: RwSignal<MapView>,
    /// The term that the pointer or the focus is on. All figures light it up.
    pub(crate) lit: RwSignal<Option<Term>>,
    /// The columns of the shown run, or of a former run while they are being made.
    last_columns: RwSignal<Option<PtrEq<Columns>>>,
    pub(crate) kind: RwSignal<GridKind>,
    /// Whether a file's memory over time is drawn by its states in place of its allocations.
    pub(crate) is_by_state: RwSignal<bool>,
    /// The meaning of colors; `None` if the reader has not chosen, see [`Feature::color_by`].
    pub(crate) chosen_colors: RwSignal<Option<ColorBy>>,
    /// The lowest and the highest byte of the vertical axis, or `None` for all bytes.
    pub(crate) range: RwSignal<Option<(f64, f64)>>,
    /// The property by which holders are grouped; `None` if the reader has not chosen, see
    /// [`Feature::group_by`].
    pub(crate) chosen_groups: RwSignal<Option<GroupBy>>,
    pub(crate) is_flame: RwSignal<bool>,
    pub(crate) holder_moment: RwSignal<HolderMoment>,
    /// The range of moments that is brushed in the figures over time.
    pub(crate) brushed: RwSignal<Option<Brushed>>,
    /// Whether the event under the cursor is chosen, which the panel beside the figures describes.
    pub(crate) is_event_chosen: RwSignal<bool>,
    /// The reader's search among the holders: a stack, an address, a size, a stream.
    pub(crate) filter: RwSignal<String>,
    pub(crate) picked: RwSignal<Option<PtrEq<Pick>>>,
    /// The function that draws the allocations for paper; `None` until the part of the page that draws the
    /// figure is loaded.
    pub(crate) paper: StoredValue<Option<PaperFigure>>,
    /// The function that makes the workbench's sheet for paper; `None` until the part of the page that shows
    /// the workbench is loaded. The browser prints as soon as the event has been handled, so no part can be
    /// fetched by then.
    pub(crate) sheet: StoredValue<Option<PaperSheet>>,
    collector: StoredValue<Option<Collector>, LocalStorage>,
    /// The groups whose colors all figures have.
    last_groups: StoredValue<Option<LastGroups>, LocalStorage>,
}

impl FigureSignals {
    pub(crate) fn new(run: Memo<PtrEq<Run>>) -> Self {
        let is_by_clock = RwSignal::new(false);
        let clock = Memo::new(move |_| {
            let run = is_by_clock.get().then(|| run.get())?;
            Clock::new(&run.recording).map(PtrEq::new)
        });
        Self {
            timeline_view: RwSignal::new(None),
            is_by_clock,
            clock,
            map_view: RwSignal::new(MapView::default()),
            lit: RwSignal::new(None),
            last_columns: RwSignal::new(None),
            kind: RwSignal::new(GridKind::default()),
            is_by_state: RwSignal::new(false),
            chosen_colors: RwSignal::new(None),
            range: RwSignal::new(None),
            chosen_groups: RwSignal::new(None),
            is_flame: RwSignal::new(false),
            holder_moment: RwSignal::new(HolderMoment::default()),
            brushed: RwSignal::new(None),
            is_event_chosen: RwSignal::new(false),
            filter: RwSignal::new(String::new()),
            picked: RwSignal::new(None),
            paper: StoredValue::new(None),
            sheet: StoredValue::new(None),
            collector: StoredValue::new_local(None),
            last_groups: StoredValue::new_local(None),
        }
    }
}

impl Feature<FigureSignals> {
    /// Resets zoom, selection, marks and everything else that belongs to the former run.
    pub(crate) fn forget(self) {
        self.timeline_view.set(None);
        self.range.set(None);
        self.let_go_of_range();
        self.is_event_chosen.set(false);
        self.picked.set(None);
        self.map_view.set(MapView::default());
    }

    /// The chosen block. Reads signals.
    pub(crate) fn selected(self) -> Option<BlockId> {
        self.map_view.with(|view| view.selected)
    }

    /// The chosen block.
    pub(crate) fn selected_now(self) -> Option<BlockId> {
        self.map_view.with_untracked(|view| view.selected)
    }

    /// The block that a key acts on: the block under the arrow keys or the pointer, or else the chosen block.
    pub(crate) fn block_in_hand(self) -> Option<BlockId> {
        self.map_view.with_untracked(|view| match view.hovered {
            Some(TargetId::Block(block)) => Some(block),
            _ => view.selected,
        })
    }

    /// Chooses a block in all figures, in place of chosen allocations.
    pub(crate) fn select(self, block: Option<BlockId>) {
        if block.is_some() {
            self.unpick();
            self.is_event_chosen.set(false);
        }
        if self.map_view.with_untracked(|view| view.selected != block) {
            self.map_view.update(|view| view.selected = block);
        }
    }

    /// The meaning of colors: the reader's choice, or else what shows the cause that the verdict names, or else
    /// categories of a program or of a text about a training, or else lines, names or sizes, whichever the run
    /// has. Reads signals.
    pub(crate) fn color_by(self) -> ColorBy {
        let has = |what: fn(&Columns) -> bool| self.columns().is_some_and(|columns| what(&columns));
        let by_default = || {
            // The categories of a Python program are known, and its lines are shown beside its text.
            if self.session.shown_program().is_some() || self.session.lessons().has_category_names() {
                ColorBy::Category
            } else if let Some(by) = self.cause_shown_by() {
                by
            } else if has(|columns| columns.has_stacks) {
                ColorBy::Line
            } else if has(|columns| columns.has_names) {
                ColorBy::Name
            } else {
                ColorBy::Size
            }
        };
        self.chosen_colors.get().unwrap_or_else(by_default)
    }

    /// The colors that show the cause of an opened file's verdict, where the cause is not a line. Reads signals.
    fn cause_shown_by(self) -> Option<ColorBy> {
        self.session.shown_recording()?;
        self.session.lab().blame().map(|blame| blame.by).filter(|by| *by != ColorBy::Line)
    }

    /// Whether blocks have the colors that their allocations have over time: by category for a program, and always
    /// for a recording. The blocks of a workload keep the color of live memory, since only their sizes would differ
    /// in color. Hues then belong to these groups alone, and the style sheet gives states of memory grey. Reads
    /// signals.
    pub(crate) fn colors_blocks(self) -> bool {
        if self.session.shown_program().is_some() {
            return self.color_by() == ColorBy::Category;
        }
        self.session.shown_recording().is_some()
    }

    /// The groups of allocations that have a color each, if the columns have been made. Reads signals.
    pub(crate) fn color_groups(self) -> Option<PtrEq<Groups>> {
        let columns = self.columns()?;
        let by = self.color_by();
        let (allocations, recording) = (&columns.allocations, &columns.recording);
        if by == ColorBy::Category {
            if let Some(program) = self.session.shown_program() {
                let category = |allocation| program.category(allocation);
                return Some(PtrEq::new(Groups::named(allocations, &CATEGORIES, category)));
            }
            if self.session.lessons().has_category_names() {
                let category = |allocation| recording.name(allocation).map(category_of);
                return Some(PtrEq::new(Groups::named(allocations, &CATEGORIES, category)));
            }
        }
        self.kept_groups(&columns, by)
    }

    /// Gives blocks the colors that their allocations have over time, where [`Self::colors_blocks`] says so.
    /// Reads signals.
    pub(crate) fn color_blocks(self, scene: &mut Scene, state: &MemoryState) {
        if !self.colors_blocks() {
            return;
        }
        if let Some(program) = self.session.shown_program() {
            return scene.color_blocks(|block| {
                let place = program.category(state.block(block)?.allocation?)?;
                Role::CATEGORIES.get(place).copied()
            });
        }
        let Some(columns) = self.columns() else { return };
        let Some(groups) = self.kept_groups(&columns, self.color_by()) else { return };
        scene.color_blocks(|block| {
            let row = columns.allocations.row(state.block(block)?.allocation?)?;
            Some(groups.role(row))
        });
    }

    /// The groups of a recording, found once for its columns, a meaning of colors and a blamed line. Reads
    /// signals.
    pub(crate) fn kept_groups(self, columns: &PtrEq<Columns>, by: ColorBy) -> Option<PtrEq<Groups>> {
        let blame = self.session.lab().blame().filter(|blame| by == blame.by);
        let is_kept = self.last_groups.with_value(|kept| {
            kept.as_ref()
                .is_some_and(|(of, of_by, of_blame, _)| of == columns && *of_by == by && *of_blame == blame)
        });
        if !is_kept {
            let (allocations, recording) = (&columns.allocations, &columns.recording);
            let groups = PtrEq::new(Groups::new(allocations, recording, by, blame.as_ref()));
            self.last_groups.set_value(Some((columns.clone(), by, blame, groups)));
        }
        self.last_groups.with_value(|kept| kept.as_ref().map(|(.., groups)| groups.clone()))
    }

    /// The property by which holders are grouped: the reader's choice, or else lines if the run has stacks,
    /// or else sizes. Reads signals.
    pub(crate) fn group_by(self) -> GroupBy {
        let has_stacks = self.columns().is_some_and(|columns| columns.has_stacks);
        let chosen = self.chosen_groups.get();
        chosen.unwrap_or(if has_stacks { GroupBy::Line } else { GroupBy::Size })
    }

    /// The moment, or the stretch of steps, whose holders the table shows. Reads signals.
    pub(crate) fn allocation_filter(self) -> AllocationFilter {
        let run = self.session.run.get();
        let cursor = self.session.player.with(|player| player.steps);
        let range = self.steps_range();
        match (self.holder_moment.get(), range) {
            (HolderMoment::PeakAllocated, _) => AllocationFilter::At(run.series.peak_steps(&run.recording).0),
            (HolderMoment::PeakReserved, _) => AllocationFilter::At(run.series.peak_steps(&run.recording).1),
            (HolderMoment::Made, Some((first, last))) => AllocationFilter::MadeBetween(first, last),
            (HolderMoment::New, Some((first, last))) => AllocationFilter::NewBetween(first, last),
            (HolderMoment::Throughout, Some((first, last))) => AllocationFilter::Throughout(first, last),
            (HolderMoment::Cursor, _) | (_, None) => AllocationFilter::At(cursor),
        }
    }

    /// Chooses allocations in all figures. A second choice of the same allocations, or of none, releases
    /// them.
    pub(crate) fn pick(self, title: String, rows: Vec<usize>) {
        let is_same = self.picked.with_untracked(|picked| {
            picked.as_ref().is_some_and(|picked| picked.rows == rows && picked.title == title)
        });
        let picked = (!is_same && !rows.is_empty()).then(|| PtrEq::new(Pick { title, rows }));
        let ids: Vec<AllocationId> = match (&picked, self.last_columns.get_untracked()) {
            (Some(picked), Some(columns)) => {
                picked.rows.iter().filter_map(|row| columns.allocations.id(*row)).collect()
            }
            _ => Vec::new(),
        };
        self.show_picked(picked, ids);
    }

    /// Shows allocations as chosen, in place of a chosen block. `ids` are those of their rows, ascending.
    pub(crate) fn show_picked(self, picked: Option<PtrEq<Pick>>, ids: Vec<AllocationId>) {
        let is_any = picked.is_some();
        self.picked.set(picked);
        if is_any {
            self.is_event_chosen.set(false);
        }
        self.map_view.update(|view| {
            view.picked = Arc::new(ids);
            view.selected = view.selected.filter(|_| !is_any);
        });
    }

    /// Whether a file's memory over time is drawn by its allocations, in place of its states. Reads signals.
    pub(crate) fn shows_allocations(self) -> bool {
        self.session.shows_recording() && !self.is_by_state.get()
    }

    /// Brings the figure with the chosen allocations into sight, after a choice in a table or an answer. In one
    /// column the panel at the foot of the window shows the choice.
    pub(crate) fn show_choice(self) {
        self.is_by_state.set(false);
        if !self.session.appearance().is_narrow.get_untracked() {
            // The figure may only now be displayed.
            let _ = browser::after_millis(0, || browser::scroll_into_sight(".lifetimes"));
        }
    }

    /// Chooses the event under the cursor of an opened file, in place of a block and of allocations. A
    /// workload and a program have a panel about each event.
    pub(crate) fn choose_event(self) {
        if untrack(|| self.session.shows_recording()) {
            self.unpick();
            self.select(None);
            self.is_event_chosen.set(true);
        }
    }

    /// Releases the chosen allocations. Returns whether any were chosen.
    pub(crate) fn unpick(self) -> bool {
        let was_picked = self.picked.with_untracked(Option::is_some);
        if was_picked {
            self.pick(String::new(), Vec::new());
        }
        was_picked
    }
}
