//! Questions about what is shown: what if, which setting, why out of memory, how good could it be, what changed.
//!
//! The answers are kept for the run that they are about; another run has none yet.

mod pool;
mod sheet;

pub(crate) use pool::prepare;
pub(crate) use sheet::{Cell, Sheet};

use std::cell::RefCell;
use std::rc::Rc;

use blockyard_figure::PlayerAction;
use blockyard_lab::{
    AllocatorRow, Answer, Autopsy, Bound, ChangeKind, Conditions, Diff, Found, Leaks, Question, Row,
    RunSource, WhatIf,
};
use blockyard_questions::RunSummary;
use blockyard_record::{Bytes, StepOutcome};
use blockyard_replay::AllocatorConfig;
use blockyard_workload::edit::EditAction;
use blockyard_workload::{Request, TensorId, Workload, parse_size};
use leptos::prelude::*;
use web_sys::Blob;

use crate::commands::sentence;
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::{Session, Source};
use pool::{Heard, Material};

/// The kinds of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum QuestionKind {
    #[default]
    WhatIf,
    Search,
    Autopsy,
    Bound,
    Compare,
    Leaks,
    Diff,
}

impl QuestionKind {
    pub(crate) const ALL: [Self; 7] =
        [Self::WhatIf, Self::Search, Self::Autopsy, Self::Bound, Self::Compare, Self::Leaks, Self::Diff];

    /// As links and tests name it.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::WhatIf => "what-if",
            Self::Search => "search",
            Self::Autopsy => "autopsy",
            Self::Bound => "bound",
            Self::Compare => "compare-allocators",
            Self::Leaks => "leaks",
            Self::Diff => "diff",
        }
    }

    /// What the button says.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::WhatIf => "What if",
            Self::Search => "Best setting",
            Self::Autopsy => "Why out of memory",
            Self::Bound => "How good could it be",
            Self::Compare => "Other allocators",
            Self::Leaks => "What grows",
            Self::Diff => "What changed",
        }
    }
}

/// What is being answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabWork {
    pub(crate) kind: QuestionKind,
    pub(crate) phase: String,
    pub(crate) done: u64,
    pub(crate) total: u64,
}

/// A search, from its first row on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    /// The run's own settings first, then those that are tried.
    rows: Vec<Option<Row>>,
    pub(crate) found: Option<PtrEq<Found>>,
}

impl Search {
    /// The rows that are there, the run's own first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten()
    }

    /// How many rows are there, and how many there will be.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (self.rows().count(), self.rows.len())
    }
}

/// A change that was tried, beside what was before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trial {
    pub(crate) title: String,
    /// What was changed, where the workload can be changed so.
    pub(crate) change: Option<ChangeKind>,
    pub(crate) before: Row,
    pub(crate) after: Row,
    pub(crate) requests: u64,
}

/// The answers about one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    pub(crate) what_if: Vec<PtrEq<WhatIf>>,
    pub(crate) search: Option<Search>,
    pub(crate) autopsy: Option<PtrEq<Option<Box<Autopsy>>>>,
    pub(crate) bound: Option<PtrEq<Bound>>,
    pub(crate) compare: Option<PtrEq<Vec<AllocatorRow>>>,
    pub(crate) leaks: Option<PtrEq<Leaks>>,
    pub(crate) diff: Option<(String, PtrEq<Diff>)>,
    pub(crate) trial: Option<PtrEq<Trial>>,
    pub(crate) runs: Vec<RunSummary>,
    pub(crate) failed: Option<(QuestionKind, String)>,
}

impl Answers {
    /// The run that is asked about: the chosen one, or the one with the most requests.
    pub(crate) fn run(&self, device: Option<usize>) -> Option<&RunSummary> {
        let longest = || self.runs.iter().max_by_key(|run| run.requests);
        device.map_or_else(longest, |device| self.runs.get(device))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Book {
    of: PtrEq<Run>,
    answers: Answers,
}

/// The state of the lab's panel; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Lab {
    pub(crate) kind: RwSignal<QuestionKind>,
    pub(crate) conf: RwSignal<String>,
    pub(crate) capacity: RwSignal<String>,
    pub(crate) limit: RwSignal<String>,
    /// Which of several devices of a file, where the reader chose one.
    pub(crate) device: RwSignal<Option<usize>>,
    pub(crate) shows_difference: RwSignal<bool>,
    pub(crate) work: RwSignal<Option<LabWork>>,
    book: RwSignal<Option<Book>>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            kind: RwSignal::new(QuestionKind::WhatIf),
            conf: RwSignal::new("expandable_segments:True".to_owned()),
            capacity: RwSignal::new(String::new()),
            limit: RwSignal::new(String::new()),
            device: RwSignal::new(None),
            shows_difference: RwSignal::new(false),
            work: RwSignal::new(None),
            book: RwSignal::new(None),
        }
    }
}

