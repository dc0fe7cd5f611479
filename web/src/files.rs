//! Opens files and samples: recordings, snapshots, workloads, lessons, programs. Nothing leaves the page.

use std::rc::Rc;

use blockyard_pytorch::snapshot::{FileKind, file_kind};
use blockyard_replay::job::JobError;
use blockyard_workload::Workload;
use blockyard_workload::edit::with_header;
use js_sys::Uint8Array;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, File, FileList};

use crate::browser;
use crate::commands::sentence;
use crate::jobs::{self, ComparisonReply, JobFailure};
use crate::kept;
use crate::lab;
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::{ComparisonState, OpenLesson, OpenedFile, Place, Rank, Session, SettingsTexts};
use crate::view::Tab;
use crate::view::numbers::percent;

/// A recording that comes with the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) test_id: &'static str,
    /// The test id of the sample's button on the first screen.
    pub(crate) door_id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) summary: &'static str,
}

pub(crate) static SAMPLES: [Sample; 3] = [
    Sample {
        test_id: "sample-gpt2_varlen",
        door_id: "door-gpt2_varlen",
        name: "gpt2_varlen",
        title: "GPT-2",
        summary: "GPT-2 training with mixed precision and texts of random length: 52,141 events",
    },
    Sample {
        test_id: "sample-resnet50_amp",
        door_id: "door-resnet50_amp",
        name: "resnet50_amp",
        title: "ResNet-50",
        summary: "ResNet-50 training with mixed precision",
    },
    Sample {
        test_id: "sample-gnn_random",
        door_id: "door-gnn_random",
        name: "gnn_random",
        title: "GNN",
        summary: "A graph network on random graphs: sizes that never repeat",
    },
];

impl Sample {
    pub(crate) fn file_name(&self) -> String {
        format!("{}.jsonl.gz", self.name)
    }

    async fn fetch(&self) -> Option<Vec<u8>> {
        let buffer = browser::fetch_bytes(&format!("samples/{}", self.file_name())).await?;
        Some(Uint8Array::new(&buffer).to_vec())
    }
}

/// The bytes of the fetched samples, so that samples open without the network; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Samples(StoredValue<Vec<(&'static str, Vec<u8>)>, LocalStorage>);

impl Samples {
    pub(crate) fn new() -> Self {
        Self(StoredValue::new_local(Vec::new()))
    }

    fn kept(self, sample: &Sample) -> Option<Vec<u8>> {
        self.0.with_value(|kept| {
            kept.iter().find(|(name, _)| *name == sample.name).map(|(_, bytes)| bytes.clone())
        })
    }

    async fn bytes(self, sample: &'static Sample) -> Option<Vec<u8>> {
        if let Some(bytes) = self.kept(sample) {
            return Some(bytes);
        }
        let bytes = sample.fetch().await?;
        self.0.update_value(|kept| kept.push((sample.name, bytes.clone())));
        Some(bytes)
    }

    /// Fetches all samples for later.
    pub(crate) async fn prefetch(self) {
        for sample in &SAMPLES {
            let _ = self.bytes(sample).await;
        }
    }

    pub(crate) fn open(self, session: Session, sample: &'static Sample) {
        self.open_and(session, sample, || ());
    }

    /// Opens the sample, and calls `then` when the sample is open.
    pub(crate) fn open_and(self, session: Session, sample: &'static Sample, then: impl FnOnce() + 'static) {
        spawn_local(async move {
            match self.bytes(sample).await {
                Some(bytes) => match browser::blob_of(&bytes) {
                    Some(blob) => open_blob(session, sample.file_name(), blob, None, Box::new(then)).await,
                    None => session.show_error(format!("The sample {} could not be opened.", sample.name)),
                },
                None => session.show_error(format!("The sample {} could not be fetched.", sample.name)),
            }
        });
    }
}

/// Opens a file that `blockyard open` serves beside the page, or that was exported into the page; calls `then` when the file is open.
pub(crate) fn open_beside(session: Session, name: String, then: impl FnOnce() + 'static) {
    session.beside.set(Some(name.clone()));
    session.show_work(&format!("Opening {name}"));
    spawn_local(async move {
        // A page in one file has to unpack its workers first.
        jobs::prepare().await;
        let Some(blob) = browser::fetch_blob(&browser::address_beside(&name)).await else {
            session.work.set(None);
            return session.show_error(format!("{name} is not beside this page any more."));
        };
        open_blob(session, name, blob, None, Box::new(then)).await;
    });
}

