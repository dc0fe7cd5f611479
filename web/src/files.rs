//! Opens files and samples: recordings, snapshots, workloads, lessons, programs. Nothing leaves the page.

mod kept;
mod ranks;
mod samples;

use ranks::natural_key;
pub(crate) use ranks::{Rank, deciding_rank};
pub(crate) use samples::{SAMPLES, Sample, Samples};

use blockyard_figure::Player;
use blockyard_lab::RUNNING;
use blockyard_lessons::LessonErrorKind;
use blockyard_pytorch::snapshot::{FileKind, file_kind};
use blockyard_record::Recording;
use blockyard_replay::job::{JobError, JobOutput};
use blockyard_replay::{Comparison, Progress};
use blockyard_workload::Workload;
use js_sys::Uint8Array;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, File, FileList};

use crate::browser;
use crate::frames;
use crate::jobs::{self, ComparisonReply, JobFailure};
use crate::lab;
use crate::lessons::OpenLesson;
use crate::messages::sentence;
use crate::navigation::{NO_LESSONS, Place};
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::{Feature, Source};
use crate::surface::pixels;
use crate::view::parts;
use crate::workbench::Tab;
use crate::workload::FILE_ENDING;

/// A recording that was opened from a file.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) name: String,
    pub(crate) run: PtrEq<Run>,
    /// The comparison with our allocator, which ends after the figures are shown.
    pub(crate) comparison: ArcRwSignal<ComparisonState>,
}

/// The state of the comparison of a recording with our allocator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ComparisonState {
    /// The comparison runs.
    Running(Progress),
    Done(Comparison),
    /// The recording was not compared, for this reason.
    Missing(String),
}

impl OpenedFile {
    /// The title on the page: the title of a sample, or the name of the file.
    pub(crate) fn title(&self) -> String {
        Sample::of_file(&self.name).map_or_else(|| self.name.clone(), |sample| sample.title.to_owned())
    }

    pub(crate) fn is_sample(&self) -> bool {
        Sample::of_file(&self.name).is_some()
    }
}

/// The files that the reader has opened.
#[derive(Default)]
pub(crate) struct FileSignals {
    /// The recording that was opened last. It stays open while another source is shown.
    pub(crate) opened: RwSignal<Option<PtrEq<OpenedFile>>>,
    /// The files that were opened together, one for each rank; empty if a single file was opened.
    pub(crate) ranks: RwSignal<Vec<Rank>, LocalStorage>,
    /// Whether the browser keeps a copy of the reader's file, so that a reload opens it again.
    pub(crate) has_kept_file: RwSignal<bool>,
    /// The name of the opened file beside the page (see [`crate::browser::address_beside`]). Links to the
    /// file have this name.
    pub(crate) beside: RwSignal<Option<String>>,
}

/// The ending of file names of Python programs.
const PROGRAM: &str = ".py";

/// The ending of file names of JSON, as `blockyard fit` writes it.
const JSON: &str = ".json";

/// The ending of file names of a profiler's memory timeline with its events, which the command opens: a reader
/// of JSON would be a part of the first load.
const TIMELINE: &str = ".raw.json.gz";

/// The events of a larger file do not fit the worker's memory.
const MAX_BYTES: f64 = 4e9;

/// The first bytes of a file, by which its kind is recognized.
const FIRST_BYTES: f64 = 65_536.0;

/// Texts of more bytes are not workloads, lessons or programs.
const MAX_TEXT: f64 = 16e6;

/// The endings of the files that are opened from a folder.
const FOLDER_ENDINGS: [&str; 10] = [
    ".pickle",
    ".pkl",
    ".pickle.gz",
    ".pkl.gz",
    ".pickle.zst",
    ".zip",
    ".json",
    ".jsonl",
    ".jsonl.gz",
    ".html",
];

/// How long a recording plays, whatever its number of steps.
const RECORDING_SECONDS: f64 = 20.0;

