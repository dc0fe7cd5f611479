//! The lab: questions about the run that is shown, such as the effect of another setting, or why the run went
//! out of memory.
//!
//! Answers belong to the run that they are about. When another run is shown, they are dropped.

mod answers;
mod conditions;
mod moments;
mod pool;
mod search;
mod sheet;
mod trial;
mod verdict;

pub(crate) use answers::{Answers, LabWork, SettingSearch, Trial, sections};
pub(crate) use moments::{line_of_stack, row_of_line};
pub(crate) use sheet::{Cell, Sheet};

use std::cell::RefCell;
use std::rc::Rc;

use blockyard_lab::{Conditions, LabAnswer, Question, QuestionKind, RunSource};
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_record::StepOutcome;
use blockyard_replay::Progress;
use blockyard_rules::Release;
use blockyard_worker::questions::{LabReply, LabTask, ReportOptions};
use blockyard_workload::Workload;
use leptos::prelude::*;
use web_sys::Blob;

use crate::browser;
use crate::messages::sentence;
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::{Feature, Source};
use crate::view::parts;
use conditions::ConditionsError;
use pool::RunData;

#[derive(Clone, Debug, PartialEq)]
struct AnswersOfRun {
    of: PtrEq<Run>,
    answers: Answers,
}

/// The lab's panel: the question, its conditions, and the answers.
#[derive(Default)]
pub(crate) struct LabSignals {
    pub(crate) kind: RwSignal<QuestionKind>,
    pub(crate) conf: RwSignal<String>,
    pub(crate) capacity: RwSignal<String>,
    pub(crate) limit: RwSignal<String>,
    /// The release of PyTorch whose rules hold; `None` for the release that made the file.
    pub(crate) release: RwSignal<Option<Release>>,
    pub(crate) work: RwSignal<Option<LabWork>>,
    /// The page with the curves of a fit that was opened, which covers the page below; `None` while none is
    /// open.
    pub(crate) fit: RwSignal<Option<String>>,
    kept: RwSignal<Option<AnswersOfRun>>,
}

impl LabSignals {
    pub(crate) fn new() -> Self {
        Self { conf: RwSignal::new("expandable_segments:True".to_owned()), ..Self::default() }
    }
}

/// The content of an opened file, for questions about it.
pub(crate) struct FileContent {
    name: String,
    file: Blob,
}

impl FileContent {
    pub(crate) fn of(name: &str, file: &Blob) -> Self {
        Self { name: name.to_owned(), file: file.clone() }
    }

    /// Keeps the content in place of the content of the former file.
    pub(crate) fn keep(self) {
        CONTENT.set(Some(self));
    }

    /// The name and the content of the file that was opened last.
    pub(crate) fn kept() -> Option<(String, Blob)> {
        CONTENT.with_borrow(|kept| kept.as_ref().map(|kept| (kept.name.clone(), kept.file.clone())))
    }
}

/// The file or the workload that a run comes from, with the content of the file.
pub(crate) type RunOrigin = (RunSource, Option<Blob>);

/// The data of the run that the last questions were about. Workers that have read the same data need not read
/// it again.
struct LastRunData {
    of: PtrEq<Run>,
    run_data: Rc<RunData>,
}

/// The state of a report that a worker makes.
pub(crate) enum ReportStep {
    /// The phase of the work.
    Phase(String),
    /// The report, as HTML.
    Made(String),
    /// Why the report was not made.
    Failed(String),
}

thread_local! {
    static CONTENT: RefCell<Option<FileContent>> = const { RefCell::new(None) };
    static RUN_DATA: RefCell<Option<LastRunData>> = const { RefCell::new(None) };
}

impl Feature<LabSignals> {
    /// The answers about the run that is shown.
    pub(crate) fn answers(self) -> Option<Answers> {
        let run = self.session.run.get();
        self.kept.with(|kept| {
            let kept = kept.as_ref().filter(|kept| kept.of == run);
            kept.map(|kept| kept.answers.clone())
        })
    }

