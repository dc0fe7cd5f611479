//! Controls that many parts of the page share.
//!
//! Handlers are boxed closures, and values are signals of few types, because each further type of a view
//! makes the download some kilobytes larger.

use std::borrow::Cow;

use blockyard_figure::PlayerAction;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, FileList};

use crate::effect::effect;
use crate::session::Session;
use crate::view::icon::Icon;

/// A handler of events.
pub(crate) type Handler<E> = Box<dyn FnMut(E)>;

/// A handler of clicks that has no use for the event.
pub(crate) fn click(mut action: impl FnMut() + 'static) -> Handler<ev::MouseEvent> {
    Box::new(move |_| action())
}

/// A handler of this kind of event.
pub(crate) fn on<E>(action: impl FnMut(E) + 'static) -> Handler<E> {
    Box::new(action)
}

/// A text that is made again when a signal that `make` reads changes.
pub(crate) fn text(make: impl Fn() -> String + Send + Sync + 'static) -> Signal<String> {
    Signal::derive(make)
}

/// A condition that is decided again when a signal that `make` reads changes.
pub(crate) fn flag(make: impl Fn() -> bool + Send + Sync + 'static) -> Signal<bool> {
    Signal::derive(make)
}

/// A condition as the value of an ARIA attribute.
fn aria(is_so: Signal<bool>) -> Signal<String> {
    text(move || is_so.get().to_string())
}

/// A text that is written in the code or made.
type Text = Cow<'static, str>;

/// A button with words on it. An empty id or title is left out.
pub(crate) fn button(
    class: &'static str,
    id: impl Into<Text>,
    label: impl Into<Text>,
    title: impl Into<Text>,
    act: Handler<ev::MouseEvent>,
) -> AnyView {
    button_view(class, id.into(), label.into(), title.into(), act)
}

fn button_view(
    class: &'static str,
    id: Text,
    label: Text,
    title: Text,
    act: Handler<ev::MouseEvent>,
) -> AnyView {
    let [id, title] = [id, title].map(|text| Some(text).filter(|text| !text.is_empty()));
    view! { <button type="button" class=class data-testid=id title=title on:click=act>{label}</button> }
        .into_any()
}

/// A button with an icon. The label names the action of the button and the key with the same action.
pub(crate) fn icon_button(
    class: &'static str,
    id: &'static str,
    icon: Icon,
    label: &'static str,
    act: Handler<ev::MouseEvent>,
) -> AnyView {
    view! {
        <button type="button" class=class data-testid=id aria-label=label title=label on:click=act>
            {icon.view()}
        </button>
    }
    .into_any()
}

/// A button with an icon that can be disabled.
pub(crate) fn limited_button(
    id: &'static str,
    icon: Icon,
    label: &'static str,
    is_off: Signal<bool>,
    act: Handler<ev::MouseEvent>,
) -> AnyView {
    view! {
        <button type="button" class="icon plain" data-testid=id aria-label=label title=label disabled=is_off on:click=act>
            {icon.view()}
        </button>
    }
    .into_any()
}

/// A button of a group in which one button is pressed.
pub(crate) fn choice(
    id: &'static str,
    label: &'static str,
    is_chosen: Signal<bool>,
    act: Handler<ev::MouseEvent>,
) -> AnyView {
    view! {
        <button type="button" data-testid=id aria-pressed=aria(is_chosen) on:click=act>{label}</button>
    }
    .into_any()
}

/// The frame around [`choice`]s.
pub(crate) fn choices(label: &'static str, is_hidden: Signal<bool>, buttons: Vec<AnyView>) -> AnyView {
    view! { <span class="segmented" role="group" aria-label=label hidden=is_hidden>{buttons}</span> }
        .into_any()
}

/// A box to tick.
pub(crate) fn check(
    id: impl Into<Text>,
    label: &'static str,
    title: &'static str,
    is_on: Signal<bool>,
    mut change: impl FnMut(bool) + 'static,
) -> AnyView {
    let change = on(move |event: ev::Event| change(event_target_checked(&event)));
    let id: Text = id.into();
    view! {
        <label class="check" title=title>
            <input type="checkbox" data-testid=id prop:checked=is_on on:change=change />
            {label}
        </label>
    }
    .into_any()
}

/// The options of a list: the value of each, and the text that is shown.
pub(crate) type Options = Vec<(String, String)>;

/// A list to choose from.
pub(crate) fn select(
    id: impl Into<Text>,
    label: &'static str,
    options: Signal<Options>,
    value: Signal<String>,
    mut change: impl FnMut(String) + 'static,
) -> AnyView {
    let node = NodeRef::<html::Select>::new();
    let entries = move || {
        let entries = options.get().into_iter();
        entries
            .map(|(value, title)| view! { <option value=value>{title}</option> }.into_any())
            .collect::<Vec<_>>()
    };
    // The value is set after the options, because a list ignores a value that is not among its options.
    effect(move || {
        if let Some(select) = node.get() {
            options.track();
            select.set_value(&value.get());
        }
    });
    let change = on(move |event: ev::Event| change(event_target_value(&event)));
    let id: Text = id.into();
    view! {
        <select node_ref=node id=id.clone() data-testid=id aria-label=label title=label on:change=change>{entries}</select>
    }
    .into_any()
}

