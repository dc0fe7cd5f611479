//! A lesson before a class, in a lecture room: the whole screen, large letters.

use blockyard_figure::PlayerAction;
use blockyard_lessons::{ExerciseUse, Plan, PlannedLesson};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use super::{LessonSignals, OpenLesson};
use crate::browser;
use crate::link::{Link, LinkTarget};
use crate::session::{Feature, Session};

/// The presentation in the storage of the tab: when it began, and its plan.
const KEY: &str = "blockyard-presentation";

/// Whether the open lesson is presented to a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presentation {
    #[default]
    No,
    /// Presented with large letters on the whole screen.
    Shown,
    /// Presented with a dark screen, so that the class looks at the teacher.
    Blank,
    /// After the last card of the last lesson: a slide says that the lecture ends.
    AtEnd,
}

/// What is shown over a presented card until the next key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OverCard {
    #[default]
    Nothing,
    /// The code of the card's address, for phones.
    Code,
    /// The keys of a presentation.
    Keys,
}

/// What a presentation has beside its card.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PresentationExtras {
    /// When the presentation began, in milliseconds of the world's clock: a reload of the page does not stop it.
    began_millis: f64,
    /// How long the presentation has taken.
    seconds: u32,
    pub(crate) is_clock_hidden: bool,
    pub(crate) over: OverCard,
    /// Whether the speaker has a second window.
    pub(crate) has_speaker: bool,
}

impl Feature<LessonSignals> {
    /// Presents the open lesson, on the whole screen if the browser allows it.
    pub(crate) fn present(self) {
        self.begin(js_sys::Date::now());
        browser::ask_for_whole_screen();
        self.play_at_sliders();
        self.show_card(self.state.with_untracked(|state| state.card));
        // Space must continue the lesson and not press the button that has the focus.
        let _ = browser::after_millis(0, || browser::leave_button(".lesson"));
        self.draw_for_other_letters();
    }

    /// Whether a lesson is presented.
    pub(super) fn is_presented(self) -> bool {
        self.presenting.get_untracked() != Presentation::No
    }

    /// Begins the presentation with its clock, and keeps plan and clock for a reload of the page.
    fn begin(self, began_millis: f64) {
        self.presenting.set(Presentation::Shown);
        // A message of the page would lie over the slide, and come back after the last one.
        self.session.messages().message.set(None);
        let seconds = move || whole_seconds(js_sys::Date::now() - began_millis);
        self.extras.set(PresentationExtras {
            began_millis,
            seconds: seconds(),
            ..PresentationExtras::default()
        });
        let plan = self.plan.with_untracked(ToString::to_string);
        browser::keep_in_tab(KEY, Some(&format!("{began_millis} {plan}")));
        browser::each_second(move |_| {
            let is_on = self.presenting.get_untracked() != Presentation::No
                && self.extras.with_untracked(|extras| (extras.began_millis - began_millis).abs() < 1.0);
            if is_on {
                self.extras.update(|extras| extras.seconds = seconds());
            }
            is_on
        });
    }

    /// The presentation that a reload of the page has ended, for [`Self::resume`]; none if the address is of
    /// no lesson.
    pub(crate) fn kept(self) -> Option<String> {
        let kept = browser::kept_in_tab(KEY).filter(|_| self.session.navigation().embed.is_none());
        let is_lesson = matches!(
            Link::read(&browser::hash()).0.target,
            LinkTarget::Lesson { .. }
                | LinkTarget::LessonText { .. }
                | LinkTarget::OwnLesson(_)
                | LinkTarget::Beside(_)
        );
        if is_lesson {
            return kept;
        }
        browser::keep_in_tab(KEY, None);
        None
    }

    /// Goes on with the presentation that a reload of the page has ended, with its plan and its clock. The
    /// browser gives the whole screen only at a key.
    pub(crate) fn resume(self, kept: &str) {
        let Some((began, plan)) = kept.split_once(' ') else { return };
        let Ok(began_millis) = began.parse() else { return };
        self.plan.set(Plan::from_text(plan));
        self.begin(began_millis);
        self.play_at_sliders();
        self.draw_for_other_letters();
    }

    /// Draws the figures again once the page's letters have their new size. In one column the width of
    /// figures does not change, so no effect of their size draws them again.
    fn draw_for_other_letters(self) {
        if self.session.appearance().is_narrow.get_untracked() {
            return;
        }
        let _ = browser::after_millis(60, move || self.session.appearance().redraw());
    }

    pub(crate) fn end_presenting(self) {
        if self.presenting.get_untracked() == Presentation::No {
            return;
        }
        browser::keep_in_tab(KEY, None);
        self.presenting.set(Presentation::No);
        self.extras.set(PresentationExtras::default());
        self.draw_for_other_letters();
        if let Some(document) = browser::document().filter(browser::is_whole_screen) {
            document.exit_fullscreen();
        }
    }

    /// Whether the plan of a presentation leaves the card out, or makes its exercise homework. Reads signals.
    fn is_left_out(self, lesson: &OpenLesson, card: usize) -> bool {
        let is_exercise = lesson.cards.get(card).is_some_and(|card| card.exercise.is_some());
        let is_out = |planned: &PlannedLesson| {
            planned.leaves_out(card) || (is_exercise && planned.exercise != ExerciseUse::InClass)
        };
        self.presenting.get() != Presentation::No
            && self.plan.with(|plan| plan.lesson(&lesson.id).is_some_and(is_out))
    }

