//! The dialog that shares the shown figure or run: as a link, as a frame for another page, as a report, as
//! files, and on paper.

use blockyard_worker::questions::ReportOptions;
use leptos::ev;
use leptos::prelude::*;

use crate::browser;
use crate::lab::ReportStep;
use crate::navigation::{Embed, Place};
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::Session;
use crate::view::export;
use crate::view::icon::Icon;
use crate::view::kit::{Dialog, button, check, click, flag, icon_button, on, select, text, text_area};
use crate::view::parts;

/// The dialog; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    dialog: Dialog,
    session: Session,
    /// The link to the view at the time when the dialog was opened.
    link: RwSignal<String>,
    /// Whether other readers see the same view at the link, which cannot hold a file of the reader's machine.
    has_link: RwSignal<bool>,
    embed: RwSignal<Embed>,
    theme: RwSignal<String>,
    is_redacted: RwSignal<bool>,
    /// The reader's own words for the report, and the run that they are about.
    note: RwSignal<String>,
    note_of: StoredValue<Option<PtrEq<Run>>>,
    /// The progress of the report, or why it was not made; empty before a report is asked for.
    report_words: RwSignal<String>,
    is_report_made: RwSignal<bool>,
}

/// The name of the field for the reader's own words.
const NOTE_LABEL: &str = "Your note for the report";

/// Some programs cut off links with more bytes than this.
const LONG_LINK: usize = 8_000;

