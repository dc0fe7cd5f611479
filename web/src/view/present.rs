//! A lesson in a lecture room: the whole screen, large letters, and the keys of a clicker.

use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Document, Element, HtmlElement};

use crate::browser;
use crate::session::{Place, Presenting, Session};
use crate::surface;
use crate::view::kit::{button, click, effect, flag};

/// The button that begins and ends the presentation of the open lesson.
pub(crate) fn present_button(session: Session) -> AnyView {
    let is_on = Memo::new(move |_| session.presenting.get() != Presenting::No);
    let is_made_here = move || {
        let is_text = session.lesson_text.with(Option::is_some) && !session.is_for_class.get();
        is_text && session.place.get() == Place::OwnLesson
    };
    view! {
        <span class="present-buttons no-print" hidden=session.embed.is_some()>
            <span hidden=flag(move || is_on.get() || !is_made_here())>
                {button("", "edit-lesson", "Edit", "Back to the text of this lesson", click(move || session.go_to(Place::MakeLesson)))}
            </span>
            " "
            <span hidden=flag(move || is_on.get())>
                {button("", "present", "Present", "The whole screen, for a lecture: PageDown, Space and a clicker go on", click(move || session.present()))}
            </span>
            <span hidden=flag(move || !is_on.get())>
                {button("", "present-end", "End", "Ends the presentation (Escape)", click(move || session.end_presenting()))}
            </span>
        </span>
    }
    .into_any()
}

/// The letters of a presented card, in the page's letters: those of a card that only tells, and those of a question or an exercise, before the
/// answer as after it. The last two are for cards that are longer than the screen.
const SIZES: [f64; 4] = [1.5, 1.12, 1.02, 0.93];

/// Gives a presented card the largest letters at which all of it is on the screen, whenever the card, what is said on it, or the screen changes.
/// The last is told by `head`, an element of the lesson that is as wide as the screen lets it be.
pub(crate) fn fit_card(session: Session, head: NodeRef<html::Div>) {
    let size = surface::size_of(head);
    effect(move || {
        size.track();
        session.lesson.track();
        let is_on = session.presenting.get() != Presenting::No;
        // The page has the card by then.
        let _ = browser::after_millis(20, move || fit(session, is_on));
    });
}

/// The open lesson's card in the page.
fn card() -> Option<HtmlElement> {
    browser::document()?.query_selector(".lesson-card").ok()??.dyn_into().ok()
}

fn fit(session: Session, is_on: bool) {
    let Some(card) = card() else { return };
    // In one column the page scrolls from the card to the figure anyway.
    if !is_on || session.is_narrow.get_untracked() {
        let _ = card.style().remove_property("--size");
        return;
    }
    // A card that is longer scrolls, and so do the lines of an exercise.
    let boxes: Vec<Element> = match card.query_selector_all("pre, textarea") {
        Ok(found) => (0..found.length()).filter_map(|place| found.get(place)?.dyn_into().ok()).collect(),
        Err(_) => Vec::new(),
    };
    let is_whole = |element: &Element| {
        element.scroll_height() <= element.client_height() + 1
            && element.scroll_width() <= element.client_width() + 1
    };
    let is_dense = matches!(card.query_selector(".predict, .exercise"), Ok(Some(_)));
    for size in SIZES.iter().skip(usize::from(is_dense)) {
        let _ = card.style().set_property("--size", &size.to_string());
        if is_whole(&card) && boxes.iter().all(is_whole) {
            return;
        }
    }
}

/// Scrolls to what is below of a card that is longer than the screen; false at its end.
fn scroll_on(session: Session) -> bool {
    let Some(card) = card().filter(|_| !session.is_narrow.get_untracked()) else { return false };
    let (top, room) = (card.scroll_top(), card.client_height());
    let is_more = top + room + 2 < card.scroll_height();
    if is_more {
        card.set_scroll_top(top + room * 4 / 5);
    }
    is_more
}

/// Keeps the page's letters and the browser's whole screen as the session has it, and ends the presentation when the lesson is left.
pub(crate) fn follow(session: Session) {
    effect(move || {
        let presenting = session.presenting.get();
        let Some(root) = browser::document().and_then(|document| document.document_element()) else { return };
        let _ = root.class_list().toggle_with_force("is-presenting", presenting != Presenting::No);
        let _ = root.class_list().toggle_with_force("is-blank", presenting == Presenting::Blank);
    });
    effect(move || {
        let is_lesson = session.place.with(|place| matches!(place, Place::Lesson { .. } | Place::OwnLesson));
        if !is_lesson {
            session.end_presenting();
        }
    });
    if let Some(document) = browser::document() {
        let whole = document.clone();
        // The browser leaves the whole screen by itself at Escape, and tells the page nothing of the key.
        browser::listen(&document, "fullscreenchange", move |_: ev::Event| {
            if !is_whole_screen(&whole) {
                session.end_presenting();
            }
        });
    }
}