    fn write_answers(self, of: &PtrEq<Run>, write: impl FnOnce(&mut Answers)) {
        self.kept.update(|kept| {
            if kept.as_ref().is_none_or(|kept| kept.of != *of) {
                *kept = Some(AnswersOfRun { of: of.clone(), answers: Answers::default() });
            }
            if let Some(kept) = kept {
                write(&mut kept.answers);
            }
        });
    }

    /// Keeps the error of a question about a run.
    fn fail(self, of: &PtrEq<Run>, kind: QuestionKind, why: &dyn std::fmt::Display) {
        let why = sentence(&why.to_string());
        self.write_answers(of, |answers| answers.failed = Some((kind, why)));
    }

    /// The data that workers need for questions about the shown run; `None` if its requests are not
    /// available.
    fn run_data(self) -> Option<Rc<RunData>> {
        let run = self.session.run.get_untracked();
        let last = RUN_DATA.with_borrow(|last| {
            last.as_ref().filter(|last| last.of == run).map(|last| last.run_data.clone())
        });
        if last.is_some() {
            return last;
        }
        let (source, content) = self.run_source()?;
        let run_data = RunData::new(&source, content.as_ref())?;
        RUN_DATA.set(Some(LastRunData { of: run, run_data: run_data.clone() }));
        Some(run_data)
    }

    /// The shown run as the file or the workload that it comes from, with the content of the file; `None` if
    /// the file is not at hand.
    pub(crate) fn run_source(self) -> Option<RunOrigin> {
        let run = self.session.run.get_untracked();
        match self.session.source.get_untracked() {
            Source::Recording(opened) if run.workload.requests().is_empty() || run.opened.is_some() => {
                CONTENT.with_borrow(|content| {
                    let content = content.as_ref().filter(|content| content.name == opened.name)?;
                    let source = RunSource::File { name: opened.name.clone(), bytes: Vec::new() };
                    Some((source, Some(content.file.clone())))
                })
            }
            // The snapshot that PyTorch would have taken at the end has the program's requests, with their
            // lines.
            Source::Program(result) => {
                let mut snapshot = SnapshotFile::from_recordings(&[(0, &run.recording)]).ok()?;
                snapshot.keepers.clone_from(&result.details.keepers);
                let mut bytes = Vec::new();
                snapshot.write_pickle(&mut bytes).ok()?;
                let simulation = Box::new(result.simulation());
                let source =
                    RunSource::Simulated { name: "program.py".to_owned(), bytes: Vec::new(), simulation };
                Some((source, Some(browser::blob_of(&bytes)?)))
            }
            _ => Some((source_of(&run, run.workload.clone()), None)),
        }
    }

    /// Makes the report about the shown run in a worker. `on_step` gets each phase and, at the end, the
    /// report or why it was not made.
    pub(crate) fn make_report(self, options: ReportOptions, on_step: impl Fn(ReportStep) + 'static) {
        parts::with_report_source(self.session, move |source| {
            let (source, content) = match source {
                Ok(Some(source)) => source,
                Ok(None) => {
                    let why = "The file is not at hand: open it again.".to_owned();
                    return on_step(ReportStep::Failed(why));
                }
                Err(_) => {
                    let why = "This part of the page could not be loaded.".to_owned();
                    return on_step(ReportStep::Failed(why));
                }
            };
            pool::report(source, options, content.as_ref(), move |reply| match reply {
                Ok(LabReply::Progress(progress)) => on_step(ReportStep::Phase(progress.phase)),
                Ok(LabReply::Report(html)) => on_step(ReportStep::Made(html)),
                Ok(_) => {}
                Err(why) => on_step(ReportStep::Failed(sentence(&why.to_string()))),
            });
        });
    }

    /// Shows the curves of a fit, whose JSON the text is.
    pub(crate) fn show_fit(self, name: &str, text: &str) {
        let content = browser::blob_of(text.as_bytes());
        let source = RunSource::File { name: name.to_owned(), bytes: Vec::new() };
        let shown = name.to_owned();
        pool::report(source, ReportOptions::default(), content.as_ref(), move |reply| match reply {
            Ok(LabReply::Report(html)) => self.fit.set(Some(html)),
            Err(_) => self.session.show_error(format!(
                "{shown} has no curve: it is about settings or layouts, which blockyard fit --report draws."
            )),
            Ok(_) => {}
        });
    }

