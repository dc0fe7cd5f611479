//! The run under other settings, beside the run under its own settings.

use blockyard_lab::WhatIf;
use blockyard_record::grouped;
use blockyard_rules::{AllocatorConfig, SETTING_KEYS, with_setting};
use leptos::ev;
use leptos::prelude::*;

use super::parts::{OUTCOME_HEAD, conditions_text, files, outcome_cells, sizes, submit, table};
use super::trial::{compared, deltas};
use crate::browser;
use crate::lab::{Cell, Sheet};
use crate::messages::sentence;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::kit::{button, click, error_line, on, text};
use crate::view::workbench::settings;

/// Settings that often help, each with a button that asks about it.
const COMMON: [&str; 5] = [
    "expandable_segments:True",
    "max_split_size_mb:128",
    "roundup_power2_divisions:4",
    "large_segment_size_mb:64",
    "backend:cudaMallocAsync",
];

pub(super) fn form(session: Session) -> AnyView {
    let conf = session.lab().conf;
    let error = Memo::new(move |_| refusal(session));
    let chips = COMMON
        .map(|setting| {
            let ask = click(move || {
                conf.set(setting.to_owned());
                session.lab().ask();
            });
            button("chip mono", format!("try-{setting}"), setting, "", ask)
        })
        .into_iter()
        .collect::<Vec<_>>();
    let typed = on(move |event: ev::Event| {
        session.lab().forget_refusal();
        conf.set(event_target_value(&event));
    });
    view! {
        <form class="asked" on:submit=submit(session)>
            <div class="cluster" role="group" aria-label="Common settings">{chips}</div>
            <label for="lab-conf" class="visually-hidden">"PYTORCH_CUDA_ALLOC_CONF"</label>
            <div class="cluster">
                <input
                    id="lab-conf"
                    class="field mono wide"
                    data-testid="lab-conf"
                    list="lab-conf-values"
                    autocomplete="off"
                    spellcheck="false"
                    placeholder="PYTORCH_CUDA_ALLOC_CONF"
                    prop:value=text(move || conf.get())
                    aria-invalid=text(move || error.with(Option::is_some).to_string())
                    aria-describedby="lab-conf-error"
                    on:input=typed
                />
                {sizes(session)}
                <button class="primary" type="submit" data-testid="lab-ask">"What if"</button>
            </div>
            {completions("lab-conf-values", text(move || conf.get()))}
            {error_line("lab-conf-error", error.into())}
            {settings::form("lab", text(move || conf.get()), move |new| {
                session.lab().forget_refusal();
                conf.set(new);
            })}
        </form>
    }
    .into_any()
}

/// Why PyTorch refuses the settings in the field, in its words. Reads signals.
pub(super) fn refusal(session: Session) -> Option<String> {
    let rules = session.lab().rules();
    let parsed = session.lab().conf.with(|conf| AllocatorConfig::parse(conf.trim(), rules));
    parsed.err().map(|error| sentence(&error.to_string()))
}

/// Proposals for a text of settings: the settings before its last comma, followed by each key with each of
/// its common values.
pub(crate) fn completions(id: &'static str, conf: Signal<String>) -> AnyView {
    let options = move || {
        let conf = conf.get();
        let before = conf.rfind(',').map_or("", |comma| &conf[..comma]);
        let all = SETTING_KEYS.iter().flat_map(|entry| {
            entry.values.iter().map(move |value| with_setting(before, entry.key, Some(value)))
        });
        all.map(|value| view! { <option value=value></option> }.into_any()).collect::<Vec<_>>()
    };
    view! { <datalist id=id>{options}</datalist> }.into_any()
}

pub(super) fn answers(session: Session, all: &[PtrEq<WhatIf>]) -> AnyView {
    let Some(latest) = all.first() else { return ().into_any() };
    let Some(row) = latest.rows.first() else { return ().into_any() };
    // The answer is below the fields, often out of sight.
    let _ = browser::after_millis(0, || browser::scroll_into_sight("[data-testid=answer-what-if]"));
    let mut sheet =
        Sheet { head: OUTCOME_HEAD.to_vec(), rows: vec![outcome_cells("own settings", &latest.baseline)] };
    let mut classes = vec!["is-own"];
    for found in all {
        for row in &found.rows {
            sheet.rows.push(outcome_cells(&conditions_text(row), row));
            classes.push(if row.fits() { "" } else { "is-failed" });
        }
    }
    let requests = latest.baseline.outcome_at_lowest().map_or(0, |outcome| outcome.requests);
    let pictured = row.outcome_at_lowest().map(|after| {
        view! {
            {deltas(&latest.baseline, row)}
            {compared(session, &latest.baseline, row, requests.max(after.requests))}
            {difference(session, latest)}
        }
        .into_any()
    });
    let wrong = row
        .outcome
        .as_ref()
        .err()
        .map(|why| view! { <p class="error">{sentence(&why.to_string())}</p> }.into_any());
    // The reason of the latest answer has a line above the table.
    let mut shown = sheet.clone();
    if let (true, Some([_, reason])) = (row.outcome.is_err(), shown.rows.get_mut(1).map(Vec::as_mut_slice)) {
        *reason = Cell::text("refused");
    }
    let warnings = row.outcome_at_lowest().map(|outcome| {
        let all = outcome
            .warnings
            .iter()
            .map(|warning| view! { <p class="quiet">{warning.clone()}</p> }.into_any());
        all.collect::<Vec<_>>()
    });
    view! {
        <section aria-label="Answer" data-testid="answer-what-if">
            <h3>{conditions_text(row)}</h3>
            {wrong}
            {pictured}
            {warnings}
            {table("Everything asked so far", &shown, &classes)}
            {files(session, "what-if", sheet)}
        </section>
    }
    .into_any()
}

/// The first request that leads to different events under the other settings.
fn difference(session: Session, found: &WhatIf) -> AnyView {
    let Some(Some(difference)) = found.differences.first() else {
        return view! { <p class="quiet">"Every request leads to the same events."</p> }.into_any();
    };
    // Only the requests of a workload have the numbers of the steps in the figures.
    let jump = untrack(|| !session.shows_recording()).then(|| {
        let step = usize::try_from(difference.request).unwrap_or(0);
        let seek = click(move || session.dispatch(blockyard_figure::PlayerAction::SeekStep(step)));
        button("link", "lab-go", "Go there", "", seek)
    });
    view! {
        <p data-testid="lab-difference">
            {format!("First differs at request {}. ", grouped(difference.request))}
            {jump}
            <br/>
            {format!("As it was: {}.", difference.baseline)}
            <br/>
            {format!("With the change: {}.", difference.other)}
        </p>
    }
    .into_any()
}
