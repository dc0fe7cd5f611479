//! "Make a lesson": an editor whose text is checked while it is typed, and played at once.

mod beside;
mod check;
mod running;

pub(crate) use self::running::with_requests;

use blockyard_lessons::{Lesson, Quantity, split_recorded, with_recorded, without_solutions};
use blockyard_record::counted;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use self::check::LessonCheck;
use crate::browser::{self, Delay};
use crate::effect::effect;
use crate::lessons::{LessonModule, OpenLesson};
use crate::link::{LinkTarget, MAX_ADDRESS_CHARS};
use crate::messages::sentence;
use crate::navigation::Place;
use crate::session::Session;
use crate::view::header::file_input;
use crate::view::indent;
use crate::view::kit::{FilePicker, button, click, flag, on, text};
use crate::view::teach::present::MAX_CODE_CHARS;

/// A whole small lesson, to be changed.
const STARTER: &str = include_str!("make_lesson/starter.md");
/// The storage key of the text of an earlier visit.
pub(crate) const KEY: &str = "blockyard.own-lesson";
/// The text is checked once no key was pressed for this time.
const REST_MILLIS: i32 = 300;
/// The program runs once no key was pressed for this time more.
const RUN_MILLIS: i32 = 700;

/// So many words without a proof are listed unfolded.
const MAX_SHOWN: usize = 4;

pub(crate) fn make_lesson(session: Session) -> AnyView {
    // A lesson from someone else's link does not replace the reader's own lesson.
    let given = session
        .lessons()
        .own_text
        .get_untracked()
        .filter(|_| !session.lessons().is_for_class.get_untracked());
    let file = session.lessons().file_text;
    let opened = file.get_untracked();
    file.set(None);
    let given = opened.or(given);
    let first = given.or_else(|| browser::recall(KEY)).unwrap_or_else(|| STARTER.to_owned());
    let (own, requests) = split_recorded(&first);
    let editor = LessonEditor {
        session,
        area: NodeRef::new(),
        checked: RwSignal::new(LessonCheck::of(&first)),
        content: RwSignal::new(own),
        requests: RwSignal::new(requests),
        said: RwSignal::new(String::new()),
        card: RwSignal::new(0),
        before: RwSignal::new(None),
        delay: Delay::new(),
        run_delay: Delay::new(),
    };
    editor.run_program();
    effect(move || {
        if let Some(text) = file.get() {
            file.set(None);
            editor.replace(&text);
        }
    });
    let area = editor.area;
    effect(move || {
        if let Some(area) = area.get() {
            area.set_value(&editor.content.get_untracked());
        }
    });
    view! {
        <main class="page make-lesson">
            <h1>"Make a lesson"</h1>
            <p class="lead">
                "A lesson is a text: cards that begin with ##, the program that they run, questions, an exercise. The program runs as you write, and numbers in braces come from its run. The figure is of the card that you write; errors are named with their lines."
            </p>
            <div class="make">
                <textarea
                    node_ref=area
                    class="code"
                    data-testid="lesson-text"
                    aria-label="The lesson's text"
                    spellcheck="false"
                    on:input=on(move |event: ev::Event| editor.write(event_target_value(&event)))
                    on:keydown=on(move |event: ev::KeyboardEvent| indent::key(&event))
                    on:keyup=on(move |_: ev::KeyboardEvent| editor.see_card())
                    on:click=on(move |_: ev::MouseEvent| editor.see_card())
                ></textarea>
                {findings_view(editor)}
            </div>
        </main>
    }
    .into_any()
}

/// The text of a lesson with the result of its check; a handle that is copied freely.
#[derive(Clone, Copy)]
struct LessonEditor {
    session: Session,
    area: NodeRef<html::Textarea>,
    content: RwSignal<String>,
    /// The block with the requests of the program, which the text field does not show.
    requests: RwSignal<String>,
    /// The state of the program, in a sentence; empty where it has run.
    said: RwSignal<String>,
    /// The card that is written, counted from 0.
    card: RwSignal<usize>,
    /// The writer's text before the sample or a file took its place.
    before: RwSignal<Option<String>>,
    checked: RwSignal<LessonCheck>,
    /// The next check.
    delay: Delay,
    /// The next run of the program.
    run_delay: Delay,
}