    /// Shows the panel of the lab with this question.
    pub(crate) fn open(self, kind: QuestionKind) {
        self.kind.set(kind);
        self.session.workbench().tab.set(crate::workbench::Tab::Lab);
    }

    /// Asks the question that is shown.
    pub(crate) fn ask(self) {
        crate::view::parts::ask_lab(self.session);
    }

    /// Asks the question that is shown, as [`Feature::ask`] does, from the part of the page that holds the
    /// questions.
    pub(crate) fn ask_here(self) {
        let kind = self.kind.get_untracked();
        let question = match kind {
            QuestionKind::WhatIf => self
                .read(kind, self.conditions())
                .map(|conditions| Question::WhatIf { conditions: vec![conditions], samples: SAMPLES }),
            QuestionKind::Autopsy => self.read(kind, self.own_conditions()).map(Question::Autopsy),
            QuestionKind::Bound => Some(Question::Bound),
            QuestionKind::CompareAllocators => {
                self.read(kind, self.own_conditions()).map(Question::CompareAllocators)
            }
            QuestionKind::Leaks => Some(Question::Leaks),
            QuestionKind::Search => return self.search(),
            QuestionKind::Verdict => return self.make_verdict(),
            // A comparison is asked once the reader has chosen the other file.
            QuestionKind::Diff => return,
        };
        if let Some(question) = question {
            self.send(question, None, move |of, answer| self.take_answer(&of, answer));
        }
    }

    /// The conditions of the panel's fields; `None` for wrong ones, which is then the error of this question.
    fn read(self, kind: QuestionKind, fields: Result<Conditions, ConditionsError>) -> Option<Conditions> {
        let run = self.session.run.get_untracked();
        fields.map_err(|why| self.fail(&run, kind, &why)).ok()
    }

    /// Asks for the differences between the shown run and another file.
    pub(crate) fn ask_diff(self, name: String, file: &Blob) {
        let source = RunSource::File { name: name.clone(), bytes: Vec::new() };
        self.send(Question::Diff(source), Some(file), move |of, answer| {
            if let LabAnswer::Diff(diff) = answer {
                self.write_answers(&of, |answers| answers.diff = Some((name.clone(), PtrEq::new(diff))));
            }
        });
    }

    fn send(
        self,
        question: Question,
        content: Option<&Blob>,
        on_answer: impl Fn(PtrEq<Run>, LabAnswer) + 'static,
    ) {
        let kind = question.kind();
        let of = self.begin(kind);
        let task = LabTask::Ask { run: self.asked_device(), question };
        let asked = of.clone();
        self.put(kind, &asked, &task, content, move |reply| {
            if let LabReply::Answered(answer) = reply {
                self.work.set(None);
                on_answer(of.clone(), *answer);
                self.renew_verdict();
            }
        });
    }

    /// Ends the question that is being answered, and begins one about the shown run.
    fn begin(self, kind: QuestionKind) -> PtrEq<Run> {
        let ended = self.work.with_untracked(|work| work.as_ref().map(|work| work.kind));
        if ended.is_some() {
            pool::cancel();
        }
        let of = self.session.run.get_untracked();
        self.write_answers(&of, |answers| {
            // The error of another question stays while the verdict is made after it.
            answers.failed.take_if(|(failed, _)| kind != QuestionKind::Verdict || *failed == kind);
            // A verdict that another question ends is made after the question.
            answers.is_verdict_due = kind != QuestionKind::Verdict
                && (answers.is_verdict_due || ended == Some(QuestionKind::Verdict));
        });
        self.work.set(Some(LabWork { kind, ..LabWork::default() }));
        of
    }

