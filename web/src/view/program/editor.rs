//! The program's text, with the memory of each line beside it.

use std::fmt::Write as _;

use blockyard_lessons::failing_line;
use blockyard_record::Bytes;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::effect::effect;
use crate::frames::{self, Slot};
use crate::program::AliveBytes;
use crate::session::Session;
use crate::surface;
use crate::view::indent;
use crate::view::kit::{flag, on, text};

/// The id of the text field.
pub(crate) const PROGRAM_ID: &str = "program-text";

/// The height of a line at the smallest size of the page's letters.
const MIN_LINE_PX: f32 = 20.0;
/// The space above the first line, which has to equal the padding in the style sheet.
const PADDING_PX: i32 = 6;

/// The letters of the longest size, such as `1023.99 MiB`.
const BYTES_WIDTH: usize = 11;

pub(crate) fn editor(session: Session, alive: Memo<AliveBytes>) -> AnyView {
    let input = session.program().input;
    let sheet = NodeRef::<html::Div>::new();
    let size = surface::size_of(sheet);
    let content = Memo::new(move |_| input.with(|input| input.text.clone()));
    let is_unchanged = Memo::new(move |_| {
        session.shown_program().is_some_and(|result| input.with(|input| input.text == result.input.text))
    });
    let editor = Editor {
        session,
        area: NodeRef::new(),
        line_px: Memo::new(move |_| {
            size.track();
            whole_px(surface::on_page(MIN_LINE_PX))
        }),
        scroll_px: RwSignal::new((0, 0)),
        is_unchanged,
        line: Memo::new(move |_| {
            let result = session.shown_program().filter(|_| is_unchanged.get())?;
            let run = session.run.get();
            session
                .player
                .with(|player| player.current_step(&run.recording))
                .and_then(|step| result.line(step))
        }),
        failing: Memo::new(move |_| {
            let result = session.shown_program().filter(|_| is_unchanged.get())?;
            failing_line(result.details.traceback.as_deref()?)
        }),
    };
    effect(move || editor.reveal_line());
    let current = move || {
        editor.line.get().map(|line| {
            let style = text(move || format!("top:{}px", editor.top_of(line) - editor.scroll_px.get().1));
            view! { <div class="line" style=style></div> }.into_any()
        })
    };
    // The figures open at the peak, whose line is often another line than the failed one.
    let failing = move || {
        editor.failing.get().map(|line| {
            let style = text(move || format!("top:{}px", editor.top_of(line) - editor.scroll_px.get().1));
            view! { <div class="line failing" data-testid="failing-line" style=style></div> }.into_any()
        })
    };
    view! {
        <div class="heads" aria-hidden="true" hidden=flag(move || !is_unchanged.get())>
            <span>"line"</span>
            <span title="Requested bytes of the line that are in use at this moment">"requested now"</span>
            <span class="peak" title="The most requested bytes of the line that were in use at once">"at most"</span>
        </div>
        <div
            class="sheet"
            class:is-run=move || is_unchanged.get()
            node_ref=sheet
            style=text(move || format!("--line:{}px", editor.line_px.get()))
        >
            <div
                class="margin"
                data-testid="program-margin"
                title="Click a line for its next request"
                on:click=on(move |event: ev::MouseEvent| editor.pick_line(&event))
            >
                {columns(editor, content, alive)}
            </div>
            <div class="page">
                {current}
                {failing}
                <textarea
                    id=PROGRAM_ID
                    node_ref=editor.area
                    data-testid=PROGRAM_ID
                    spellcheck="false"
                    autocomplete="off"
                    autocapitalize="off"
                    wrap="off"
                    aria-label="Python program"
                    prop:value=text(move || content.get())
                    on:input=on(move |event: ev::Event| session.program().type_text(event_target_value(&event)))
                    on:scroll=on(move |_: ev::Event| editor.scrolled())
                    on:keydown=on(move |event: ev::KeyboardEvent| editor.key(&event))
                ></textarea>
            </div>
        </div>
    }
    .into_any()
}

/// The text field and the facts about its lines; a handle that is copied freely.
#[derive(Clone, Copy)]
struct Editor {
    session: Session,
    area: NodeRef<html::Textarea>,
    /// The height of a line. It is a whole number of pixels, so that the text and the columns beside it stay
    /// level.
    line_px: Memo<i32>,
    /// How far the text is scrolled to the right and down, in pixels.
    scroll_px: RwSignal<(i32, i32)>,
    /// Whether the text is the text that was run. Only then do the lines of the run belong to the text.
    is_unchanged: Memo<bool>,
    /// The line of the step under the cursor, counted from 1.
    line: Memo<Option<u32>>,
    /// The line in which an exception ended the program, counted from 1.
    failing: Memo<Option<u32>>,
}

