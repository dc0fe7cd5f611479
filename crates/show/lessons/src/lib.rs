//! Lessons: cards beside figures, questions that the allocator answers, exercises that the allocator grades.
//!
//! A lesson is a text in a few forms of Markdown. [`Lesson::parse`] reads the text, and [`Lesson::play`] runs
//! its workloads and gives a [`PlayedLesson`], in which every number of a sentence is an answer of the
//! allocator: the file names the quantity (`{reserved}`), never the number. [`Exercise::grade`] runs a
//! reader's solution of an exercise.
//!
//! * [`Lesson`], [`PlayedLesson`], [`LessonQuestion`]: a lesson, its runs and its questions.
//! * [`Exercise`], [`Goal`], [`Grade`]: exercises and the grades of answers.
//! * [`PARTS`], [`course()`], [`lessons`], [`glossary()`]: the lessons and the glossary that Blockyard brings
//!   along, and plans of lectures ([`LECTURES`]).
//! * [`drawn_question`], [`Practice`]: a question with other numbers, and when a reader is asked again.
//! * [`handout()`]: lessons on paper, with a key for the teacher.
//! * [`archive_files`], [`exercise_of`], [`GradeRow`]: the files that a class hands in, and their grades.
//!
//! ````
//! use blockyard_lessons::{RightAnswers, Lesson, plain};
//! use blockyard_record::Bytes;
//!
//! let lesson = Lesson::parse(
//!     "---
//! id: first
//! title: A first lesson
//! summary: What one small tensor costs.
//! capacity: 64 MiB
//! ---
//! ### One tensor
//! The tensor asked for {size a}; PyTorch took {reserved} from the device.
//!
//! ```workload
//! a = alloc 3 MiB
//! ```
//! ```predict
//! question: How much is reserved now?
//! measure: reserved
//! ```
//! ",
//! )?
//! .play()?;
//! let question = lesson.cards[0].question.as_ref().unwrap();
//! assert_eq!(question.answers, RightAnswers::Bytes(Bytes::mib(20)));
//! assert_eq!(question.check("3 MiB"), Ok(false));
//! # Ok::<(), blockyard_lessons::LessonError>(())
//! ````
//!
//! The parts of a lesson's file are in `docs/teaching-lesson.md`.
//!
//! This crate must not know a screen, a file system or a clock.

#![forbid(unsafe_code)]

mod asked;
mod condition;
mod course;
mod document;
mod error;
mod exercise;
mod glossary;
mod grade_row;
mod handed_in;
mod handout;
mod lesson;
mod markdown;
mod measure;
mod measured;
mod plan;
mod played;
mod practice;
mod program_end;
mod proof;
mod quantity;
mod question;
mod recorded;
mod sheet;
mod slider;
mod text;

pub use course::{
    CourseLesson, CoursePart, LessonFile, PARTS, course, current_id, glossary, lessons, title_of,
};
pub use document::without_solutions;
pub use error::{KnownNames, LessonError, LessonErrorKind, MeasureError};
pub use exercise::{
    Exercise, ExerciseLanguage, Goal, GoalResult, Grade, GradeError, Mistake, Mutant, RunOfLines,
};
pub use glossary::{Glossary, GlossaryEntry};
pub use grade_row::{GRADE_COLUMNS, GradeResult, GradeRow, exercise_of, grades_csv};
pub use handed_in::{ArchiveFile, archive_files, student_name};
pub use handout::{Handout, card_figure, card_stage, handout, inlines};
pub use lesson::Lesson;
pub use measured::MeasuredSize;
pub use plan::{
    BREAK_MINUTES, EXERCISE_MINUTES, ExerciseUse, LECTURES, Lecture, MAX_SET_MINUTES, OwnLesson, Plan,
    PlannedLesson, UnpresentedCard, class_minutes, class_task,
};
pub use played::{MeasuredMemory, MemoryBar, PlayedCard, PlayedLesson, PlayedRun};
pub use practice::{Practice, PracticeCount, PracticeQuestion, drawn_question, has_other_numbers};
pub use program_end::{EndedProgram, exception, failing_line};
pub use proof::UnprovedWord;
pub use quantity::{Quantity, QuantityKind};
pub use question::{AnswerError, Choice, LessonQuestion, RightAnswers};
pub use recorded::{LessonProgram, RecordedError, split_recorded, with_recorded};
pub use slider::Slider;
pub use text::{Inline, TextBlock, plain, with_code};