impl Feature<FileSignals> {
    /// Opens a file that `blockyard open` serves beside the page, or that was exported into the page; calls
    /// `then` when the file is open.
    pub(crate) fn open_beside(self, name: String, then: impl FnOnce() + 'static) {
        self.beside.set(Some(name.clone()));
        self.session.messages().show_work(&format!("Opening {name}"));
        spawn_local(async move {
            // A page in one file has to unpack its workers first.
            jobs::prepare().await;
            let Some(blob) = browser::fetch_blob(&browser::address_beside(&name)).await else {
                self.session.messages().work.set(None);
                return self.session.show_error(format!("{name} is not beside this page any more."));
            };
            self.open_blob(name, blob, None, Box::new(then)).await;
        });
    }

    pub(crate) fn open_file(self, file: &File) {
        let name = file.name();
        if file.size() > MAX_BYTES {
            return self
                .session
                .show_error(format!("{name} is too large to open in a browser: more than 4 GB."));
        }
        self.keep_copy(vec![file.clone()]);
        self.open_one(file, Box::new(|| ()));
    }

    pub(super) fn open_one(self, file: &File, then: Box<dyn FnOnce()>) {
        self.beside.set(None);
        self.ranks.set(Vec::new());
        spawn_local(self.open_blob(file.name(), Blob::from(file.clone()), None, then));
    }

    /// Opens one file, or several recordings or snapshots one after the other. The first one is shown, and
    /// all are in the strip of ranks.
    pub(crate) fn open_files(self, files: &FileList) {
        self.open_all(listed(files).collect());
    }

    /// Opens the files of a folder whose names end like snapshots or recordings, as [`open_files`] does.
    pub(crate) fn open_folder(self, files: &FileList) {
        let may_open = |file: &File| FOLDER_ENDINGS.iter().any(|end| file.name().ends_with(end));
        let files: Vec<File> = listed(files).filter(may_open).collect();
        if files.is_empty() {
            return self
                .session
                .show_error("The folder has no file that ends like a snapshot or a recording.".to_owned());
        }
        self.open_all(files);
    }

    fn open_all(self, mut files: Vec<File>) {
        if let [file] = files.as_slice() {
            return self.open_file(file);
        }
        files.sort_by_key(|file| natural_key(&file.name()));
        self.keep_copy(files.clone());
        self.open_ranks(files, Box::new(|| ()));
    }

    /// Opens the file again at another of its devices, which the figures and the answers are about then.
    pub(crate) fn reopen(self, device: usize, then: Box<dyn FnOnce()>) {
        if let Some((name, file)) = lab::FileContent::kept() {
            self.open_recording(&name, &file, Some(device), then);
        }
    }

    /// Opens a file of any kind; only this function makes a source out of the bytes of a file.
    ///
    /// The page reads the texts that people write: workloads, lessons, programs. The worker reads all other
    /// files, in pieces.
    pub(crate) async fn open_blob(
        self,
        name: String,
        file: Blob,
        device: Option<usize>,
        then: Box<dyn FnOnce()>,
    ) {
        let Some(first) = first_bytes(&file, FIRST_BYTES).await else {
            self.session.messages().work.set(None);
            return self.session.show_error(format!("{name} could not be read."));
        };
        if name.ends_with(RUNNING) {
            self.session.messages().work.set(None);
            return parts::follow_program(self.session, name);
        }
        if name.ends_with(TIMELINE) {
            self.session.messages().work.set(None);
            return self.session.show_error(format!("The command opens {name}: blockyard {name}"));
        }
        let is_text = file_kind(&first) == FileKind::Other || name.ends_with(JSON);
        if is_text && file.size() <= MAX_TEXT {
            let text = first_bytes(&file, file.size()).await.and_then(|bytes| String::from_utf8(bytes).ok());
            match text.filter(|text| !text.trim().is_empty()) {
                Some(text) if text.trim_start().starts_with("---") => {
                    self.session.messages().work.set(None);
                    return self.open_lesson(name, text, then);
                }
                Some(text) if self.open_text(&name, &text) => {
                    self.session.messages().work.set(None);
                    return then();
                }
                _ => {}
            }
        }
        self.open_recording(&name, &file, device, then);
    }

