//! Play by hand: buttons that add requests to the workload, and the device and settings that the workload
//! runs with.

use blockyard_record::StreamId;
use blockyard_workload::edit::EditAction;
use blockyard_workload::parse_size;
use leptos::ev;
use leptos::prelude::*;

use crate::browser::Delay;
use crate::messages::sentence;
use crate::run::{Attempt, InputError};
use crate::session::{Feature, Session};
use crate::view::kit::{button, click, error_line, flag, on, select, text};
use crate::view::workbench::gpu;
use crate::view::workbench::{lab, settings};
use crate::workload::{SettingsTexts, WorkloadSignals};

/// The sizes that have a button.
const SIZES: [&str; 7] = ["512 B", "512 KiB", "1 MiB", "3 MiB", "10 MiB", "20 MiB", "100 MiB"];

pub(crate) fn hand(session: Session) -> AnyView {
    let stream = RwSignal::new(StreamId::DEFAULT);
    view! {
        <section class="hand" aria-label="Play by hand">
            {allocate(session, stream)}
            {other_requests(session, stream)}
            <details class="hand-fold" open>
                <summary>"Device and settings"</summary>
                {device(session)}
            </details>
        </section>
    }
    .into_any()
}

fn allocate(session: Session, stream: RwSignal<StreamId>) -> AnyView {
    let size = RwSignal::new("3 MiB".to_owned());
    let error = RwSignal::new(None::<String>);
    let run = on(move |event: ev::SubmitEvent| {
        event.prevent_default();
        match parse_size(&size.get_untracked()) {
            Ok(bytes) => {
                error.set(None);
                session
                    .workload()
                    .act(EditAction::Allocate { size: bytes, stream: chosen_stream(session, stream) });
            }
            Err(why) => error.set(Some(sentence(&why.to_string()))),
        }
    });
    let typed = on(move |event: ev::Event| {
        error.set(None);
        size.set(event_target_value(&event));
    });
    let common = SIZES
        .map(|label| {
            let act = click(move || {
                if let Ok(size) = parse_size(label) {
                    session
                        .workload()
                        .act(EditAction::Allocate { size, stream: chosen_stream(session, stream) });
                }
            });
            let id = format!("size-{}", label.replace(' ', "-"));
            button("", id, label, format!("Allocate {label}"), act)
        })
        .into_iter()
        .collect::<Vec<_>>();
    view! {
        <form class="cluster" on:submit=run>
            <label for="size">"Size"</label>
            <input
                id="size"
                class="field size"
                data-testid="size"
                autocomplete="off"
                spellcheck="false"
                title="3 MiB, 1.5 GiB, 10000 x 10000 float32"
                prop:value=text(move || size.get())
                aria-invalid=text(move || error.get().is_some().to_string())
                aria-describedby="size-error"
                on:input=typed
            />
            {stream_picker(session, stream)}
            <button class="primary" type="submit" data-testid="allocate">"Allocate"</button>
        </form>
        {error_line("size-error", error.into())}
        <div class="cluster sizes" role="group" aria-label="Allocate a common size">{common}</div>
    }
    .into_any()
}

/// The stream that the reader chose, or the default stream if the workload no longer has the chosen one.
fn chosen_stream(session: Session, stream: RwSignal<StreamId>) -> StreamId {
    let run = session.run.get_untracked();
    let chosen = stream.get_untracked();
    if run.workload.stream_name(chosen).is_some() { chosen } else { StreamId::DEFAULT }
}

fn stream_picker(session: Session, stream: RwSignal<StreamId>) -> AnyView {
    let options = Signal::derive(move || {
        let run = session.run.get();
        let named = run.workload.streams().map(|(id, name)| (id.to_string(), format!("on {name}")));
        std::iter::once(("0".to_owned(), "on default".to_owned())).chain(named).collect()
    });
    let current = text(move || {
        let run = session.run.get();
        let chosen = stream.get();
        if run.workload.stream_name(chosen).is_some() { chosen.to_string() } else { "0".to_owned() }
    });
    let pick = move |value: String| {
        if let Ok(id) = value.parse() {
            stream.set(StreamId::new(id));
        }
    };
    select("stream", "Stream to allocate on", options, current, pick)
}

