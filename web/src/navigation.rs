//! The place of the page that is shown: the way from one place to another, and the title of a place.
//! `address` keeps the page's address equal to the place.

mod address;
mod follow;
mod place;

pub(crate) use address::keep_address;
pub(crate) use place::{CardPlace, Embed, Place, TeachersPage};

use std::cell::Cell;
use std::rc::Rc;

use blockyard_figure::PlayerAction;
use blockyard_lessons::current_id;
use blockyard_workload::presets::presets;
use leptos::prelude::*;

use crate::browser;
use crate::lessons::LessonModule;
use crate::messages::sentence;
use crate::session::{Feature, Source};
use crate::view::parts;

/// Why no lesson is opened: neither texts nor code are here.
pub(crate) const NO_LESSONS: &str = "The lessons could not be fetched. Try again.";

/// The shown place of the page.
pub(crate) struct NavigationSignals {
    /// The place of the page that is shown.
    pub(crate) place: RwSignal<Place>,
    /// The part of the page that a frame in another page shows; `None` if it is not embedded.
    pub(crate) embed: Option<Embed>,
}

impl NavigationSignals {
    pub(crate) fn new() -> Self {
        Self { place: RwSignal::new(Place::Home), embed: Embed::of_address() }
    }
}

impl Feature<NavigationSignals> {
    /// Goes to a part of the page, and shows the source that belongs to the part.
    pub(crate) fn go_to(self, place: Place) {
        self.go_to_and(place, || ());
    }

    /// Goes to a part of the page, and calls `then` when the part has its source: later, if the texts of the
    /// lessons have to be fetched.
    fn go_to_and(self, place: Place, then: impl FnOnce() + 'static) {
        self.session.figures().lit.set(None);
        // A message is about an action at the place where the message appeared, so it does not move to
        // another place.
        self.session.messages().clear();
        let Place::Lesson { id, card } = place else {
            self.show_place(place);
            return then();
        };
        let awaited = Place::Lesson { id: id.clone(), card };
        let wanted = awaited.clone();
        // The flag is not a signal, since the view that would own the signal is removed by then.
        let is_late = Rc::new(Cell::new(false));
        let was_late = is_late.clone();
        let is_here = parts::with_lessons(move |module| {
            // A reader who has gone to another place in the meantime stays there.
            if was_late.get() && self.place.with_untracked(|place| *place != wanted) {
                return;
            }
            match module {
                Ok(module) => {
                    let place = self.enter_lesson(&id, card, module);
                    self.show_place(place);
                    then();
                }
                Err(_) => self.session.show_error(NO_LESSONS),
            }
        });
        if !is_here {
            is_late.set(true);
            self.session.dispatch(PlayerAction::Pause);
            // The address keeps the number of the card.
            if let CardPlace::At(card) = card {
                self.session.lessons().state.update(|state| state.card = card);
            }
            self.place.set(awaited);
        }
    }

    fn show_place(self, place: Place) {
        match place {
            Place::Home => self.session.story().show(),
            Place::Workbench => {
                if !self.session.shows_recording() {
                    self.session.show(Source::Text);
                    if self.session.player.with_untracked(blockyard_figure::Player::is_at_start) {
                        self.session.workload().run_first();
                    }
                }
            }
            Place::Lesson { .. } | Place::OwnLesson => {}
            Place::Program => self.session.program().show(),
            _ => self.session.dispatch(PlayerAction::Pause),
        }
        self.place.set(place);
        browser::scroll_to_top();
    }

    /// Opens a card of a lesson. If there is no such lesson, shows an error and the list of lessons.
    fn enter_lesson(self, id: &str, card: CardPlace, module: LessonModule) -> Place {
        let id = current_id(id);
        match self.session.lessons().start(id, card, module) {
            Ok(()) => {
                let card = self.session.lessons().state.with_untracked(|state| state.card);
                Place::Lesson { id: id.to_owned(), card: CardPlace::At(card) }
            }
            Err(why) => {
                self.session.show_error(sentence(&why.to_string()));
                Place::Lessons
            }
        }
    }

    /// The title of the browser's tab. Reads signals.
    pub(crate) fn title(self) -> String {
        match self.place.get() {
            Place::Home => "Blockyard: PyTorch's GPU memory, to the byte".to_owned(),
            _ => format!("{} · Blockyard", self.heading()),
        }
    }

    /// The heading of the page: the name of the shown lesson, program, recording or workload. Reads signals.
    pub(crate) fn heading(self) -> String {
        let of_lesson = || self.session.open_lesson().map(|lesson| lesson.title.clone()).unwrap_or_default();
        match self.place.get() {
            Place::Home => "PyTorch's GPU memory, to the byte. Nothing leaves your browser.".to_owned(),
            Place::Workbench => self.document_title(),
            Place::Program => self.session.program().title(),
            Place::Lessons | Place::Plan(_) => "Lessons".to_owned(),
            Place::Lesson { .. } | Place::OwnLesson => of_lesson(),
            Place::Handout(_) => "Handout".to_owned(),
            Place::Glossary(_) => "The words".to_owned(),
            Place::Practice => "Practice".to_owned(),
            Place::Teachers(_) => "For teachers".to_owned(),
            Place::MakeLesson => "Make a lesson".to_owned(),
        }
    }

    /// The name of the recording or workload in the workbench. Reads signals.
    pub(crate) fn document_title(self) -> String {
        if let Some(opened) = self.session.shown_recording() {
            return opened.title();
        }
        let text = self.session.workload().history.with(|history| history.text().to_owned());
        let title = self.session.workload().settings.with(|settings| settings.title.clone());
        match presets().iter().find(|preset| preset.title == title) {
            Some(preset) if preset.text != text => format!("{title}, changed"),
            _ => title,
        }
    }
}
