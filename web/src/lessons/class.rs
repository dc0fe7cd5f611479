//! A teacher's class: its plan, and the files that it has handed in, with their grades. They stay while the
//! teacher looks at other parts of the page.

use blockyard_lessons::{GradeRow, LECTURES};
use leptos::prelude::*;
use web_sys::{File, FileList};

use super::LessonSignals;
use crate::browser;
use crate::session::Feature;

/// The storage key of the plan that a teacher made last.
const PLAN_KEY: &str = "blockyard.class-plan";
/// The key, in the storage of the tab, of the teacher's plan before another one took its place.
const BEFORE_KEY: &str = "blockyard-plan-before";

/// The plan that a teacher made last.
pub(super) fn recall_plan() -> Option<String> {
    browser::recall(PLAN_KEY)
}

/// Whether a plan of the teacher's own can be brought back.
pub(crate) fn has_plan_before() -> bool {
    browser::kept_in_tab(BEFORE_KEY).is_some()
}

impl Feature<LessonSignals> {
    /// Takes the text of a changed plan. The browser keeps it for the next visit.
    pub(crate) fn keep_plan(self, text: String) {
        browser::remember(PLAN_KEY, &text);
        self.class_plan.set(text);
    }

    /// Takes another plan, of a lecture or of an address. A plan of the teacher's own can be brought back.
    pub(crate) fn replace_plan(self, text: String) {
        let is_own = |plan: &String| *plan != text && LECTURES.iter().all(|lecture| lecture.plan != plan);
        if let Some(before) = recall_plan().filter(is_own) {
            browser::keep_in_tab(BEFORE_KEY, Some(&before));
        }
        self.keep_plan(text);
    }

    /// Brings back the plan before [`Self::replace_plan`].
    pub(crate) fn bring_plan_back(self) {
        if let Some(before) = browser::kept_in_tab(BEFORE_KEY) {
            browser::keep_in_tab(BEFORE_KEY, None);
            self.keep_plan(before);
        }
    }
}

/// A handed-in file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassFile {
    pub(crate) name: String,
    pub(crate) state: ClassFileState,
    /// The student's own lines; empty before the file was read.
    pub(crate) lines: String,
    /// The student, before this one, whose lines are the same; empty without one.
    pub(crate) same_as: String,
    /// Whether the table shows the lines.
    pub(crate) is_open: bool,
}

/// The state of the grading of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClassFileState {
    Waiting,
    Running,
    Graded(GradeRow),
}

/// A file that waits for its grade.
#[derive(Clone, Debug)]
pub(crate) enum HandedIn {
    /// A file of the machine, which is read when its turn comes.
    File(File),
    /// The content of a file of an archive.
    Bytes(Vec<u8>),
    /// A file that cannot be graded, for this reason.
    Refused(String),
}

/// A lesson that the teacher opened beside the files of the class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassLesson {
    /// The name of the lesson's file.
    pub(crate) file: String,
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// The files of a class; a handle that is copied freely.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClassSignals {
    /// All files, in the order in which the teacher gave them.
    pub(crate) files: RwSignal<Vec<ClassFile>>,
    /// The given files that are not opened yet; archives and lessons among them get no row.
    pub(crate) given: RwSignal<Vec<File>, LocalStorage>,
    /// The files that are not graded yet, each with its place among all.
    pub(crate) queue: RwSignal<Vec<(usize, HandedIn)>, LocalStorage>,
    /// The teacher's own lessons, whose exercises the files may answer.
    pub(crate) lessons: RwSignal<Vec<ClassLesson>>,
    /// The id of the lesson whose exercise the files answer; empty where the lines of each file show which
    /// exercise it answers.
    pub(crate) lesson: RwSignal<String>,
    /// Whether a file is being graded.
    pub(crate) is_busy: RwSignal<bool>,
    /// How many bytes of Python have arrived, while it is fetched.
    pub(crate) loading: RwSignal<Option<f64>>,
}

impl ClassSignals {
    /// Takes files of a class, archives of such files, and lessons; the page for teachers looks into them.
    pub(crate) fn hand_in(self, list: &FileList) {
        let files = (0..list.length()).filter_map(|index| list.get(index));
        self.given.update(|given| given.extend(files));
    }

    /// Puts files into the queue: each has a row from now on.
    pub(crate) fn enqueue(self, files: Vec<(String, HandedIn)>) {
        let first = self.files.with_untracked(Vec::len);
        self.files.update(|rows| {
            let row = |(name, _): &(String, HandedIn)| ClassFile {
                name: name.clone(),
                state: ClassFileState::Waiting,
                lines: String::new(),
                same_as: String::new(),
                is_open: false,
            };
            rows.extend(files.iter().map(row));
        });
        let files = files.into_iter().map(|(_, file)| file);
        self.queue.update(|queue| queue.extend((first..).zip(files)));
    }

    pub(crate) fn set_state(self, index: usize, state: ClassFileState) {
        self.change(index, |file| file.state = state);
    }

    pub(crate) fn change(self, index: usize, change: impl FnOnce(&mut ClassFile)) {
        self.files.update(|files| {
            if let Some(file) = files.get_mut(index) {
                change(file);
            }
        });
    }

    /// Gives up the files that wait for their grades. Their rows say that they were not graded.
    pub(crate) fn stop(self) {
        let waiting: Vec<usize> =
            self.queue.with_untracked(|queue| queue.iter().map(|(index, _)| *index).collect());
        self.queue.update(Vec::clear);
        for index in waiting {
            let name = self.files.with_untracked(|rows| rows.get(index).map(|row| row.name.clone()));
            let why = "stopped before its turn; hand the file in again";
            let row = GradeRow::failed(&name.unwrap_or_default(), "", why);
            self.set_state(index, ClassFileState::Graded(row));
        }
    }

    /// The grades so far, in the order of the files.
    pub(crate) fn rows(self) -> Vec<GradeRow> {
        let graded = |file: &ClassFile| match &file.state {
            ClassFileState::Graded(row) => Some(row.clone()),
            ClassFileState::Waiting | ClassFileState::Running => None,
        };
        self.files.with(|files| files.iter().filter_map(graded).collect())
    }
}