/// The ending of file names of Python programs.
const PROGRAM: &str = ".py";

/// The ending of file names of JSON, as `blockyard fit` writes it.
const JSON: &str = ".json";

/// The events of a larger file do not fit the worker's memory.
const MOST_BYTES: f64 = 4e9;

/// The first bytes of a file, by which its kind is recognized.
const FIRST_BYTES: f64 = 65_536.0;

/// Texts of more bytes are no workloads, lessons or programs.
const LONGEST_TEXT: f64 = 16e6;

pub(crate) fn open_file(session: Session, file: &File) {
    let name = file.name();
    if file.size() > MOST_BYTES {
        return session.show_error(format!("{name} is too large to open in a browser: more than 4 GB."));
    }
    keep(session, vec![file.clone()]);
    open_one(session, file, Box::new(|| ()));
}

/// Lets the browser keep a copy of the files for a reload. An embedded page keeps none.
fn keep(session: Session, files: Vec<File>) {
    if session.embed.is_none() {
        kept::keep(files, move |is_kept| session.has_kept_file.set(is_kept));
    }
}

/// Finds out whether the browser keeps a file from this visit or an earlier one.
pub(crate) async fn look_for_kept(session: Session) {
    session.has_kept_file.set(kept::is_any().await);
}

/// Deletes the copy that the browser keeps. The file stays open.
pub(crate) fn forget_kept(session: Session) {
    spawn_local(async move {
        kept::forget().await;
        session.has_kept_file.set(false);
        session.show_note(
            "The browser's copy of the file is deleted. What is open stays open until you leave the page.",
        );
    });
}

fn open_one(session: Session, file: &File, then: Box<dyn FnOnce()>) {
    session.beside.set(None);
    session.file.set_value(Some(file.clone()));
    session.ranks.set(Vec::new());
    spawn_local(open_blob(session, file.name(), Blob::from(file.clone()), None, then));
}

/// Opens the files again that were open before a reload, and calls `then` when the first one is open.
pub(crate) fn open_kept(session: Session, then: impl FnOnce() + 'static) {
    session.show_work("Opening the file of before");
    spawn_local(async move {
        if let Some(files) = kept::recall().await {
            return open_again(session, files, Box::new(then));
        }
        session.work.set(None);
        session.show_error(
            "This address means a file that was open in another tab, or is too large to be kept. Open the file again.",
        );
    });
}

fn open_again(session: Session, files: Vec<File>, then: Box<dyn FnOnce()>) {
    match files.as_slice() {
        [file] => open_one(session, file, then),
        _ => open_ranks(session, files, then),
    }
}

/// Opens one file, or several recordings or snapshots one after the other. The first one is shown, and all are in the strip of ranks.
pub(crate) fn open_files(session: Session, files: &FileList) {
    open_all(session, listed(files).collect());
}

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

/// As [`open_files`], for those files of a folder whose names end like snapshots or recordings.
pub(crate) fn open_folder(session: Session, files: &FileList) {
    let may_open = |file: &File| FOLDER_ENDINGS.iter().any(|end| file.name().ends_with(end));
    let files: Vec<File> = listed(files).filter(may_open).collect();
    if files.is_empty() {
        return session
            .show_error("The folder has no file that ends like a snapshot or a recording.".to_owned());
    }
    open_all(session, files);
}

fn listed(files: &FileList) -> impl Iterator<Item = File> {
    (0..files.length()).filter_map(|place| files.get(place))
}

fn open_all(session: Session, mut files: Vec<File>) {
    if let [file] = files.as_slice() {
        return open_file(session, file);
    }
    files.sort_by_key(|file| natural_key(&file.name()));
    keep(session, files.clone());
    open_ranks(session, files, Box::new(|| ()));
}

fn open_ranks(session: Session, files: Vec<File>, then: Box<dyn FnOnce()>) {
    session.beside.set(None);
    session.ranks.set(Vec::new());
    open_rank(session, Rc::new(files), 0, then);
}

/// A key that orders names by the numbers in them: `rank2` before `rank10`.
fn natural_key(name: &str) -> Vec<(u64, String)> {
    let parts = name.split_inclusive(|letter: char| !letter.is_ascii_digit());
    parts
        .map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            (digits.parse().unwrap_or(0), part.to_owned())
        })
        .collect()
}