impl Editor {
    /// Where a line begins, from the top of the text. Reads signals.
    fn top_of(self, line: u32) -> i32 {
        // Lines are counted from 1. A line that is too far down for the browser counts as the last line that
        // the browser can show.
        i32::try_from(line)
            .unwrap_or(i32::MAX)
            .saturating_sub(1)
            .saturating_mul(self.line_px.get())
            .saturating_add(PADDING_PX)
    }

    /// Scrolls to the line of the step under the cursor, if it is out of sight. Reads signals.
    fn reveal_line(self) {
        let (Some(area), Some(line)) = (self.area.get(), self.line.get()) else { return };
        frames::plan(Slot::Text, move || {
            let top = untrack(|| self.top_of(line));
            let (height, seen) = (area.client_height(), area.scroll_top());
            if top < seen || top + self.line_px.get_untracked() > seen + height {
                area.set_scroll_top(top - height / 2);
            }
        });
    }

    fn scrolled(self) {
        if let Some(area) = self.area.get_untracked() {
            self.scroll_px.set((area.scroll_left(), area.scroll_top()));
        }
    }

    fn key(self, event: &ev::KeyboardEvent) {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            self.session.program().run();
        }
        indent::key(event);
    }

    /// A click beside the text goes to the next step of its line.
    fn pick_line(self, event: &ev::MouseEvent) {
        let y = event.offset_y() + if is_column(event) { 0 } else { self.scroll_px.get_untracked().1 };
        let line = (y - PADDING_PX).div_euclid(self.line_px.get_untracked().max(1)).saturating_add(1);
        if let Ok(line) = u32::try_from(line) {
            self.session.program().go_to_line(line);
        }
    }
}

/// The columns beside the lines: the number of each line, the requested bytes of the line that are in use
/// now, and the most of these bytes at once.
fn columns(editor: Editor, content: Memo<String>, alive: Memo<AliveBytes>) -> AnyView {
    let Editor { session, is_unchanged, scroll_px, .. } = editor;
    let line_count = Memo::new(move |_| content.with(|text| text.matches('\n').count() + 1));
    let numbers = text(move || column(line_count.get(), |line| line.to_string()));
    let alive_column = text(move || {
        if !is_unchanged.get() {
            return String::new();
        }
        alive.with(|alive| column(line_count.get(), |line| of_line(alive.requested.get(&line).copied())))
    });
    let peak_column = text(move || {
        let Some(result) = session.shown_program().filter(|_| is_unchanged.get()) else {
            return String::new();
        };
        let lines = &result.details.lines;
        column(line_count.get(), |line| {
            let found = lines.binary_search_by_key(&line, |memory| memory.line).ok();
            of_line(found.and_then(|index| lines.get(index)).map(|memory| memory.peak))
        })
    });
    let shift = text(move || format!("transform:translateY({}px)", -scroll_px.get().1));
    view! {
        <div style=shift class="numbers">{numbers}</div>
        <div style=shift data-testid="alive-column">{alive_column}</div>
        <div style=shift class="peak" data-testid="peak-column">{peak_column}</div>
    }
    .into_any()
}

#[expect(clippy::cast_possible_truncation, reason = "a line is some twenty pixels high")]
fn whole_px(length: f64) -> i32 {
    length.round() as i32
}

/// Whether the event came from a column and not from the space around it. Only the columns scroll with the
/// text.
fn is_column(event: &ev::MouseEvent) -> bool {
    event.target() != event.current_target()
}

fn of_line(bytes: Option<Bytes>) -> String {
    bytes.filter(|bytes| !bytes.is_zero()).map_or_else(String::new, |bytes| format!("{bytes:>BYTES_WIDTH$}"))
}

fn column(lines: usize, of: impl Fn(u32) -> String) -> String {
    let mut column = String::new();
    // A program has fewer than 2^32 lines: its text is shorter.
    for line in 1..=u32::try_from(lines).unwrap_or(u32::MAX) {
        let _ = writeln!(column, "{}", of(line));
    }
    column
}
