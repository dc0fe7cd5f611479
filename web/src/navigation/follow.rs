//! Shows the place, the run and the moment that an address names.

use blockyard_figure::{MoveUnit, PlayerAction};
use blockyard_lab::QuestionKind;
use blockyard_record::BlockId;
use blockyard_workload::presets::presets;
use leptos::prelude::*;

use super::{CardPlace, NO_LESSONS, NavigationSignals, Place};
use crate::appearance::ThemeChoice;
use crate::files::{SAMPLES, Sample, Samples};
use crate::lessons::OpenLesson;
use crate::link::{Link, LinkTarget};
use crate::messages::sentence;
use crate::session::{Feature, Source};
use crate::view::parts;
use crate::workload::SettingsTexts;

impl Feature<NavigationSignals> {
    /// Shows the place, the run and the moment that an address names.
    pub(crate) fn follow_link(self, link: Link, samples: Samples) {
        if let Some(theme) = &link.theme {
            self.session.appearance().theme.set(ThemeChoice::from_name(theme));
        }
        match link.target.clone() {
            LinkTarget::Place(place) => {
                if let Some(plan) = link.class_plan {
                    self.session.lessons().replace_plan(plan);
                }
                self.go_to(place);
            }
            LinkTarget::ProgramExample(id) => self.session.program().follow_example(&id),
            LinkTarget::ProgramText(text) => self.session.program().follow_text(text, &link),
            LinkTarget::LessonText { text, card, is_for_class } => {
                self.session.lessons().is_for_class.set(is_for_class);
                self.follow_lesson_text(text, card.saturating_sub(1), link);
            }
            LinkTarget::Lesson { id, card } => {
                // Addresses count cards from 1. The number 0 names the first card, too.
                self.go_to_and(
                    Place::Lesson { id, card: CardPlace::At(card.saturating_sub(1)) },
                    move || self.session.lessons().follow_parts(&link),
                );
            }
            LinkTarget::Preset(id) => self.follow_preset(&id, &link),
            LinkTarget::Text { title, text } => {
                let conf = link.conf.clone().unwrap_or_default();
                let capacity = link.capacity.clone().unwrap_or_else(|| "1 GiB".to_owned());
                self.session.workload().open_text(text, SettingsTexts { title, conf, capacity });
                self.follow_moment(&link);
                self.follow_question(&link);
            }
            LinkTarget::Sample(name) => self.follow_sample(&name, link, samples),
            LinkTarget::Beside(name) => self.follow_beside(name, link),
            LinkTarget::OwnFile => self.follow_own_file(link),
            // The card is counted from 1.
            LinkTarget::OwnLesson(card) => self.follow_own_lesson(card.saturating_sub(1)),
        }
    }

    fn follow_preset(self, id: &str, link: &Link) {
        let Some(preset) = presets().iter().find(|preset| preset.id == id) else {
            self.go_to(Place::Home);
            return self
                .session
                .show_error(format!("This link names the workload \"{id}\", which does not exist."));
        };
        let own = SettingsTexts::of(preset);
        let settings = SettingsTexts {
            conf: link.conf.clone().unwrap_or(own.conf),
            capacity: link.capacity.clone().unwrap_or(own.capacity),
            title: own.title,
        };
        self.session.workload().open_text(preset.text.to_owned(), settings);
        self.follow_moment(link);
        self.follow_question(link);
    }

    fn follow_sample(self, name: &str, link: Link, samples: Samples) {
        let Some(sample) = SAMPLES.iter().find(|sample| sample.name == name) else {
            self.go_to(Place::Home);
            return self
                .session
                .show_error(format!("This link names the sample \"{name}\", which does not exist."));
        };
        let is_open = untrack(|| self.session.shown_recording())
            .and_then(|opened| Sample::of_file(&opened.name))
            .is_some_and(|open| open.name == sample.name);
        self.go_to(Place::Workbench);
        let place = move || self.follow_device(link);
        if is_open { place() } else { samples.open_and(self.session, sample, place) }
    }

    fn follow_beside(self, name: String, link: Link) {
        let is_open = untrack(|| self.session.shown_recording()).is_some_and(|opened| opened.name == name);
        if self.embed.is_some() && !is_open {
            // The frame must not show the page's own workload for a moment before the file is open.
            self.session.workload().load_empty();
        }
        self.go_to(Place::Workbench);
        let place = move || {
            if link.solution.is_some() {
                self.session.lessons().show_answer(&link);
            }
            self.follow_device(link);
        };
        if is_open { place() } else { self.session.files().open_beside(name, place) }
    }