fn open_rank(session: Session, files: Rc<Vec<File>>, place: usize, then: Box<dyn FnOnce()>) {
    let Some(file) = files.get(place).cloned() else { return ranks_are_open(session) };
    let name = file.name();
    session.show_work(&format!("Opening {name} ({} of {})", place + 1, files.len()));
    let comparison = ArcRwSignal::new(ComparisonState::Running(String::new(), 0));
    let (state, content) = (comparison.clone(), lab::FileContent::of(&name, &file));
    let rest = files.clone();
    jobs::open(
        &file.clone(),
        &name.clone(),
        None,
        move |report| session.show_report(report),
        move |result| {
            session.work.set(None);
            match result {
                Ok(product) => {
                    let opened =
                        PtrEq::new(OpenedFile { name, run: PtrEq::new(Run::new(product)), comparison });
                    let is_first = session.ranks.with_untracked(Vec::is_empty);
                    session
                        .ranks
                        .update(|ranks| ranks.push(Rank { opened: opened.clone(), file: file.clone() }));
                    if is_first {
                        session.place.set(Place::Workbench);
                        content.keep();
                        session.file.set_value(Some(file));
                        session.open(opened);
                        then();
                    }
                    session.compare_when_drawn();
                }
                Err(failure) => {
                    session.show_error(format!("{name} was not opened. {}", sentence(&reason(failure))));
                    open_rank(session, files, place + 1, then);
                }
            }
        },
        move |reply| {
            let is_over = matches!(reply, ComparisonReply::Done(_));
            state.set(comparison_state(reply));
            if is_over {
                open_rank(session, rest.clone(), place + 1, Box::new(|| ()));
            }
        },
    );
}

/// Shows another of the files that were opened together, and the verdict about it.
pub(crate) fn show_rank(session: Session, rank: &Rank) {
    session.file.set_value(Some(rank.file.clone()));
    lab::FileContent::of(&rank.opened.name, &rank.file).keep();
    session.open(rank.opened.clone());
    session.ask_verdict();
}

/// Goes to the rank that decides whether the program passes, unless the reader has chosen another one meanwhile.
fn ranks_are_open(session: Session) {
    let ranks = session.ranks.get_untracked();
    let (Some(first), Some(decides)) = (ranks.first(), deciding_rank(&ranks)) else { return };
    let is_shown = |rank: &Rank| {
        let shown = untrack(|| session.shown_recording());
        shown.is_some_and(|shown| shown == rank.opened)
    };
    if is_shown(first) {
        show_rank(session, decides);
    }
}

/// The rank that decides whether the program passes: of those that ran out of memory, or else of all, the one that has most allocated.
pub(crate) fn deciding_rank(ranks: &[Rank]) -> Option<&Rank> {
    // Of equal ones the first.
    ranks.iter().rev().max_by_key(|rank| (rank.has_failed(), rank.opened.run.series.peaks().0))
}

/// Opens a file again at another of its devices.
pub(crate) fn reopen(session: Session, device: usize) {
    if let Some(file) = session.file.with_value(Clone::clone) {
        open_device(session, &file, Some(device));
    }
}

fn open_device(session: Session, file: &File, device: Option<usize>) {
    let (name, blob) = (file.name(), Blob::from(file.clone()));
    spawn_local(open_blob(session, name, blob, device, Box::new(|| ())));
}

/// The first bytes of a file.
async fn first_bytes(file: &Blob, length: f64) -> Option<Vec<u8>> {
    let first = file.slice_with_f64_and_f64(0.0, length.min(file.size())).ok()?;
    let buffer = JsFuture::from(first.array_buffer()).await.ok()?;
    Some(Uint8Array::new(&buffer).to_vec())
}

/// Opens a file of any kind; this is the one place where the bytes of a file become a source.
///
/// The page reads the texts that people write: workloads, lessons, programs. The worker reads all other files, in pieces.
async fn open_blob(
    session: Session,
    name: String,
    file: Blob,
    device: Option<usize>,
    then: Box<dyn FnOnce()>,
) {
    let Some(first) = first_bytes(&file, FIRST_BYTES).await else {
        session.work.set(None);
        return session.show_error(format!("{name} could not be read."));
    };
    let is_text = file_kind(&first) == FileKind::Other || name.ends_with(JSON);
    if is_text && file.size() <= LONGEST_TEXT {
        let text = first_bytes(&file, file.size()).await.and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(text) = text.filter(|text| !text.trim().is_empty())
            && open_text(session, &name, &text)
        {
            session.work.set(None);
            return then();
        }
    }
    open_recording(session, &name, &file, device, then);
}

