//! The holders of the memory at the moment under the cursor: by category, and by line of the program.

use blockyard_figure::percent;
use blockyard_record::{Bytes, counted};
use leptos::prelude::*;

use crate::program::{AliveBytes, CATEGORIES, ProgramResult};
use crate::session::Session;
use crate::view::figure::holders::holding_table;
use crate::view::kit::{button, click, flag, text};

/// At most this many lines are listed.
const MAX_LINES: usize = 8;

/// The allocated bytes by category, as a bar to scale, with names and sizes below.
pub(super) fn categories(alive: Memo<AliveBytes>) -> AnyView {
    let present = move || {
        let categories = alive.with(|alive| alive.categories);
        let all = CATEGORIES.iter().zip(categories).enumerate();
        all.filter(|(_, (_, bytes))| !bytes.is_zero()).map(|(index, (name, bytes))| (index, *name, bytes))
    };
    let bar = move || {
        let part = |(index, _, bytes): (usize, _, Bytes)| {
            let style = format!("flex-grow:{}", bytes.get());
            view! { <span class=format!("category-{index}") style=style></span> }.into_any()
        };
        present().map(part).collect::<Vec<_>>()
    };
    let names = move || {
        let whole: Bytes = present().map(|(_, _, bytes)| bytes).sum();
        let row = |(index, name, bytes): (usize, &'static str, Bytes)| {
            view! {
                <li class=format!("category-{index}")>
                    <span class="name">{name}</span>
                    " "
                    <span class="value">{bytes.to_string()}</span>
                    <span class="quiet">{format!(" {}", percent(bytes, whole))}</span>
                </li>
            }
            .into_any()
        };
        present().map(row).collect::<Vec<_>>()
    };
    let is_empty = flag(move || present().next().is_none());
    view! {
        <div class="categories" hidden=is_empty>
            <div class="bar-to-scale" aria-hidden="true">{bar}</div>
            <ul aria-label="Allocated bytes by category" data-testid="categories">{names}</ul>
        </div>
    }
    .into_any()
}

/// The lines of the program that hold memory, the line that holds most first; a click goes to the line's next
/// step.
pub(super) fn lines(session: Session, alive: Memo<AliveBytes>) -> AnyView {
    let moment = move || {
        let run = session.run.get();
        let steps = session.player.with(|player| player.steps);
        match run.series.peak_steps(&run.recording).0 {
            _ if session.lab().fails_now() => "at the failure",
            peak if peak == steps => "at the peak",
            _ => "now",
        }
    };
    let rows = move || {
        let mut lines: Vec<(u32, Bytes)> =
            alive.with(|alive| alive.lines.iter().map(|(line, bytes)| (*line, *bytes)).collect());
        lines.sort_by_key(|(line, bytes)| (std::cmp::Reverse(*bytes), *line));
        let source = session.shown_program().map(|result| result.input.text.clone()).unwrap_or_default();
        let rest = lines.split_off(lines.len().min(MAX_LINES));
        let mut rows: Vec<(Bytes, AnyView)> = lines
            .into_iter()
            .map(|(line, bytes)| {
                let code = (line as usize).checked_sub(1).and_then(|index| source.lines().nth(index));
                let code =
                    code.map_or_else(|| "no line of the program".to_owned(), |code| code.trim().to_owned());
                let go = (line > 0).then(|| {
                    let title = "Moves the cursor to the next request of this line";
                    let go = click(move || session.program().go_to_line(line));
                    button("link", "", format!("line {line}"), title, go)
                });
                (bytes, view! { {go}" "<code>{code}</code> }.into_any())
            })
            .collect();
        if !rest.is_empty() {
            let bytes = rest.iter().map(|(_, bytes)| *bytes).sum();
            rows.push((bytes, counted(rest.len(), "more line").into_any()));
        }
        let workspaces = alive.with(|alive| ProgramResult::workspaces(&alive.categories));
        if !workspaces.is_zero() {
            rows.push((workspaces, blockyard_lab::WORKSPACES.into_any()));
        }
        rows
    };
    let is_empty = flag(move || alive.with(|alive| alive.lines.is_empty()));
    view! {
        <section class="panel holding-lines" aria-label="Lines that hold memory" hidden=is_empty>
            <h2>{text(move || format!("What holds the memory {}", moment()))}</h2>
            {move || holding_table("holding-lines", rows())}
        </section>
    }
    .into_any()
}
