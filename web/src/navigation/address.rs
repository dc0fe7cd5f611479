//! Keeps the page's address equal to the shown place and moment.

use blockyard_figure::MoveUnit;
use blockyard_lab::QuestionKind;
use blockyard_workload::presets::presets;
use leptos::prelude::*;

use super::{NavigationSignals, Place};
use crate::browser::{self, Delay};
use crate::effect::effect;
use crate::files::{Sample, Samples};
use crate::link::{Link, LinkTarget, MAX_ADDRESS_CHARS};
use crate::session::{Feature, Session};
use crate::workbench::Tab;
use crate::workload::SettingsTexts;

/// A longer text is not written into the address: compressing it would delay the key, and programs would cut
/// off the address.
const MAX_PACKED_BYTES: usize = 200_000;

/// The step is written into the address when the cursor has rested for this long.
const PAUSE_MILLIS: i32 = 250;

impl Feature<NavigationSignals> {
    /// The address of the present view. Reads signals.
    pub(crate) fn link(self) -> Link {
        match self.place.get() {
            // A lesson that lies beside the page opens for others too.
            Place::OwnLesson => {
                let lessons = self.session.lessons();
                match (self.session.files().beside.get(), lessons.own_text.get()) {
                    (Some(name), _) => LinkTarget::Beside(name).into(),
                    (None, Some(text)) => {
                        let is_for_class = lessons.is_for_class.get();
                        lessons.link_to(|card| LinkTarget::LessonText { text, card, is_for_class })
                    }
                    (None, None) => LinkTarget::OwnLesson(lessons.state.with(|state| state.card + 1)).into(),
                }
            }
            Place::Workbench => self.with_question(self.workbench_link()),
            Place::Program => self.session.program().link(),
            Place::Lesson { id, .. } => {
                self.session.lessons().link_to(|card| LinkTarget::Lesson { id, card })
            }
            place @ Place::Teachers(_) => {
                let plan = self.session.lessons().class_plan.get();
                let class_plan = Some(plan).filter(|plan| !plan.is_empty());
                Link { class_plan, ..LinkTarget::Place(place).into() }
            }
            place => LinkTarget::Place(place).into(),
        }
    }

    /// The link with the question of the lab that is shown.
    fn with_question(self, link: Link) -> Link {
        if self.session.workbench().tab.get() != Tab::Lab {
            return link;
        }
        let lab = self.session.lab();
        let kind = lab.kind.get();
        // A file opens with its verdict.
        if kind == QuestionKind::Verdict {
            return link;
        }
        let typed = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let with = if kind == QuestionKind::WhatIf { typed(lab.conf.get()) } else { None };
        let (on, limit) = (typed(lab.capacity.get()), typed(lab.limit.get()));
        Link {
            lab: Some(kind.name().to_owned()),
            question_conf: with,
            question_capacity: on,
            question_limit: limit,
            ..link
        }
    }

    fn workbench_link(self) -> Link {
        let block = self.session.figures().selected().map(|block| u64::from(block.get()));
        let (steps, event) = self.session.player.with(|player| {
            let is_event = player.unit == MoveUnit::Event;
            (player.steps, is_event.then_some(player.cursor))
        });
        let link = Link { step: Some(steps), event, block, ..Link::default() };
        if let Some(opened) = self.session.shown_recording() {
            // The steps of a program that runs are others soon.
            let link = if self.session.live().shows_steps() { Link::default() } else { link };
            let sample = Sample::of_file(&opened.name);
            let is_beside = self.session.files().beside.with(|beside| beside.as_ref() == Some(&opened.name));
            let file = opened.run.opened.as_ref().filter(|file| file.devices.len() > 1);
            let link = Link { device: file.map(|file| file.shown_device), ..link };
            return match sample {
                _ if is_beside => Link { target: LinkTarget::Beside(opened.name.clone()), ..link },
                Some(sample) => Link { target: LinkTarget::Sample(sample.name.to_owned()), ..link },
                None => Link { target: LinkTarget::OwnFile, ..link },
            };
        }
        let SettingsTexts { title, conf, capacity } = self.session.workload().settings.get();
        let text = self.session.workload().history.with(|history| history.text().to_owned());
        if let Some(preset) = presets().iter().find(|preset| preset.text == text) {
            return Link {
                target: LinkTarget::Preset(preset.id.to_owned()),
                conf: (!conf.trim().is_empty()).then_some(conf),
                capacity: (capacity != preset.capacity.to_string()).then_some(capacity),
                ..link
            };
        }
        if text.len() > MAX_PACKED_BYTES {
            return LinkTarget::Place(Place::Workbench).into();
        }
        let conf = (!conf.trim().is_empty()).then_some(conf);
        let target = LinkTarget::Text { title, text };
        Link { target, conf, capacity: Some(capacity), ..link }
    }
}