impl Share {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            dialog: Dialog::new(),
            session,
            link: RwSignal::new(String::new()),
            has_link: RwSignal::new(true),
            embed: RwSignal::new(Embed::Stage),
            theme: RwSignal::new("auto".to_owned()),
            is_redacted: RwSignal::new(false),
            note: RwSignal::new(String::new()),
            note_of: StoredValue::new(None),
            report_words: RwSignal::new(String::new()),
            is_report_made: RwSignal::new(false),
        }
    }

    pub(crate) fn open(self) {
        self.link.set(export::link(self.session));
        self.has_link.set(export::has_link(self.session));
        self.report_words.set(String::new());
        let run = self.session.run.get_untracked();
        if self.note_of.with_value(|of| of.as_ref() != Some(&run)) {
            self.note.set(String::new());
            self.note_of.set_value(Some(run));
        }
        let is_lesson = matches!(self.session.navigation().place.get_untracked(), Place::Lesson { .. });
        self.embed.set(if is_lesson { Embed::Lesson } else { Embed::Stage });
        self.dialog.open();
    }

    /// The HTML of the frame. Reads signals.
    fn snippet(self) -> String {
        let link = self.link.get();
        let (address, hash) = link.split_once('#').unwrap_or((&link, ""));
        let (embed, theme) = (self.embed.get(), self.theme.get());
        let height = match embed {
            // The height of the tallest moment, a request that fails, in a column 640 pixels wide.
            Embed::Figure => 380,
            Embed::Stage => 600,
            Embed::Lesson => 640,
        };
        let title = self.session.navigation().heading().replace('"', "&quot;");
        let hash = if hash.is_empty() { String::new() } else { format!("#{}", hash.replace('&', "&amp;")) };
        format!(
            "<iframe src=\"{address}?embed={}&amp;theme={theme}{hash}\" title=\"{title}\" width=\"100%\" height=\"{height}\" style=\"border:0\" loading=\"lazy\"></iframe>",
            embed.name(),
        )
    }

    pub(crate) fn dialog(self) -> AnyView {
        view! {
            <dialog node_ref=self.dialog.0 class="share" aria-label="Share" data-testid="share-dialog">
                <header>
                    <h2>"Share"</h2>
                    {icon_button("icon plain", "share-close", Icon::Close, "Close (Esc)", click(move || self.dialog.close()))}
                </header>
                <h3>"Link to what is shown"</h3>
                <div class="cluster" hidden=flag(move || !self.has_link.get())>
                    {field("share-link", "Link", text(move || self.link.get()))}
                    {button("primary", "copy-link", "Copy link", "", click(move || browser::copy(&self.link.get_untracked())))}
                </div>
                <p class="quiet" data-testid="link-words">{text(move || self.limits_of_link())}</p>
                <section hidden=flag(move || !self.has_link.get())>
                    <h3>"Frame for another page"</h3>
                    {self.frame()}
                </section>
                <section hidden=flag(move || !self.has_report())>
                    <h3>"Report"</h3>
                    {self.report()}
                </section>
                <h3>"Files"</h3>
                {self.files()}
            </dialog>
        }
        .into_any()
    }

    /// The parts of the view that the link cannot hold, or why the link may not work; empty for a link
    /// without limits. Reads signals.
    fn limits_of_link(self) -> String {
        if !self.has_link.get() {
            let name = self.session.navigation().heading();
            let instead = if self.has_report() { "Send the report, or the file." } else { "Send the file." };
            return format!(
                "A link or a frame cannot hold your file {name}, which stays on your machine: a colleague would see this page without it. {instead}"
            );
        }
        if self.link.with(String::len) > LONG_LINK {
            return "This text is long: some programs cut such a link off. Send the file instead.".to_owned();
        }
        String::new()
    }

    /// Whether a run is shown that a report can be about. Reads signals.
    fn has_report(self) -> bool {
        matches!(self.session.navigation().place.get(), Place::Workbench | Place::Program)
    }

    /// The report about the run: one page to read, to send and to print.
    fn report(self) -> AnyView {
        view! {
            <p class="quiet">
                "One HTML page to read, to send and to print, which needs no network: the verdict, figures, who holds the memory, settings that were tried."
            </p>
            {text_area("field wide", "report-note", NOTE_LABEL, NOTE_LABEL, self.note)}
            <div class="cluster">
                {button("", "save-report", "Save report (HTML)", "", click(move || self.save_report()))}
                <span hidden=flag(move || !self.has_verdict())>
                    {button("", "share-summary", "Copy summary", "The verdict as plain text, for a chat", click(move || self.copy_summary()))}
                </span>
                {check("report-redacted", "Leave out stacks and file names", "Functions, paths, tensors and the name of the file; sizes stay",
                    Signal::from(self.is_redacted), move |is_redacted| self.is_redacted.set(is_redacted))}
            </div>
            <p class="quiet" role="status" data-testid="report-words">{text(move || self.report_words.get())}</p>
        }
        .into_any()
    }

    /// Whether there is a verdict to copy. Reads signals.
    fn has_verdict(self) -> bool {
        self.session.lab().answers().is_some_and(|answers| answers.verdict.is_some())
    }

    fn copy_summary(self) {
        parts::copy_summary(self.session);
        self.report_words.set("The summary is copied.".to_owned());
    }

    fn save_report(self) {
        if self.is_report_made.get_untracked() {
            return;
        }
        self.is_report_made.set(true);
        self.report_words.set("Making the report …".to_owned());
        let (is_redacted, note) = (self.is_redacted.get_untracked(), self.note.get_untracked());
        let notes = Some(note.trim().to_owned()).filter(|note| !note.is_empty()).into_iter().collect();
        let tried = self.session.lab().tried();
        let options = ReportOptions { is_redacted, notes, tried, device: None };
        self.session.lab().make_report(options, move |step| {
            let words = match step {
                ReportStep::Phase(phase) => {
                    return self.report_words.set(format!("Making the report: {phase} …"));
                }
                ReportStep::Made(html) => {
                    export::report(self.session, &html, is_redacted);
                    "The report is saved.".to_owned()
                }
                ReportStep::Failed(why) => format!("There is no report. {why}"),
            };
            self.is_report_made.set(false);
            self.report_words.set(words);
        });
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
            self.dialog.close();
            // A lesson on paper is its class sheet, and not the card in view with the reader's typed text.
            match session.navigation().place.get_untracked() {
                Place::Lesson { id, .. } => session.navigation().go_to(Place::Handout(id)),
                Place::OwnLesson if session.lessons().own_text.with_untracked(Option::is_some) => {
                    session.navigation().go_to(Place::Handout(String::new()));
                }
                _ => browser::print(),
            }
        });
        view! {
            <div class="cluster">
                {button("", "export-svg", "Figure as SVG", "", click(move || parts::save_figure(session, true)))}
                {button("", "export-png", "PNG", "", click(move || parts::save_figure(session, false)))}
                {button("", "export-csv", "Timeline as CSV", "", click(move || export::csv(session)))}
                <span hidden=flag(move || !session.shows_text())>
                    {button("", "export-text", "Workload with its settings", "", click(move || session.workload().save()))}
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