/// What a key does in a presentation; whether it is one of its keys. A clicker sends `PageDown` and `PageUp`, and `b` or `.` for a dark screen.
pub(crate) fn key(session: Session, event: &ev::KeyboardEvent) -> bool {
    match session.presenting.get_untracked() {
        Presenting::No => return false,
        // Any key brings a dark screen back, and does nothing else, as in programs for slides.
        Presenting::Blank => {
            let is_key = !["Shift", "Control", "Alt", "Meta"].contains(&event.key().as_str());
            if is_key {
                session.presenting.set(Presenting::Shown);
            }
            return is_key;
        }
        Presenting::Shown | Presenting::AtEnd => {}
    }
    match event.key().as_str() {
        "PageDown" | " " | "ArrowRight" | "ArrowDown" | "Enter" => session.go_on(),
        "PageUp" | "Backspace" | "ArrowLeft" | "ArrowUp" => {
            let card = session.lesson.with_untracked(|state| state.card);
            session.presenting.set(Presenting::Shown);
            session.show_card(card.saturating_sub(1));
        }
        "b" | "B" | "." => session.presenting.set(Presenting::Blank),
        "Escape" => session.end_presenting(),
        _ => return false,
    }
    true
}

/// Whether a presentation takes the key from a text field or a button that has the focus: a clicker is pressed whatever was clicked before.
pub(crate) fn takes_key(session: Session, key: &str) -> bool {
    match session.presenting.get_untracked() {
        Presenting::No => false,
        Presenting::Blank => true,
        Presenting::Shown | Presenting::AtEnd => matches!(key, "PageDown" | "PageUp"),
    }
}

/// What a class reads after the last card, until a key is pressed.
pub(crate) fn end_line(session: Session) -> AnyView {
    let is_off = flag(move || session.presenting.get() != Presenting::AtEnd);
    view! {
        <p class="end-line" role="status" data-testid="end-line" hidden=is_off>
            "End of the lesson. Once more goes on to the next."
        </p>
    }
    .into_any()
}

fn is_whole_screen(document: &Document) -> bool {
    document.fullscreen_element().is_some()
}

impl Session {
    /// Presents the open lesson, on the whole screen if the browser allows it.
    fn present(self) {
        self.presenting.set(Presenting::Shown);
        browser::ask_for_whole_screen();
        // Space goes on with the lesson, and presses no button.
        let _ = browser::after_millis(0, || browser::leave_button(".lesson"));
        self.draw_for_other_letters();
    }

    /// Draws the figures again once the page's letters have their new size. In one column figures keep their width, and with it the size
    /// that they were drawn for.
    fn draw_for_other_letters(self) {
        if self.is_narrow.get_untracked() {
            return;
        }
        let _ = browser::after_millis(60, move || self.appearance.update(|version| *version += 1));
    }

    fn end_presenting(self) {
        if self.presenting.get_untracked() == Presenting::No {
            return;
        }
        self.presenting.set(Presenting::No);
        self.draw_for_other_letters();
        if let Some(document) = browser::document().filter(is_whole_screen) {
            document.exit_fullscreen();
        }
    }

    /// Shows what comes next in a lecture: the answer to the card's question, the rest of a long card, or else the next card. After the last
    /// card it says so, and then goes on to the next lesson.
    fn go_on(self) {
        let Some(lesson) = untrack(|| self.open_lesson()) else { return };
        let (card, is_revealed) = self.lesson.with_untracked(|state| (state.card, state.is_revealed));
        let is_asked = lesson.cards.get(card).is_some_and(|played| played.question.is_some());
        if is_asked && !is_revealed {
            self.reveal();
        } else if scroll_on(self) {
            // The card's next lines are in sight.
        } else if card + 1 < lesson.cards.len() {
            self.show_card(card + 1);
        } else if self.presenting.get_untracked() == Presenting::AtEnd {
            self.presenting.set(Presenting::Shown);
            self.next_lesson();
        } else {
            self.presenting.set(Presenting::AtEnd);
        }
    }
}