    fn follow_own_file(self, link: Link) {
        let opened =
            self.session.files().opened.get_untracked().filter(|opened| self.session.files().is_own(opened));
        self.go_to(Place::Workbench);
        let place = move || self.follow_device(link);
        match opened {
            Some(opened) => {
                self.session.show(Source::Recording(opened));
                place();
            }
            None => self.session.files().open_kept(place),
        }
    }

    /// Shows the lesson whose text is in a link, unless it is open, and what the link holds beside it.
    pub(crate) fn follow_lesson_text(self, text: String, card: usize, link: Link) {
        let lessons = self.session.lessons();
        let is_open = lessons.own_text.with_untracked(|before| before.as_ref() == Some(&text));
        if let Some(lesson) = lessons.own.get_untracked().filter(|_| is_open) {
            lessons.show_own(lesson, card);
            return lessons.follow_parts(&link);
        }
        parts::with_lessons(move |module| match module.map(|module| OpenLesson::read(&text, module)) {
            Ok(Ok(lesson)) => {
                self.session.files().beside.set(None);
                lessons.own_text.set(Some(text));
                lessons.open_own(lesson);
                lessons.show_card(card);
                lessons.follow_parts(&link);
            }
            Ok(Err(why)) => {
                self.go_to(Place::Lessons);
                self.session.show_error(sentence(&why.to_string()));
            }
            Err(_) => self.session.show_error(NO_LESSONS),
        });
    }

    fn follow_own_lesson(self, card: usize) {
        if let Some(lesson) = self.session.lessons().own.get_untracked() {
            return self.session.lessons().show_own(lesson, card);
        }
        self.go_to(Place::Lessons);
        self.session.files().open_kept(move || {
            if let Some(lesson) = self.session.lessons().own.get_untracked() {
                self.session.lessons().show_own(lesson, card);
            }
        });
    }

    /// Shows the device, the moment and the question of a link to a file. The file opens again for a device
    /// that it did not open with.
    fn follow_device(self, link: Link) {
        let opened = untrack(|| self.session.shown_recording());
        let file = opened.as_ref().and_then(|opened| opened.run.opened.as_ref());
        let is_other = |device: &usize| {
            file.is_some_and(|file| *device != file.shown_device && *device < file.devices.len())
        };
        let show = move |link: &Link| {
            self.follow_step(link);
            self.follow_question(link);
        };
        match link.device.filter(is_other) {
            Some(device) => self.session.files().reopen(device, Box::new(move || show(&link))),
            None => show(&link),
        }
    }

    /// Goes to the moment of a link that names a step.
    fn follow_step(self, link: &Link) {
        if link.step.is_some() {
            self.follow_moment(link);
        }
    }

    /// Goes to the step or the event of a link, and chooses the block of the link.
    fn follow_moment(self, link: &Link) {
        if let Some(step) = link.step {
            self.session.dispatch(PlayerAction::SetUnit(MoveUnit::Step));
            self.session.dispatch(PlayerAction::SeekStep(step));
        }
        if let Some(event) = link.event {
            self.session.dispatch(PlayerAction::SetUnit(MoveUnit::Event));
            self.session.dispatch(PlayerAction::SeekEvent(event));
        }
        let block = link.block.and_then(|number| number.try_into().ok());
        self.session.figures().select(block.map(BlockId::new));
    }

    /// Asks the question of a link. The run of the link has to be shown already.
    fn follow_question(self, link: &Link) {
        let Some(id) = &link.lab else { return };
        let Some(kind) = QuestionKind::from_name(id) else {
            return self
                .session
                .show_error(format!("This link asks the question \"{id}\", which does not exist."));
        };
        // The verdict says why a run went out of memory.
        let kind = if kind == QuestionKind::Autopsy { QuestionKind::Verdict } else { kind };
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        self.session.lab().capacity.set(or_empty(&link.question_capacity));
        self.session.lab().limit.set(or_empty(&link.question_limit));
        if kind == QuestionKind::WhatIf {
            self.session.lab().conf.set(or_empty(&link.question_conf));
        }
        self.session.lab().open(kind);
        // The code of the lab may not be loaded yet: a verdict that was asked for a moment ago would be this
        // question then.
        if kind != QuestionKind::Verdict && self.session.shows_recording() {
            self.session.lab().want_verdict();
        }
        self.session.lab().ask();
    }
}