/// The content of an opened file, for questions about it.
pub(crate) struct Content {
    name: String,
    file: Blob,
}

impl Content {
    pub(crate) fn of(name: &str, file: &Blob) -> Self {
        Self { name: name.to_owned(), file: file.clone() }
    }

    /// Keeps it, in place of that of the file before.
    pub(crate) fn keep(self) {
        CONTENT.set(Some(self));
    }
}

/// What the last questions were about, so that workers which hold it need not read it again.
struct Held {
    of: PtrEq<Run>,
    material: Rc<Material>,
}

thread_local! {
    static CONTENT: RefCell<Option<Content>> = const { RefCell::new(None) };
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// A size that may be left out.
fn optional_size(text: &str) -> Result<Option<Bytes>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    parse_size(text).map(Some).map_err(|error| error.to_string())
}

impl Session {
    /// The answers about the run that is shown.
    pub(crate) fn answers(self) -> Option<Answers> {
        let run = self.run.get();
        self.lab.book.with(|book| {
            let book = book.as_ref().filter(|book| book.of == run);
            book.map(|book| book.answers.clone())
        })
    }

    fn write_answers(self, of: &PtrEq<Run>, write: impl FnOnce(&mut Answers)) {
        self.lab.book.update(|book| {
            if book.as_ref().is_none_or(|book| book.of != *of) {
                *book = Some(Book { of: of.clone(), answers: Answers::default() });
            }
            if let Some(book) = book {
                write(&mut book.answers);
            }
        });
    }

    /// What questions about the shown run are asked about; `None` where its requests are not at hand.
    fn material(self) -> Option<Rc<Material>> {
        let run = self.run.get_untracked();
        let held = HELD.with_borrow(|held| {
            held.as_ref().filter(|held| held.of == run).map(|held| held.material.clone())
        });
        if held.is_some() {
            return held;
        }
        let material = match self.source.get_untracked() {
            Source::Recording(opened) if run.workload.requests().is_empty() || run.opened.is_some() => {
                CONTENT.with_borrow(|content| {
                    let content = content.as_ref().filter(|content| content.name == opened.name)?;
                    let source = RunSource::File { name: opened.name.clone(), bytes: Vec::new() };
                    Material::new(&source, Some(&content.file))
                })?
            }
            _ => Material::new(&source_of(&run, run.workload.clone()), None)?,
        };
        HELD.set(Some(Held { of: run, material: material.clone() }));
        Some(material)
    }

    /// The conditions of the panel's fields.
    ///
    /// # Errors
    ///
    /// PyTorch's words on the settings, ours on the sizes.
    pub(crate) fn conditions(self) -> Result<Conditions, String> {
        let conf = self.lab.conf.get_untracked().trim().to_owned();
        conf.parse::<AllocatorConfig>().map_err(|error| error.to_string())?;
        let own = self.own_conditions()?;
        Ok(Conditions { conf, ..own })
    }

    /// The same with the settings of the run itself.
    fn own_conditions(self) -> Result<Conditions, String> {
        let conf = self.run.with_untracked(|run| run.recording.info().config.clone());
        let capacity = optional_size(&self.lab.capacity.get_untracked())?;
        let limit = optional_size(&self.lab.limit.get_untracked())?;
        Ok(Conditions { conf, capacity, limit })
    }

    /// Shows the panel, with this question.
    pub(crate) fn open_lab(self, kind: QuestionKind) {
        self.lab.kind.set(kind);
        self.tab.set(crate::view::Tab::Lab);
    }

