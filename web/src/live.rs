//! A program that runs under `blockyard watch --page`: its last steps in the figures, again and again, until the
//! reader pauses, keeps a recording, or the program ends.
//!
//! The page asks the command each second what is new. The last steps are a snapshot that the worker reads as any
//! file; there is no other figure. The recording that is kept, and that of the end, open as files do.

use std::collections::BTreeMap;

use blockyard_figure::PlayerAction;
use blockyard_lab::{LAST_STEPS, RUNNING, RunningProgram, WHOLE_RECORDING};
use js_sys::Uint8Array;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::Blob;

use crate::files::{ComparisonState, OpenedFile};
use crate::navigation::Place;
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::{Feature, Source};
use crate::workbench::Tab;
use crate::{browser, jobs, lab};

/// Between two questions to the command.
const PAUSE_MILLIS: i32 = 1000;

/// What the page shows of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The last steps, and soon newer ones.
    #[default]
    Now,
    /// The last steps of the moment at which the reader paused.
    Paused,
    /// A recording, which was kept or which ends with a failed request.
    Kept,
    /// The recording of the end.
    End,
}

/// The programs that run, as the command reported them last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) programs: Vec<RunningProgram>,
    /// The place of the chosen program.
    pub(crate) chosen: usize,
    /// Whether the reader or the address chose it.
    is_choice: bool,
    pub(crate) shown: Shown,
    /// Whether the command has not answered any more.
    pub(crate) is_lost: bool,
}

impl Live {
    pub(crate) fn program(&self) -> Option<&RunningProgram> {
        self.programs.get(self.chosen)
    }

    /// The places of the programs by rank. Their own order is that in which they began.
    pub(crate) fn by_rank(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.programs.len()).collect();
        // Names differ in the number at their end alone.
        places.sort_by_key(|place| {
            self.programs.get(*place).map(|program| (program.name.len(), &program.name))
        });
        places
    }
}

/// The programs that run, and what is shown of them.
#[derive(Default)]
pub(crate) struct LiveSignals {
    /// `None` where no running program is open.
    pub(crate) live: RwSignal<Option<Live>>,
    /// Counts the calls of `follow`: an earlier one ends.
    turn: StoredValue<u32>,
    /// Whether the worker reads steps.
    is_reading: StoredValue<bool>,
    /// The steps that were shown last.
    last: StoredValue<Option<LastSteps>, LocalStorage>,
    /// The recordings of programs that have ended, by their places. The command that served them ends too.
    ends: StoredValue<BTreeMap<usize, Blob>, LocalStorage>,
}

/// The last steps of a program.
#[derive(Clone)]
struct LastSteps {
    content: Blob,
    moment: u64,
    opened: PtrEq<OpenedFile>,
}

/// The failed requests of the chosen program.
#[derive(Clone, Copy, Default)]
struct Failures {
    /// The place of the program.
    of: usize,
    count: u64,
    /// The last step that ended before the failure whose recording was opened.
    opened_after: Option<u64>,
}

/// A name on the server for each content of a program.
fn address(name: &str, content: &str) -> String {
    browser::address_beside(&format!("{name}{content}"))
}

impl Feature<LiveSignals> {
    /// Whether the figures show steps of a running program, and no file. Reads signals.
    pub(crate) fn shows_steps(self) -> bool {
        let is_now = |live: &Live| matches!(live.shown, Shown::Now | Shown::Paused);
        self.live.with(|live| live.as_ref().is_some_and(is_now))
    }

    /// Whether the figures change by themselves. Reads signals.
    pub(crate) fn moves(self) -> bool {
        self.live.with(|live| live.as_ref().is_some_and(|live| live.shown == Shown::Now))
    }

    fn change(self, change: impl FnOnce(&mut Live)) {
        self.live.update(|live| {
            if let Some(live) = live {
                change(live);
            }
        });
    }

    fn set_shown(self, shown: Shown) {
        self.change(|live| live.shown = shown);
    }

    /// Follows the programs that the command tells of under this name, until another file is opened.
    pub(crate) fn follow(self, name: String) {
        self.session.navigation().place.set(Place::Workbench);
        self.last.set_value(None);
        self.ends.set_value(BTreeMap::new());
        self.live.set(Some(Live::default()));
        self.is_reading.set_value(false);
        let turn = self.turn.get_value().wrapping_add(1);
        self.turn.set_value(turn);
        spawn_local(async move {
            let mut failures = Failures::default();
            while self.turn.get_value() == turn && self.ask(&name, &mut failures).await {
                browser::pause(PAUSE_MILLIS).await;
            }
        });
    }

