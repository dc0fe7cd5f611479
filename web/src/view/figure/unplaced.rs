//! The view in place of the figures when the opened file has no memory that could be drawn: the reason, and
//! the facts that its trace has.

use blockyard_figure::stack_lines;
use blockyard_record::{StackId, Stacks};
use blockyard_replay::job::{OpenedRecording, UnplacedStack, UnplacedTrace};
use leptos::prelude::*;

use crate::files::OpenedFile;
use crate::numbers::grouped_count;
use crate::session::Session;
use crate::view::kit::{button, click};

/// The innermost frames of a stack that are shown.
const FRAMES: usize = 3;

/// Whether the shown recording has nothing to draw. Reads signals.
pub(crate) fn is_unplaced(session: Session) -> bool {
    session.shown_recording().is_some_and(|opened| trace_of(&opened).is_some())
}

fn trace_of(opened: &OpenedFile) -> Option<&UnplacedTrace> {
    opened.run.opened.as_ref()?.unplaced.as_ref()
}

pub(crate) fn unplaced(session: Session) -> AnyView {
    let content = move || {
        let opened = session.shown_recording()?;
        let trace = trace_of(&opened)?;
        let actions = trace.actions.iter().map(|(action, count)| {
            view! { <tr><th scope="row">{action.clone()}</th><td>{grouped_count(*count)}</td></tr> }
                .into_any()
        });
        let actions = actions.collect::<Vec<_>>();
        let has_actions = !actions.is_empty();
        let stacks = opened.run.recording.stacks();
        Some(view! {
            <section class="panel pad unplaced" role="status" data-testid="unplaced">
                <h2>"Nothing of this recording can be drawn"</h2>
                <p>{trace.reason.clone()}</p>
                {other_devices(session, &opened)}
                <table class="counts" hidden=!has_actions>
                    <caption>"What the trace has"</caption>
                    <tbody>{actions}</tbody>
                </table>
                {stack_table(trace, stacks)}
                <p class="quiet">
                    "The tab Recording has the settings and the notes of the file. "
                    {button("link", "unplaced-back", "Back to the workload", "", click(move || session.files().show_opened(false)))}
                </p>
            </section>
        })
    };
    view! { {content} }.into_any()
}

/// Buttons for the devices of the file that have a trace.
fn other_devices(session: Session, opened: &OpenedFile) -> Option<AnyView> {
    let OpenedRecording { devices, shown_device, .. } = opened.run.opened.as_ref()?;
    let others =
        devices.iter().enumerate().filter(|(place, device)| place != shown_device && device.events > 0);
    let buttons = others.map(|(place, device)| {
        let label = format!("Show {} ({} events)", device.name(), grouped_count(device.events));
        let show = click(move || session.files().reopen(place, Box::new(|| ())));
        button("", "", label, "", show)
    });
    let buttons = buttons.collect::<Vec<_>>();
    (!buttons.is_empty()).then(|| view! { <p class="cluster">{buttons}</p> }.into_any())
}

fn stack_table(trace: &UnplacedTrace, stacks: &Stacks) -> Option<AnyView> {
    let row = |of: &UnplacedStack| {
        let words = frames_of(stacks, of.stack);
        view! {
            <tr>
                <th scope="row">{words}</th>
                <td>{of.requested.to_string()}</td>
                <td>{grouped_count(of.allocations)}</td>
            </tr>
        }
        .into_any()
    };
    let rows = trace.stacks.iter().map(row).collect::<Vec<_>>();
    let caption = match trace.stack_count {
        count if count > rows.len() => {
            format!("The {} of {} stacks that asked for most in all", rows.len(), grouped_count(count))
        }
        _ => "The stacks of its allocations".to_owned(),
    };
    (!rows.is_empty()).then(|| {
        view! {
            <table class="unplaced-stacks">
                <caption>{caption}</caption>
                <thead>
                    <tr><th scope="col">"Stack, innermost first"</th><th scope="col">"Bytes"</th><th scope="col">"Allocations"</th></tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    })
}

fn frames_of(stacks: &Stacks, stack: StackId) -> String {
    let lines = stack_lines(stacks, stack);
    let more = lines.len().saturating_sub(FRAMES);
    let mut shown = lines.into_iter().take(FRAMES).collect::<Vec<_>>().join(" ‹ ");
    if shown.is_empty() {
        "no stack was recorded".clone_into(&mut shown);
    }
    if more > 0 { format!("{shown} ‹ {} more", grouped_count(more)) } else { shown }
}