    /// Asks the question that is shown.
    pub(crate) fn ask_lab(self) {
        let kind = self.lab.kind.get_untracked();
        let question = match kind {
            QuestionKind::WhatIf => self
                .conditions()
                .map(|conditions| Question::WhatIf { conditions: vec![conditions], samples: SAMPLES }),
            QuestionKind::Search => self.own_conditions().map(Question::Candidates),
            QuestionKind::Autopsy => self.own_conditions().map(Question::Autopsy),
            QuestionKind::Bound => Ok(Question::Bound),
            QuestionKind::Compare => self.own_conditions().map(Question::Compare),
            QuestionKind::Leaks => Ok(Question::Leaks),
            // A file is needed first.
            QuestionKind::Diff => return,
        };
        match question {
            Ok(question) => {
                self.ask(kind, question, None, move |of, answer| self.take_answer(&of, answer));
            }
            Err(why) => {
                let run = self.run.get_untracked();
                self.write_answers(&run, |answers| answers.failed = Some((kind, sentence(&why))));
            }
        }
    }

    /// Compares with another file: what changed from that one to this one.
    pub(crate) fn ask_diff(self, name: String, file: &Blob) {
        let source = RunSource::File { name: name.clone(), bytes: Vec::new() };
        self.ask(QuestionKind::Diff, Question::Diff(source), Some(file), move |of, answer| {
            if let Answer::Diff(diff) = answer {
                self.write_answers(&of, |answers| answers.diff = Some((name.clone(), PtrEq::new(diff))));
            }
        });
    }

    fn ask(
        self,
        kind: QuestionKind,
        question: Question,
        content: Option<&Blob>,
        on_answer: impl Fn(PtrEq<Run>, Answer) + 'static,
    ) {
        if self.lab.work.with_untracked(Option::is_some) {
            pool::cancel();
        }
        let of = self.run.get_untracked();
        self.write_answers(&of, |answers| answers.failed = None);
        let Some(material) = self.material() else {
            let why = "The requests of this run are not at hand: open the file again.".to_owned();
            return self.write_answers(&of, |answers| answers.failed = Some((kind, why)));
        };
        self.lab.work.set(Some(LabWork { kind, ..LabWork::default() }));
        let device = self.lab_device();
        pool::ask(&material, device, question, content, move |heard| match heard {
            Heard::Progress(progress) => self.lab_progress(&progress),
            Heard::Taken(runs) => self.write_answers(&of, |answers| answers.runs = runs),
            Heard::Answered(answer) => {
                self.lab.work.set(None);
                on_answer(of.clone(), *answer);
            }
            Heard::Failed(why) => {
                self.lab.work.set(None);
                self.write_answers(&of, |answers| answers.failed = Some((kind, sentence(&why))));
            }
        });
    }

    fn lab_progress(self, progress: &blockyard_replay::Progress) {
        self.lab.work.update(|work| {
            if let Some(work) = work {
                (work.phase, work.done, work.total) = (progress.phase.clone(), progress.done, progress.total);
            }
        });
    }

    /// Whether the step under the cursor ran out of memory.
    pub(crate) fn fails_now(self) -> bool {
        let run = self.run.get();
        let step = self.player.with(|player| player.current_step(&run.recording));
        step.is_some_and(|step| matches!(run.recording.outcome(step), StepOutcome::OutOfMemory(_)))
    }

    /// Asks why the shown run goes out of memory, and what would have helped.
    pub(crate) fn ask_autopsy(self) {
        let conf = self.run.with_untracked(|run| run.recording.info().config.clone());
        let question = Question::Autopsy(Conditions::with_conf(&conf));
        self.ask(QuestionKind::Autopsy, question, None, move |of, answer| {
            self.take_answer(&of, answer);
        });
    }

    /// Where an opened recording ends in out of memory, says why.
    pub(crate) fn explain_failure(self) {
        let run = self.run.get_untracked();
        let mut failed = run.recording.failed_steps().iter();
        if failed.any(|(_, outcome)| matches!(outcome, StepOutcome::OutOfMemory(_))) {
            self.open_lab(QuestionKind::Autopsy);
            self.ask_lab();
        }
    }

