//! Keeps the page's address equal to what is shown, and shows what an address names.

use std::cell::Cell;
use std::rc::Rc;

use blockyard_figure::{PlayerAction, Unit};
use blockyard_lessons::LessonFile;
use blockyard_record::BlockId;
use blockyard_workload::presets::presets;
use leptos::prelude::*;

use crate::browser;
use crate::files::{self, SAMPLES, Samples};
use crate::lab::QuestionKind;
use crate::link::{Link, MOST_CHARS, Target};
use crate::parts;
use crate::session::{OpenLesson, OpenedFile, Place, Session, SettingsTexts, Source};
use crate::theme::ThemeChoice;
use crate::view::Tab;
use crate::view::kit::effect;

/// A longer text is not written into the address: compressing it would delay the key, and programs would cut off the address.
const MOST_PACKED_BYTES: usize = 200_000;

/// The step is written into the address when the cursor has rested for this long.
const PAUSE_MILLIS: i32 = 250;

impl Session {
    /// Goes to a part of the page, and shows the source that belongs there.
    pub(crate) fn go_to(self, place: Place) {
        self.go_to_and(place, || ());
    }

    /// Goes to a part of the page, and calls `then` when the part has its source: later, if the texts of the lessons have to be fetched.
    fn go_to_and(self, place: Place, then: impl FnOnce() + 'static) {
        self.lit.set(None);
        let Place::Lesson { id, card } = place else {
            self.show_place(place);
            return then();
        };
        let awaited = Place::Lesson { id: id.clone(), card };
        let wanted = awaited.clone();
        // Not a value of the view that was clicked, which is gone by then.
        let is_late = Rc::new(Cell::new(false));
        let was_late = is_late.clone();
        let is_here = parts::with_lessons(move |files| {
            // A reader who has gone somewhere else meanwhile stays there.
            if was_late.get() && self.place.with_untracked(|place| *place != wanted) {
                return;
            }
            match files {
                Ok(files) => {
                    let place = self.enter_lesson(&id, card, files);
                    self.show_place(place);
                    then();
                }
                Err(_) => self.show_error("The lessons could not be fetched. Try again."),
            }
        });
        if !is_here {
            is_late.set(true);
            self.dispatch(PlayerAction::Pause);
            // The address stays that of the card.
            self.lesson.update(|state| state.card = card);
            self.place.set(awaited);
        }
    }

    fn show_place(self, place: Place) {
        match place {
            Place::Home => self.show_story(),
            Place::Workbench => {
                if !self.shows_recording() {
                    self.show(Source::Text);
                    if self.player.with_untracked(blockyard_figure::Player::is_at_start) {
                        self.run_first();
                    }
                }
            }
            Place::Lesson { .. } | Place::OwnLesson => {}
            Place::Program => self.show_program(),
            _ => self.dispatch(PlayerAction::Pause),
        }
        self.place.set(place);
        browser::scroll_to_top();
    }

    /// Opens a card of a lesson. If there is no such lesson, shows an error and the list of lessons.
    fn enter_lesson(self, id: &str, card: usize, files: &[LessonFile]) -> Place {
        match self.start_lesson(id, card, files) {
            Ok(()) => {
                let card = self.lesson.with_untracked(|state| state.card);
                Place::Lesson { id: id.to_owned(), card }
            }
            Err(why) => {
                self.show_error(crate::commands::sentence(&why.to_string()));
                Place::Lessons
            }
        }
    }

    /// The address of the present view. Reads signals.
    pub(crate) fn link(self) -> Link {
        match self.place.get() {
            Place::Home => Link::default(),
            // A lesson that lies beside the page opens for others too.
            Place::OwnLesson => {
                let card = self.lesson.with(|state| state.card) + 1;
                match (self.beside.get(), self.lesson_text.get()) {
                    (Some(name), _) => Target::Beside(name).into(),
                    (None, Some(text)) => {
                        Target::LessonText { text, card, is_for_class: self.is_for_class.get() }.into()
                    }
                    (None, None) => Target::OwnLesson(card).into(),
                }
            }
            Place::MakeLesson => Target::MakeLesson.into(),
            Place::Workbench => self.with_question(self.workbench_link()),
            Place::Program => self.program_link(),
            Place::Lessons => Target::Lessons.into(),
            Place::Lesson { id, .. } => {
                Target::Lesson { id, card: self.lesson.with(|state| state.card) + 1 }.into()
            }
            Place::Handout(id) => Target::Handout(id).into(),
            Place::Glossary(entry) => Target::Glossary(entry).into(),
            Place::Quiz => Target::Quiz.into(),
            Place::Teachers => Target::Teachers.into(),
        }
    }