/// Shows the place and the moment that the page's address names, now and when the address changes, and writes
/// the shown place and moment into the address.
pub(crate) fn keep_address(session: Session, samples: Samples) {
    let read = move || {
        let (link, problems) = Link::read(&browser::hash());
        session.navigation().follow_link(link, samples);
        if !problems.is_empty() {
            session.show_error(format!("Not all of this link was understood: {}.", problems.join("; ")));
        }
    };
    read();
    if let Some(window) = browser::window() {
        browser::listen(&window, "popstate", move |_: web_sys::Event| read());
    }
    let written = StoredValue::new(untrack(|| session.navigation().link()));
    let delay = Delay::new();
    // Each step of a player that plays would begin the delay again.
    let is_playing = Memo::new(move |_| session.player.with(|player| player.is_playing));
    effect(move || {
        let link = session.navigation().link();
        let is_playing = is_playing.get();
        delay.cancel();
        let before = written.get_value();
        if before == link {
            return;
        }
        // Steps, typed letters and places of a slider follow each other quickly, and browsers limit how often a
        // page may change its address.
        let with_steps = Link {
            step: link.step,
            event: link.event,
            block: link.block,
            question_conf: link.question_conf.clone(),
            question_capacity: link.question_capacity.clone(),
            question_limit: link.question_limit.clone(),
            sliders: link.sliders.clone(),
            ..before.clone()
        };
        let is_step = with_steps == link;
        // While it plays, the step is not written. Another place or another card is written at once, since
        // the reader may copy its address.
        if is_step && is_playing && before.sliders == link.sliders {
            return;
        }
        let write = move || {
            let hash = link.write();
            let hash = if hash.len() > MAX_ADDRESS_CHARS {
                LinkTarget::Place(Place::Workbench).hash()
            } else {
                hash
            };
            // After a reload, the address is already right.
            if browser::hash().trim_start_matches('#') != hash {
                // A chapter scrolls from card to card.
                let is_chapter = untrack(|| session.lessons().is_chapter());
                let is_same = is_chapter && is_same_lesson(&before.target, &link.target);
                browser::set_hash(&hash, !is_same && is_elsewhere(&before.target, &link.target));
            }
            written.set_value(link);
        };
        if is_step {
            delay.start(PAUSE_MILLIS, write);
        } else {
            write();
        }
    });
    effect(move || {
        if let Some(document) = browser::document() {
            document.set_title(&session.navigation().title());
        }
    });
}

/// Whether the browser's button "Back" should lead from `after` to `before`. The button leads between places
/// and between documents, and not between two versions of a text.
fn is_elsewhere(before: &LinkTarget, after: &LinkTarget) -> bool {
    match (before, after) {
        (LinkTarget::Text { .. }, LinkTarget::Text { .. }) => false,
        _ => before != after,
    }
}

fn is_same_lesson(before: &LinkTarget, after: &LinkTarget) -> bool {
    let (LinkTarget::Lesson { id, .. }, LinkTarget::Lesson { id: other, .. }) = (before, after) else {
        return false;
    };
    id == other
}
