//! The state of the page: the state that the features share, and the signals of each feature. Few signals are
//! written; the rest is computed from them.
//!
//! What the figures show is shared: the source of a run, the run, and the moment in it. Everything about one
//! feature is in the module of that name (`lessons`, `story`, `files`, …): its signals, and its methods on
//! [`Feature`].

mod source;

pub(crate) use source::Source;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use blockyard_figure::{Changes, Player, PlayerAction, StateCursor, reduce};
use blockyard_record::MemoryState;
use leptos::prelude::*;

use crate::appearance::AppearanceSignals;
use crate::figures::FigureSignals;
use crate::files::FileSignals;
use crate::lab::LabSignals;
use crate::lessons::LessonSignals;
use crate::live::LiveSignals;
use crate::messages::MessageSignals;
use crate::navigation::NavigationSignals;
use crate::program::ProgramSignals;
use crate::ptr_eq::PtrEq;
use crate::run::{Attempt, Run};
use crate::story::StorySignals;
use crate::workbench::WorkbenchSignals;
use crate::workload::WorkloadSignals;

/// The page's state; a handle that is copied freely, since the state lives as long as the page.
#[derive(Clone, Copy)]
pub(crate) struct Session(&'static Signals);

impl Deref for Session {
    type Target = Signals;

    fn deref(&self) -> &Signals {
        self.0
    }
}

/// All signals: first the signals that the features share, then the signals of each feature.
pub(crate) struct Signals {
    /// The source of the run that the figures show.
    pub(crate) source: RwSignal<Source>,
    /// The run that the figures show. For a workload with an error, this is the last good run.
    pub(crate) run: Memo<PtrEq<Run>>,
    pub(crate) player: RwSignal<Player>,
    /// Playing stops when this many steps are done.
    pub(crate) stop_at: RwSignal<Option<usize>>,
    /// The changes that the step under the cursor made.
    pub(crate) changes: Memo<Changes>,
    /// The players of the sources that are not shown now, by kind of source.
    other_players: StoredValue<[Player; Source::KINDS]>,
    /// The memory state of the shown run at the position of the cursor that was asked for last.
    state: StoredValue<RefCell<Option<StateCursor>>, LocalStorage>,
    appearance: AppearanceSignals,
    figures: FigureSignals,
    files: FileSignals,
    lab: LabSignals,
    lessons: LessonSignals,
    live: LiveSignals,
    messages: MessageSignals,
    navigation: NavigationSignals,
    program: ProgramSignals,
    story: StorySignals,
    workbench: WorkbenchSignals,
    workload: WorkloadSignals,
}

/// A feature of the page: its signals `S`, and the session, through which it reaches the other features. A
/// handle that is copied freely.
pub(crate) struct Feature<S> {
    pub(crate) session: Session,
    signals: PhantomData<fn() -> S>,
}

impl<S> Clone for Feature<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Feature<S> {}

impl<S: FeatureSignals> Deref for Feature<S> {
    type Target = S;

    fn deref(&self) -> &S {
        S::of(self.session.0)
    }
}

/// The signals of one feature.
pub(crate) trait FeatureSignals {
    /// The feature's part of all signals.
    fn of(signals: &Signals) -> &Self;
}

/// Makes, for each feature, the method of the session that returns the feature.
macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident: $signals:ty,)*) => {
        $(impl FeatureSignals for $signals {
            fn of(signals: &Signals) -> &Self {
                &signals.$feature
            }
        })*

        impl Session {
            $($(#[$doc])*
            pub(crate) fn $feature(self) -> Feature<$signals> {
                Feature { session: self, signals: PhantomData }
            })*
        }
    };
}

features! {
    /// How the page looks: its theme, its colors, its width.
    appearance: AppearanceSignals,
    /// The parts of the run that the figures show, and the chosen block and allocations.
    figures: FigureSignals,
    /// The files that the reader has opened.
    files: FileSignals,
    /// Questions about the run that is shown.
    lab: LabSignals,
    /// The lessons, with the reader's progress and answers.
    lessons: LessonSignals,
    /// The programs that run, under `blockyard watch --page`.
    live: LiveSignals,
    /// The messages of the page to the reader.
    messages: MessageSignals,
    /// The place of the page that is shown, and its address.
    navigation: NavigationSignals,
    /// The Python program in the editor.
    program: ProgramSignals,
    /// The story of the first screen.
    story: StorySignals,
    /// The panels and the tabs around the figures.
    workbench: WorkbenchSignals,
    /// The workload in the editor.
    workload: WorkloadSignals,
}

