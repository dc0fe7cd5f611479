//! The messages of the page to the reader, the progress of a job, and texts for screen readers.

pub(crate) use blockyard_record::sentence;
use blockyard_replay::Progress;
use blockyard_worker::jobs::ReadPart;
use leptos::prelude::*;

use crate::browser;
use crate::jobs::JobReport;
use crate::session::{Feature, Session};

/// A message for the reader. It stays until it is dismissed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) kind: MessageKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Note,
    /// Panels are hidden, and a key shows them again.
    HiddenPanels,
    Error,
}

/// A job in the worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunningJob {
    pub(crate) title: String,
    pub(crate) progress: Progress,
    /// Whether the progress is shown. The progress of short jobs is never shown.
    pub(crate) is_shown: bool,
    /// Memory over time as far as the trace of a file has been read.
    pub(crate) read: Option<ReadPart>,
}

/// The message, the progress of a job, and the text for screen readers that the page shows now.
#[derive(Default)]
pub(crate) struct MessageSignals {
    pub(crate) message: RwSignal<Option<Message>>,
    /// The job whose progress is shown.
    pub(crate) work: RwSignal<Option<RunningJob>>,
    /// A text that a screen reader announces. The step under the cursor is announced without this text.
    pub(crate) spoken: RwSignal<String>,
}

impl Session {
    pub(crate) fn show_note(self, text: impl Into<String>) {
        self.show_message(text.into(), MessageKind::Note);
    }

    pub(crate) fn show_message(self, text: String, kind: MessageKind) {
        self.messages().message.set(Some(Message { text, kind }));
    }

    pub(crate) fn show_error(self, text: impl Into<String>) {
        self.show_message(text.into(), MessageKind::Error);
    }

    /// Lets screen readers announce a text.
    pub(crate) fn announce(self, text: String) {
        self.messages().spoken.set(text);
    }
}

impl Feature<MessageSignals> {
    /// Removes the message.
    pub(crate) fn clear(self) {
        if self.message.with_untracked(Option::is_some) {
            self.message.set(None);
        }
    }

    /// Begins to show a job. Its progress appears only if the job takes a while, so that short jobs do not
    /// flicker.
    pub(crate) fn show_work(self, title: &str) {
        let work = RunningJob {
            title: title.to_owned(),
            progress: Progress::default(),
            is_shown: false,
            read: None,
        };
        self.work.set(Some(work));
        let _ = browser::after_millis(300, move || {
            if self.work.with_untracked(Option::is_some) {
                self.work.update(|work| {
                    if let Some(work) = work {
                        work.is_shown = true;
                    }
                });
            }
        });
    }

    pub(crate) fn show_report(self, report: JobReport) {
        self.work.update(|work| {
            let Some(work) = work else { return };
            match report {
                JobReport::Progress(progress) => {
                    // The growing figure is about the phase in which the file is read, and is removed when
                    // another phase begins.
                    work.read = work.read.take().filter(|_| progress.phase == work.progress.phase);
                    work.progress = progress;
                }
                JobReport::Read(part) => work.read = Some(part),
                JobReport::Adapter(_) => {}
            }
        });
    }
}
