//! The call sites whose memory grows during a run, and the difference between a run and another file.

use blockyard_lab::{Diff, GrowingCallSite, Leaks, LineChange, PeakDiff};
use blockyard_record::{Bytes, frame_text, grouped, own_line};
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;

use super::parts::{files, table};
use crate::browser;
use crate::lab::{Cell, Sheet};
use crate::messages::sentence;
use crate::session::Session;
use crate::view::kit::on;

/// The table shows at most this many rows. The saved file has all of them.
const MAX_ROWS: usize = 40;

/// The sentence about the iterations from which on growth is counted, as the verdict counts it.
const COUNTED: &str = "What is kept is counted after the first two, in which programs set themselves up.";

pub(super) fn leaks(session: Session, leaks: &Leaks) -> AnyView {
    let counted = (!leaks.answer.growing.is_empty()).then_some(COUNTED);
    let words = format!("{} {}", sentence(&leaks.answer.sentence), counted.unwrap_or_default());
    let growing: Vec<SiteGrowth<'_>> = leaks.growing().collect();
    let rows = growing.iter().map(growth_cells);
    let head = vec!["more", "tensors more", "last by request", "call site"];
    let sheet = Sheet { head: head.clone(), rows: rows.collect() };
    let shown = Sheet { head, rows: rows_by_line(&growing).into_iter().take(MAX_ROWS).collect() };
    let listed = (!sheet.rows.is_empty()).then(|| {
        view! {
            {table("What grows", &shown, &[])}
            {files(session, "leaks", sheet)}
        }
        .into_any()
    });
    view! {
        <section aria-label="Answer" data-testid="answer-leaks">
            <p>{words}</p>
            {listed}
        </section>
    }
    .into_any()
}

/// A call site that grows, with how many more allocations are live at the end.
type SiteGrowth<'a> = (&'a GrowingCallSite, u64);

fn growth_cells((growth, allocations): &SiteGrowth<'_>) -> Vec<Cell> {
    vec![
        Cell::Bytes(growth.growth),
        Cell::Count(*allocations),
        Cell::Count(growth.last_request),
        Cell::Site(growth.site.clone()),
    ]
}