    /// Which of the runs of a file is asked about: the chosen one, or that of the device that the figures show.
    pub(crate) fn lab_device(self) -> Option<usize> {
        let shown = || {
            let run = self.run.get_untracked();
            let said = run.opened.as_ref().filter(|said| said.devices.len() > 1)?;
            // A device without a trace has no run.
            let before = said.devices.iter().take(said.shown_device);
            Some(before.filter(|device| device.events > 0).count())
        };
        self.lab.device.get_untracked().or_else(shown)
    }

    /// Ends what is being answered.
    pub(crate) fn cancel_lab(self) {
        pool::cancel();
        self.lab.work.set(None);
        let run = self.run.get_untracked();
        self.write_answers(&run, |answers| {
            if answers.search.as_ref().is_some_and(|search| search.found.is_none()) {
                answers.search = None;
            }
        });
    }

    fn take_answer(self, of: &PtrEq<Run>, answer: Answer) {
        match answer {
            Answer::Candidates(settings) => self.search(of, &settings),
            answer => self.write_answers(of, |answers| match answer {
                Answer::WhatIf(found) => answers.what_if.insert(0, PtrEq::new(found)),
                Answer::Autopsy(found) => answers.autopsy = Some(PtrEq::new(found)),
                Answer::Bound(found) => answers.bound = Some(PtrEq::new(found)),
                Answer::Compare(found) => answers.compare = Some(PtrEq::new(found)),
                Answer::Leaks(found) => answers.leaks = Some(PtrEq::new(found)),
                Answer::Candidates(_) | Answer::SearchRow(_) | Answer::Diff(_) => {}
            }),
        }
    }

    /// Tries all settings, a worker each at a time; rows are shown as they come.
    fn search(self, of: &PtrEq<Run>, settings: &[String]) {
        let (Ok(own), Some(material)) = (self.own_conditions(), self.material()) else { return };
        let mut all = vec![own.clone()];
        all.extend(settings.iter().map(|conf| own.and_conf(conf)));
        let total = all.len();
        let search = Search { rows: vec![None; total], found: None };
        self.write_answers(of, |answers| answers.search = Some(search));
        let work = LabWork {
            kind: QuestionKind::Search,
            phase: "trying settings".to_owned(),
            done: 0,
            total: total as u64,
        };
        self.lab.work.set(Some(work));
        let device = self.lab_device();
        for (place, conditions) in all.into_iter().enumerate() {
            let question = Question::SearchRow { base: own.clone(), conditions };
            let of = of.clone();
            pool::ask(&material, device, question, None, move |heard| match heard {
                Heard::Answered(answer) => {
                    if let Answer::SearchRow(row) = *answer {
                        self.take_row(&of, place, row);
                    }
                }
                Heard::Failed(why) => {
                    pool::cancel();
                    self.lab.work.set(None);
                    self.write_answers(&of, |answers| {
                        answers.failed = Some((QuestionKind::Search, sentence(&why)));
                    });
                }
                Heard::Taken(runs) => self.write_answers(&of, |answers| answers.runs = runs),
                Heard::Progress(_) => {}
            });
        }
    }

    fn take_row(self, of: &PtrEq<Run>, place: usize, row: Row) {
        let mut is_done = false;
        self.write_answers(of, |answers| {
            let notes = answers.run(self.lab_device()).map(|run| run.notes.clone());
            let Some(search) = &mut answers.search else { return };
            if let Some(slot) = search.rows.get_mut(place) {
                *slot = Some(row);
            }
            let mut rows = search.rows.iter().flatten().cloned();
            if search.rows.iter().all(Option::is_some)
                && let Some(baseline) = rows.next()
            {
                search.found =
                    Some(PtrEq::new(Found::of(baseline, rows.collect(), notes.unwrap_or_default())));
                is_done = true;
            }
            let (done, _) = search.progress();
            self.lab.work.update(|work| {
                if let Some(work) = work {
                    work.done = done as u64;
                }
            });
        });
        if is_done {
            self.lab.work.set(None);
        }
    }

