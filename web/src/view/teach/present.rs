//! A lesson in a lecture room: the whole screen, large letters, and the keys of a clicker.

pub(super) mod room_code;
mod speaker;

pub(crate) use self::room_code::MAX_CODE_CHARS;
pub(crate) use self::speaker::follow as follow_speaker;

use blockyard_figure::escaped;
use blockyard_lessons::{PlannedLesson, course};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

use crate::browser;
use crate::effect::effect;
use crate::lessons::{OpenLesson, OverCard, Presentation, PresentationExtras, card, show_last_line};
use crate::navigation::Place;
use crate::session::Session;
use crate::surface;
use crate::view::kit::{button, click, flag, text};
use crate::view::teach::teachers::students_address;

/// The button that begins and ends the presentation of the open lesson.
pub(crate) fn present_button(session: Session) -> AnyView {
    let is_on = Memo::new(move |_| session.lessons().presenting.get() != Presentation::No);
    let is_made_here = move || {
        let is_written =
            session.lessons().own_text.with(Option::is_some) && !session.lessons().is_for_class.get();
        // A lesson beside a site's page belongs to the author of the site.
        let is_file = session.lessons().file_text.with(Option::is_some)
            && session.files().beside.with(Option::is_none)
            && session.lessons().own_text.with(Option::is_none);
        (is_written || is_file) && session.navigation().place.get() == Place::OwnLesson
    };
    view! {
        <span class="present-buttons no-print" hidden=session.navigation().embed.is_some()>
            <span hidden=flag(move || is_on.get() || !is_made_here())>
                {button("", "edit-lesson", "Edit", "Back to the text of this lesson", click(move || session.navigation().go_to(Place::MakeLesson)))}
            </span>
            " "
            <span hidden=flag(move || is_on.get())>
                {button("", "present", "Present", "The whole screen, for a lecture: PageDown, Space and a clicker go on", click(move || session.lessons().present()))}
            </span>
            <span hidden=flag(move || !is_on.get())>
                <span class="quiet" data-testid="clock" hidden=flag(move || session.lessons().extras.with(|extras| extras.is_clock_hidden))>
                    {text(move || session.lessons().clock_text())}
                </span>
                " "
                {button("", "present-end", "End", "Ends the presentation (Escape)", click(move || session.lessons().end_presenting()))}
            </span>
        </span>
    }
    .into_any()
}

/// The sizes of a presented card's letters, as factors of the page's letters: the first for a card without a
/// task, the second for a question or an exercise, before the answer and after it. The others are for cards
/// that are longer than the screen, the last two for small screens.
const SIZES: [f64; 6] = [1.5, 1.16, 1.08, 1.0, 0.85, 0.78];
/// How many of the sizes a large screen uses: smaller letters could not be read from the last row of a room.
const SIZES_OF_LARGE: usize = 4;
/// The class of a card that has too many lines for these sizes: the style sheet gives it more of the screen.
const LONG: &str = "is-long";
/// Lower screens count as small, such as those of laptops and old projectors.
const LARGE_PX: f64 = 900.0;

/// Gives a presented card the largest letters at which all of it is on the screen, whenever the card, its
/// answer or grade, or the screen changes. The width of `head`, an element of the lesson, changes with the
/// screen.
pub(crate) fn fit_card(session: Session, head: NodeRef<html::Div>) {
    let size = surface::size_of(head);
    effect(move || {
        size.track();
        session.lessons().state.track();
        let is_on = session.lessons().presenting.get() != Presentation::No;
        // The page has the card by then.
        let _ = browser::after_millis(20, move || fit(session, is_on));
    });
}