/// A field of several lines.
pub(crate) fn text_area(
    class: &'static str,
    id: &'static str,
    label: &'static str,
    placeholder: &'static str,
    value: RwSignal<String>,
) -> AnyView {
    let write = on(move |event: ev::Event| value.set(event_target_value(&event)));
    view! {
        <textarea class=class rows="2" spellcheck="false" data-testid=id aria-label=label placeholder=placeholder
            prop:value=text(move || value.get()) on:input=write></textarea>
    }
    .into_any()
}

/// Labels and values, one pair a line.
pub(crate) fn facts(rows: impl IntoIterator<Item = (String, String)>) -> AnyView {
    let rows = rows.into_iter().map(|(label, value)| view! { <dt>{label}</dt><dd>{value}</dd> }.into_any());
    view! { <dl class="facts">{rows.collect::<Vec<_>>()}</dl> }.into_any()
}

/// A button that plays and pauses the run; `labels` are for a run that pauses and for one that plays.
pub(crate) fn play_button(session: Session, labels: [&'static str; 2]) -> AnyView {
    let is_playing = Memo::new(move |_| session.player.with(|player| player.is_playing));
    let label = text(move || labels[usize::from(is_playing.get())].to_owned());
    view! {
        <button
            type="button"
            class="icon primary"
            data-testid="play"
            aria-label=label
            title=label
            on:click=click(move || session.dispatch(PlayerAction::Toggle))
        >
            {move || if is_playing.get() { Icon::Pause.view() } else { Icon::Play.view() }}
        </button>
    }
    .into_any()
}

/// The hidden field of a button that opens files; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct FilePicker(NodeRef<html::Input>);

impl FilePicker {
    pub(crate) fn new() -> Self {
        Self(NodeRef::new())
    }

    /// The handler of the button.
    pub(crate) fn press(self) -> Handler<ev::MouseEvent> {
        click(move || {
            if let Some(input) = self.0.get_untracked() {
                input.click();
            }
        })
    }

    /// The field. If `is_folder`, a folder is chosen, and else one file or several.
    pub(crate) fn field(
        self,
        id: &'static str,
        label: &'static str,
        is_folder: bool,
        take: impl Fn(&FileList) + 'static,
    ) -> AnyView {
        let pick = on(move |_: ev::Event| {
            let Some(input) = self.0.get_untracked() else { return };
            if let Some(files) = input.files() {
                take(&files);
            }
            // Without this, the same files could not be picked twice in a row.
            input.set_value("");
        });
        effect(move || {
            if let Some(input) = self.0.get().filter(|_| is_folder) {
                // `view!` does not know this attribute.
                let _ = input.set_attribute("webkitdirectory", "");
            }
        });
        view! {
            <input
                node_ref=self.0
                type="file"
                multiple=!is_folder
                hidden
                data-testid=id
                aria-label=label
                on:change=pick
            />
        }
        .into_any()
    }
}

/// A dialog; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Dialog(pub(crate) NodeRef<html::Dialog>);

impl Dialog {
    pub(crate) fn new() -> Self {
        Self(NodeRef::new())
    }

    pub(crate) fn open(self) {
        if let Some(dialog) = self.0.get_untracked()
            && !dialog.open()
        {
            let _ = dialog.show_modal();
        }
    }

    pub(crate) fn close(self) {
        if let Some(dialog) = self.0.get_untracked() {
            dialog.close();
        }
    }
}

/// Lets the element that handles the event get the pointer's events until the button is released.
pub(crate) fn capture(event: &ev::PointerEvent) {
    if let Some(target) = event.current_target().and_then(|target| target.dyn_into::<Element>().ok()) {
        let _ = target.set_pointer_capture(event.pointer_id());
    }
}

/// A switch of a part that is unfolded: turns it over.
pub(crate) fn turn_over(is_open: RwSignal<bool>) -> Handler<ev::MouseEvent> {
    click(move || is_open.update(|is_open| *is_open = !*is_open))
}

/// The progress of a program that runs again, and a button that cancels it.
pub(crate) fn running(
    ids: [&'static str; 2],
    is_hidden: Signal<bool>,
    words: Signal<String>,
    cancel: Handler<ev::MouseEvent>,
) -> AnyView {
    view! {
        <p class="cluster" role="status" data-testid=ids[0] hidden=is_hidden>
            <progress aria-label="The program runs"></progress>
            <span class="quiet">{words}</span>
            {button("", ids[1], "Cancel", "", cancel)}
        </p>
    }
    .into_any()
}

/// The error of a field; hidden without one.
pub(crate) fn error_line(id: &'static str, error: Signal<Option<String>>) -> AnyView {
    view! {
        <p class="error" id=id data-testid=id hidden=flag(move || error.with(Option::is_none))>
            {text(move || error.get().unwrap_or_default())}
        </p>
    }
    .into_any()
}
