//! The tables, figures, fields and file buttons that the answers share.

use std::fmt::Write as _;

use blockyard_figure::{AxisRange, Scene, Size, TimelineView, answer_sides, timeline_strip_step_at};
use blockyard_gpus::GpuProfile;
use blockyard_lab::{Conditions, Limit, LimitKind, Outcome, Row, device_text};
use blockyard_rules::{Release, conf_text};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::browser;
use crate::lab::{Cell, Sheet};
use crate::session::{Session, Source};
use crate::surface;
use crate::view::figure::gesture::{self, Gesture};
use crate::view::kit::{Handler, button, click, flag, on, select, text};

/// A table. `classes` has the CSS class of each row, in the order of the rows.
pub(super) fn table(caption: &str, sheet: &Sheet, classes: &[&'static str]) -> AnyView {
    // Heads of columns of numbers are right-aligned, over their numbers.
    let is_number =
        |index: usize| sheet.rows.first().and_then(|row| row.get(index)).is_some_and(Cell::is_number);
    let head = sheet.head.iter().enumerate().map(|(index, name)| {
        let class = if is_number(index) { "number" } else { "" };
        view! { <th scope="col" class=class>{*name}</th> }.into_any()
    });
    let rows = sheet.rows.iter().enumerate().map(|(index, cells)| {
        let class = classes.get(index).copied().unwrap_or_default();
        let cells = cells.iter().map(|cell| {
            let class = if cell.is_number() { "number" } else { "" };
            view! { <td class=class title=cell.exact()>{cell.shown()}</td> }.into_any()
        });
        view! { <tr class=class>{cells.collect::<Vec<_>>()}</tr> }.into_any()
    });
    view! {
        <div class="scroll-x" tabindex="0" role="region" aria-label=caption.to_owned()>
            <table class="answer">
                <caption class="visually-hidden">{caption.to_owned()}</caption>
                <thead><tr>{head.collect::<Vec<_>>()}</tr></thead>
                <tbody>{rows.collect::<Vec<_>>()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// Buttons that write a table into a file.
pub(super) fn files(session: Session, kind: &'static str, sheet: Sheet) -> AnyView {
    let same = sheet.clone();
    let csv = click(move || crate::view::export::sheet(session, kind, &sheet));
    let json = click(move || crate::view::export::sheet_json(session, kind, &same));
    view! {
        <span class="cluster">
            {button("link", "lab-csv", "Save as CSV", "", csv)}
            {button("link", "lab-json", "Save as JSON", "", json)}
        </span>
    }
    .into_any()
}

/// The column heads of a table of outcomes; the cells are [`outcome_cells`].
pub(super) const OUTCOME_HEAD: [&str; 6] =
    ["settings", "out of memory", "peak reserved", "peak allocated", "device calls", "retries"];

/// The outcome of a run as cells of a table.
pub(super) fn outcome_cells(name: &str, row: &Row) -> Vec<Cell> {
    let mut cells = vec![Cell::text(name)];
    match &row.outcome {
        Ok(outcome) => cells.extend([
            Cell::Text(row.dependence().unwrap_or_else(|| first_oom(outcome))),
            Cell::Bytes(outcome.peak_reserved),
            Cell::Bytes(outcome.peak_allocated),
            Cell::Count(outcome.device_calls()),
            Cell::Count(outcome.alloc_retries),
        ]),
        Err(why) => cells.push(Cell::Text(why.to_string())),
    }
    cells
}

/// The first request that went out of memory, counted from 1, or `no`.
pub(super) fn first_oom(outcome: &Outcome) -> String {
    match &outcome.first_oom {
        None => "no".to_owned(),
        Some(first) => format!("request {}", blockyard_record::grouped(first.request)),
    }
}

/// The settings of a row, and its capacity and limit where the question changed them. A limit has the digits
/// with which a button offered it.
pub(super) fn conditions_text(row: &Row) -> String {
    let conditions = &row.conditions;
    let mut text = conf_text(&conditions.conf).to_owned();
    if let Some(capacity) = conditions.capacity {
        let _ = write!(text, ", {}", device_text(capacity));
    }
    if let Some(limit) = conditions.limit {
        let _ = write!(text, ", at most {}", limit.enough_text());
    }
    if let Some(release) = conditions.release {
        let _ = write!(text, ", PyTorch {release}");
    }
    text
}

/// The conditions that the reader gave in place of the run's own:
/// `Tesla T4 (14.01 GiB for PyTorch) and PyTorch 2.9`; `None` where all conditions are the run's own. Reads
/// signals.
pub(super) fn given_text(session: Session, conditions: &Conditions) -> Option<String> {
    // The memory of a program's GPU is among the conditions of each question about the program.
    let own = session.shown_program().map(|result| result.run.recording.capacity());
    let capacity = conditions.capacity.filter(|capacity| Some(*capacity) != own);
    let capacity = capacity.map(device_text);
    let limit = conditions.limit.map(|limit| format!("at most {} reserved", limit.enough_text()));
    let release = conditions.release.map(|release| format!("PyTorch {release}"));
    let given: Vec<String> = capacity.into_iter().chain(limit).chain(release).collect();
    (!given.is_empty()).then(|| blockyard_record::joined(&given))
}

/// A note that an answer is about a device, a limit or a release that the reader gave, with a button back to
/// the run's own conditions.
pub(super) fn hypothesis(session: Session, conditions: &Conditions) -> AnyView {
    let Some(given) = untrack(|| given_text(session, conditions)) else { return ().into_any() };
    let back = click(move || session.lab().forget_given());
    view! {
        <p class="quiet" data-testid="lab-given">
            {format!("This answer is for {given}, as you gave it, and not for the run as it was. ")}
            {button("link", "lab-as-it-was", "Back to the run as it was", "Empties the fields of the device, the limit and the release", back)}
        </p>
    }
    .into_any()
}

/// A figure over the requests of a run as [`figure`] makes one; `scene` makes the scene for a part of the
/// requests, which gestures change. Only the requests of a workload have the numbers of the steps, so that a
/// click goes to a step there and a range can be brushed.
pub(super) fn figure_over_requests(
    session: Session,
    id: &'static str,
    label: String,
    (requests, height_px): (u64, f32),
    scene: impl Fn(AxisRange, Size) -> Scene + 'static,
) -> AnyView {
    let (area, part) = (NodeRef::<html::Div>::new(), RwSignal::new(AxisRange::WHOLE));
    let width = StoredValue::new(1.0);
    gesture::listen(area, move |gesture, at, _| {
        // The pointer may leave a figure whose signals have ended.
        let (Some(before), Some(width)) = (part.try_get_untracked(), width.try_get_value()) else {
            return false;
        };
        let (left, width) = answer_sides(width);
        let place = |x_px: f32| f64::from((x_px - left) / width);
        let step = |x_px: f32| {
            let share = before.from + (before.to - before.from) * place(x_px).clamp(0.0, 1.0);
            timeline_strip_step_at(&TimelineView::fit(usize::try_from(requests).unwrap_or(0)), share)
        };
        let has_steps = session.source.with_untracked(|source| matches!(source, Source::Text));
        let after = match gesture {
            Gesture::Zoom(factor) => before.zoomed(place(at.x_px), factor),
            Gesture::Pan(by) => before.panned(-f64::from(by.x_px / width)),
            Gesture::Whole => AxisRange::WHOLE,
            Gesture::Choose if has_steps => {
                session.seek_moment(step(at.x_px));
                before
            }
            Gesture::Brushed(from) if has_steps => {
                session.figures().brush(step(from.x_px), step(at.x_px), true);
                before
            }
            _ => before,
        };
        if after != before {
            part.set(after);
        }
        after != before
    });
    figure_in(area, session, id, label, height_px, move |width_px| {
        // An answer that takes the place of this one ends the signals before the last frame.
        let _ = width.try_set_value(width_px);
        scene(part.try_get().unwrap_or(AxisRange::WHOLE), Size::new(width_px, height_px))
    })
}

/// A figure as wide as its container; `scene` makes the scene for a width in pixels.
pub(crate) fn figure(
    session: Session,
    id: &'static str,
    label: String,
    height_px: f32,
    scene: impl Fn(f32) -> Scene + 'static,
) -> AnyView {
    figure_in(NodeRef::new(), session, id, label, height_px, scene)
}

fn figure_in(
    area: NodeRef<html::Div>,
    session: Session,
    id: &'static str,
    label: String,
    height_px: f32,
    scene: impl Fn(f32) -> Scene + 'static,
) -> AnyView {
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    surface::keep_drawn(session, canvas, size, move |size| Some(scene(size.width_px)));
    // Figures grow with the letters of the page, whose size depends on the window, so the height follows the
    // window's size.
    let height = text(move || {
        size.track();
        format!("height:{}px", surface::on_page(height_px))
    });
    view! {
        <div class="lab-figure" node_ref=area style=height>
            <canvas node_ref=canvas role="img" data-testid=id aria-label=label></canvas>
        </div>
    }
    .into_any()
}

/// A line to copy, and the button that copies it.
pub(crate) fn line_to_copy(id: &'static str, line: String) -> AnyView {
    let copied = line.clone();
    view! {
        <div class="cluster copy">
            <code class="line" data-testid=id>{line}</code>
            {button("", "copy-line", "Copy", "", click(move || browser::copy(&copied)))}
        </div>
    }
    .into_any()
}

/// The device, the limit and the release, which every question takes into account, and the button that asks.
pub(super) fn conditions(session: Session) -> AnyView {
    view! {
        <form class="cluster asked" on:submit=submit(session)>
            {sizes(session)}
            <button type="submit" data-testid="lab-ask">"Ask again"</button>
        </form>
    }
    .into_any()
}

pub(super) fn submit(session: Session) -> Handler<ev::SubmitEvent> {
    on(move |event: ev::SubmitEvent| {
        event.prevent_default();
        session.lab().ask();
    })
}

/// The meaning of an empty field, which depends on the source: a program of the page has no file. Reads
/// signals.
fn as_it_was(session: Session) -> &'static str {
    if session.shown_program().is_some() { "as it ran" } else { "as in the file" }
}

/// The meaning of an empty choice of the release of PyTorch, as [`as_it_was`] words it: a snapshot names no
/// release. Reads signals.
fn release_as_it_was(session: Session) -> &'static str {
    let is_snapshot =
        session.run.with(|run| run.opened.as_ref().is_some_and(|opened| !opened.devices.is_empty()));
    match (session.shown_program().is_some(), is_snapshot) {
        (true, _) => "as it ran",
        (false, true) => "inferred from the file",
        (false, false) => "as in the file",
    }
}

/// The fields of the device, of the limit and of the release.
pub(super) fn sizes(session: Session) -> AnyView {
    let lab = session.lab();
    let hint = text(move || {
        let hint = if session.lab().has_failed() { as_it_was(session) } else { "no limit" };
        hint.to_owned()
    });
    let gpus = GpuProfile::ALL
        .iter()
        .rev()
        .map(|gpu| view! { <option value=gpu.name>{gpu.total_memory.to_string()}</option> }.into_any());
    view! {
        {field("lab-capacity", "Device", text(move || own_capacity(session)), lab.capacity)}
        <datalist id="lab-capacity-values">{gpus.collect::<Vec<_>>()}</datalist>
        {field("lab-limit", "At most reserved", hint, lab.limit)}
        {releases(session)}
        <p class="quiet" data-testid="lab-device-means">
            {text(move || device_means(session.lab().is_about_gpu()).to_owned())}
        </p>
    }
    .into_any()
}

/// The hint of the field in which the device is typed.
fn device_means(is_about_gpu: bool) -> &'static str {
    if is_about_gpu {
        "\u{201c}Device\u{201d} is a GPU by its name, or all memory of one, as 24 GiB: the CUDA context and libraries are taken off, as the verdict does."
    } else {
        "All of \u{201c}Device\u{201d} can be reserved."
    }
}

/// The memory of the run's own device, for an empty field. Reads signals.
fn own_capacity(session: Session) -> String {
    let answers = session.lab().answers().unwrap_or_default();
    answers.run(session.lab().asked_device()).map_or("its own".to_owned(), |run| run.capacity.to_string())
}

/// The choice of the release of PyTorch whose rules hold.
fn releases(session: Session) -> AnyView {
    let release = session.lab().release;
    let options = Signal::derive(move || {
        let known = Release::ALL.map(|known| (known.name().to_owned(), known.name().to_owned()));
        let words = release_as_it_was(session);
        let answers = session.lab().answers().unwrap_or_default();
        let own = match answers.run(session.lab().asked_device()) {
            Some(run) => format!("{} ({words})", run.release),
            None => words.to_owned(),
        };
        std::iter::once((String::new(), own)).chain(known).collect()
    });
    let chosen = text(move || release.get().map(|known| known.name().to_owned()).unwrap_or_default());
    view! {
        <label class="small-field">
            <span>"PyTorch"</span>
            {select("lab-release", "Release of PyTorch", options, chosen, move |name| release.set(name.parse().ok()))}
        </label>
    }
    .into_any()
}

/// The limit that the file implies, where its run went out of memory: every answer without another limit is
/// for this limit.
pub(super) fn implied_limit(session: Session) -> AnyView {
    let words = Memo::new(move |_| {
        // The memory of a program's GPU is known.
        let answers =
            session.lab().answers().filter(|_| session.shown_program().is_none()).unwrap_or_default();
        let limit = answers.run(session.lab().asked_device()).and_then(|run| run.limit);
        limit.filter(Limit::is_inferred).map(|limit| implied_text(&limit)).unwrap_or_default()
    });
    view! {
        <p class="quiet" data-testid="lab-implied-limit" hidden=flag(move || words.with(String::is_empty))>
            {text(move || words.get())}
        </p>
    }
    .into_any()
}

fn implied_text(limit: &Limit) -> String {
    let cause = match limit.by {
        LimitKind::Device => "its device, which had no more memory",
        LimitKind::MemoryFraction => "a limit of its process, not by a full GPU",
    };
    let both = if limit.low == limit.high { "" } else { ", and replayed at both bounds" };
    format!(
        "This run was stopped by {cause}. The limit is {}: every setting is replayed under it{both}, unless you give another device or \
         limit.",
        limit.range_text()
    )
}

fn field(id: &'static str, label: &'static str, hint: Signal<String>, value: RwSignal<String>) -> AnyView {
    view! {
        <label class="small-field">
            <span>{label}</span>
            <input
                class="field size"
                data-testid=id
                list=format!("{id}-values")
                autocomplete="off"
                spellcheck="false"
                placeholder=hint
                prop:value=text(move || value.get())
                on:input=on(move |event: ev::Event| value.set(event_target_value(&event)))
            />
        </label>
    }
    .into_any()
}

/// The notes about facts of the run that are not known.
pub(super) fn notes(session: Session) -> AnyView {
    let notes = Memo::new(move |_| {
        let answers = session.lab().answers().unwrap_or_default();
        answers.run(session.lab().asked_device()).map(|run| run.notes.clone()).unwrap_or_default()
    });
    let items = move || {
        let notes = notes.get().into_iter();
        notes.map(|note| view! { <li>{crate::messages::sentence(&note)}</li> }.into_any()).collect::<Vec<_>>()
    };
    view! {
        <details class="quiet" hidden=flag(move || notes.with(Vec::is_empty))>
            <summary>"What is not known about this run"</summary>
            <ul>{items}</ul>
        </details>
    }
    .into_any()
}
