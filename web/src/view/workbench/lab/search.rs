//! The answers that compare the run under all sensible settings, and under other allocators.

use blockyard_lab::{AllocatorRow, Row};
use leptos::prelude::*;

use super::parts::{OUTCOME_HEAD, conditions_text, files, line_to_copy, outcome_cells, table};
use crate::lab::{Cell, SettingSearch, Sheet};
use crate::session::Session;
use crate::view::kit::check;

pub(super) fn search(session: Session, search: &SettingSearch) -> AnyView {
    let Some(found) = &search.found else {
        let (done, total) = search.progress();
        let rows: Vec<&Row> = search.rows().collect();
        let sheet = sheet_of(&rows);
        return view! {
            <section aria-label="Answer" data-testid="answer-search">
                <p class="quiet">{format!("{done} of {total} settings")}</p>
                {table("Settings so far", &sheet, &[])}
            </section>
        }
        .into_any();
    };
    let best = found.line.clone().map(|line| line_to_copy("search-line", line));
    // The recommended setting comes first; it may be plainer than the settings that reserve the least.
    let rest = found.front.iter().copied().filter(|place| Some(*place) != found.best);
    let front: Vec<&Row> = std::iter::once(&found.baseline)
        .chain(found.best.into_iter().chain(rest).filter_map(|place| found.rows.get(place)))
        .collect();
    let all: Vec<&Row> = std::iter::once(&found.baseline).chain(&found.rows).collect();
    let (front, all) = (sheet_of(&front), sheet_of(&all));
    let shows_all = RwSignal::new(false);
    let saved = all.clone();
    let shown = move || {
        let sheet = if shows_all.get() { &all } else { &front };
        table("Settings", sheet, &["is-own"])
    };
    view! {
        <section aria-label="Answer" data-testid="answer-search">
            <p data-testid="search-sentence">{format!("{}.", found.sentence)}</p>
            {best}
            {shown}
            <p class="cluster">
                {check(
                    "search-all",
                    "All settings",
                    "Also those that another one beats in both peak reserved and device calls",
                    Signal::derive(move || shows_all.get()),
                    move |is_on| shows_all.set(is_on),
                )}
                {files(session, "search", saved)}
            </p>
        </section>
    }
    .into_any()
}

fn sheet_of(rows: &[&Row]) -> Sheet {
    let rows = rows.iter().enumerate().map(|(place, row)| {
        let name = if place == 0 { "as it is".to_owned() } else { conditions_text(row) };
        outcome_cells(&name, row)
    });
    Sheet { head: OUTCOME_HEAD.to_vec(), rows: rows.collect() }
}

pub(super) fn compared(session: Session, rows: &[AllocatorRow]) -> AnyView {
    let answers = untrack(|| session.lab().answers()).unwrap_or_default();
    let limit = answers.run(session.lab().asked_device()).and_then(|run| run.limit);
    let rows = rows.iter().map(|row| {
        vec![
            Cell::text(&row.name),
            Cell::Bytes(row.peak_reserved),
            Cell::Bytes(row.external_fragmentation),
            Cell::Bytes(row.internal_fragmentation),
            row.device_calls.map_or(Cell::Nothing, Cell::Count),
            Cell::Text(row.out_of_memory(limit)),
            row.nanos_per_request.map_or(Cell::Nothing, |nanos| Cell::Text(format!("{nanos:.0} ns"))),
        ]
    });
    let head = vec![
        "allocator",
        "peak reserved",
        "external",
        "internal",
        "device calls",
        "out of memory",
        "a request",
    ];
    let sheet = Sheet { head, rows: rows.collect() };
    view! {
        <section aria-label="Answer" data-testid="answer-compare-allocators">
            <p>
                "External fragmentation: cached when most is reserved. Internal: rounding, allocated and not requested. "
                "The time is that of the models here, in this browser."
            </p>
            {table("Allocators", &sheet, &["is-own"])}
            {files(session, "compare-allocators", sheet.clone())}
        </section>
    }
    .into_any()
}