fn other_requests(session: Session, stream: RwSignal<StreamId>) -> AnyView {
    let streams = move || session.run.get_untracked().workload.streams().map(|(id, _)| id).last();
    let declare = click(move || {
        let before = streams();
        session.workload().act(EditAction::DeclareStream);
        // Readers declare a stream in order to use it next, so it is chosen at once.
        if let Some(new) = streams()
            && Some(new) != before
        {
            stream.set(new);
            let name = session.run.get_untracked().workload.stream_name(new).unwrap_or_default().to_owned();
            session.show_note(format!(
                "The text has a stream {name} now; it is chosen for what you allocate next."
            ));
        }
    });
    let advance = click(move || {
        session.workload().act(EditAction::Advance { stream: Some(chosen_stream(session, stream)) });
    });
    let empty = click(move || session.workload().act(EditAction::EmptyCache));
    let reset = click(move || session.workload().act(EditAction::ResetPeak));
    view! {
        <div class="cluster sizes" role="group" aria-label="Other requests">
            {button("", "empty-cache", "Empty cache", "torch.cuda.empty_cache(): gives cached segments back", empty)}
            {button("", "reset-peak", "Reset peaks", "torch.cuda.reset_peak_memory_stats()", reset)}
            {button("", "new-stream", "New stream", "Declares a further stream", declare)}
            {button(
                "",
                "advance",
                "Advance stream",
                "The work queued on the chosen stream is done; frees that wait for it complete",
                advance,
            )}
        </div>
    }
    .into_any()
}

/// The text of a field takes effect when the reader has paused for this time.
const TYPING_PAUSE_MILLIS: i32 = 250;

/// PyTorch's message, with a proposal where the text has another word for a boolean: PyTorch accepts only
/// `True` and `False`.
fn with_hint(message: &str) -> String {
    let found =
        message.rsplit("but got '").next().and_then(|rest| rest.split('\'').next()).unwrap_or_default();
    let meant = match found.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => "True",
        "false" | "0" | "off" | "no" => "False",
        _ => return message.to_owned(),
    };
    if message.contains("'True' or 'False'") {
        format!("{message} Did you mean {meant}?")
    } else {
        message.to_owned()
    }
}

fn device(session: Session) -> AnyView {
    let capacity_error = Memo::new(move |_| match session.workload().attempt.get() {
        Attempt::Failed(InputError::Capacity(text)) => Some(sentence(&text)),
        _ => None,
    });
    let config_error = Memo::new(move |_| match session.workload().attempt.get() {
        Attempt::Failed(InputError::Config(text)) => Some(with_hint(&sentence(&text))),
        _ => None,
    });
    view! {
        <div class="device">
            {field(session, "capacity", "Device capacity", "80 GiB", capacity_error, |settings| &settings.capacity, Feature::set_capacity)}
            {field(session, "config", "PYTORCH_CUDA_ALLOC_CONF", "defaults", config_error, |settings| &settings.conf, Feature::set_conf)}
            {error_line("device-error", Signal::derive(move || capacity_error.get().or_else(|| config_error.get())))}
            {settings_form(session)}
            {gpu::switch(session)}
        </div>
    }
    .into_any()
}

/// A form with every key of the settings. A change shows the run before and after side by side.
fn settings_form(session: Session) -> AnyView {
    let config = text(move || session.workload().settings.with(|settings| settings.conf.clone()));
    let change = move |new: String| session.lab().change_conf(new);
    view! {
        {lab::completions("config-values", config)}
        {settings::form("config", config, change)}
        <div hidden=flag(move || session.lab().fails_now())>{lab::trial(session)}</div>
    }
    .into_any()
}

fn field(
    session: Session,
    id: &'static str,
    label: &'static str,
    hint: &'static str,
    error: Memo<Option<String>>,
    get: fn(&SettingsTexts) -> &String,
    set: fn(Feature<WorkloadSignals>, String),
) -> AnyView {
    let delay = Delay::new();
    let typed = on(move |event: ev::Event| {
        let text = event_target_value(&event);
        delay.start(TYPING_PAUSE_MILLIS, move || set(session.workload(), text));
    });
    view! {
        <div>
            <label for=id class="label">{label}</label>
            <input
                id=id
                class="field mono"
                data-testid=id
                autocomplete="off"
                spellcheck="false"
                placeholder=hint
                list=format!("{id}-values")
                prop:value=text(move || session.workload().settings.with(|settings| get(settings).clone()))
                aria-invalid=text(move || error.get().is_some().to_string())
                aria-describedby="device-error"
                on:input=typed
            />
        </div>
    }
    .into_any()
}
