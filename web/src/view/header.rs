//! The page's header: the title of the shown part or run, and the links to the other parts of the page.

use blockyard_workload::presets::presets;
use leptos::ev;
use leptos::prelude::*;

use crate::appearance::ThemeChoice;
use crate::browser;
use crate::files::{SAMPLES, Samples};
use crate::navigation::{Place, TeachersPage};
use crate::session::Session;
use crate::view::help::Help;
use crate::view::kit::{FilePicker, button, click, on, select, text};
use crate::view::share::Share;
use crate::view::workbench::{live, opened, panels};

pub(crate) fn header(session: Session, help: Help, share: Share) -> AnyView {
    let is_home = Memo::new(move |_| session.navigation().place.get() == Place::Home);
    let title = text(move || session.navigation().heading());
    view! {
        <header class="top">
            <a class="skip" href="#main" on:click=on(|event: ev::MouseEvent| skip(&event))>"Skip to the content"</a>
            <a class="brand" href="#" data-testid="home" on:click=on(move |event: ev::MouseEvent| {
                event.prevent_default();
                session.navigation().go_to(Place::Home);
            })>"Blockyard"</a>
            <p class="purpose" class:is-quiet=move || is_home.get() data-testid="document-title">{title}</p>
            <nav aria-label="Parts of the page">
                {door(session, Place::Lessons, "nav-learn", "Learn")}
                {door(session, Place::Program, "nav-program", "Python")}
                {door(session, Place::Workbench, "nav-workbench", "Workbench")}
                {door(session, Place::Teachers(TeachersPage::Plan), "nav-teach", "Teach")}
            </nav>
            {panels::all_panels(session)}
            <span class="cluster looks">
                {button("plain", "share", "Share", "A link, a frame, files, paper", click(move || share.open()))}
                <button
                    type="button"
                    class="icon plain"
                    data-testid="help"
                    aria-label="Colors, keys and language"
                    title="Colors, keys and language (?)"
                    on:click=click(move || help.open())
                >
                    "?"
                </button>
            </span>
        </header>
    }
    .into_any()
}

/// Moves the focus. The address must stay, because its hash names the shown part.
fn skip(event: &ev::MouseEvent) {
    event.prevent_default();
    crate::browser::focus_first("main button, main a, main input, main textarea");
}

fn door(session: Session, place: Place, id: &'static str, label: &'static str) -> AnyView {
    // Each page for teachers is a place.
    let here = std::mem::discriminant(&place);
    let is_here = move || session.navigation().place.with(std::mem::discriminant) == here;
    let current = text(move || if is_here() { "page" } else { "false" }.to_owned());
    view! {
        <button
            type="button"
            class="plain"
            data-testid=id
            aria-current=current
            on:click=click(move || session.navigation().go_to(place.clone()))
        >
            {label}
        </button>
    }
    .into_any()
}

/// The bar above the figures. A workload has what the workbench opens: workloads, samples, files. An opened
/// file has the result of its comparison, and the button that opens another file.
pub(crate) fn open_bar(session: Session, samples: Samples) -> AnyView {
    let is_file = Memo::new(move |_| session.shows_recording());
    let (picker, folder) = (FilePicker::new(), FilePicker::new());
    let of_workload = move || {
        (!is_file.get()).then(|| {
            view! {
                <span class="cluster">
                    <label for="preset">"Workload"</label>
                    {preset_picker(session)}
                </span>
                {sample_picker(session, samples)}
            }
        })
    };
    let of_folder = move || {
        (!is_file.get()).then(|| {
            view! {
                {button("", "open-folder", "Folder …", "Open a folder of memory snapshots, one for each rank", folder.press())}
                {folder.field("folder", "Folder of snapshots to open", true, move |files| session.files().open_folder(files))}
            }
        })
    };
    view! {
        <div class="open-bar">
            {of_workload}
            <span class="cluster">
                {button(
                    "",
                    "open",
                    "Open file …",
                    "Open a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot), a recording (.jsonl.gz), a workload or a lesson, or drop it anywhere on the page. Nothing is uploaded; this browser keeps a copy on this machine until you open another file or press Forget",
                    picker.press(),
                )}
                {file_input(session, picker, "file")}
                {of_folder}
            </span>
            {opened::device_picker(session)}
            {live::bar(session)}
            {opened::headline(session)}
        </div>
    }
    .into_any()
}

/// The option of the picker for a text that equals no preset.
const OWN: &str = "own";
/// The option of the picker for an empty workload.
const EMPTY: &str = "empty";

fn preset_picker(session: Session) -> AnyView {
    let current = Memo::new(move |_| {
        session.workload().history.with(|history| {
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
            session.workload().load_preset(preset);
        } else if id == EMPTY {
            session.workload().load_empty();
        }
    };
    select("preset", "Workload to play", options, text(move || current.get().to_owned()), pick)
}

/// The list of samples. A page that was exported as one file contains none.
fn sample_picker(session: Session, samples: Samples) -> Option<AnyView> {
    let mut options = vec![(String::new(), "Sample \u{2026}".to_owned())];
    options.extend(SAMPLES.iter().map(|sample| (sample.name.to_owned(), sample.title.to_owned())));
    let pick = move |name: String| {
        if let Some(sample) = SAMPLES.iter().find(|sample| sample.name == name) {
            samples.open(session, sample);
        }
    };
    let list =
        || select("sample", "Sample to open", Signal::stored(options), Signal::stored(String::new()), pick);
    (!browser::is_one_file()).then(list)
}

/// The input of a button that opens files.
pub(crate) fn file_input(session: Session, picker: FilePicker, id: &'static str) -> AnyView {
    let label = "Snapshot, recording, workload or lesson to open";
    picker.field(id, label, false, move |files| session.files().open_files(files))
}

pub(crate) fn theme_picker(session: Session) -> AnyView {
    let options =
        ThemeChoice::ALL.map(|choice| (choice.name().to_owned(), choice.title().to_owned())).to_vec();
    let pick = move |name: String| {
        let choice = ThemeChoice::from_name(&name);
        choice.remember();
        // Figures read their colors from the document when they are drawn, so the theme is applied first.
        choice.apply();
        session.appearance().theme.set(choice);
        session.appearance().redraw();
    };
    let value = text(move || session.appearance().theme.get().name().to_owned());
    select("theme", "Theme", Signal::stored(options), value, pick)
}