/// The call sites by the lines of the program; a line with several call sites has a row with their sum before
/// them, so that each line has one number.
fn rows_by_line(growing: &[SiteGrowth<'_>]) -> Vec<Vec<Cell>> {
    let line = |(growth, _): &SiteGrowth<'_>| own_line(&growth.site).map(frame_text);
    let mut rows = Vec::new();
    for (index, growth) in growing.iter().enumerate() {
        let of_line: Vec<&SiteGrowth<'_>> =
            growing.iter().filter(|other| line(other) == line(growth)).collect();
        let is_first = growing.iter().position(|other| line(other) == line(growth)) == Some(index);
        match line(growth).filter(|_| of_line.len() > 1) {
            Some(_) if !is_first => {}
            Some(line) => {
                let last = of_line.iter().map(|(growth, _)| growth.last_request).max().unwrap_or_default();
                rows.push(vec![
                    Cell::Bytes(of_line.iter().map(|(growth, _)| growth.growth).sum()),
                    Cell::Count(of_line.iter().map(|(_, allocations)| allocations).sum()),
                    Cell::Count(last),
                    Cell::Text(format!("{line}, in {} call sites:", of_line.len())),
                ]);
                rows.extend(of_line.into_iter().map(growth_cells));
            }
            None => rows.push(growth_cells(growth)),
        }
    }
    rows
}

/// The field for the file that the run is compared with.
pub(super) fn second_file(session: Session) -> AnyView {
    let chosen = on(move |event: ev::Event| {
        let field = browser::target_of(&event).and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
        let Some(file) = field.and_then(|field| field.files()).and_then(|files| files.get(0)) else { return };
        session.lab().ask_diff(file.name(), &file);
    });
    view! {
        <p class="asked">
            <label>
                "What changed from this run to another file: "
                <input type="file" data-testid="lab-second" on:change=chosen />
            </label>
        </p>
    }
    .into_any()
}

pub(super) fn diff(session: Session, name: &str, diff: &Diff) -> AnyView {
    let alignment = &diff.alignment;
    let words = format!(
        "Compared with {name}: {} allocations are the same, {} are only here, {} only there.",
        grouped(alignment.same),
        grouped(alignment.only_before),
        grouped(alignment.only_after),
    );
    let changed = diff_sentence(name, &diff.allocated);
    // People read lines of the program; the file has each call site.
    let mut lines =
        Sheet { head: vec!["change", "peak", "live here", "live there", "line"], rows: Vec::new() };
    let mut sheet =
        Sheet { head: vec!["change", "peak", "live here", "live there", "call site"], rows: Vec::new() };
    for (peak, found) in [("allocated", &diff.allocated), ("reserved", &diff.reserved)] {
        lines.rows.extend(found.by_line().into_iter().map(|line| {
            vec![
                Cell::Change(line.change),
                Cell::text(peak),
                Cell::Count(line.count_before),
                Cell::Count(line.count_after),
                line_cell(&line),
            ]
        }));
        sheet.rows.extend(found.terms.iter().map(|part| {
            vec![
                Cell::Change(part.change),
                Cell::text(peak),
                Cell::Count(part.count_before),
                Cell::Count(part.count_after),
                Cell::Site(part.site.clone()),
            ]
        }));
    }
    let shown = Sheet { head: lines.head.clone(), rows: lines.rows.iter().take(MAX_ROWS).cloned().collect() };
    let peak = |name: &str, peak: &PeakDiff| {
        vec![Cell::text(name), Cell::Bytes(peak.before), Cell::Bytes(peak.after), Cell::Change(peak.change)]
    };
    let peaks = Sheet {
        head: vec!["peak", "here", "there", "change"],
        rows: vec![peak("allocated", &diff.allocated), peak("reserved", &diff.reserved)],
    };
    view! {
        <section aria-label="Answer" data-testid="answer-diff">
            <p class="cause" data-testid="diff-sentence">{changed}</p>
            {table("Peaks", &peaks, &[])}
            <p class="quiet">{words}</p>
            <p class="quiet">"The change of each peak as a sum over lines of the program; it adds up to the byte. The saved file has each call site."</p>
            {table("Lines", &shown, &[])}
            {files(session, "diff", sheet)}
        </section>
    }
    .into_any()
}

/// A line of the program in a cell: with its stack if the line is one call site, or else with the number of
/// its call sites.
fn line_cell(line: &LineChange) -> Cell {
    match line.sites.as_slice() {
        [site] => Cell::Site(site.clone()),
        sites => Cell::Text(format!("{} ({} call sites)", line.line, sites.len())),
    }
}

/// The change of the peak, and the line that has the largest part of the change.
fn diff_sentence(name: &str, peak: &PeakDiff) -> String {
    let change = peak.change;
    let amount = Bytes::new(change.unsigned_abs());
    let words = match change {
        0 => return format!("The peak of allocated memory is the same as in {name}: {}.", peak.before),
        1.. => format!("{name} allocates {amount} more at its peak"),
        _ => format!("{name} allocates {amount} less at its peak"),
    };
    let lines = peak.by_line();
    let largest = lines.iter().max_by_key(|line| line.change.saturating_mul(change.signum()));
    match largest {
        Some(line) => format!(
            "{words}. Most of it is {} of {}.",
            Cell::Change(line.change).shown(),
            line_cell(line).shown()
        ),
        None => format!("{words}."),
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_line_with_two_call_sites_has_one_sum_before_them() {
        let site = |operator: &str, line: u32, mib| GrowingCallSite {
            site: vec![format!("{operator} (torch/functional.py:3)"), format!("step (train.py:{line})")],
            live: Vec::new(),
            growth: Bytes::mib(mib),
            first_request: 1,
            last_request: 9,
        };
        let sites = [site("mul", 26, 5), site("add", 30, 4), site("pow", 26, 3)];
        let rows = rows_by_line(&sites.each_ref().map(|site| (site, 2)));
        let bytes: Vec<Option<&Cell>> = rows.iter().map(|row| row.first()).collect();
        let expected = [8, 5, 3, 4].map(|mib| Cell::Bytes(Bytes::mib(mib)));
        assert_eq!(bytes, expected.iter().map(Some).collect::<Vec<_>>());
        assert_eq!(rows[0][3], Cell::Text("step train.py:26, in 2 call sites:".to_owned()));
    }
}
