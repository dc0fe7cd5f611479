//! A lesson in a lecture room: the whole screen, large letters, and the keys of a clicker.

use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Document, HtmlElement};

use crate::browser;
use crate::session::{Place, Presenting, Session};
use crate::surface;
use crate::view::kit::{button, click, effect, flag};

/// The button that begins and ends the presentation of the open lesson.
pub(crate) fn present_button(session: Session) -> AnyView {
    let is_on = Memo::new(move |_| session.presenting.get() != Presenting::No);
    let is_made_here =
        move || session.place.get() == Place::OwnLesson && session.lesson_text.with(Option::is_some);
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

/// The least and the largest size of a presented card's letters, beside the size that the style sheet gives them.
const FIT: (f64, f64) = (0.5, 1.8);

/// Makes the letters of a presented card as large as the screen lets them be, whenever the card, what is said on it, or the screen changes.
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

fn fit(session: Session, is_on: bool) {
    let of = |css: &str| {
        let found = browser::document()?.query_selector(css).ok()??;
        found.dyn_into::<HtmlElement>().ok()
    };
    let (Some(card), Some(buttons)) = (of(".lesson-card"), of(".turn")) else { return };
    let set = |fit: f64| card.style().set_property("--fit", &format!("{fit:.3}")).is_ok();
    // In one column the page scrolls from the card to the figure anyway.
    if !is_on || session.is_narrow.get_untracked() {
        let _ = card.style().remove_property("--fit");
        return;
    }
    let room = browser::window_size().1 - f64::from(buttons.offset_height());
    let fits = |fit: f64| set(fit) && f64::from(card.offset_height()) <= room;
    let (mut low, mut high) = FIT;
    if fits(high) {
        return;
    }
    for _ in 0..7 {
        let middle = f64::midpoint(low, high);
        *(if fits(middle) { &mut low } else { &mut high }) = middle;
    }
    set(low);
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
    if session.presenting.get_untracked() == Presenting::No {
        return false;
    }
    match event.key().as_str() {
        "PageDown" | " " | "ArrowRight" | "ArrowDown" | "Enter" => session.go_on(),
        "PageUp" | "Backspace" | "ArrowLeft" | "ArrowUp" => {
            let card = session.lesson.with_untracked(|state| state.card);
            session.show_card(card.saturating_sub(1));
        }
        "b" | "B" | "." => session.presenting.update(|presenting| {
            *presenting =
                if *presenting == Presenting::Blank { Presenting::Shown } else { Presenting::Blank };
        }),
        "Escape" => session.end_presenting(),
        _ => return false,
    }
    true
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

    /// Shows what comes next in a lecture: the answer to the card's question, or else the next card. Stays at the last card.
    fn go_on(self) {
        let Some(lesson) = untrack(|| self.open_lesson()) else { return };
        let (card, is_revealed) = self.lesson.with_untracked(|state| (state.card, state.is_revealed));
        let is_asked = lesson.cards.get(card).is_some_and(|played| played.question.is_some());
        if is_asked && !is_revealed {
            self.reveal();
        } else if card + 1 < lesson.cards.len() {
            self.show_card(card + 1);
        }
    }
}