    /// Asks the command what is new, and shows it. Returns whether to ask again.
    async fn ask(self, name: &str, failures: &mut Failures) -> bool {
        let bytes = browser::fetch_bytes(&browser::address_beside(name)).await;
        let bytes = bytes.map(|bytes| Uint8Array::new(&bytes).to_vec());
        let programs: Option<Vec<RunningProgram>> = bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        if self.is_left() {
            self.live.set(None);
            return false;
        }
        let Some(programs) = programs else {
            self.lose();
            return false;
        };
        self.fetch_ends(name, &programs).await;
        if self.live.with_untracked(|live| live.as_ref().is_some_and(|live| live.programs != programs)) {
            self.change(|live| live.programs = programs);
            self.choose_first(name);
        }
        let Some(live) = self.live.get_untracked() else { return false };
        let Some(program) = live.program() else {
            if self.session.messages().message.with_untracked(Option::is_none) {
                self.session.show_note("Waiting until the program uses the GPU.");
            }
            return true;
        };
        if failures.of != live.chosen {
            *failures = Failures { of: live.chosen, ..Failures::default() };
        }
        if program.is_over {
            match live.shown {
                // The failure with which the program ended is shown already.
                Shown::Kept if failures.opened_after == Some(program.step) => self.set_shown(Shown::End),
                // The reader looks at another recording.
                Shown::Kept | Shown::End => {}
                Shown::Now | Shown::Paused => self.show_end(live.chosen, program),
            }
            return live.programs.iter().any(|program| !program.is_over);
        }
        if program.failures > failures.count && live.shown != Shown::Kept {
            failures.opened_after = Some(program.step);
            self.keep();
        } else {
            self.look_for_reader();
            self.read_steps(program).await;
        }
        failures.count = program.failures;
        true
    }

    /// Until the reader chooses, the program is that of the address, else the first by rank.
    fn choose_first(self, name: &str) {
        let Some(live) = self.live.get_untracked().filter(|live| !live.is_choice) else { return };
        let wanted = name.strip_suffix(RUNNING);
        let named = live.programs.iter().position(|program| wanted == Some(&program.name));
        let first = named.or_else(|| live.by_rank().first().copied());
        let Some(first) = first.filter(|first| *first != live.chosen) else { return };
        if live.shown == Shown::Now {
            self.show_program(first);
        }
    }

    /// Fetches the recordings of programs that have ended, before the command ends too.
    async fn fetch_ends(self, name: &str, programs: &[RunningProgram]) {
        let mut is_new = false;
        for (place, program) in programs.iter().enumerate().filter(|(_, program)| program.is_over) {
            if self.ends.with_value(|ends| ends.contains_key(&place)) {
                continue;
            }
            if let Some(whole) = browser::fetch_blob(&address(&program.name, WHOLE_RECORDING)).await {
                self.ends.update_value(|ends| drop(ends.insert(place, whole)));
                is_new = true;
            }
        }
        if is_new {
            // The command waits for this question before it ends.
            let _ = browser::fetch_bytes(&browser::address_beside(name)).await;
        }
    }

    fn show_end(self, place: usize, program: &RunningProgram) {
        self.set_shown(Shown::End);
        if let Some(whole) = self.ends.with_value(|ends| ends.get(&place).cloned()) {
            self.open(format!("{}{WHOLE_RECORDING}", program.name), whole);
        }
    }

    /// Opens a recording of the program as any file.
    fn open(self, name: String, content: Blob) {
        let files = self.session.files();
        files.beside.set(Some(name.clone()));
        spawn_local(files.open_blob(name, content, None, Box::new(|| ())));
    }

    /// Whether the reader has opened something else.
    fn is_left(self) -> bool {
        let Some(live) = self.live.get_untracked() else { return true };
        let is_ours = |name: &String| {
            let of = |program: &RunningProgram| name.strip_suffix(WHOLE_RECORDING) == Some(&program.name);
            name.ends_with(RUNNING) || live.programs.iter().any(of)
        };
        let opened = self.session.files().opened.get_untracked();
        let is_open = opened.is_some_and(|opened| is_ours(&opened.name));
        let is_beside = self.session.files().beside.with_untracked(|name| name.as_ref().is_some_and(is_ours));
        self.last.with_value(Option::is_some) && !(is_open && is_beside)
    }

    /// The command has ended or was killed: what was shown last opens as a recording.
    fn lose(self) {
        self.change(|live| live.is_lost = true);
        let Some(live) = self.live.get_untracked() else { return };
        if let (Some(program), Some(last), Shown::Now | Shown::Paused) =
            (live.program(), self.last.get_value(), live.shown)
        {
            self.set_shown(Shown::Kept);
            self.open(format!("{}{WHOLE_RECORDING}", program.name), last.content);
        }
    }

