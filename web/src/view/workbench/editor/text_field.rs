//! The text field over its colored lines.
//!
//! A text of up to [`MAX_WRAPPED`] lines wraps, and the field holds all of the text.
//!
//! In a longer text, only the lines in sight have colors, and the field holds only the lines around the
//! caret. The reason is that a browser lays out the whole field at each key, which takes a quarter of a
//! second for a hundred thousand lines. The lines in the field depend on the caret and never on the scroll
//! position. They are exchanged before the browser handles a key or after it has handled a click, so that a
//! key always changes the text around the caret. While the pointer selects, the field gets more lines before
//! the selection reaches the first or the last line of the field.

mod completion;
mod content;
mod keys;
mod pointer;

use std::ops::Range;

use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use content::Content;
use pointer::PointerSelection;

use super::index_of;
use super::lines::{Lines, bytes_of_units, changed_line, units_of_bytes};
use super::rows::Marks;
use super::suggestions::Suggestions;
use crate::browser::{self, Delay};
use crate::effect::effect;
use crate::element_ids::WORKLOAD_TEXT;
use crate::frames::{self, Slot};
use crate::run::{Attempt, InputError};
use crate::session::Session;
use crate::view::kit::{on, text};

/// A text of more lines than this does not wrap.
const MAX_WRAPPED: usize = 2_000;
/// In a long text, this many lines above and below the lines in sight have colors too.
const COLORED_MARGIN: usize = 30;
/// Of a long text, the field holds this many lines above and below the caret or the selection.
const FIELD_MARGIN: usize = 600;
/// When fewer lines than this are left above or below the caret, the field gets other lines. The largest
/// screen shows fewer lines, so that the caret never leaves the field by a page.
const MIN_MARGIN: usize = 200;
/// In a long text, completions are looked for in this many bytes before the caret.
const COMPLETION_BYTES: usize = 60_000;
/// A text of more bytes than this runs only when the reader pauses typing.
const MAX_BYTES_AT_ONCE: usize = 60_000;
/// The length of the pause after which a long text runs.
const PAUSE_MILLIS: i32 = 250;

/// The text field; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(super) struct TextField {
    session: Session,
    pub(super) area: NodeRef<html::Textarea>,
    scroller: NodeRef<html::Div>,
    rows: NodeRef<html::Div>,
    content: StoredValue<Content, LocalStorage>,
    /// The run of a long text, which waits for a pause.
    delay: Delay,
    suggestions: Suggestions,
    /// The selection by the pointer, while the button is down.
    pointer_selection: StoredValue<Option<PointerSelection>>,
    /// The text of the line that the caret is in.
    pub(super) caret_line: RwSignal<String>,
    /// Whether lines wrap.
    is_wrapped: RwSignal<bool>,
    /// The width of the line numbers and of the longest line, in letters.
    widths: RwSignal<(usize, usize)>,
}

