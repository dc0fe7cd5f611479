//! A program that runs: its state beside the open file, its forecast and its steps in the place of the verdict,
//! and the list of its processes.

use blockyard_lab::{MAX_RUNNING_STEPS, RunningProgram, RunningStep};
use blockyard_record::{counted, grouped};
use leptos::prelude::*;

use crate::lab::Cell;
use crate::live::{Live, Shown};
use crate::messages::sentence;
use crate::session::Session;
use crate::view::kit::{button, click, text};

/// Whether the program runs, and what the reader may do. Empty where no program is open.
pub(crate) fn bar(session: Session) -> AnyView {
    let live = session.live();
    let state = Memo::new(move |_| {
        live.live.with(|live| {
            let live = live.as_ref().filter(|live| live.program().is_some())?;
            Some((live.shown, live.is_lost, live.program().is_some_and(|program| program.is_over)))
        })
    });
    let buttons = move || {
        let (shown, is_lost, is_over) = state.get()?;
        let pause = || {
            button("", "live-pause", "Pause", "Leave the figures as they are", click(move || live.pause()))
        };
        let label = if is_over { "Show the end" } else { "Go on" };
        let go_on =
            || button("", "live-go-on", label, "Show the newest steps again", click(move || live.go_on()));
        let keep = || {
            let title = "Open all that is kept of the program, for all questions; the program runs on";
            button("primary", "live-keep", "Keep", title, click(move || live.keep()))
        };
        Some(match shown {
            Shown::End => ().into_any(),
            _ if is_lost && !is_over => ().into_any(),
            Shown::Now => view! { {pause()}{keep()} }.into_any(),
            Shown::Paused => view! { {go_on()}{keep()} }.into_any(),
            Shown::Kept => go_on(),
        })
    };
    let words = text(move || live.live.with(|live| live.as_ref().map(state_text).unwrap_or_default()));
    let content = move || {
        state.with(Option::is_some).then(|| {
            view! {
                <span class="cluster live-bar">
                    <span data-testid="live-state" aria-live="off">{words}</span>
                    {buttons}
                </span>
            }
        })
    };
    view! { {content} }.into_any()
}

fn state_text(live: &Live) -> String {
    let Some(program) = live.program() else { return String::new() };
    let steps = counted(program.step, "step");
    if program.is_over {
        return format!("Ended after {steps}");
    }
    match live.shown {
        _ if live.is_lost => format!("blockyard watch has ended, after {steps}"),
        Shown::Now => format!("Running: {steps} so far"),
        Shown::Paused => format!("Paused; the program runs on: {steps} so far"),
        Shown::Kept | Shown::End => format!("A recording; the program runs on: {steps} so far"),
    }
}

/// The forecast as a headline, and below it the last steps.
pub(crate) fn forecast(session: Session) -> AnyView {
    let live = session.live().live;
    let program = Memo::new(move |_| live.with(|live| live.as_ref()?.program().cloned()));
    let headline = Memo::new(move |_| program.with(|program| program.as_ref()?.forecast.clone()));
    let words = text(move || {
        headline.get().map_or_else(
            || "No forecast yet: it begins once steps are alike.".to_owned(),
            |(words, _)| sentence(&words),
        )
    });
    let class = text(move || {
        let fails = headline.with(|headline| headline.as_ref().is_some_and(|(_, fails)| *fails));
        if fails { "headline is-doubtful" } else { "headline" }.to_owned()
    });
    let steps = move || program.with(|program| program.as_ref().map(steps_table));
    let notes = move || program.with(|program| program.as_ref().map(notes_list));
    view! {
        <p class=class data-testid="live-forecast">{words}</p>
        {steps}
        {notes}
    }
    .into_any()
}

/// The last steps with their peaks, the newest first.
fn steps_table(program: &RunningProgram) -> AnyView {
    let rows = program.steps.iter().rev().take(MAX_RUNNING_STEPS).map(row).collect::<Vec<_>>();
    if rows.is_empty() {
        return ().into_any();
    }
    view! {
        <div class="live-steps" data-testid="live-steps">
            <table>
                <caption>"The last steps, with true peaks"</caption>
                <thead>
                    <tr>
                        <th scope="col">"step"</th>
                        <th scope="col">"allocated"</th>
                        <th scope="col">"reserved"</th>
                        <th scope="col">"kept"</th>
                        <th scope="col">"line that grew"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn row(step: &RunningStep) -> AnyView {
    let device = step.device.map(|device| format!(" cuda:{device}")).unwrap_or_default();
    let name = format!("{}{device}", grouped(step.number));
    let [allocated, reserved] = match step.peaks {
        Some(peaks) => peaks.map(|peak| peak.to_string()),
        None => ["events lost", "-"].map(str::to_owned),
    };
    let growth = step.growth.map_or(Cell::Nothing, Cell::Change).shown();
    let grew = step.growth.is_some_and(|growth| growth > 0);
    let line = step.line.as_ref().filter(|_| grew).map(|(line, more)| format!("{line}: {more}"));
    let line = line.unwrap_or_default();
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td>{allocated}</td>
            <td>{reserved}</td>
            <td>{growth}</td>
            <td title=line.clone()>{line.clone()}</td>
        </tr>
    }
    .into_any()
}

fn notes_list(program: &RunningProgram) -> AnyView {
    if program.notes.is_empty() {
        return ().into_any();
    }
    let notes = program.notes.iter().rev().map(|note| view! { <li>{sentence(note)}</li> }.into_any());
    view! {
        <h3>"Events"</h3>
        <ul data-testid="live-notes">{notes.collect::<Vec<_>>()}</ul>
    }
    .into_any()
}

/// The processes of a program, each with its last step; empty for one.
pub(crate) fn programs(session: Session) -> AnyView {
    let live = session.live().live;
    let shown = Memo::new(move |_| live.get().filter(|live| live.programs.len() > 1));
    let content = move || {
        let live = shown.get()?;
        let rows = live.by_rank().into_iter().filter_map(|place| {
            let program = live.programs.get(place)?;
            let is_chosen = (place == live.chosen).to_string();
            let peak = program.steps.last().and_then(|step| step.peaks).map(|[peak, _]| peak.to_string());
            let words = match &program.forecast {
                _ if program.is_over => format!("ended after step {}", grouped(program.step)),
                Some((words, _)) => format!("step {}: {words}", grouped(program.step)),
                None => format!("step {}", grouped(program.step)),
            };
            let row = view! {
                <button type="button" class="rank" aria-pressed=is_chosen
                    on:click=click(move || session.live().choose(place))>
                    <span class="name">{program.name.clone()}</span>
                    <span class="words">{words}</span>
                    <span class="peak">{peak}</span>
                </button>
            };
            Some(row.into_any())
        });
        let rows = rows.collect::<Vec<_>>();
        Some(
            view! { <section class="panel" aria-label="Processes of the program" data-testid="live-programs">
                <div class="ranks">{rows}</div>
            </section> }
            .into_any(),
        )
    };
    view! { {content} }.into_any()
}
