//! Which part of the page is shown.

use crate::browser;

/// A part of the page, behind one of its doors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The doors.
    Home,
    /// The list of lessons.
    Lessons,
    /// A card of a lesson, counted from 0.
    Lesson {
        /// The lesson's id.
        id: String,
        /// The card.
        card: usize,
    },
    /// A lesson that the reader opened from a file.
    OwnLesson,
    /// A lesson on paper, by its id.
    Handout(String),
    /// The words, at one of them by its id, or at the first.
    Glossary(String),
    /// All questions of all lessons.
    Quiz,
    /// What teachers need.
    Teachers,
    /// A Python program with its memory.
    Program,
    /// Figures, player, text and numbers: for a workload as for a recording.
    Workbench,
}

/// What of the page another page shows in a frame.
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

    /// What the page's address asks for: `?embed=stage`.
    pub(crate) fn of_address() -> Option<Self> {
        let name = browser::query("embed")?;
        Self::ALL.into_iter().find(|embed| embed.name() == name)
    }
}