/// The run that the figures show. While the text has an error, this is the last run without one.
fn shown_run(
    source: RwSignal<Source>,
    workload: &WorkloadSignals,
    lessons: &LessonSignals,
    story: &StorySignals,
) -> Memo<PtrEq<Run>> {
    let (attempt, lesson, story_run) = (workload.attempt, lessons.state, story.run);
    let workload_run = Memo::new(move |before: Option<&PtrEq<Run>>| match (attempt.get(), before) {
        (Attempt::Ran(run), _) => run,
        (_, Some(run)) => run.clone(),
        (_, None) => PtrEq::new(Run::empty()),
    });
    Memo::new(move |_| match source.get() {
        Source::Text => workload_run.get(),
        Source::Recording(opened) => opened.run.clone(),
        Source::Story => story_run.get(),
        Source::Program(result) => result.run.clone(),
        Source::Lesson(open) => {
            let (card, own) = lesson
                .with(|state| (state.card, state.graded.as_ref().and_then(|graded| graded.run.clone())));
            own.or_else(|| open.run(card)).unwrap_or_else(|| PtrEq::new(Run::empty()))
        }
    })
}

impl Session {
    pub(crate) fn new() -> Self {
        let source = RwSignal::new(Source::Text);
        let player = RwSignal::new(Player::default());
        let (workload, lessons, story) = (WorkloadSignals::new(), LessonSignals::new(), StorySignals::new());
        let run = shown_run(source, &workload, &lessons, &story);
        let changes = Memo::new(move |_| {
            let run = run.get();
            let (from, to) = player.with(|player| player.changed_events(&run.recording));
            Changes::of(&run.recording, from, to)
        });
        let signals = Signals {
            source,
            run,
            player,
            stop_at: RwSignal::new(None),
            changes,
            other_players: StoredValue::new(Default::default()),
            state: StoredValue::new_local(RefCell::default()),
            appearance: AppearanceSignals::new(),
            figures: FigureSignals::new(run),
            files: FileSignals::default(),
            lab: LabSignals::new(),
            lessons,
            live: LiveSignals::default(),
            messages: MessageSignals::default(),
            navigation: NavigationSignals::new(),
            program: ProgramSignals::new(),
            story,
            workbench: WorkbenchSignals::new(),
            workload,
        };
        Self(Box::leak(Box::new(signals)))
    }

    /// Moves the player.
    pub(crate) fn dispatch(self, action: PlayerAction) {
        let run = self.run.get_untracked();
        let before = self.player.get_untracked();
        let mut after = reduce(&before, action, &run.recording);
        // The cursor stops here, since the rest of the run would answer a question of the lesson.
        if let Some(last) = untrack(|| self.lessons().hidden_after()).filter(|last| after.steps > *last) {
            after = reduce(&before, PlayerAction::SeekStep(last), &run.recording);
            after.is_playing = false;
        }
        if after != before {
            // A zoomed timeline moves so that the cursor stays in sight.
            if let Some(view) = self.figures().timeline_view.get_untracked()
                && after.steps != before.steps
            {
                self.figures().timeline_view.set(Some(view.reveal(after.steps, run.recording.step_count())));
            }
            self.player.set(after);
        }
    }

    /// Calls `look` with the memory state under the cursor; `None` if the recording is damaged. Reads
    /// signals.
    pub(crate) fn with_state<T>(self, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        let run = self.run.get();
        let cursor = self.player.with(|player| player.cursor);
        self.look(&run, cursor, look)
    }

    /// Calls `look` with the memory state under the cursor, as [`Session::with_state`] does, but without
    /// tracking the signals.
    pub(crate) fn with_state_now<T>(self, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        let run = self.run.get_untracked();
        let cursor = self.player.with_untracked(|player| player.cursor);
        self.look(&run, cursor, look)
    }

    fn look<T>(self, run: &Run, cursor: usize, look: impl FnOnce(&Run, &MemoryState) -> T) -> Option<T> {
        self.state.with_value(|state| {
            let mut state = state.borrow_mut();
            if !state.as_ref().is_some_and(|state| Arc::ptr_eq(state.recording(), &run.recording)) {
                *state = Some(StateCursor::new(run.recording.clone()));
            }
            Some(look(run, state.as_mut()?.at(cursor).ok()?))
        })
    }

    /// Whether the cursor is at the end of the run.
    pub(crate) fn is_at_end(self) -> bool {
        let run = self.run.get_untracked();
        self.player.with_untracked(|player| player.is_at_end(&run.recording))
    }

    /// Goes to a moment.
    pub(crate) fn seek_moment(self, moment: usize) {
        self.dispatch(PlayerAction::Pause);
        self.dispatch(PlayerAction::SeekStep(moment));
    }
}
