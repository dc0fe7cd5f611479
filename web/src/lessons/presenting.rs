//! A lesson before a class, in a lecture room: the whole screen, large letters.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use super::LessonSignals;
use crate::browser;
use crate::session::{Feature, Session};

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

impl Feature<LessonSignals> {
    /// Presents the open lesson, on the whole screen if the browser allows it.
    pub(crate) fn present(self) {
        self.presenting.set(Presentation::Shown);
        browser::ask_for_whole_screen();
        // Space must continue the lesson and not press the button that has the focus.
        let _ = browser::after_millis(0, || browser::leave_button(".lesson"));
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
        self.presenting.set(Presentation::No);
        self.draw_for_other_letters();
        if let Some(document) = browser::document().filter(browser::is_whole_screen) {
            document.exit_fullscreen();
        }
    }

    /// Shows the next thing in a lecture: the answer to the card's question, the rest of a long card, or else
    /// the next card. After the last card comes the next lesson, and after the last lesson a slide.
    pub(crate) fn go_on(self) {
        let Some(lesson) = untrack(|| self.session.open_lesson()) else { return };
        let (card, is_revealed) = self.state.with_untracked(|state| (state.card, state.is_revealed));
        let is_asked = lesson.cards.get(card).is_some_and(|played| played.question.is_some());
        if is_asked && !is_revealed {
            self.reveal();
        } else if scroll_card(self.session) {
            // The card's next lines are in sight.
        } else if card + 1 < lesson.cards.len() {
            self.show_card(card + 1);
        } else if self.neighbor(true).is_some() {
            self.show_next();
        } else {
            // The slide stays on the screen, however often the clicker is pressed.
            self.presenting.set(Presentation::AtEnd);
        }
    }
}

/// The open lesson's card in the page.
pub(crate) fn card() -> Option<HtmlElement> {
    browser::find(".lesson-card")?.dyn_into().ok()
}

/// Scrolls down in a card that is longer than the screen; returns false at the end of the card.
fn scroll_card(session: Session) -> bool {
    let Some(card) = card().filter(|_| !session.appearance().is_narrow.get_untracked()) else { return false };
    let (top, room) = (card.scroll_top(), card.client_height());
    let is_more = top + room + 2 < card.scroll_height();
    if is_more {
        card.set_scroll_top(top + room * 4 / 5);
    }
    is_more
}