impl LessonEditor {
    /// Takes a new text, which is checked once the writer rests.
    fn write(self, text: String) {
        self.content.set(text);
        self.keep();
        self.delay.start(REST_MILLIS, move || {
            if self.check() {
                self.run_delay.start(RUN_MILLIS, move || self.run_program());
            }
        });
    }

    /// Keeps the text for the next visit, and for the other parts of the page.
    fn keep(self) {
        let whole = self.whole_now();
        browser::remember(KEY, &whole);
        self.session.lessons().own_text.set(Some(whole));
        self.session.lessons().is_for_class.set(false);
    }

    /// Checks the text; returns false once the editor is left.
    fn check(self) -> bool {
        let whole = untrack(|| self.try_whole());
        whole.is_some_and(|whole| self.checked.try_set(LessonCheck::of(&whole)).is_none())
    }

    fn see_card(self) {
        self.card.set(beside::card_at_caret(self.area));
    }

    /// The text with the requests of its program, as other parts of the page take it; `None` once the editor
    /// is left. Reads signals.
    fn try_whole(self) -> Option<String> {
        self.requests.try_with(|block| self.content.try_with(|text| with_recorded(text, block)))?
    }

    /// The text with the requests of its program. Reads signals.
    fn whole(self) -> String {
        self.try_whole().unwrap_or_default()
    }

    fn whole_now(self) -> String {
        untrack(|| self.whole())
    }

    fn play(self) {
        let text = self.whole_now();
        match OpenLesson::read(&text, LessonModule::get()) {
            Ok(lesson) => {
                self.session.files().beside.set(None);
                self.session.lessons().own_text.set(Some(text));
                self.session.lessons().is_for_class.set(false);
                self.session.lessons().open_own(lesson);
            }
            Err(why) => self.session.show_error(sentence(&why.to_string())),
        }
    }

    /// The lesson in an address as a class gets it: without the solutions.
    fn class_target(self) -> LinkTarget {
        LinkTarget::LessonText { text: without_solutions(&self.whole()), card: 1, is_for_class: true }
    }

    /// The address of the lesson for a class. Reads signals.
    fn class_link(self) -> String {
        format!("{}#{}", browser::address(), self.class_target().hash())
    }

    /// The address of the whole lesson, for its author. Reads signals.
    fn own_link(self) -> String {
        let target = LinkTarget::LessonText { text: self.whole(), card: 1, is_for_class: false };
        format!("{}#{}", browser::address(), target.hash())
    }

    /// The lines that put the whole lesson into another page. Reads signals.
    fn frame(self) -> String {
        super::teachers::frame(&browser::address(), &self.class_target().hash(), "A lesson")
    }

    /// Shows the lesson as it is printed.
    fn print(self) {
        let text = self.whole_now();
        browser::remember(KEY, &text);
        self.session.lessons().own_text.set(Some(text));
        self.session.navigation().go_to(Place::Handout(String::new()));
    }

    fn save(self) {
        let text = self.whole_now();
        let id = Lesson::parse(&text).map_or_else(|_| "lesson".to_owned(), |lesson| lesson.id().to_owned());
        browser::download(&format!("{id}.md"), &text, "text/markdown");
    }

    /// Shows another text, the sample or the text of a file; the writer's text can be brought back until the
    /// page is left.
    fn replace(self, other: &str) {
        let text = self.whole_now();
        self.before.set(Some(text).filter(|text| text != STARTER && text != other));
        self.show(other);
    }

    /// Brings back the text before [`Self::replace`].
    fn bring_back(self) {
        if let Some(text) = self.before.get_untracked() {
            self.before.set(None);
            self.show(&text);
        }
    }

    fn show(self, text: &str) {
        let (own, requests) = split_recorded(text);
        if let Some(area) = self.area.get_untracked() {
            area.set_value(&own);
        }
        self.requests.set(requests);
        self.write(own);
    }

    /// Chooses a line, from 1, in the text field, and brings it into sight.
    fn choose_line(self, line: u32) {
        if let Some(area) = self.area.get_untracked() {
            choose_line(&area, line);
        }
    }
}

/// The button that opens a file: a lesson is shown where the reader is.
pub(super) fn open_file(session: Session) -> AnyView {
    let picker = FilePicker::new();
    view! {
        {button("large", "open-lesson-file", "Open a lesson file", "A Markdown file of this machine; it can also be dropped on the page", picker.press())}
        {file_input(session, picker, "lesson-file")}
    }
    .into_any()
}