    /// The link with the question of the lab that is shown.
    fn with_question(self, link: Link) -> Link {
        if self.tab.get() != Tab::Lab {
            return link;
        }
        let lab = self.lab;
        let kind = lab.kind.get();
        // A file opens with its verdict.
        if kind == QuestionKind::Verdict {
            return link;
        }
        let typed = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let with = if kind == QuestionKind::WhatIf { typed(lab.conf.get()) } else { None };
        let (on, limit) = (typed(lab.capacity.get()), typed(lab.limit.get()));
        Link { lab: Some(kind.id().to_owned()), with, on, limit, ..link }
    }

    /// Asks the question of a link. The run of the link has to be shown already.
    fn follow_question(self, link: &Link) {
        let Some(id) = &link.lab else { return };
        let Some(kind) = QuestionKind::from_id(id) else {
            return self.show_error(format!("This link asks a question, \"{id}\", that is not known here."));
        };
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        self.lab.capacity.set(or_empty(&link.on));
        self.lab.limit.set(or_empty(&link.limit));
        if kind == QuestionKind::WhatIf {
            self.lab.conf.set(or_empty(&link.with));
        }
        self.open_lab(kind);
        self.ask_lab();
    }

    fn workbench_link(self) -> Link {
        let block = self.selected().map(|block| u64::from(block.get()));
        let (steps, event) = self.player.with(|player| {
            let is_event = player.unit == Unit::Event;
            (player.steps, is_event.then_some(player.cursor))
        });
        let link = Link { step: Some(steps), event, block, ..Link::default() };
        if let Some(opened) = self.shown_recording() {
            let sample = SAMPLES.iter().find(|sample| opened.name == sample.file_name());
            let is_beside = self.beside.with(|beside| beside.as_ref() == Some(&opened.name));
            return match sample {
                _ if is_beside => Link { target: Target::Beside(opened.name.clone()), ..link },
                Some(sample) => Link { target: Target::Sample(sample.name.to_owned()), ..link },
                None => Link { target: Target::OwnFile, ..link },
            };
        }
        let SettingsTexts { title, config, capacity } = self.settings.get();
        let text = self.history.with(|history| history.text().to_owned());
        if let Some(preset) = presets().iter().find(|preset| preset.text == text) {
            return Link {
                target: Target::Preset(preset.id.to_owned()),
                config: (config.trim() != preset.config).then_some(config),
                capacity: (capacity != preset.capacity.to_string()).then_some(capacity),
                ..link
            };
        }
        if text.len() > MOST_PACKED_BYTES {
            return Target::Workbench.into();
        }
        let config = (!config.trim().is_empty()).then_some(config);
        let target = Target::Text { title, text };
        Link { target, config, capacity: Some(capacity), ..link }
    }

    /// The title of the browser's tab. Reads signals.
    pub(crate) fn title(self) -> String {
        match self.place.get() {
            Place::Home => "Blockyard: PyTorch's GPU memory, to the byte".to_owned(),
            _ => format!("{} · Blockyard", self.heading()),
        }
    }

    /// The heading of the page: the name of what is shown. Reads signals.
    pub(crate) fn heading(self) -> String {
        let of_lesson = || self.open_lesson().map(|lesson| lesson.title.clone()).unwrap_or_default();
        match self.place.get() {
            Place::Home => "PyTorch's GPU memory, to the byte. Nothing leaves your browser.".to_owned(),
            Place::Workbench => self.document_title(),
            Place::Program => self.program_title(),
            Place::Lessons => "Lessons".to_owned(),
            Place::Lesson { .. } | Place::OwnLesson => of_lesson(),
            Place::Handout(_) => "Handout".to_owned(),
            Place::Glossary(_) => "The words".to_owned(),
            Place::Quiz => "All questions".to_owned(),
            Place::Teachers => "For teachers".to_owned(),
            Place::MakeLesson => "Make a lesson".to_owned(),
        }
    }

    /// The name of the recording or workload in the workbench. Reads signals.
    pub(crate) fn document_title(self) -> String {
        if let Some(opened) = self.shown_recording() {
            return opened.title();
        }
        let text = self.history.with(|history| history.text().to_owned());
        let title = self.settings.with(|settings| settings.title.clone());
        match presets().iter().find(|preset| preset.title == title) {
            Some(preset) if preset.text != text => format!("{title}, changed"),
            _ => title,
        }
    }