    /// The cards, in their order, that are shown. Reads signals.
    fn shown_cards(self, lesson: &OpenLesson) -> impl DoubleEndedIterator<Item = usize> {
        (0..lesson.cards.len()).filter(move |card| !self.is_left_out(lesson, *card))
    }

    /// The card after this one, of those that are shown. Reads signals.
    pub(crate) fn next_card(self, lesson: &OpenLesson, card: usize) -> Option<usize> {
        self.shown_cards(lesson).find(|other| *other > card)
    }

    /// The card before this one, of those that are shown.
    pub(crate) fn card_before(self, card: usize) -> Option<usize> {
        let lesson = untrack(|| self.session.open_lesson())?;
        untrack(|| self.shown_cards(&lesson).rfind(|other| *other < card))
    }

    /// The number of the card, and how many are shown: `Card 3 of 9`. Reads signals.
    pub(crate) fn card_position(self, lesson: &OpenLesson, card: usize) -> String {
        let shown = self.shown_cards(lesson).filter(|other| *other <= card).count();
        format!("Card {shown} of {}", self.shown_cards(lesson).count())
    }

    /// The last card that is shown.
    pub(super) fn last_card_of(self, lesson: &OpenLesson) -> usize {
        untrack(|| self.shown_cards(lesson).next_back()).unwrap_or(0)
    }

    /// How long the presentation has taken, and how long it and its lesson may take. Reads signals.
    pub(crate) fn clock_text(self) -> String {
        let seconds = self.extras.with(|extras| extras.seconds);
        let elapsed = format!("{}:{:02}", seconds / 60, seconds % 60);
        let id = self.session.open_lesson().map(|lesson| lesson.id.clone()).unwrap_or_default();
        let of_plan = |plan: &Plan| {
            let pause = match plan.break_after(&id) {
                0 => String::new(),
                minutes => format!(", then {minutes} min break"),
            };
            Some(format!(" of {} min, this lesson to {}{pause}", plan.minutes(), plan.end_of(&id)?))
        };
        elapsed + &self.plan.with(of_plan).unwrap_or_default()
    }

    /// Shows the next thing in a lecture: the end of a card that plays, the answer to the card's question,
    /// the rest of a long card, or else the next card. After the last card comes the next lesson, and after
    /// the last lesson a slide.
    pub(crate) fn go_on(self) {
        let Some(lesson) = untrack(|| self.session.open_lesson()) else { return };
        let (card, is_revealed) = self.state.with_untracked(|state| (state.card, state.is_revealed));
        let is_asked = lesson.cards.get(card).is_some_and(|played| played.question.is_some());
        if self.session.player.with_untracked(|player| player.is_playing) {
            if let Some(end) = self.session.stop_at.get_untracked() {
                self.session.dispatch(PlayerAction::SeekStep(end));
            }
            self.session.dispatch(PlayerAction::Pause);
        } else if is_asked && !is_revealed {
            self.reveal();
        } else if scroll_card(self.session) {
            // The card's next lines are in sight.
        } else if let Some(next) = self.next_card(&lesson, card) {
            self.show_card(next);
        } else if self.neighbor(true).is_some() {
            self.show_next();
        } else {
            // The slide stays on the screen, however often the clicker is pressed.
            self.presenting.set(Presentation::AtEnd);
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a lecture takes hours at most")]
fn whole_seconds(millis: f64) -> u32 {
    (millis / 1000.0).max(0.0) as u32
}

/// The open lesson's card in the page.
pub(crate) fn card() -> Option<HtmlElement> {
    browser::find(".lesson-card")?.dyn_into().ok()
}

/// Scrolls down in a card that is longer than the screen; returns false at the end of the card.
fn scroll_card(session: Session) -> bool {
    let Some(card) = card().filter(|_| !session.appearance().is_narrow.get_untracked()) else { return false };
    let hidden = hidden_below(&card);
    if hidden <= 2 {
        return false;
    }
    let far = card.client_height() * 4 / 5;
    // A key that moves the card by less than a line seems to do nothing.
    let far = if f64::from(hidden - far) < line_height(&card) { hidden } else { far };
    card.set_scroll_top(card.scroll_top() + far);
    true
}

/// Scrolls to the end of a card of which less than a line is hidden: the next key goes on.
pub(crate) fn show_last_line(card: &HtmlElement) {
    let hidden = hidden_below(card);
    if card.scroll_top() == 0 && hidden > 2 && f64::from(hidden) < line_height(card) {
        card.set_scroll_top(hidden);
    }
}

/// How many pixels of the card are below its part in the window.
fn hidden_below(card: &HtmlElement) -> i32 {
    card.scroll_height() - card.scroll_top() - card.client_height()
}

fn line_height(card: &HtmlElement) -> f64 {
    let line = browser::style_of(card, "line-height");
    line.and_then(|line| line.trim_end_matches("px").parse().ok()).unwrap_or(24.0)
}
