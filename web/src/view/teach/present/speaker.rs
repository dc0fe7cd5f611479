//! The speaker's window: the answer, the notes, the hints and a solution, the card's words, the next card and
//! the clock, which the class does not see.
//!
//! The window is empty. This page writes into it, so that it needs no network and no messages.

use std::cell::RefCell;
use std::fmt::Write as _;

use blockyard_figure::escaped;
use blockyard_lessons::{PlannedLesson, PlayedCard, TextBlock, class_task, course, plain};
use leptos::ev;
use leptos::prelude::*;
use web_sys::Window;

use super::key;
use crate::browser;
use crate::effect::effect;
use crate::session::Session;

thread_local! {
    static WINDOW: RefCell<Option<Window>> = const { RefCell::new(None) };
}

const HEAD: &str = "<title>Blockyard: speaker</title><style>
:root{color-scheme:light dark;font:20px/1.45 system-ui,sans-serif}body{margin:1em;max-width:40em}
#clock{font-size:1.6em;font-weight:700;margin:0}h1,h2,p{margin:0 0 .4em}h1,h2{font-size:1em}section{border-top:1px solid;padding:.6em 0}pre{margin:0 0 .4em;font-size:.85em;white-space:pre-wrap}ul{margin:0}small{opacity:.75}
</style>";

/// Opens, fills and closes the window as the presentation wants it.
pub(crate) fn follow(session: Session) {
    let lessons = session.lessons();
    let is_wanted = Memo::new(move |_| lessons.extras.with(|extras| extras.has_speaker));
    let close = || {
        if let Some(window) = WINDOW.take() {
            let _ = window.close();
        }
    };
    on_cleanup(close);
    effect(move || if is_wanted.get() { open(session) } else { close() });
    effect(move || {
        if is_wanted.get() {
            write("card", &content(session));
        }
    });
    effect(move || {
        if is_wanted.get() {
            write("clock", &lessons.clock_text());
        }
    });
}

fn open(session: Session) {
    let opened = browser::window().and_then(|page| {
        page.open_with_url_and_target_and_features("", "blockyard-speaker", "width=760,height=560").ok()?
    });
    let Some((window, document)) = opened.and_then(|window| Some((window.clone(), window.document()?)))
    else {
        session.show_error(
            "The browser opened no second window. Allow this page to open windows, and press N again.",
        );
        return;
    };
    if let Some(root) = document.document_element() {
        root.set_inner_html(&format!(
            "<head>{HEAD}</head><body><p id=\"clock\"></p><div id=\"card\"></div>\
             <p><small>Page down, Space: on. Page up: back. S, arrows: slider. B: dark. Q: QR code. Move this window to your own screen, then press F in the other window.</small></p></body>"
        ));
    }
    browser::listen(&document, "keydown", move |event: ev::KeyboardEvent| {
        if key(session, &event) {
            event.prevent_default();
        }
    });
    browser::listen(&window, "pagehide", move |_: web_sys::Event| {
        session.lessons().extras.update(|extras| extras.has_speaker = false);
    });
    WINDOW.set(Some(window));
}

fn write(id: &str, html: &str) {
    WINDOW.with_borrow(|window| {
        let document = window.as_ref().and_then(Window::document);
        if let Some(element) = document.and_then(|document| document.get_element_by_id(id)) {
            element.set_inner_html(html);
        }
    });
}

/// The card on the screen and the next one, as HTML. Reads signals.
fn content(session: Session) -> String {
    let lessons = session.lessons();
    let Some(lesson) = session.open_lesson() else { return String::new() };
    let (card, is_asked) = (lessons.state.with(|state| state.card), lessons.is_asked());
    let Some(shown) = lesson.cards.get(card) else { return String::new() };
    let title = |card: &PlayedCard| escaped(&plain(&card.title));
    let mut html = format!(
        "<section><h1>{}, {}: {}</h1>",
        escaped(&lesson.title),
        lessons.card_position(&lesson, card).to_lowercase(),
        title(shown)
    );
    if let Some(question) = &shown.question {
        let because = escaped(&plain(&question.because));
        let _ = write!(html, "<p>Answer: <b>{}</b> {because}</p>", escaped(&question.right));
    }
    if let Some(exercise) = &shown.exercise {
        for hint in &exercise.hints {
            let _ = write!(html, "<p>Hint: {}</p>", escaped(&plain(hint)));
        }
        for (code, sentence) in exercise.expected_mistakes() {
            let _ =
                write!(html, "<p>Common mistake: <code>{}</code>: {}.</p>", escaped(code), escaped(sentence));
        }
        if let Some(lines) = exercise.solution() {
            let _ = write!(html, "<p>A solution:</p><pre>{}</pre>", escaped(lines));
        }
    }
    if !shown.notes.is_empty() {
        let _ = write!(html, "<p>{}</p>", escaped(&plain(&shown.notes)));
    }
    // A lesson of the page has no notes: the speaker reads the card and what the class does.
    if course().any(|known| known.id == lesson.id) && shown.exercise.is_none() {
        let _ = write!(html, "<p>{}</p>", escaped(class_task(&lesson.id)));
    }
    let words = shown.body.iter().map(|block| match block {
        TextBlock::Paragraph(text) => format!("<p>{}</p>", escaped(&plain(text))),
        TextBlock::List(items) => {
            let items = items.iter().map(|item| format!("<li>{}</li>", escaped(&plain(item))));
            format!("<ul>{}</ul>", items.collect::<String>())
        }
        TextBlock::Code { text, .. } => format!("<pre>{}</pre>", escaped(text)),
    });
    let _ = write!(html, "</section><section><h2>On the card</h2>{}", words.collect::<String>());
    html += "</section><section><h2>Next</h2><p>";
    let next = lessons.next_card(&lesson, card).and_then(|next| lesson.cards.get(next));
    let pause = || match lessons.plan.with(|plan| plan.break_after(&lesson.id)) {
        0 => String::new(),
        minutes => format!("A break of {minutes} min. "),
    };
    let next = match (is_asked, next) {
        (true, _) => "The answer.".to_owned(),
        (false, Some(next)) => match &next.question {
            Some(question) => format!("{}<br>Asks: {}", title(next), escaped(&plain(&question.text))),
            None => title(next),
        },
        (false, None) => {
            let after =
                |after: PlannedLesson| format!("{}The lesson \"{}\"", pause(), escaped(after.title()));
            lessons.neighbor(true).map_or("The end.".to_owned(), after)
        }
    };
    html.extend([next.as_str(), "</p></section>"]);
    html
}