impl TextField {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session,
            area: NodeRef::new(),
            scroller: NodeRef::new(),
            rows: NodeRef::new(),
            content: StoredValue::new_local(Content::default()),
            delay: Delay::new(),
            suggestions: Suggestions::new(),
            pointer_selection: StoredValue::new(None),
            caret_line: RwSignal::new(String::new()),
            is_wrapped: RwSignal::new(true),
            widths: RwSignal::new((2, 0)),
        }
    }

    fn with<T>(self, look: impl FnOnce(&Content) -> T) -> T {
        self.content.with_value(look)
    }

    fn update<T: Default>(self, change: impl FnOnce(&mut Content) -> T) -> T {
        self.content.try_update_value(change).unwrap_or_default()
    }

    fn line_px(self) -> f64 {
        let style =
            self.scroller.get_untracked().and_then(|scroller| browser::style_of(&scroller, "line-height"));
        style.and_then(|height| height.trim_end_matches("px").parse().ok()).unwrap_or(20.0)
    }

    /// The lines in sight of a text that does not wrap, counted from 0.
    fn lines_in_sight(self) -> Range<usize> {
        let Some(scroller) = self.scroller.get_untracked() else { return 0..0 };
        let line_px = self.line_px();
        let first = whole(f64::from(scroller.scroll_top()) / line_px);
        first..first + whole(f64::from(scroller.client_height()) / line_px) + 2
    }

    /// Shows a text that was not typed into this field: a preset, an undo, a request by hand.
    fn show_text(self, text: &str) {
        if self.with(|content| content.lines.text() == text) {
            return;
        }
        self.suggestions.close();
        self.update(|content| {
            let lines = Lines::new(text.to_owned());
            content.changed = changed_line(&content.lines, &lines);
            content.lines = lines;
            content.caret = content.caret.min(text.len());
            content.anchor = content.caret;
            content.window = 0..0;
        });
        self.measure();
        self.fill_around_caret();
        self.show_rows();
        self.reveal_change(None);
    }

    /// Scrolls to the line that [`Self::show_text`] changed, or else to the line of the step, unless the
    /// field has the focus.
    fn reveal_change(self, step_line: Option<usize>) {
        // The lines have their places only when the browser has laid them out, before the next frame.
        frames::plan(Slot::Text, move || {
            let changed = self.update(|content| content.changed.take());
            if let Some(line) = changed.or(step_line).filter(|_| !is_edited()) {
                self.reveal(line);
            }
        });
    }

    /// Decides whether the text wraps, and how wide its lines and numbers are.
    fn measure(self) {
        let (is_wrapped, widths) = self.with(|content| {
            let count = content.lines.count();
            let is_wrapped = count <= MAX_WRAPPED;
            let widest = if is_wrapped { 0 } else { content.lines.longest() };
            (is_wrapped, (count.max(10).to_string().len(), widest))
        });
        if self.is_wrapped.get_untracked() != is_wrapped {
            self.is_wrapped.set(is_wrapped);
        }
        if self.widths.get_untracked() != widths {
            self.widths.set(widths);
        }
    }

    /// Fills the field with the whole text if it wraps, or else with the lines around the caret.
    fn fill_around_caret(self) {
        let is_wrapped = self.is_wrapped.get_untracked();
        let window = self
            .with(|content| if is_wrapped { 0..content.lines.count() } else { content.window_for_caret() });
        self.fill(window);
    }

    /// Fills the field with these lines. Caret and selection stay where they are in the text.
    fn fill(self, window: Range<usize>) {
        let Some(area) = self.area.get_untracked() else { return };
        let held = self.update(|content| {
            if content.window == window {
                return None;
            }
            content.window = window;
            Some(content.lines.slice(content.window.clone()).to_owned())
        });
        if let Some(held) = held {
            area.set_value(&held);
            self.show_selection();
        }
        self.position_field();
    }

    /// Gives the field the caret and the selection of [`Content`].
    fn show_selection(self) {
        let Some(area) = self.area.get_untracked() else { return };
        let places = self.with(|content| {
            let at = content.lines.start(content.window.start);
            let held = content.lines.slice(content.window.clone());
            // A selection that begins above the lines of the field begins at their first letter in the field.
            let place =
                |byte: usize| u32::try_from(units_of_bytes(held, byte.saturating_sub(at).min(held.len())));
            Some((place(content.caret).ok()?, place(content.anchor).ok()?))
        });
        if let Some((caret, anchor)) = places {
            let direction = if caret < anchor { "backward" } else { "forward" };
            let (start, end) = (caret.min(anchor), caret.max(anchor));
            let _ = area.set_selection_range_with_direction(start, end, direction);
        }
    }

    /// Moves the caret to a byte of the text. If `is_extended`, the other end of the selection stays.
    fn move_caret(self, byte: usize, is_extended: bool) {
        self.update(|content| {
            content.caret = byte;
            if !is_extended {
                content.anchor = byte;
            }
        });
        self.fill_around_caret();
        self.show_selection();
    }

    /// Moves the field over the colored lines that have the same text.
    fn position_field(self) {
        let Some(area) = self.area.get_untracked() else { return };
        let style = web_sys::HtmlElement::style(&area);
        if self.is_wrapped.get_untracked() {
            let _ = style.remove_property("top");
            let _ = style.remove_property("height");
            return;
        }
        let (line_px, window) = (self.line_px(), self.with(|content| content.window.clone()));
        let _ = style.set_property("top", &format!("{}px", frames::count(window.start) * line_px));
        let height = frames::count(window.len().max(1)) * line_px;
        let _ = style.set_property("height", &format!("calc({height}px + 2 * var(--sheet-pad))"));
    }

    /// Draws the lines that are in sight, or all lines of a short text.
    fn show_rows(self) {
        let Some(parent) = self.rows.get_untracked() else { return };
        let is_wrapped = self.is_wrapped.get_untracked();
        let (seen, line_px) = if is_wrapped { (0..0, 0.0) } else { (self.lines_in_sight(), self.line_px()) };
        let place = self.update(|content| {
            let count = content.lines.count();
            let range = if is_wrapped {
                0..count
            } else {
                seen.start.saturating_sub(COLORED_MARGIN).min(count)..(seen.end + COLORED_MARGIN).min(count)
            };
            let Content { lines, rows, marks, .. } = content;
            rows.show(&parent, lines, range.clone(), marks);
            (range.start, count)
        });
        let style = web_sys::HtmlElement::style(&parent);
        let _ = style.set_property("counter-reset", &format!("row {}", place.0));
        let above = frames::count(place.0) * line_px;
        let _ = style.set_property("padding-top", &format!("calc({above}px + var(--sheet-pad))"));
        let height = if is_wrapped { 0.0 } else { frames::count(place.1) * line_px };
        let _ = style.set_property("min-height", &format!("calc({height}px + 2 * var(--sheet-pad))"));
    }

    /// Takes over the typed text: the text in the field replaces the lines that the field held.
    fn typed(self) {
        let Some(area) = self.area.get_untracked() else { return };
        let held = area.value();
        let units = area.selection_end().ok().flatten().unwrap_or(0) as usize;
        let length = self.update(|content| {
            if std::mem::take(&mut content.is_all) {
                content.window = 0..content.lines.count();
            }
            let window = content.window.clone();
            let before = content.lines.count();
            content.lines.replace(window.clone(), &held);
            let grown = content.lines.count() + window.len() - before;
            content.window = window.start..window.start + grown;
            content.caret = content.lines.start(window.start) + bytes_of_units(&held, units);
            content.anchor = content.caret;
            content.lines.text().len()
        });
        let was_wrapped = self.is_wrapped.get_untracked();
        self.measure();
        if was_wrapped != self.is_wrapped.get_untracked() {
            self.update(|content| content.window = 0..0);
        }
        self.fill_around_caret();
        self.show_rows();
        self.read_caret();
        self.delay.cancel();
        if length <= MAX_BYTES_AT_ONCE {
            self.run_text();
        } else {
            self.delay.start(PAUSE_MILLIS, move || self.run_text());
        }
        self.suggest(false);
    }

    /// Makes the text the workload of the session, which runs it.
    fn run_text(self) {
        self.delay.cancel();
        let text = self.content.try_with_value(|content| content.lines.text().to_owned());
        if let Some(text) = text
            && self.session.workload().history.with_untracked(|history| history.text() != text)
        {
            self.session.workload().type_text(text);
        }
    }

    /// Runs the text now, if it waits for a pause in the typing.
    fn flush(self) {
        if self.delay.cancel() {
            self.run_text();
        }
    }

    /// Reads the caret and the selection from the field.
    fn read_caret(self) {
        let Some(area) = self.area.get_untracked() else { return };
        let units = |place: Result<Option<u32>, _>| place.ok().flatten().unwrap_or(0) as usize;
        let (start, end) = (units(area.selection_start()), units(area.selection_end()));
        let is_backward = area.selection_direction().ok().flatten().is_some_and(|way| way == "backward");
        let line = self.update(|content| {
            let window = content.window.clone();
            let at = content.lines.start(window.start);
            let held = content.lines.slice(window);
            let (start, end) = (at + bytes_of_units(held, start), at + bytes_of_units(held, end));
            (content.anchor, content.caret) = if is_backward { (end, start) } else { (start, end) };
            content.lines.line(content.lines.line_at(content.caret)).to_owned()
        });
        if self.caret_line.with_untracked(|before| *before != line) {
            self.caret_line.set(line);
        }
    }

    fn scrolled(self) {
        self.suggestions.close();
        if self.is_wrapped.get_untracked() {
            return;
        }
        frames::plan(Slot::Scroll, move || {
            self.show_rows();
            self.fill_while_selecting();
        });
    }

    /// Scrolls to a line, counted from 0, if it is out of sight.
    pub(super) fn reveal(self, line: usize) {
        let Some(scroller) = self.scroller.get_untracked() else { return };
        let line_px = self.line_px();
        let row = self.with(|content| content.rows.element(line).cloned());
        let row = row.and_then(|row| row.dyn_into::<HtmlElement>().ok());
        let (top, height) = match row {
            Some(row) => (row.offset_top(), row.offset_height()),
            None => (whole_px(frames::count(line) * line_px), whole_px(line_px)),
        };
        let (seen, room) = (scroller.scroll_top(), scroller.client_height());
        if top < seen || top + height > seen + room {
            scroller.set_scroll_top(top - room / 2);
        }
    }

    /// Moves the caret to a line, counted from 0, after its first `letters` letters, and focuses the field.
    pub(super) fn go_to(self, line: usize, letters: usize) {
        self.reveal(line);
        let Some(area) = self.area.get_untracked() else { return };
        let byte = self.with(|content| {
            let column: usize = content.lines.line(line).chars().take(letters).map(char::len_utf8).sum();
            content.lines.start(line) + column
        });
        self.move_caret(byte, false);
        let _ = area.focus();
    }

    /// Follows the session: its text, the line of the step under the cursor, and the place of an error.
    fn follow(self) {
        let session = self.session;
        let content =
            Memo::new(move |_| session.workload().history.with(|history| history.text().to_owned()));
        let step_line = Memo::new(move |_| {
            let run = session.run.get();
            session
                .player
                .with(|player| player.current_step(&run.recording))
                .and_then(|step| run.line(step))
                .map(index_of)
        });
        let marks = Memo::new(move |_| {
            session.workload().attempt.with(|attempt| match attempt {
                Attempt::Ran(_) => Marks { current: step_line.get(), error: None },
                Attempt::Failed(InputError::Text { place: (line, column, length), .. }) => {
                    let first = index_of(*column);
                    let wrong = first..first + *length as usize;
                    Marks { current: None, error: Some((index_of(*line), wrong)) }
                }
                _ => Marks::default(),
            })
        });
        effect(move || {
            if self.area.get().is_none() {
                return;
            }
            content.with(|text| self.show_text(text));
        });
        effect(move || {
            let marks = marks.get();
            let changed =
                self.update(|content| std::mem::replace(&mut content.marks, marks.clone()) != marks);
            if changed {
                self.show_rows();
            }
        });
        effect(move || {
            if let (Some(_), Some(line)) = (self.area.get(), step_line.get()) {
                self.reveal_change(Some(line));
            }
        });
    }

    pub(super) fn view(self) -> AnyView {
        self.follow();
        let class = text(move || if self.is_wrapped.get() { "sheet" } else { "sheet is-long" }.to_owned());
        let style = text(move || {
            let (numbers, widest) = self.widths.get();
            format!("--numbers:{numbers}ch;--widest:{widest}ch")
        });
        let is_wrong_text = text(move || {
            let is_wrong = self
                .session
                .workload()
                .attempt
                .with(|attempt| matches!(attempt, Attempt::Failed(InputError::Text { .. })));
            is_wrong.to_string()
        });
        view! {
            <div class=class style=style node_ref=self.scroller on:scroll=on(move |_: ev::Event| self.scrolled())>
                <div
                    class="text"
                    on:click=on(move |event: ev::MouseEvent| self.clicked(&event))
                    on:pointerdown=on(move |event: ev::PointerEvent| self.pointer_pressed(&event))
                    on:mousedown=on(move |event: ev::MouseEvent| self.mouse_pressed(&event))
                    on:pointermove=on(move |event: ev::PointerEvent| self.pointer_moved(&event))
                    on:pointerup=on(move |_: ev::PointerEvent| self.pointer_released())
                >
                    <div class="rows" node_ref=self.rows aria-hidden="true"></div>
                    <textarea
                        id=WORKLOAD_TEXT
                        node_ref=self.area
                        data-testid=WORKLOAD_TEXT
                        spellcheck="false"
                        autocomplete="off"
                        autocapitalize="off"
                        aria-invalid=is_wrong_text
                        aria-describedby="verdict"
                        aria-autocomplete="list"
                        aria-controls=self.suggestions.controls()
                        aria-activedescendant=self.suggestions.active()
                        on:input=on(move |_: ev::Event| self.typed())
                        on:keydown=on(move |event: ev::KeyboardEvent| self.key(&event))
                        on:keyup=on(move |_: ev::KeyboardEvent| self.read_caret())
                        on:copy=on(move |event: web_sys::ClipboardEvent| {
                            self.copy_all(&event);
                        })
                        on:cut=on(move |event: web_sys::ClipboardEvent| self.cut_all(&event))
                        on:blur=on(move |_: ev::FocusEvent| {
                            self.flush();
                            self.suggestions.close();
                        })
                    ></textarea>
                </div>
            </div>
            {self.suggestions.view(move |item| self.insert(item))}
        }
        .into_any()
    }
}

/// Whether the reader works in the text.
fn is_edited() -> bool {
    let active: Option<Element> = browser::document().and_then(|document| document.active_element());
    active.is_some_and(|element| element.id() == WORKLOAD_TEXT)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of lines in sight")]
fn whole(lines: f64) -> usize {
    lines.max(0.0) as usize
}

#[expect(clippy::cast_possible_truncation, reason = "a scroll position is far below 2^31")]
fn whole_px(length: f64) -> i32 {
    length.round() as i32
}