    /// Opens the lesson with this text, as soon as the code of lessons is fetched.
    fn open_lesson(self, name: String, text: String, then: Box<dyn FnOnce()>) {
        // In the editor the file becomes the text to edit, also if it is not a lesson yet.
        if self.session.navigation().place.get_untracked() == Place::MakeLesson {
            self.session.lessons().file_text.set(Some(text));
            return then();
        }
        parts::with_lessons(move |module| {
            match module.map(|module| OpenLesson::read(&text, module)) {
                Ok(Ok(lesson)) => {
                    self.session.lessons().own_text.set(None);
                    self.session.lessons().file_text.set(Some(text));
                    self.session.lessons().open_own(lesson);
                }
                // The editor runs its program.
                Ok(Err(why)) if matches!(why.kind(), LessonErrorKind::NotRecorded) => {
                    self.session.lessons().file_text.set(Some(text));
                    self.session.navigation().go_to(Place::MakeLesson);
                }
                Ok(Err(why)) => {
                    self.session.show_error(format!("{name} was not opened. {}", sentence(&why.to_string())));
                }
                Err(_) => self.session.show_error(NO_LESSONS),
            }
            then();
        });
    }

    /// Opens a program or a workload. Returns whether the text is one of these, even if it contains errors.
    fn open_text(self, name: &str, text: &str) -> bool {
        if name.ends_with(PROGRAM) {
            self.session.navigation().go_to(Place::Program);
            self.session.program().open(text.to_owned());
            return true;
        }
        // The JSON of `blockyard fit`.
        if text.starts_with('{') && text.contains("\"kept\":") {
            self.session.lab().show_fit(name, text);
            return true;
        }
        match Workload::parse(text) {
            Ok(_) => {
                self.session.navigation().place.set(Place::Workbench);
                self.session.workload().load_text(name.to_owned(), text.to_owned());
                true
            }
            Err(error) if name.ends_with(FILE_ENDING) => {
                self.session.show_error(format!("{name} was not opened. {}", sentence(&error.to_string())));
                true
            }
            // The reader of recordings gets any other text, since its error names the missing parts.
            Err(_) => false,
        }
    }

    /// Opens a recording or a snapshot in the worker.
    fn open_recording(self, name: &str, file: &Blob, device: Option<usize>, then: Box<dyn FnOnce()>) {
        let content = lab::FileContent::of(name, file);
        let on_done = move |result| {
            let Some(opened) = self.opened_or_error(result) else { return };
            self.session.navigation().place.set(Place::Workbench);
            content.keep();
            let tab = self.session.workbench().tab.get_untracked();
            self.open(opened);
            // The notes about a file that was read in part are on another tab.
            if self.session.workbench().tab.get_untracked() != Tab::Source {
                self.session.lab().ask_verdict();
                // A reader who chooses another device goes on with the same tab.
                if device.is_some() {
                    self.session.workbench().tab.set(tab);
                }
            }
            self.session.figures().compare_when_drawn();
            then();
        };
        let on_compared = move |comparison: &ComparisonState, _: bool| {
            let differs =
                matches!(comparison, ComparisonState::Done(found) if found.first_difference.is_some());
            // The first difference is shown in the tab with the facts about the recording.
            if differs && matches!(self.session.workbench().tab.get_untracked(), Tab::Holders | Tab::Lab) {
                self.session.workbench().tab.set(Tab::Source);
            }
        };
        self.read(&format!("Opening {name}"), (name, file, device), on_done, on_compared);
    }