fn fit(session: Session, is_on: bool) {
    let Some(card) = card() else { return };
    let set_long = |is_long| card.class_list().toggle_with_force(LONG, is_long);
    // In one column the page scrolls from the card to the figure anyway.
    if !is_on || session.appearance().is_narrow.get_untracked() {
        let _ = card.style().remove_property("--size");
        let _ = set_long(false);
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
    // Before it runs, an exercise has the whole screen.
    let is_dense = matches!(card.query_selector(".predict, .exercise [data-testid=verdict]"), Ok(Some(_)));
    let is_large = browser::window_size().1 >= LARGE_PX;
    let count = if is_large { SIZES_OF_LARGE } else { SIZES.len() };
    for is_long in [false, true] {
        let _ = set_long(is_long);
        for size in SIZES.iter().take(count).skip(usize::from(is_dense)) {
            let _ = card.style().set_property("--size", &size.to_string());
            if is_whole(&card) && boxes.iter().all(is_whole) {
                return;
            }
        }
    }
    show_last_line(&card);
}

/// Keeps the page's letters and the browser's whole screen as the session has it, goes on with a presentation
/// after a reload, and ends it when the lesson is left.
pub(crate) fn follow(session: Session) {
    let kept = StoredValue::new(session.lessons().kept());
    effect(move || {
        let presenting = session.lessons().presenting.get();
        let Some(root) = browser::root() else { return };
        let _ = root.class_list().toggle_with_force("is-presenting", presenting != Presentation::No);
        let _ = root.class_list().toggle_with_force("is-blank", presenting == Presentation::Blank);
    });
    effect(move || {
        let is_lesson =
            session.navigation().place.with(|place| matches!(place, Place::Lesson { .. } | Place::OwnLesson));
        if !is_lesson {
            session.lessons().end_presenting();
        } else if let Some(kept) = kept.try_update_value(Option::take).flatten() {
            session.lessons().resume(&kept);
        }
    });
    if let Some(document) = browser::document() {
        let whole = document.clone();
        // The browser leaves the whole screen by itself at Escape, and the page gets no event of the key.
        browser::listen(&document, "fullscreenchange", move |_: ev::Event| {
            if browser::is_whole_screen(&whole) {
                return;
            }
            let (has_speaker, over) =
                session.lessons().extras.with_untracked(|extras| (extras.has_speaker, extras.over));
            // Escape closes what is over the card, and a second window ends the whole screen: the presentation
            // goes on.
            if over != OverCard::Nothing {
                session.lessons().extras.update(|extras| extras.over = OverCard::Nothing);
            } else if !has_speaker {
                session.lessons().end_presenting();
            }
        });
    }
}

/// Does the action of a key in a presentation. Returns whether the key has one. A clicker sends `PageDown`
/// and `PageUp`, and `b` or `.` for a dark screen.
pub(crate) fn key(session: Session, event: &ev::KeyboardEvent) -> bool {
    match session.lessons().presenting.get_untracked() {
        Presentation::No => return false,
        // Any key ends the dark screen and has no other effect, as in programs for slides.
        Presentation::Blank => {
            let is_key = !["Shift", "Control", "Alt", "Meta"].contains(&event.key().as_str());
            if is_key {
                session.lessons().presenting.set(Presentation::Shown);
            }
            return is_key;
        }
        Presentation::Shown | Presentation::AtEnd => {}
    }
    let change = |change: fn(&mut PresentationExtras)| session.lessons().extras.update(change);
    let name = event.key();
    let shown = session.lessons().extras.with_untracked(|extras| extras.over);
    let wanted = match name.as_str() {
        "q" | "Q" => OverCard::Code,
        "?" => OverCard::Keys,
        _ => OverCard::Nothing,
    };
    // Another key closes what is over the card, and keeps its action.
    if shown != wanted || shown != OverCard::Nothing {
        let over = if shown == wanted { OverCard::Nothing } else { wanted };
        session.lessons().extras.update(|extras| extras.over = over);
    }
    if wanted != OverCard::Nothing || (shown != OverCard::Nothing && name == "Escape") {
        return true;
    }
    match name.as_str() {
        "PageDown" | " " | "ArrowRight" | "ArrowDown" | "Enter" => session.lessons().go_on(),
        "PageUp" | "Backspace" | "ArrowLeft" | "ArrowUp" => {
            let lessons = session.lessons();
            let is_at_end = lessons.presenting.get_untracked() == Presentation::AtEnd;
            lessons.presenting.set(Presentation::Shown);
            match lessons.card_before(lessons.state.with_untracked(|state| state.card)) {
                // The last card lies below the slide.
                _ if is_at_end => {}
                Some(before) => lessons.show_card(before),
                None => lessons.show_previous(),
            }
        }
        "n" | "N" => change(|extras| extras.has_speaker = !extras.has_speaker),
        "t" | "T" => change(|extras| extras.is_clock_hidden = !extras.is_clock_hidden),
        "s" | "S" => {
            browser::focus_first(".lesson-card .slider input");
            browser::scroll_into_sight(".lesson-card .card-sliders");
        }
        "f" | "F" => browser::ask_for_whole_screen(),
        "b" | "B" | "." => session.lessons().presenting.set(Presentation::Blank),
        "Escape" => session.lessons().end_presenting(),
        _ => return false,
    }
    true
}

/// Whether a presentation takes the key from a text field or a button that has the focus: a clicker is
/// pressed whichever element was clicked before.
pub(crate) fn takes_key(session: Session, key: &str) -> bool {
    match session.lessons().presenting.get_untracked() {
        Presentation::No => false,
        Presentation::Blank => true,
        Presentation::Shown | Presentation::AtEnd => matches!(key, "PageDown" | "PageUp"),
    }
}

/// What a presentation shows over the card: the code of its address, its keys, and the last slide.
pub(crate) fn over_card(session: Session) -> AnyView {
    view! { {room_code::room_code(session)}{end_slide(session)} }.into_any()
}

/// The slide after the last card of the last lesson, until the teacher goes back: the homework, and the code of
/// the students' link.
fn end_slide(session: Session) -> AnyView {
    let is_end = Memo::new(move |_| session.lessons().presenting.get() == Presentation::AtEnd);
    let shown = move || {
        if !is_end.get() {
            return String::new();
        }
        untrack(|| session.open_lesson().map(|open| end_words(session, &open))).unwrap_or_default()
    };
    view! {
        <section class="end-slide" role="status" data-testid="end-slide" hidden=flag(move || !is_end.get()) inner_html=shown></section>
    }
    .into_any()
}

fn end_words(session: Session, open: &OpenLesson) -> String {
    let plan = session.lessons().plan.get();
    let plan = Some(plan).filter(|plan| plan.lesson(&open.id).is_some());
    let (titles, homework, address) = match &plan {
        Some(plan) => {
            let titles: Vec<_> = plan.presented().map(PlannedLesson::title).collect();
            let address = students_address(plan);
            (titles, plan.homework_sentence(), address)
        }
        None => (vec![open.title.as_str()], None, room_code::address(session)),
    };
    let titles: Vec<_> = titles.into_iter().map(escaped).collect();
    let titles = titles.join("</li><li>");
    // The lesson of the course after the last one of the plan: what the teacher left out before is not announced.
    let last = course().filter(|lesson| match &plan {
        Some(plan) => plan.lesson(lesson.id).is_some(),
        None => lesson.id == open.id,
    });
    let next = last.last().and_then(|last| course().skip_while(|lesson| lesson.id != last.id).nth(1));
    let next = next.map(|next| format!("<p>Next: {}.</p>", escaped(next.title)));
    format!(
        "<div><h2>Today</h2><ul class=\"bullets\"><li>{titles}</li></ul><p><b>{}</b></p>{}</div><div class=\"code-of-class\">{}</div>",
        escaped(&homework.unwrap_or_default()),
        next.unwrap_or_default(),
        room_code::content(&address)
    )
}