    /// Shows what an address names.
    pub(crate) fn follow_link(self, link: Link, samples: Samples) {
        if let Some(theme) = &link.theme {
            self.theme.set(ThemeChoice::from_name(theme));
        }
        match link.target.clone() {
            Target::Home => self.go_to(Place::Home),
            Target::Python(id) => self.follow_example(&id),
            Target::Program(text) => self.follow_program_text(text, &link),
            Target::Lessons => self.go_to(Place::Lessons),
            Target::Handout(id) => self.go_to(Place::Handout(id)),
            Target::Glossary(entry) => self.go_to(Place::Glossary(entry)),
            Target::Quiz => self.go_to(Place::Quiz),
            Target::Teachers => self.go_to(Place::Teachers),
            Target::MakeLesson => self.go_to(Place::MakeLesson),
            Target::LessonText { text, card, is_for_class } => {
                self.is_for_class.set(is_for_class);
                self.follow_lesson_text(text, card.saturating_sub(1));
            }
            Target::Workbench => self.go_to(Place::Workbench),
            Target::Lesson { id, card } => {
                // Addresses count cards from 1. The number 0 stands for the first card too.
                self.go_to_and(Place::Lesson { id, card: card.saturating_sub(1) }, move || {
                    if link.step.is_some() {
                        self.follow_moment(&link);
                    }
                });
            }
            Target::Preset(id) => self.follow_preset(&id, &link),
            Target::Text { title, text } => {
                let config = link.config.clone().unwrap_or_default();
                let capacity = link.capacity.clone().unwrap_or_else(|| "1 GiB".to_owned());
                self.open_text(text, SettingsTexts { title, config, capacity });
                self.follow_moment(&link);
                self.follow_question(&link);
            }
            Target::Sample(name) => self.follow_sample(&name, link, samples),
            Target::Beside(name) => self.follow_beside(name, link),
            Target::OwnFile => self.follow_own_file(link),
            // Counted from 1, as above.
            Target::OwnLesson(card) => self.follow_own_lesson(card.saturating_sub(1)),
        }
    }

    fn follow_preset(self, id: &str, link: &Link) {
        let Some(preset) = presets().iter().find(|preset| preset.id == id) else {
            self.go_to(Place::Home);
            return self.show_error(format!("This link names a workload, \"{id}\", that is not here."));
        };
        let own = SettingsTexts::of(preset);
        let settings = SettingsTexts {
            config: link.config.clone().unwrap_or(own.config),
            capacity: link.capacity.clone().unwrap_or(own.capacity),
            title: own.title,
        };
        self.open_text(preset.text.to_owned(), settings);
        self.follow_moment(link);
        self.follow_question(link);
    }

    fn follow_sample(self, name: &str, link: Link, samples: Samples) {
        let Some(sample) = SAMPLES.iter().find(|sample| sample.name == name) else {
            self.go_to(Place::Home);
            return self.show_error(format!("This link names a sample, \"{name}\", that is not here."));
        };
        let is_open =
            untrack(|| self.shown_recording()).is_some_and(|opened| opened.name == sample.file_name());
        self.go_to(Place::Workbench);
        let place = move || {
            if link.step.is_some() {
                self.follow_moment(&link);
            }
            self.follow_question(&link);
        };
        if is_open { place() } else { samples.open_and(self, sample, place) }
    }

    fn follow_beside(self, name: String, link: Link) {
        let is_open = untrack(|| self.shown_recording()).is_some_and(|opened| opened.name == name);
        if self.embed.is_some() && !is_open {
            // The frame must not show the page's own workload for a moment before the file is open.
            self.load_empty();
        }
        self.go_to(Place::Workbench);
        let place = move || {
            if link.step.is_some() {
                self.follow_moment(&link);
            }
        };
        if is_open { place() } else { files::open_beside(self, name, place) }
    }

    fn follow_own_file(self, link: Link) {
        let opened = self.opened.get_untracked().filter(|opened| self.is_own(opened));
        self.go_to(Place::Workbench);
        let place = move || {
            if link.step.is_some() {
                self.follow_moment(&link);
            }
            self.follow_question(&link);
        };
        match opened {
            Some(opened) => {
                self.show(Source::Recording(opened));
                place();
            }
            None => files::open_kept(self, place),
        }
    }

    /// Whether the recording is a file that the reader opened, and not a sample or a file beside the page.
    fn is_own(self, opened: &OpenedFile) -> bool {
        !opened.is_sample() && self.beside.with_untracked(|beside| beside.as_ref() != Some(&opened.name))
    }