/// The errors and notes of the text, and the buttons for the text.
fn findings_view(editor: LessonEditor) -> AnyView {
    let checked = editor.checked;
    let rows = move |of: fn(LessonCheck) -> Vec<(u32, String)>| {
        let row = |(line, words): (u32, String)| {
            let go = click(move || editor.choose_line(line));
            let number = button("link", "", format!("Line {line}"), "Chooses this line in the text", go);
            view! { <li>{number}": "{words}</li> }.into_any()
        };
        of(checked.get()).into_iter().map(row).collect::<Vec<_>>()
    };
    let count = Memo::new(move |_| checked.with(|checked| checked.unproved.len()));
    // A lesson about the author's own data has many words without a proof, and they are no mistakes.
    let is_few = move || count.get() <= MAX_SHOWN && checked.with(|checked| checked.findings.is_empty());
    let cards = move || {
        checked.get().cards.into_iter().map(|card| view! { <li>{card}</li> }.into_any()).collect::<Vec<_>>()
    };
    let is_wrong = move || checked.with(|checked| !checked.findings.is_empty());
    view! {
        <section aria-label="The verdict about the text">
            <p class="headline" class:differs=is_wrong role="status" data-testid="lesson-verdict">
                {text(move || checked.get().headline)}
            </p>
            <p class="quiet" role="status" data-testid="program-state" hidden=flag(move || editor.said.with(String::is_empty))>{text(move || editor.said.get())}</p>
            {beside::figure(editor)}
            <div data-testid="lesson-findings" hidden=flag(move || !is_wrong() && count.get() == 0)>
                <ul class="bullets">{move || rows(|checked| checked.findings)}</ul>
                <details class="quiet" hidden=flag(move || count.get() == 0) prop:open=is_few>
                    <summary>{text(move || format!("{} without a proof", counted(count.get(), "place")))}</summary>
                    <ul class="bullets">{move || rows(|checked| checked.unproved)}</ul>
                </details>
            </div>
            <ol class="hints" data-testid="lesson-cards">{cards}</ol>
            {text_buttons(editor)}
            <p class="quiet">"This browser remembers the text."</p>
            {forms()}
        </section>
    }
    .into_any()
}

/// The buttons that play, copy, print and save the text, and those that show another text.
fn text_buttons(editor: LessonEditor) -> AnyView {
    let LessonEditor { session, checked, before, .. } = editor;
    let is_off = Memo::new(move |_| checked.with(|checked| checked.lesson.is_none()));
    let link_chars = Memo::new(move |_| editor.class_link().len());
    let is_unlinked = flag(move || is_off.get() || link_chars.get() > MAX_ADDRESS_CHARS);
    let of_link = text(move || match link_chars.get() {
        chars if chars > MAX_ADDRESS_CHARS => "too long for a link: hand out the file".to_owned(),
        chars if chars > MAX_CODE_CHARS => {
            format!("{chars} characters, too long for a QR code: send it, or hand out the file")
        }
        chars => format!("{chars} characters"),
    });
    let large = |class, id: &'static str, words: &'static str, is_disabled: Signal<bool>, press| {
        view! { <button type="button" class=class data-testid=id disabled=is_disabled on:click=press>{words}</button> }
            .into_any()
    };
    let copy = |id, words, text: fn(LessonEditor) -> String, note: &'static str| {
        let press = click(move || {
            browser::copy(&untrack(|| text(editor)));
            session.show_note(note);
        });
        large("large", id, words, is_unlinked, press)
    };
    let is_off = flag(move || is_off.get());
    view! {
        <p class="cluster">
            {large("primary large", "play-lesson", "Try it as a student", is_off, click(move || editor.play()))}
            {copy("copy-lesson-class", "Copy the link for a class", LessonEditor::class_link,
                "The link for a class is copied. It has the lesson without its solutions; answers are checked by the goals.")}
            {copy("copy-lesson-own", "Copy the link with solutions", LessonEditor::own_link,
                "The link for teachers is copied. It has the whole lesson, with its solutions and notes, and opens to be edited.")}
            {copy("copy-lesson-frame", "Copy the frame", LessonEditor::frame,
                "The frame is copied. It has the lesson without its solutions in it, for a page of your own.")}
            {large("large", "print-lesson", "Class sheet and answers", is_off, click(move || editor.print()))}
            {button("large", "save-lesson", "Download", "As a Markdown file, which the page and the command open", click(move || editor.save()))}
            {button("large", "renew-lesson", "Start again", "Puts the small lesson of the beginning here", click(move || editor.replace(STARTER)))}
            {open_file(session)}
            <span hidden=flag(move || before.with(Option::is_none))>
                {button("large", "bring-back", "Bring my lesson back", "As it was before Start again or before the file", click(move || editor.bring_back()))}
            </span>
        </p>
        <p class="quiet" data-testid="lesson-link">
            "Link and frame have the lesson in them without its solutions: "{of_link}". On a web server ("<code>"blockyard site"</code>") the file has a short link with a code. "
            <a href="#teachers">"Your plan"</a>" has a row for the lesson."
        </p>
    }
    .into_any()
}