    /// Pauses where the reader has chosen something in the figures: newer steps would take it away.
    fn look_for_reader(self) {
        let Some(last) = self.last.get_value().filter(|_| untrack(|| self.moves())) else { return };
        let figures = self.session.figures();
        let count = last.opened.run.recording.step_count();
        let has_moved = self.session.files().opened.get_untracked().as_ref() != Some(&last.opened)
            || self.session.player.with_untracked(|player| player.steps != count);
        let has_chosen = figures.timeline_view.with_untracked(Option::is_some)
            || figures.selected_now().is_some()
            || figures.picked.with_untracked(Option::is_some)
            || figures.brushed.with_untracked(Option::is_some);
        if has_moved || has_chosen {
            self.pause();
        }
    }

    /// Lets the worker read the last steps, unless they are shown, or the reader is elsewhere.
    async fn read_steps(self, program: &RunningProgram) {
        let last = self.last.get_value();
        let is_shown = last.as_ref().is_some_and(|last| last.moment == program.moment);
        let is_away = self.session.navigation().place.get_untracked() != Place::Workbench
            || last.is_some() && !untrack(|| self.session.shows_recording());
        if is_shown || is_away || !untrack(|| self.moves()) || self.is_reading.get_value() {
            return;
        }
        let Some(content) = browser::fetch_blob(&address(&program.name, LAST_STEPS)).await else { return };
        if !untrack(|| self.moves()) {
            return;
        }
        self.is_reading.set_value(true);
        let opened = self.session.files().opened.get_untracked();
        let device = opened
            .filter(|opened| opened.name.ends_with(RUNNING))
            .and_then(|opened| opened.run.opened.as_ref().map(|file| file.shown_device));
        let (name, moment) = (format!("{}{RUNNING}", program.name), program.moment);
        let (began, of, file) = (browser::now_millis(), name.clone(), content.clone());
        jobs::open_uncompared(&content, &name, device, move |result| {
            self.is_reading.set_value(false);
            self.look_for_reader();
            let Ok(product) = result else { return self.pause() };
            let is_chosen = self.live.with_untracked(|live| {
                let program = live.as_ref().and_then(Live::program);
                program.is_some_and(|program| of.strip_suffix(RUNNING) == Some(&program.name))
            });
            if !is_chosen || !untrack(|| self.moves()) {
                return;
            }
            let comparison = ArcRwSignal::new(ComparisonState::Missing("the program runs".to_owned()));
            let opened = PtrEq::new(OpenedFile { name: of, run: PtrEq::new(Run::new(product)), comparison });
            lab::FileContent::of(&opened.name, &file).keep();
            self.show(opened.clone());
            self.last.set_value(Some(LastSteps { content: file, moment, opened }));
            // The worker rests as long as it worked.
            self.is_reading.set_value(true);
            #[expect(clippy::cast_possible_truncation, reason = "float to integer casts saturate")]
            let took = (browser::now_millis() - began) as i32;
            let _ = browser::after_millis(took, move || self.is_reading.set_value(false));
        });
    }

    /// Shows newer steps in place of the steps before.
    fn show(self, opened: PtrEq<OpenedFile>) {
        let count = opened.run.recording.step_count();
        self.session.messages().work.set(None);
        if self.last.with_value(Option::is_none) {
            self.session.files().beside.set(Some(opened.name.clone()));
            self.session.files().open(opened);
            self.session.workbench().tab.set(Tab::Lab);
        } else {
            self.session.files().opened.set(Some(opened.clone()));
            self.session.show(Source::Recording(opened));
        }
        self.session.dispatch(PlayerAction::SeekStep(count));
    }

    /// Leaves the figures as they are.
    pub(crate) fn pause(self) {
        self.set_shown(Shown::Paused);
    }

    /// Shows the newest steps again, or the end of a program that has ended.
    pub(crate) fn go_on(self) {
        if let Some(live) = self.live.get_untracked() {
            self.choose(live.chosen);
        }
    }

    /// Opens all that the command keeps of the program, for all questions.
    pub(crate) fn keep(self) {
        let Some(live) = self.live.get_untracked() else { return };
        let Some(program) = live.program() else { return };
        self.set_shown(Shown::Kept);
        self.session.files().open_beside(format!("{}{WHOLE_RECORDING}", program.name), || ());
    }

    /// The reader wants this program.
    pub(crate) fn choose(self, place: usize) {
        self.change(|live| live.is_choice = true);
        self.show_program(place);
    }

    /// Shows the newest steps of a program, or its end.
    fn show_program(self, place: usize) {
        self.last.set_value(None);
        self.is_reading.set_value(false);
        self.change(|live| {
            live.chosen = place;
            live.shown = Shown::Now;
        });
        let Some(live) = self.live.get_untracked() else { return };
        if let Some(program) = live.program().filter(|program| program.is_over) {
            self.show_end(place, program);
        }
    }
}
