//! The parts of the page.

use crate::browser;

/// A part of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first screen.
    Home,
    /// The list of lessons.
    Lessons,
    /// A card of a lesson.
    Lesson {
        /// The lesson's id.
        id: String,
        /// The card.
        card: CardPlace,
    },
    /// A lesson that the reader opened from a file.
    OwnLesson,
    /// Lessons to be printed, by their ids with commas between them; empty for the lesson in the editor.
    Handout(String),
    /// The glossary, at an entry by its id; empty for the first entry.
    Glossary(String),
    /// Lessons in an order of a teacher's, by their ids with commas between them.
    Plan(String),
    /// Questions of all lessons, mixed.
    Practice,
    /// A page for teachers.
    Teachers(TeachersPage),
    /// The editor of a lesson.
    MakeLesson,
    /// A Python program with its figures.
    Program,
    /// The figures, the player and the tabs, for a workload or a recording.
    Workbench,
}

/// The pages for teachers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TeachersPage {
    /// The plans of lectures.
    Plan,
    /// A lesson in a lecture room.
    Present,
    /// Sheets, exercises and grades.
    HandOut,
    /// Lessons on pages and servers of the teacher's own.
    Host,
}

impl TeachersPage {
    pub(crate) const ALL: [Self; 4] = [Self::Plan, Self::Present, Self::HandOut, Self::Host];

    /// The name in addresses; empty for the first page, which other names lead to as well.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plan => "",
            Self::Present => "present",
            Self::HandOut => "hand-out",
            Self::Host => "host",
        }
    }

    pub(crate) fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|page| page.name() == name).unwrap_or(Self::Plan)
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Present => "Present",
            Self::HandOut => "Hand out and grade",
            Self::Host => "Host",
        }
    }
}

/// A card of a lesson, which may not be read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardPlace {
    /// The card with this number, counted from 0.
    At(usize),
    /// The last card, whatever its number is.
    Last,
}

impl CardPlace {
    pub(crate) const FIRST: Self = Self::At(0);
}

/// The part of this page that a frame in another page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Embed {
    /// The stage with its timeline and its controls.
    Stage,
    /// The stage alone.
    Figure,
    /// A lesson's card beside its stage.
    Lesson,
}

impl Embed {
    pub(crate) const ALL: [Self; 3] = [Self::Stage, Self::Figure, Self::Lesson];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Figure => "figure",
            Self::Lesson => "lesson",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Stage => "stage with its timeline",
            Self::Figure => "figure alone",
            Self::Lesson => "lesson",
        }
    }

    /// The part that the page's address names, as in `?embed=stage`; `None` without one.
    pub(crate) fn of_address() -> Option<Self> {
        let name = browser::query("embed")?;
        Self::ALL.into_iter().find(|embed| embed.name() == name)
    }
}