/// The forms of a lesson's file, each with its meaning.
const FORMS: [(&str, &str); 16] = [
    ("## Title", "begins a card"),
    (
        "**strong** *emphasis* `code` [words](glossary.md#reserved)",
        "marks in its paragraphs, and in lists with -",
    ),
    (
        "{reserved}",
        "a number of the run where the card ends; {reserved before}, where it begins; {change of reserved}",
    ),
    ("{reserved more than size a => more}", "words with a condition, refused where it is not true"),
    ("```python run", "what the card runs; the blocks of all cards are one program"),
    ("```python run fails", "the same, for a card that shows an out-of-memory error: {message} has its text"),
    ("```workload", "requests in the place of a program; with \"new\", on an empty device"),
    ("```notes", "what the speaker says, in the speaker's window alone"),
    ("```rerun settings=…", "the same once more, under other settings"),
    (
        "```predict",
        "a question: \"question:\", \"because:\", and \"measure:\" with or without \"choices:\", or several \"choice: CONDITION => words\"",
    ),
    ("```exercise", "lines \"goal:\" and \"hint:\""),
    (
        "```start, ```python start",
        "what the reader changes, between \"# edit from here\" and \"# edit to here\"",
    ),
    ("```solution, ```python solution", "lines that solve it, for the answer key"),
    ("```outside", "what nvidia-smi shows beside PyTorch's memory: measured context"),
    (
        "reserved at most 40 MiB, reserved rises, x passes",
        "conditions: also at least, exactly, less than, more than; falls, stays; fails",
    ),
    ("same requests, without set", "goals of workloads"),
];

/// The table of everything that a lesson may have, folded away.
fn forms() -> AnyView {
    let row = |(form, meaning): (&'static str, &'static str)| {
        view! { <dt><code>{form}</code></dt><dd>{meaning}</dd> }.into_any()
    };
    let number = |(name, words): (&'static str, &'static str)| {
        let meaning = if name.replace('_', " ") == words { String::new() } else { format!(": {words}") };
        view! { <li><code>{format!("{{{name}}}")}</code>{meaning}</li> }.into_any()
    };
    view! {
        <details data-testid="lesson-forms">
            <summary>"All that a lesson may have"</summary>
            <dl class="glossary">{FORMS.map(row).into_iter().collect::<Vec<_>>()}</dl>
            <p>"Numbers of the run:"</p>
            <ul class="bullets">{Quantity::all().map(number).collect::<Vec<_>>()}</ul>
        </details>
    }
    .into_any()
}

fn choose_line(area: &web_sys::HtmlTextAreaElement, line: u32) {
    let text = area.value();
    // Text fields count in UTF-16.
    let length = |text: &str| u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX);
    let before: u32 = text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(length).sum();
    let chosen = text.lines().nth(line.saturating_sub(1) as usize).map_or(0, length);
    let _ = area.focus();
    let _ = area.set_selection_range(before, before.saturating_add(chosen));
    let lines = i32::try_from(text.matches('\n').count().max(1)).unwrap_or(i32::MAX);
    let above = i32::try_from(line).unwrap_or(i32::MAX).saturating_sub(8).max(0);
    area.set_scroll_top(area.scroll_height().saturating_mul(above) / lines);
}