/// Opens a lesson, a program or a workload. Returns whether the text is one of these, even if it contains errors.
fn open_text(session: Session, name: &str, text: &str) -> bool {
    if text.trim_start().starts_with("---") {
        match OpenLesson::read(text) {
            Ok(lesson) => {
                session.lesson_text.set(None);
                session.show_lesson(lesson);
            }
            Err(why) => session.show_error(format!("{name} was not opened. {}", sentence(&why.to_string()))),
        }
        return true;
    }
    if name.ends_with(PROGRAM) {
        session.go_to(Place::Program);
        session.open_program(text.to_owned());
        return true;
    }
    // The JSON of `blockyard fit`.
    if text.starts_with('{') && text.contains("\"kept\":") {
        session.show_fit(name, text);
        return true;
    }
    match Workload::parse(text) {
        Ok(_) => {
            session.place.set(Place::Workbench);
            session.load_text(name.to_owned(), text.to_owned());
            true
        }
        Err(error) if name.ends_with(WORKLOAD) => {
            session.show_error(format!("{name} was not opened. {}", sentence(&error.to_string())));
            true
        }
        // The reader of recordings gets any other text, since its error explains what is missing.
        Err(_) => false,
    }
}

/// Opens a recording or a snapshot in the worker.
fn open_recording(session: Session, name: &str, file: &Blob, device: Option<usize>, then: Box<dyn FnOnce()>) {
    session.show_work(&format!("Opening {name}"));
    let content = lab::FileContent::of(name, file);
    let comparison = ArcRwSignal::new(ComparisonState::Running(String::new(), 0));
    let state = comparison.clone();
    let opened_name = name.to_owned();
    jobs::open(
        file,
        name,
        device,
        move |report| session.show_report(report),
        move |result| {
            session.work.set(None);
            let name = opened_name;
            match result {
                Ok(product) => {
                    session.place.set(Place::Workbench);
                    content.keep();
                    session.open(PtrEq::new(OpenedFile {
                        name,
                        run: PtrEq::new(Run::new(product)),
                        comparison,
                    }));
                    // What is wrong with a file that was opened in parts stands on the other tab.
                    if untrack(|| session.tab.get()) != Tab::Source {
                        session.ask_verdict();
                    }
                    session.compare_when_drawn();
                    then();
                }
                Err(failure) => {
                    session.show_error(format!("{name} was not opened. {}", sentence(&reason(failure))));
                }
            }
        },
        move |reply| {
            let comparison = comparison_state(reply);
            let differs =
                matches!(&comparison, ComparisonState::Done(found) if found.first_difference.is_some());
            state.set(comparison);
            // The first difference is shown in the tab with the facts about the recording.
            if differs && matches!(session.tab.get_untracked(), Tab::Holders | Tab::Lab) {
                session.tab.set(Tab::Source);
            }
        },
    );
}

fn reason(failure: JobFailure) -> String {
    match failure {
        JobFailure::Job(JobError::File { message, .. }) => message,
        other => other.to_string(),
    }
}

fn comparison_state(reply: ComparisonReply) -> ComparisonState {
    match reply {
        ComparisonReply::Progress(progress) => {
            let percent = percent(progress.done, progress.total);
            ComparisonState::Running(progress.phase, percent)
        }
        ComparisonReply::Done(Ok(comparison)) => ComparisonState::Done(comparison),
        ComparisonReply::Done(Err(failure)) => ComparisonState::Missing(reason(failure)),
        ComparisonReply::Stopped => {
            ComparisonState::Missing("other work ended the comparison; open the file again for it".to_owned())
        }
    }
}

/// The ending of file names of workloads.
const WORKLOAD: &str = ".workload";

/// Saves the text of the workload as a file, with its capacity and settings in the header.
pub(crate) fn save_workload(session: Session) {
    let text = session.history.with_untracked(|history| history.text().to_owned());
    let SettingsTexts { title, config, capacity } = session.settings.get_untracked();
    // With the header, the file gives the same numbers everywhere.
    let text = with_header(&text, &capacity, &config);
    let stem: String = title
        .strip_suffix(WORKLOAD)
        .unwrap_or(&title)
        .chars()
        .map(|letter| if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect();
    browser::download(&format!("{stem}{WORKLOAD}"), &text, "text/plain");
}
