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
//! # The file
//!
//! Front matter between two lines `---`: `id`, `title`, `summary`, `capacity`, and perhaps `settings`
//! (`PYTORCH_CUDA_ALLOC_CONF`), `profile` (the GPU that programs run on), `minutes`, and lines
//! `measured: NAME = SIZE, SOURCE` for sizes that no run can say, such as that of a CUDA context. Then cards:
//! a line `## Title`, some paragraphs or lists with `**strong**`, `*emphasis*`, `` `code` ``,
//! `[links](target)` and values, and at most one fenced block of each kind:
//!
//! | block | holds |
//! | --- | --- |
//! | `workload` | the statements that the card plays; the blocks of all cards make one text, with the titles as labels |
//! | `workload new`, `workload settings=... capacity=...` | the same in a new run, on an empty device |
//! | `workload hidden` | the same, and the reader of a chapter sees the card's `python` block instead |
//! | `rerun settings=...` | plays the run so far once more, from its beginning, under other settings |
//! | `outside` | the non-PyTorch memory of the process from this card on, for the figure and for `free`: `measured context` |
//! | `predict` | a question: lines `question:`, `because:`, and `measure:`, perhaps with `choices:` or `draw:`, or several `choice:` |
//! | `slider` | a value that the reader moves: lines `name:`, `label:`, `start:`, and `from:`, `to:`, `step:` or `stops:`; `name:` alone shows a slider again, and without `label:` the value is drawn |
//! | `exercise` | lines `goal:` and `hint:`, perhaps `settings:` and `capacity:` |
//! | `start` | the workload of the exercise; the reader changes the lines between `# edit from here` and `# edit to here` |
//! | `python start` | a Python program in place of the workload; the command or the page runs the program, and [`Exercise::grade_program`] grades the recording |
//! | `solution`, `python solution` | the lines that solve the exercise; every exercise of the course has one |
//!
//! Blocks `python`, `text` and those of a few other languages are shown as they are; any other word is
//! refused. In blocks of `key: value`, a line that begins with a space continues the value.
//!
//! *Values* are in braces, `{{` is a brace: a quantity, perhaps after `exact` (to the byte) or `change of`
//! (since the card's beginning), perhaps before a moment: `before` (the card's beginning), `at "Label"` (the
//! end of a card or label of this run), `on "Title"` (the end of a card, in its own run), `after x` (the
//! request for `x`); else the end of the card. Quantities are `requested`, `rounding`, `allocated`,
//! `pending`, `active`, `cached`, `reserved`, `free`, `capacity`, `peak_allocated`, `peak_reserved` (which
//! `reset_peak` resets), `most_allocated`, `most_reserved` (which nothing resets), `largest_cached`,
//! `segments`, `cached_blocks`, `tensors`, `device_allocs`, `device_frees`, `device_calls`, `retries`, `oom`,
//! `block x` and `size x` of a tensor, `message` (of the last out-of-memory error) and `message 2` (its
//! second sentence); `measured x` of the front matter; `allocations`, the number of all allocations of the
//! run; and PyTorch's constants `smallest_block`, `small_limit`, `small_segment`, `large_segment`,
//! `own_segment` (the smallest request whose segment has the size of the request) and `segment_step`. Values may be
//! sums, too: `{measured context + reserved}`.
//!
//! *Claims* `{cached less than size c => are not enough}` are words that are shown if the condition holds; if
//! the condition does not hold, the lesson is refused, and the error has the numbers of the run.
//! [`PlayedLesson::notes`] has every number and comparing word that is in no value and no claim, or that says
//! something other than its condition. The text and the hints of an exercise are about the run of its
//! `start`; those of an exercise with a program, which this crate does not run, are about the run of the
//! cards before.
//!
//! A claim may have *cases*, `{reserved stays => the cache || reserved rises => a new segment}`: the words of
//! the first condition that holds are shown. If none holds, the lesson is refused.
//!
//! *Sliders*: in the whole text, `$width` is the value of the slider `width`, `$[8192*width]` a product, and
//! `$[8192/ranks]` a share, rounded up.
//! [`Lesson::parse_at`] reads the lesson with other values than those it opens with. A slider without a label is
//! a *drawn value*: no card shows it, and [`drawn_question`] asks a question with other values. Everything that
//! the lesson says has to hold for each of them.
//!
//! *Conditions*, in claims, goals and before `=>` in choices: `peak reserved at most 40 MiB` (also `at
//! least`, `exactly`, `less than`, `more than`), `reserved rises` (`falls`, `stays`), `x passes` (`fails`),
//! several with ` and ` between them. Both sides of a comparison may be sums: `free + cached at least 2 times
//! size c`. Goals may also be `same requests` (every tensor of the start is still made) and `without set`
//! (also `set_fraction`, `empty_cache`, `pool`, `reset_peak`). A program also has to run to its end; its
//! tensors have no names, so its goals are about quantities alone, and an `assert` in a line of the task
//! checks everything else.
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
    BREAK_MINUTES, CourseLesson, CoursePart, EXERCISE_MINUTES, ExerciseUse, LECTURES, Lecture, LessonFile,
    OwnLesson, PARTS, Plan, PlannedLesson, class_minutes, class_task, course, current_id, glossary, lessons,
    title_of,
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
pub use played::{MeasuredMemory, PlayedCard, PlayedLesson, PlayedRun};
pub use practice::{Practice, PracticeCount, PracticeQuestion, drawn_question};
pub use program_end::{EndedProgram, exception, failing_line};
pub use proof::UnprovedWord;
pub use quantity::{Quantity, QuantityKind};
pub use question::{AnswerError, Choice, LessonQuestion, RightAnswers};
pub use recorded::{LessonProgram, RecordedError, split_recorded, with_recorded};
pub use slider::Slider;
pub use text::{Inline, TextBlock, plain, with_code};