    /// Tries a change that an autopsy found, and shows what comes of it beside what was.
    pub(crate) fn try_change(self, change: &ChangeKind, title: String) {
        let Some((request, limit)) = self.failure() else { return };
        let conf = self.run.with_untracked(|run| run.recording.info().config.clone());
        let conditions = Conditions { limit: Some(limit), ..Conditions::with_conf(&conf) };
        let tried = Some(change.clone());
        let question = Question::Change { conditions, change: change.clone(), request, samples: SAMPLES };
        self.ask(QuestionKind::Autopsy, question, None, move |of, answer| {
            if let Answer::WhatIf(mut found) = answer
                && let Some(after) = found.rows.pop()
            {
                self.take_trial(&of, (title.clone(), tried.clone()), found.baseline, after);
            }
        });
    }

    /// The request that the autopsy is about, counted from 1, and the most that may be reserved.
    fn failure(self) -> Option<(u64, Bytes)> {
        let answers = untrack(|| self.answers())?;
        let autopsy = answers.autopsy?;
        (*autopsy).as_ref().map(|autopsy| (autopsy.request.request, autopsy.limit.highest))
    }

    fn take_trial(self, of: &PtrEq<Run>, (title, change): Tried, before: Row, after: Row) {
        let rows = [&before, &after].map(|row| row.answered().map_or(0, |outcome| outcome.requests));
        let requests = rows.into_iter().max().unwrap_or(0);
        let trial = PtrEq::new(Trial { title, change, before, after, requests });
        self.write_answers(of, |answers| answers.trial = Some(trial));
    }

    /// Takes other settings for the workload, and shows what was before beside what is now.
    pub(crate) fn change_config(self, config: String) {
        let before = self.run.get_untracked();
        self.set_config(config);
        let run = self.run.get_untracked();
        // What does not run has no after; a long run is not compared, so that its worker has the machine to itself.
        if run == before || run.workload.requests().is_empty() {
            return;
        }
        let info = before.recording.info();
        let own = Conditions { conf: info.config.clone(), capacity: Some(info.capacity), limit: None };
        let question = Question::WhatIf { conditions: vec![own], samples: SAMPLES };
        let title = "Before and after the change of settings".to_owned();
        self.ask(QuestionKind::WhatIf, question, None, move |of, answer| {
            if let Answer::WhatIf(mut found) = answer
                && let Some(before) = found.rows.pop()
            {
                self.take_trial(&of, (title.clone(), None), before, found.baseline);
            }
        });
    }

    /// Changes the workload as it was tried; undo takes the change back.
    pub(crate) fn apply_change(self, change: &ChangeKind) {
        match change {
            ChangeKind::Setting(conf) => self.set_config(conf.clone()),
            // To the byte, which a rounded size would not be.
            ChangeKind::Limit(limit) => self.set_capacity(format!("{} B", limit.get())),
            ChangeKind::FreeTensors { requests, .. } => {
                let run = self.run.get_untracked();
                let Some((failing, _)) = self.failure() else { return };
                let before = usize::try_from(failing).unwrap_or(usize::MAX).saturating_sub(1);
                self.dispatch(PlayerAction::SeekStep(before));
                for tensor in tensors_of(run.workload.requests(), requests) {
                    self.act(EditAction::Free { tensor });
                }
                self.dispatch(PlayerAction::Forward);
            }
            // No single edit: the panel offers no button for them.
            ChangeKind::DefaultPool | ChangeKind::OneStream => {}
        }
    }

    /// Forgets what was tried.
    pub(crate) fn forget_trial(self) {
        let run = self.run.get_untracked();
        self.write_answers(&run, |answers| answers.trial = None);
    }
}

/// What was tried: a title, and the change where the workload can be changed so.
type Tried = (String, Option<ChangeKind>);

/// About how many parts a timeline in the panel has: as many as it has pixels.
const SAMPLES: usize = 400;

/// A run of the page with these requests.
fn source_of(run: &Run, workload: Workload) -> RunSource {
    let info = run.recording.info();
    RunSource::Workload {
        name: info.title.clone(),
        workload: Box::new(workload),
        config: info.config.clone(),
        capacity: info.capacity,
    }
}

/// What these requests got, counted from 1.
fn tensors_of<'a>(all: &'a [Request], requests: &'a [u64]) -> impl Iterator<Item = TensorId> + 'a {
    requests.iter().filter_map(|request| match all.get(usize::try_from(request.checked_sub(1)?).ok()?)? {
        Request::Allocate { tensor, .. } => Some(*tensor),
        _ => None,
    })
}
