//! The line and the operator of the step and of the chosen block, why the block is alive, and the requests of
//! a line.

use blockyard_record::{AllocationId, counted};
use leptos::prelude::*;

use crate::effect::effect;
use crate::numbers::grouped_count;
use crate::program::WhyAlive;
use crate::session::Session;
use crate::view::kit::{click, flag, text};
use crate::view::workbench::step::step_text;

/// The most requests that are listed of a line; a line of a loop shows those around the cursor.
const MAX_REQUESTS: usize = 24;

pub(crate) fn origin(session: Session) -> AnyView {
    let chosen = Memo::new(move |_| {
        let block = session.figures().selected()?;
        session.shown_program()?;
        Some((block, session.with_state(|_, state| state.block(block)?.allocation).flatten()?))
    });
    let is_playing = Memo::new(move |_| session.player.with(|player| player.is_playing));
    // A worker is asked once the cursor stays on a block.
    effect(move || {
        session.player.with(|player| player.steps);
        if chosen.get().is_some() && !is_playing.get() {
            session.program().ask_why_alive();
        }
    });
    let words = move || {
        let result = session.shown_program()?;
        let run = session.run.get();
        let step = session.player.with(|player| player.current_step(&run.recording))?;
        let line = result.line(step)?;
        let what = result.made_at(step).map(|origin| match origin.operator.as_str() {
            "" => format!(": {}, {}", origin.phase, origin.category),
            operator => format!(": {operator}, {}, {}", origin.phase, origin.category),
        });
        Some(format!("Line {line}{}", what.unwrap_or_default()))
    };
    let block_words = move || {
        let result = session.shown_program()?;
        let (block, allocation) = chosen.get()?;
        let origin = result.origin(allocation)?;
        let line = if origin.line == 0 { "no line".to_owned() } else { format!("line {}", origin.line) };
        let by = match origin.operator.as_str() {
            "" => String::new(),
            operator => format!(" by {operator}"),
        };
        Some(format!(
            "Block #{block} was allocated in {line}{by} ({}). Category: {}.",
            origin.phase, origin.category
        ))
    };
    view! {
        <p class="origin" data-testid="program-origin">{text(move || words().unwrap_or_default())}</p>
        <p class="origin" data-testid="block-origin" hidden=flag(move || block_words().is_none())>
            {text(move || block_words().unwrap_or_default())}
        </p>
        <p class="origin alive" role="status" data-testid="block-alive" hidden=flag(move || chosen.get().is_none())>
            {text(move || chosen.get().map(|(_, allocation)| alive(session, allocation)).unwrap_or_default())}
        </p>
        {requests(session)}
    }
    .into_any()
}

/// Why a block is alive at the step under the cursor.
fn alive(session: Session, allocation: AllocationId) -> String {
    let step = session.player.with(|player| player.steps);
    session.program().why_alive.with(|answer| match answer {
        _ if answer.step() != Some(step) => "Why it is alive is looked up once the cursor rests.".to_owned(),
        WhyAlive::Unknown | WhyAlive::Missing(_) => {
            "Why it is alive is not known: the program did not come to this request again.".to_owned()
        }
        WhyAlive::Asked(_) => {
            "Why it is alive: the program runs again up to this request, to find out.".to_owned()
        }
        WhyAlive::Known(referrers) => {
            let reasons = referrers.reasons.iter().find(|(other, _)| *other == allocation);
            let reasons = reasons.map(|(_, reasons)| reasons.as_slice()).unwrap_or_default();
            if !reasons.is_empty() {
                return format!("Alive because of: {}.", reasons.join("; "));
            }
            let line = if referrers.line == 0 { String::new() } else { format!(" in line {}", referrers.line) };
            let by = if referrers.operator.is_empty() { "what runs" } else { referrers.operator.as_str() };
            format!("Alive because {by}{line} works with it: no name of the program leads to it, and nothing saved it.")
        }
    })
}

/// The requests of the line under the cursor, each as a button that goes to its step.
fn requests(session: Session) -> AnyView {
    let content = move || {
        let result = session.shown_program()?;
        let run = session.run.get();
        let current = session.player.with(|player| player.current_step(&run.recording))?;
        let line = result.line(current)?;
        let steps: Vec<usize> = result.steps_of(line).collect();
        let at = steps.iter().position(|step| *step == current).unwrap_or_default();
        let first = at.saturating_sub(MAX_REQUESTS / 2).min(steps.len().saturating_sub(MAX_REQUESTS));
        let shown = steps.iter().skip(first).take(MAX_REQUESTS);
        let rows = shown.map(|&step| {
            let made = result.made_at(step).map(|origin| match origin.operator.as_str() {
                "" => format!(" ({})", origin.category),
                operator => format!(" ({operator}, {})", origin.category),
            });
            let title = format!(
                "Request {}: {}{}",
                grouped_count(step + 1),
                step_text(&run, step).title,
                made.unwrap_or_default()
            );
            let is_current = if step == current { "true" } else { "false" };
            view! {
                <li>
                    <button class="link" aria-current=is_current on:click=click(move || session.program().go_to_step(step))>
                        {title}
                    </button>
                </li>
            }
            .into_any()
        });
        let memory = result.details.lines.iter().find(|memory| memory.line == line);
        let sums = memory.map(|memory| {
            format!(", {} requested in all, at most {} in use at once", memory.requested, memory.peak)
        });
        let left_out = match steps.len().saturating_sub(MAX_REQUESTS) {
            0 => String::new(),
            more => format!(" ({} more around these)", grouped_count(more)),
        };
        let summary =
            format!("Line {line}, {}{}{left_out}", counted(steps.len(), "request"), sums.unwrap_or_default());
        let rows = rows.collect::<Vec<_>>();
        Some(view! { <p>{summary}</p><ul>{rows}</ul> }.into_any())
    };
    let is_empty =
        flag(move || session.shown_program().is_none_or(|result| result.details.step_lines.is_empty()));
    view! {
        <details class="panel line-requests" data-testid="line-requests" hidden=is_empty>
            <summary>"The requests of this line"</summary>
            {content}
        </details>
    }
    .into_any()
}