    /// Gives a task of a question to the workers. `on_reply` gets the reply that ends the task.
    fn put(
        self,
        kind: QuestionKind,
        of: &PtrEq<Run>,
        task: &LabTask,
        content: Option<&Blob>,
        on_reply: impl Fn(LabReply) + 'static,
    ) {
        let Some(run_data) = self.run_data() else {
            self.work.set(None);
            return self.fail(of, kind, &"the requests of this run are not at hand: open the file again");
        };
        let (of, on_reply): (_, Box<dyn Fn(LabReply)>) = (of.clone(), Box::new(on_reply));
        let on_reply = move |reply| match reply {
            Ok(LabReply::Progress(progress)) => self.show_progress(progress),
            Ok(LabReply::Taken(runs)) => self.write_answers(&of, |answers| answers.runs = runs),
            Ok(reply) => on_reply(reply),
            Err(why) => {
                // The other tasks of a search are of no use.
                pool::cancel();
                self.work.set(None);
                self.fail(&of, kind, &why);
                if self.is_verdict_due() {
                    self.make_verdict();
                }
            }
        };
        pool::ask(&run_data, task, content, Rc::new(on_reply));
    }

    fn show_progress(self, progress: Progress) {
        self.work.update(|work| {
            if let Some(work) = work {
                work.progress = progress;
            }
        });
    }

    /// Whether the step under the cursor ran out of memory.
    pub(crate) fn fails_now(self) -> bool {
        let run = self.session.run.get();
        let step = self.session.player.with(|player| player.current_step(&run.recording));
        step.is_some_and(|step| matches!(run.recording.outcome(step), StepOutcome::OutOfMemory(_)))
    }

    /// Asks why the shown run goes out of memory, and which changes would have helped.
    pub(crate) fn ask_autopsy(self) {
        // What a program keeps in each iteration is no change of one request: the verdict names it.
        if untrack(|| self.session.shown_program()).is_some() {
            self.want_verdict();
        }
        let conf = self.session.run.with_untracked(|run| run.recording.info().conf.clone());
        let question = Question::Autopsy(Conditions::with_conf(&conf));
        self.send(question, None, move |of, answer| {
            self.take_answer(&of, answer);
        });
    }

    /// Whether a step of the shown run ran out of memory.
    pub(crate) fn has_failed(self) -> bool {
        self.session.run.with(|run| run.has_failed())
    }

    /// The index of the run that questions are about, in a file with several devices: that of the device which
    /// the figures show. Host memory has no run.
    pub(crate) fn asked_device(self) -> Option<usize> {
        let run = self.session.run.get_untracked();
        let file = run.opened.as_ref().filter(|file| file.devices.len() > 1 && !file.shows_host())?;
        Some(file.shown_device)
    }

    /// Cancels the question that is being answered.
    pub(crate) fn cancel(self) {
        pool::cancel();
        self.work.set(None);
        let run = self.session.run.get_untracked();
        self.write_answers(&run, |answers| {
            if answers.search.as_ref().is_some_and(|search| search.found.is_none()) {
                answers.search = None;
            }
        });
    }

    fn take_answer(self, of: &PtrEq<Run>, answer: LabAnswer) {
        self.write_answers(of, |answers| match answer {
            LabAnswer::WhatIf(found) => answers.what_if.insert(0, PtrEq::new(*found)),
            LabAnswer::Autopsy(found) => answers.autopsy = Some(PtrEq::new(found)),
            LabAnswer::Bound(found) => answers.bound = Some(PtrEq::new(found)),
            LabAnswer::CompareAllocators(found) => answers.compare = Some(PtrEq::new(found)),
            LabAnswer::Leaks(found) => answers.leaks = Some(PtrEq::new(found)),
            LabAnswer::Verdict(found) => {
                answers.autopsy = Some(PtrEq::new(found.autopsy.clone()));
                answers.verdict = Some(PtrEq::new(*found));
            }
            // It has the name of the other file.
            LabAnswer::Diff(_) => {}
        });
    }
}

/// The number of parts of a timeline in the answers: about as many as the panel has pixels.
const SAMPLES: usize = 400;

/// The run as a source of requests for the lab.
fn source_of(run: &Run, workload: Workload) -> RunSource {
    let info = run.recording.info();
    RunSource::Workload {
        name: info.title.clone(),
        workload: Box::new(workload),
        conf: info.conf.clone(),
        capacity: info.capacity,
    }
}
