//! The program's text, with the memory of each line beside it.

use std::fmt::Write as _;

use blockyard_record::Bytes;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::frames::{self, Slot};
use crate::session::{AliveBytes, Session};
use crate::surface;
use crate::view::kit::{effect, flag, on, text};

/// The id of the text field.
pub(crate) const PROGRAM_ID: &str = "program-text";

/// The height of a line at the smallest size of the page's letters.
const LEAST_LINE_PX: f32 = 20.0;
/// The space above the first line, which has to equal the padding in the style sheet.
const PADDING_PX: i32 = 6;

/// The letters of the longest size, such as `1023.99 MiB`.
const BYTES_WIDTH: usize = 11;

pub(crate) fn editor(session: Session, alive: Memo<AliveBytes>) -> AnyView {
    let input = session.program.input;
    let area = NodeRef::<html::Textarea>::new();
    let sheet = NodeRef::<html::Div>::new();
    let size = surface::size_of(sheet);
    // Whole pixels, so that the lines of the text and of the columns beside it stay level.
    let line_px = Memo::new(move |_| {
        size.track();
        whole_px(surface::on_page(LEAST_LINE_PX))
    });
    let scroll = RwSignal::new((0, 0));
    let content = Memo::new(move |_| input.with(|input| input.text.clone()));
    // The lines of a run belong to the text that was run.
    let fits = Memo::new(move |_| {
        session.shown_program().is_some_and(|result| input.with(|input| input.text == result.input.text))
    });
    let line = Memo::new(move |_| {
        let result = session.shown_program().filter(|_| fits.get())?;
        let run = session.run.get();
        session.player.with(|player| player.current_step(&run.recording)).and_then(|step| result.line(step))
    });
    // Lines are counted from 1. A line that is too far down for the browser is at its end.
    let top_of = move |line: u32| {
        i32::try_from(line)
            .unwrap_or(i32::MAX)
            .saturating_sub(1)
            .saturating_mul(line_px.get())
            .saturating_add(PADDING_PX)
    };
    effect(move || {
        let (Some(area), Some(line)) = (area.get(), line.get()) else { return };
        frames::plan(Slot::Text, move || {
            let (top, height, seen) = (untrack(|| top_of(line)), area.client_height(), area.scroll_top());
            if top < seen || top + line_px.get_untracked() > seen + height {
                area.set_scroll_top(top - height / 2);
            }
        });
    });
    let scrolled = move |_: ev::Event| {
        if let Some(area) = area.get_untracked() {
            scroll.set((area.scroll_left(), area.scroll_top()));
        }
    };
    let key = move |event: ev::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            session.run_program();
        }
    };
    // A click beside the text goes to the line's next step.
    let pick = move |event: ev::MouseEvent| {
        let y = event.offset_y() + if is_column(&event) { 0 } else { scroll.get_untracked().1 };
        let line = (y - PADDING_PX).div_euclid(line_px.get_untracked().max(1)).saturating_add(1);
        if let Ok(line) = u32::try_from(line) {
            session.go_to_line(line);
        }
    };
    let current = move || {
        line.get().map(|line| {
            let style = text(move || format!("top:{}px", top_of(line) - scroll.get().1));
            view! { <div class="line" style=style></div> }.into_any()
        })
    };
    view! {
        <div class="heads" aria-hidden="true" hidden=flag(move || !fits.get())>
            <span>"line"</span><span>"alive now"</span><span class="peak">"peak"</span>
        </div>
        <div
            class="sheet"
            class:is-run=move || fits.get()
            node_ref=sheet
            style=text(move || format!("--line:{}px", line_px.get()))
        >
            <div class="margin" data-testid="program-margin" title="Click a line for its next step" on:click=on(pick)>
                {columns(session, content, alive, fits, scroll)}
            </div>
            <div class="page">
                {current}
                <textarea
                    id=PROGRAM_ID
                    node_ref=area
                    data-testid=PROGRAM_ID
                    spellcheck="false"
                    autocomplete="off"
                    autocapitalize="off"
                    wrap="off"
                    aria-label="Python program"
                    prop:value=text(move || content.get())
                    on:input=on(move |event: ev::Event| session.type_program(event_target_value(&event)))
                    on:scroll=on(scrolled)
                    on:keydown=on(key)
                ></textarea>
            </div>
        </div>
    }
    .into_any()
}

/// The columns beside the lines: the number of each line, the bytes that the line allocated and that are alive now, and the peak of
/// these bytes.
fn columns(
    session: Session,
    content: Memo<String>,
    alive: Memo<AliveBytes>,
    fits: Memo<bool>,
    scroll: RwSignal<(i32, i32)>,
) -> AnyView {
    let line_count = Memo::new(move |_| content.with(|text| text.matches('\n').count() + 1));
    let numbers = text(move || column(line_count.get(), |line| line.to_string()));
    let alive_column = text(move || {
        if !fits.get() {
            return String::new();
        }
        alive.with(|alive| column(line_count.get(), |line| of_line(alive.lines.get(&line).copied())))
    });
    let peak_column = text(move || {
        let Some(result) = session.shown_program().filter(|_| fits.get()) else { return String::new() };
        let lines = &result.details.lines;
        column(line_count.get(), |line| {
            let found = lines.binary_search_by_key(&line, |memory| memory.line).ok();
            of_line(found.and_then(|index| lines.get(index)).map(|memory| memory.peak))
        })
    });
    let shift = text(move || format!("transform:translateY({}px)", -scroll.get().1));
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

/// Whether the event came from a column and not from the space around it. Only the columns scroll with the text.
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
