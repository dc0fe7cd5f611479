//! The facts about an opened recording, and the result of the comparison with our allocator.

use blockyard_figure::PlayerAction;
use blockyard_record::{RunInfo, exact_size};
use blockyard_replay::Comparison;
use leptos::prelude::*;

use crate::files::{ComparisonState, OpenedFile};
use crate::numbers::{grouped_count, percent_done};
use crate::session::Session;
use crate::view::kit::{button, click, facts, select};
use crate::view::messages;

pub(crate) fn card(session: Session) -> AnyView {
    let content = move || {
        let opened = session.shown_recording()?;
        Some(recording_facts(session, &opened))
    };
    view! { {content} }.into_any()
}

fn recording_facts(session: Session, opened: &OpenedFile) -> AnyView {
    let info = opened.run.recording.info();
    let recording = &opened.run.recording;
    let from_file = opened.run.opened.as_ref();
    let text_or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let rows = [
        ("File", opened.name.clone()),
        ("PyTorch", from_file.map_or(String::new(), |file| file.torch.clone())),
        ("GPU", from_file.map_or(String::new(), |file| file.device.clone())),
        ("Settings", text_or(&info.conf, "defaults")),
        ("Capacity", capacity(info)),
        ("Requests", grouped_count(recording.step_count())),
        ("Events", format!("{}, splits and merges included", grouped_count(recording.event_count()))),
        ("Failed", grouped_count(recording.failed_steps().len())),
    ];
    // A snapshot of PyTorch contains neither a version nor the name of a GPU.
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let rows = rows.map(|(label, value)| (label.to_owned(), value));
    let state = opened.comparison.clone();
    let comparison = move || match state.get() {
        ComparisonState::Done(comparison) => Some(comparison_view(session, &comparison)),
        ComparisonState::Running(_) | ComparisonState::Missing(_) => None,
    };
    view! {
        <div class="card pad" data-testid="recording-card">
            {comparison}
            {facts(rows)}
            <p class="quiet">
                "A recording cannot be changed. "
                {button("link", "back-to-workload", "Back to the workload", "", click(move || session.files().show_opened(false)))}
            </p>
            {messages::kept_file(session, "forget")}
        </div>
    }
    .into_any()
}

/// The capacity of the device, or the least capacity that the file proves.
fn capacity(info: &RunInfo) -> String {
    let bytes = exact_size(info.capacity);
    if info.is_capacity_unknown { format!("not in the file; at least {bytes}") } else { bytes }
}

/// The choice of the device that the whole page is about, if a snapshot has several.
pub(crate) fn device_picker(session: Session) -> AnyView {
    let content = move || {
        let opened = session.shown_recording()?;
        devices(session, &opened)
    };
    view! { {content} }.into_any()
}

fn devices(session: Session, opened: &OpenedFile) -> Option<AnyView> {
    let file = opened.run.opened.as_ref().filter(|file| file.devices.len() > 1)?;
    let options = file.devices.iter().enumerate().map(|(place, device)| {
        let oom = if device.has_oom { ", out of memory" } else { "" };
        (place.to_string(), format!("{}: {} events{oom}", device.name(), grouped_count(device.events)))
    });
    let options = Signal::stored(options.collect::<Vec<_>>());
    let shown = file.shown_device;
    let pick = move |place: String| {
        if let Some(place) = place.parse().ok().filter(|place| *place != shown) {
            session.files().reopen(place, Box::new(|| ()));
        }
    };
    let picker = select("device", "Device of the snapshot", options, Signal::stored(shown.to_string()), pick);
    Some(view! { <span class="cluster"><label for="device">"Device"</label>{picker}</span> }.into_any())
}

/// The result of the comparison with our allocator in a sentence. The sentence is in the bar with the open
/// file, because it concerns every figure.
pub(crate) fn headline(session: Session) -> AnyView {
    let content = move || {
        let opened = session.shown_recording()?;
        // Steps of a running program are not compared.
        (!session.live().shows_steps()).then(|| comparison_line(&opened.comparison.get()))
    };
    view! { {content} }.into_any()
}

fn comparison_line(state: &ComparisonState) -> AnyView {
    let (class, words) = match state {
        ComparisonState::Done(comparison) => {
            let is_empty = comparison.counts.is_empty();
            let is_alike = comparison.is_identical() || is_empty;
            let class = if is_alike { "headline" } else { "headline differs" };
            (class, if is_empty { comparison.headline() } else { comparison.meaning() })
        }
        ComparisonState::Missing(why) => ("headline", format!("not compared: {why}")),
        ComparisonState::Running(progress) => {
            let percent = percent_done(progress.done, progress.total);
            let words = format!("comparing with our allocator … {percent}%");
            return view! { <p class="headline" data-testid="comparing">{words}</p> }.into_any();
        }
    };
    view! { <p class=class data-testid="headline">{words}</p> }.into_any()
}

fn comparison_view(session: Session, comparison: &Comparison) -> AnyView {
    let counts = comparison
        .counts
        .iter()
        .map(|count| {
            let text = format!(
                "{} of {}",
                blockyard_record::grouped(count.identical),
                blockyard_record::grouped(count.total)
            );
            view! { <tr><th scope="row">{count.kind.clone()}</th><td>{text}</td></tr> }.into_any()
        })
        .collect::<Vec<_>>();
    let difference = comparison.first_difference.as_ref().map(|difference| {
        let jump = difference.step.map(|step| {
            let seek = click(move || {
                session.dispatch(PlayerAction::SeekStep(usize::try_from(step).unwrap_or(usize::MAX)));
            });
            button("", "first-difference", "Go to the first difference", "", seek)
        });
        view! {
            <section>
                <h2>"First difference"</h2>
                {facts([
                    ("What".to_owned(), difference.what.clone()),
                    ("PyTorch".to_owned(), difference.expected.clone()),
                    ("Here".to_owned(), difference.found.clone()),
                ])}
                {jump}
            </section>
        }
    });
    let notes =
        comparison.notes.iter().map(|note| view! { <li>{note.clone()}</li> }.into_any()).collect::<Vec<_>>();
    let has_notes = !comparison.notes.is_empty();
    let has_counts = !comparison.counts.is_empty();
    view! {
        {difference}
        <table hidden=!has_counts>
            <caption>"Compared with PyTorch's own allocator"</caption>
            <tbody>{counts}</tbody>
        </table>
        <section hidden=!has_notes>
            <h2>"Notes"</h2>
            <ul class="quiet">{notes}</ul>
        </section>
    }
    .into_any()
}
