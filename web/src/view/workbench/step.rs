//! The step under the cursor of a workload or a program in words, and what is chosen.

use blockyard_figure::{MoveUnit, Player, StepText, describe_step};
use blockyard_record::StepOutcome;
use blockyard_workload::{Highlight, Request};
use leptos::prelude::*;

use crate::messages::sentence;
use crate::navigation::Place;
use crate::run::{Attempt, Run};
use crate::session::Session;
use crate::view::kit::{flag, text, turn_over};
use crate::view::workbench::chosen::chosen;
use crate::view::workbench::gpu;
use crate::view::workbench::lab;

/// At most this many events of a step are shown.
const MAX_EVENTS: usize = 60;

/// The step under the cursor in words.
#[derive(Clone, Debug, Default, PartialEq)]
struct StepDescription {
    words: StepText,
    /// The last label at or before the step.
    label: Option<String>,
    /// The line of the workload, if its request is spelled differently from the title.
    source: Option<String>,
    /// The message of a step that failed.
    failure: Option<String>,
    /// The index, within the step, of the event that was applied last; only while the player moves by events.
    current: Option<usize>,
}

fn describe(session: Session) -> StepDescription {
    let run = session.run.get();
    let player: Player = session.player.get();
    let Some(step) = player.current_step(&run.recording) else {
        let sentence = match run.recording.step_count() {
            0 if session.shown_program().is_some_and(|result| result.details.status != 0) => {
                "The program ended before a request for memory of the GPU was made: the output has the error."
            }
            0 if session.navigation().place.get() == Place::Program => {
                "No memory of the GPU was asked for: with device=\"cuda\" or .cuda() a tensor lies there."
            }
            0 => "There are no requests yet. Allocate something below, or pick a workload above.",
            _ => "Nothing has happened yet: the device is empty. Press play, or step forward.",
        };
        let words =
            StepText { title: "Start".to_owned(), sentence: sentence.to_owned(), ..StepText::default() };
        return StepDescription { words, ..StepDescription::default() };
    };
    let failure = match run.recording.outcome(step) {
        StepOutcome::Done => None,
        StepOutcome::OutOfMemory(text) | StepOutcome::Refused(text) | StepOutcome::Skipped(text) => {
            Some(text.clone())
        }
    };
    let current = match player.unit {
        MoveUnit::Step => None,
        MoveUnit::Event => {
            run.recording.step(step).and_then(|bounds| player.cursor.checked_sub(bounds.start + 1))
        }
    };
    let words = step_text(&run, step);
    let label = run.recording.label_index_at(step).and_then(|index| run.recording.labels().get(index));
    let label = label.map(|label| label.text.clone());
    let source =
        source_of(session, &run, step).filter(|source| normalized(source) != normalized(&words.title));
    StepDescription { words, label, source, failure, current }
}

/// The step in words. The title of a failed allocation has the name of its tensor too, although no block has
/// this name.
pub(crate) fn step_text(run: &Run, step: usize) -> StepText {
    let mut words = describe_step(&run.recording, step);
    if let Some(Request::Allocate { tensor, .. }) = run.request(step)
        && let Some(name) = run.workload.tensor_name(*tensor)
        && words.title.starts_with("alloc ")
    {
        words.title = format!("{name} = {}", words.title);
    }
    words
}

/// A request without spaces and without the unit `B` of plain bytes, so that two spellings of the same
/// request are equal.
fn normalized(request: &str) -> String {
    request.trim_end_matches(" B").split_whitespace().collect()
}

/// The line of the workload's text that makes the step, without its comment.
fn source_of(session: Session, run: &Run, step: usize) -> Option<String> {
    // While the text has an error, the figure shows the last valid run, whose lines may be others.
    let is_current = session.workload().attempt.with(|attempt| matches!(attempt, Attempt::Ran(_)));
    if !session.shows_text() || !is_current {
        return None;
    }
    let line = run.line(step)?;
    let index = (line as usize).checked_sub(1)?;
    let text = session
        .workload()
        .history
        .with(|history| history.text().split('\n').nth(index).map(str::to_owned))?;
    let pieces = blockyard_workload::highlight(&text);
    let end = pieces
        .iter()
        .find(|(_, kind)| *kind == Highlight::Comment)
        .map_or(text.len(), |(range, _)| range.start);
    let source = text.get(..end)?.trim().to_owned();
    // The line of a loop makes many requests. Only the title names the request of this step.
    (!source.is_empty() && !source.contains('{')).then_some(source)
}

pub(crate) fn step(session: Session) -> AnyView {
    let description = Memo::new(move |_| describe(session));
    // The state of the panel in a low window, where it is folded beside the other panels.
    let is_open = RwSignal::new(false);
    let failure = move || {
        description
            .with(|description| description.failure.clone())
            .map(|text| view! { <p class="failure" data-testid="failure">{text}</p> }.into_any())
    };
    let events = move || description.with(events);
    view! {
        <section class="panel step" class:is-open=flag(move || is_open.get()) aria-label="This request" data-testid="step" tabindex="0">
            <button type="button" class="plain fold" data-testid="step-fold" aria-expanded=text(move || is_open.get().to_string())
                on:click=turn_over(is_open)
            >{text(move || if is_open.get() { "Back to the panels" } else { "All of the request" }.to_owned())}</button>
            <h2 class="step-label" hidden=flag(move || description.with(|description| description.label.is_none()))>
                {text(move || description.with(|description| description.label.clone().unwrap_or_default()))}
            </h2>
            <p class="title" data-testid="step-title">{text(move || description.with(|description| description.words.title.clone()))}</p>
            <p class="source-line quiet mono" data-testid="step-source" hidden=flag(move || description.with(|description| description.source.is_none()))>
                {text(move || description.with(|description| description.source.clone().unwrap_or_default()))}
            </p>
            <p class="sentence" data-testid="step-sentence">
                {text(move || description.with(|description| sentence(&description.words.sentence)))}
            </p>
            {failure}
            {lab::helps(session)}
            {gpu::data_check(session)}
            <ol class="events" data-testid="events">{events}</ol>
            {chosen(session)}
        </section>
    }
    .into_any()
}

fn events(description: &StepDescription) -> Vec<AnyView> {
    let hidden = description.words.events.len().saturating_sub(MAX_EVENTS);
    let lines = description.words.events.iter().take(MAX_EVENTS).enumerate();
    let mut lines: Vec<_> = lines
        .map(|(index, line)| {
            let class = if description.current == Some(index) { "is-current" } else { "" };
            view! { <li class=class>{line.clone()}</li> }.into_any()
        })
        .collect();
    if hidden > 0 {
        lines.push(view! { <li class="">{format!("and {hidden} more events")}</li> }.into_any());
    }
    lines
}

/// The title and the sentence of the step, or the answer of the story, for screen readers.
pub(crate) fn spoken(session: Session) -> String {
    if session.navigation().place.get() == Place::Home {
        return session.story().moment.get().answer;
    }
    let description = describe(session);
    format!("{}. {}", description.words.title, sentence(&description.words.sentence))
}