    /// Reads a file in the worker. `on_done` gets the opened file, or why it was not opened; `on_compared` the
    /// state of its comparison with our allocator, whenever that changes, and whether it has ended by itself.
    fn read(
        self,
        work: &str,
        (name, file, device): (&str, &Blob, Option<usize>),
        on_done: impl FnOnce(Result<PtrEq<OpenedFile>, String>) + 'static,
        on_compared: impl Fn(&ComparisonState, bool) + 'static,
    ) {
        self.session.messages().show_work(work);
        let comparison = ArcRwSignal::new(ComparisonState::Running(Progress::default()));
        let (state, name_of_file) = (comparison.clone(), name.to_owned());
        let on_done = move |result: Result<JobOutput, JobFailure>| {
            self.session.messages().work.set(None);
            let name = name_of_file;
            on_done(match result {
                Ok(product) => {
                    Ok(PtrEq::new(OpenedFile { name, run: PtrEq::new(Run::new(product)), comparison }))
                }
                Err(failure) => Err(format!("{name} was not opened. {}", sentence(&reason(failure)))),
            });
        };
        let on_compared = move |reply| {
            let is_over = matches!(reply, ComparisonReply::Done(_));
            let comparison = comparison_state(reply);
            state.set(comparison.clone());
            on_compared(&comparison, is_over);
        };
        let on_report = move |report| self.session.messages().show_report(report);
        jobs::open(file, name, device, on_report, on_done, on_compared);
    }

    /// The opened file; an error is shown.
    fn opened_or_error(self, result: Result<PtrEq<OpenedFile>, String>) -> Option<PtrEq<OpenedFile>> {
        result.map_err(|why| self.session.show_error(why)).ok()
    }

    /// Shows the recording that was opened last if `is_shown`, and the workload otherwise.
    pub(crate) fn show_opened(self, is_shown: bool) {
        match self.opened.get_untracked().filter(|_| is_shown) {
            Some(opened) => self.session.show(Source::Recording(opened)),
            None => self.session.show(Source::Text),
        }
    }

    /// Shows another recording, at its last out of memory, or else where most is allocated.
    pub(crate) fn open(self, opened: PtrEq<OpenedFile>) {
        let run = opened.run.clone();
        let is_unplaced = run.opened.as_ref().is_some_and(|file| file.unplaced.is_some());
        self.session.workbench().tab.set(if is_unplaced { Tab::Source } else { Tab::Holders });
        self.opened.set(Some(opened.clone()));
        self.session.lab().empty_fields();
        self.session.show(Source::Recording(opened));
        self.session.player.set(Player { speed: speed_for(&run.recording), ..Player::default() });
        self.session.seek_opening_moment();
        self.session.figures().forget();
        self.session.messages().message.set(None);
        // The answer is at the top. The button that opened the file may be far below, as on a phone.
        browser::scroll_to_top();
        // The button that opened the file must lose the focus. Otherwise Space would press it again instead
        // of playing.
        let _ = browser::after_millis(0, || browser::leave_button(".open-bar"));
    }

    /// Whether the recording is a file that the reader opened, and not a sample or a file beside the page.
    pub(crate) fn is_own(self, opened: &OpenedFile) -> bool {
        !opened.is_sample() && self.beside.with_untracked(|beside| beside.as_ref() != Some(&opened.name))
    }
}

fn listed(files: &FileList) -> impl Iterator<Item = File> {
    (0..files.length()).filter_map(|place| files.get(place))
}

/// The first bytes of a file.
async fn first_bytes(file: &Blob, length: f64) -> Option<Vec<u8>> {
    let first = file.slice_with_f64_and_f64(0.0, length.min(file.size())).ok()?;
    let buffer = JsFuture::from(first.array_buffer()).await.ok()?;
    Some(Uint8Array::new(&buffer).to_vec())
}

fn reason(failure: JobFailure) -> String {
    match failure {
        JobFailure::Job(JobError::File { message, .. }) => message,
        other => other.to_string(),
    }
}

fn comparison_state(reply: ComparisonReply) -> ComparisonState {
    match reply {
        ComparisonReply::Progress(progress) => ComparisonState::Running(progress),
        ComparisonReply::Done(Ok(comparison)) => ComparisonState::Done(comparison),
        ComparisonReply::Done(Err(failure)) => ComparisonState::Missing(reason(failure)),
        ComparisonReply::Stopped => {
            ComparisonState::Missing("other work ended the comparison; open the file again for it".to_owned())
        }
    }
}

/// The speed at which the whole recording plays in about [`RECORDING_SECONDS`].
fn speed_for(recording: &Recording) -> f32 {
    let wanted = frames::count(recording.step_count()) / RECORDING_SECONDS;
    pixels(wanted).max(Player::default().speed)
}
