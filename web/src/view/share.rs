//! The dialog that shares what is shown: as a link, as a frame for another page, as files, and on paper.

use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::browser;
use crate::export;
use crate::files::save_workload;
use crate::session::{Embed, Place, Session};
use crate::view::icon::Icon;
use crate::view::kit::{button, click, flag, icon_button, on, select, text};

/// The dialog; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    node: NodeRef<html::Dialog>,
    session: Session,
    /// The link to what was shown when the dialog was opened.
    link: RwSignal<String>,
    embed: RwSignal<Embed>,
    theme: RwSignal<String>,
}

/// Some programs cut off links with more bytes than this.
const LONG_LINK: usize = 8_000;

impl Share {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            node: NodeRef::new(),
            session,
            link: RwSignal::new(String::new()),
            embed: RwSignal::new(Embed::Stage),
            theme: RwSignal::new("auto".to_owned()),
        }
    }

    pub(crate) fn open(self) {
        self.link.set(export::link(self.session));
        let is_lesson = matches!(self.session.place.get_untracked(), Place::Lesson { .. });
        self.embed.set(if is_lesson { Embed::Lesson } else { Embed::Stage });
        if let Some(dialog) = self.node.get_untracked()
            && !dialog.open()
        {
            let _ = dialog.show_modal();
        }
    }

    /// The HTML of the frame. Reads signals.
    fn snippet(self) -> String {
        let link = self.link.get();
        let (address, hash) = link.split_once('#').unwrap_or((&link, ""));
        let (embed, theme) = (self.embed.get(), self.theme.get());
        let height = match embed {
            Embed::Figure => 330,
            Embed::Stage => 460,
            Embed::Lesson => 640,
        };
        let title = self.session.heading().replace('"', "&quot;");
        let hash = if hash.is_empty() { String::new() } else { format!("#{}", hash.replace('&', "&amp;")) };
        format!(
            "<iframe src=\"{address}?embed={}&amp;theme={theme}{hash}\" title=\"{title}\" width=\"100%\" height=\"{height}\" style=\"border:0\" loading=\"lazy\"></iframe>",
            embed.name(),
        )
    }

    fn close(self) {
        if let Some(dialog) = self.node.get_untracked() {
            dialog.close();
        }
    }

    pub(crate) fn dialog(self) -> AnyView {
        view! {
            <dialog node_ref=self.node class="share" aria-label="Share" data-testid="share-dialog">
                <header>
                    <h2>"Share"</h2>
                    {icon_button("icon plain", "share-close", Icon::Close, "Close (Esc)", click(move || self.close()))}
                </header>
                <h3>"Link to what is shown"</h3>
                <div class="cluster">
                    {field("share-link", "Link", text(move || self.link.get()))}
                    {button("primary", "copy-link", "Copy link", "", click(move || browser::copy(&self.link.get_untracked())))}
                </div>
                <p class="quiet">{text(move || self.limits_of_link().to_owned())}</p>
                <h3>"Frame for another page"</h3>
                {self.frame()}
                <h3>"Files"</h3>
                {self.files()}
            </dialog>
        }
        .into_any()
    }

    /// What the link does not contain, or why it may not work; empty if there is nothing to say. Reads signals.
    fn limits_of_link(self) -> &'static str {
        let is_own_file = self.session.shown_recording().is_some_and(|opened| !opened.is_sample());
        if is_own_file && self.session.place.get() == Place::Workbench {
            "A file of yours stays on your machine: the link opens the workbench without it."
        } else if self.link.with(String::len) > LONG_LINK {
            "This text is long: some programs cut such a link off. Send the file instead."
        } else {
            ""
        }
    }

    /// The options of a frame, and the HTML to copy.
    fn frame(self) -> AnyView {
        let embeds = Embed::ALL.map(|embed| (embed.name().to_owned(), embed.title().to_owned())).to_vec();
        let themes = [("auto", "as the reader's system"), ("light", "light"), ("dark", "dark")];
        let themes = themes.map(|(name, title)| (name.to_owned(), title.to_owned())).to_vec();
        let pick = move |name: String| {
            if let Some(embed) = Embed::ALL.into_iter().find(|embed| embed.name() == name) {
                self.embed.set(embed);
            }
        };
        view! {
            <div class="cluster">
                {select("embed", "What the frame shows", Signal::stored(embeds), text(move || self.embed.get().name().to_owned()), pick)}
                {select("embed-theme", "Colors of the frame", Signal::stored(themes), text(move || self.theme.get()), move |name| self.theme.set(name))}
            </div>
            <div class="cluster">
                {field("share-embed", "Frame", text(move || self.snippet()))}
                {button("", "copy-frame", "Copy frame", "", click(move || browser::copy(&untrack(|| self.snippet()))))}
            </div>
        }
        .into_any()
    }

    /// The buttons that save files or print.
    fn files(self) -> AnyView {
        let session = self.session;
        let print = click(move || {
            self.close();
            browser::print();
        });
        view! {
            <div class="cluster">
                {button("", "export-svg", "Figure as SVG", "", click(move || export::svg(session)))}
                {button("", "export-png", "PNG", "", click(move || export::png(session, 1.0)))}
                {button("", "export-png-2", "PNG, twice as fine", "", click(move || export::png(session, 2.0)))}
                {button("", "export-csv", "Timeline as CSV", "", click(move || export::csv(session)))}
                <span hidden=flag(move || !session.shows_text())>
                    {button("", "export-text", "Workload with its settings", "", click(move || save_workload(session)))}
                </span>
                {button("", "export-print", "Print or PDF", "", print)}
            </div>
        }
        .into_any()
    }
}

/// A field with a text to copy. The text is selected when the field gets the focus.
fn field(id: &'static str, label: &'static str, value: Signal<String>) -> AnyView {
    let choose = on(move |event: ev::FocusEvent| browser::select_all(&event));
    view! {
        <input class="field mono wide" data-testid=id aria-label=label readonly prop:value=value on:focus=choose />
    }
    .into_any()
}
