//! The page's head: what it is, what to play with, and how it looks.

use blockyard_workload::presets::presets;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::files::{SAMPLES, Samples, open_file};
use crate::session::Session;
use crate::theme::ThemeChoice;
use crate::view::help::Help;
use crate::view::kit::{button, click, on, select, text};

pub(crate) fn header(session: Session, samples: Samples, help: Help) -> AnyView {
    view! {
        <header class="top">
            <h1>"Blockyard"</h1>
            <p class="purpose">
                "PyTorch's CUDA caching allocator, to play with. Nothing is uploaded."
            </p>
            <span class="cluster">
                <label for="preset">"Workload"</label>
                {preset_picker(session)}
            </span>
            {recordings(session, samples)}
            <span class="cluster looks">
                {theme_picker(session)}
                <button
                    type="button"
                    class="icon"
                    data-testid="help"
                    aria-label="Keys and language"
                    title="Keys and language (?)"
                    on:click=click(move || help.open())
                >
                    "?"
                </button>
            </span>
        </header>
    }
    .into_any()
}

/// What the picker shows when the text is no preset's any more.
const OWN: &str = "own";
/// The choice of an empty workload.
const EMPTY: &str = "empty";

fn preset_picker(session: Session) -> AnyView {
    let current = Memo::new(move |_| {
        session.history.with(|history| {
            let text = history.text();
            let preset = presets().iter().find(|preset| preset.text == text);
            preset.map_or(if text.is_empty() { EMPTY } else { OWN }, |preset| preset.id)
        })
    });
    let options = Signal::derive(move || {
        let mut options: Vec<_> =
            presets().iter().map(|preset| (preset.id.to_owned(), preset.title.to_owned())).collect();
        options.push((EMPTY.to_owned(), "Empty".to_owned()));
        if current.get() == OWN {
            options.insert(0, (OWN.to_owned(), "Your own".to_owned()));
        }
        options
    });
    let pick = move |id: String| {
        if let Some(preset) = presets().iter().find(|preset| preset.id == id) {
            session.load_preset(preset);
        } else if id == EMPTY {
            session.load_empty();
        }
    };
    select("preset", "Workload to play", options, text(move || current.get().to_owned()), pick)
}

fn recordings(session: Session, samples: Samples) -> AnyView {
    let picker = NodeRef::<html::Input>::new();
    let pick = move |_: ev::Event| {
        let Some(input) = picker.get_untracked() else { return };
        if let Some(file) = input.files().and_then(|files| files.get(0)) {
            open_file(session, &file);
        }
        // Else the same file could not be picked again.
        input.set_value("");
    };
    let open = move || {
        if let Some(input) = picker.get_untracked() {
            input.click();
        }
    };
    let samples = SAMPLES
        .iter()
        .map(|sample| {
            let open = click(move || samples.open(session, sample));
            button("", sample.test_id, sample.title, sample.summary, open)
        })
        .collect::<Vec<_>>();
    view! {
        <span class="cluster">
            <span class="label">"Recording"</span>
            {samples}
            {button(
                "",
                "open",
                "Open file …",
                "Open a recording of a real run (.jsonl.gz) or the text of a workload, or drop it anywhere on the page",
                click(open),
            )}
            <input
                node_ref=picker
                type="file"
                hidden
                data-testid="file"
                aria-label="Recording or workload to open"
                on:change=on(pick)
            />
        </span>
    }
    .into_any()
}

fn theme_picker(session: Session) -> AnyView {
    let options =
        ThemeChoice::ALL.map(|choice| (choice.name().to_owned(), choice.title().to_owned())).to_vec();
    let pick = move |name: String| {
        let choice = ThemeChoice::from_name(&name);
        // Figures read their colors when they are drawn: the page has to have them by then.
        choice.put();
        session.theme.set(choice);
        session.looks.update(|version| *version += 1);
    };
    let value = text(move || session.theme.get().name().to_owned());
    select("theme", "Theme", Signal::stored(options), value, pick)
}