    /// Shows the lesson whose text is in a link, unless it is open.
    fn follow_lesson_text(self, text: String, card: usize) {
        let open = self.own_lesson.get_untracked();
        let is_open = self.lesson_text.with_untracked(|before| before.as_ref() == Some(&text));
        if let Some(lesson) = open.filter(|_| is_open) {
            return self.show_own_lesson(lesson, card);
        }
        match OpenLesson::read(&text) {
            Ok(lesson) => {
                self.beside.set(None);
                self.lesson_text.set(Some(text));
                self.show_lesson(lesson);
                self.show_card(card);
            }
            Err(why) => {
                self.go_to(Place::Lessons);
                self.show_error(crate::commands::sentence(&why.to_string()));
            }
        }
    }

    fn follow_own_lesson(self, card: usize) {
        if let Some(lesson) = self.own_lesson.get_untracked() {
            return self.show_own_lesson(lesson, card);
        }
        self.go_to(Place::Lessons);
        files::open_kept(self, move || {
            if let Some(lesson) = self.own_lesson.get_untracked() {
                self.show_own_lesson(lesson, card);
            }
        });
    }

    /// Goes to the step or the event of a link, and chooses the block of the link.
    fn follow_moment(self, link: &Link) {
        if let Some(step) = link.step {
            self.dispatch(PlayerAction::SetUnit(Unit::Step));
            self.dispatch(PlayerAction::SeekStep(step));
        }
        if let Some(event) = link.event {
            self.dispatch(PlayerAction::SetUnit(Unit::Event));
            self.dispatch(PlayerAction::SeekEvent(event));
        }
        let block = link.block.and_then(|number| number.try_into().ok());
        self.select(block.map(BlockId::new));
    }

    /// Shows a text in the workbench. Undo restores the former text.
    fn open_text(self, text: String, settings: SettingsTexts) {
        self.place.set(Place::Workbench);
        let is_same = self.history.with_untracked(|history| history.text() == text)
            && self.settings.with_untracked(|before| *before == settings);
        if is_same {
            self.show(Source::Text);
            self.run_first();
        } else {
            self.load(text, settings);
        }
    }
}

/// Shows what the page's address names, now and when it changes, and writes what is shown into the address.
pub(crate) fn follow(session: Session, samples: Samples) {
    let read = move || {
        let (link, problems) = Link::read(&browser::hash());
        session.follow_link(link, samples);
        if !problems.is_empty() {
            session.show_error(format!("Not all of this link was understood: {}.", problems.join("; ")));
        }
    };
    read();
    if let Some(window) = browser::window() {
        browser::listen(&window, "popstate", move |_: web_sys::Event| read());
    }
    let written = StoredValue::new(untrack(|| session.link()));
    let timer = StoredValue::new(None::<i32>);
    effect(move || {
        let link = session.link();
        let is_playing = session.player.with(|player| player.is_playing);
        browser::cancel(timer.get_value());
        let before = written.get_value();
        if before == link {
            return;
        }
        // Steps and typed letters follow each other quickly, and browsers limit how often a page may change its address.
        let without_steps = |link: &Link| {
            let (step, event, block) = (None, None, None);
            let (with, on, limit) = (None, None, None);
            Link { step, event, block, with, on, limit, ..link.clone() }
        };
        let is_step = without_steps(&before) == without_steps(&link);
        // While it plays, the step is not written. Another place or another card is, at once: its address may be copied.
        if is_step && is_playing {
            return;
        }
        let write = move || {
            let hash = link.write();
            let hash = if hash.len() > MOST_CHARS { Target::Workbench.hash() } else { hash };
            // After a reload, the address is already right.
            if browser::hash().trim_start_matches('#') != hash {
                browser::set_hash(&hash, is_elsewhere(&before.target, &link.target));
            }
            written.set_value(link);
        };
        if is_step {
            timer.set_value(browser::after_millis(PAUSE_MILLIS, write));
        } else {
            write();
        }
    });
    effect(move || {
        if let Some(document) = browser::document() {
            document.set_title(&session.title());
        }
    });
}

/// Whether the browser's button "Back" should lead from `after` to `before`. It should between places and between documents, and not
/// between two versions of a text.
fn is_elsewhere(before: &Target, after: &Target) -> bool {
    match (before, after) {
        (Target::Text { .. }, Target::Text { .. }) => false,
        _ => before != after,
    }
}
