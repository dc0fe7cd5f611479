//! Why a text is not a lesson, with line and column.

use blockyard_replay::RunError;
use blockyard_rules::ConfigError;
use blockyard_workload::ParseErrorKind;
use thiserror::Error;

/// Why a text is not a lesson, and where.
///
/// Lines and columns count from 1, columns in characters. Reads as
/// `line 3, column 1: the front matter has no "title"`.
#[derive(Debug, Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct LessonError {
    line: u32,
    column: u32,
    kind: LessonErrorKind,
}

impl LessonError {
    pub(crate) fn new(at: Position, kind: LessonErrorKind) -> Self {
        Self { line: at.line, column: at.column, kind }
    }

    /// The line and the column.
    pub const fn position(&self) -> (u32, u32) {
        (self.line, self.column)
    }

    /// The kind of the error.
    pub const fn kind(&self) -> &LessonErrorKind {
        &self.kind
    }
}

/// The known names of which one was meant, as the end of a message: `: near it is "b", known are a, b`. Empty
/// without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNames(String);

impl std::fmt::Display for KnownNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An error lists at most so many names.
const MAX_NAMES: usize = 40;

impl KnownNames {
    /// The names of a place where `found` was written. The text is made here and not where it is shown, which
    /// keeps this code out of the page's first load.
    pub(crate) fn of<N: AsRef<str>>(found: &str, names: impl IntoIterator<Item = N>) -> Self {
        let all: Vec<N> = names.into_iter().collect();
        let distance = |name: &str| strsim::levenshtein(&name.to_lowercase(), &found.to_lowercase());
        // A name that has fewer than half of the letters is not meant.
        let is_near = |name: &&str| 2 * distance(name) <= found.chars().count();
        let near = all.iter().map(AsRef::as_ref).filter(is_near).min_by_key(|name| distance(name));
        let near = near.map(|near| format!("near it is \"{near}\", ")).unwrap_or_default();
        let listed: Vec<&str> = all.iter().take(MAX_NAMES).map(AsRef::as_ref).collect();
        let more = if all.len() > MAX_NAMES { ", …" } else { "" };
        if listed.is_empty() {
            return Self::default();
        }
        Self(format!(": {near}known are {}{more}", listed.join(", ")))
    }
}

/// The errors of a text, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<LessonError>);

impl Errors {
    pub(crate) fn push(&mut self, error: LessonError) {
        self.0.push(error);
    }

    /// The value; or `None` after an error, which is kept.
    pub(crate) fn keep<T>(&mut self, result: Result<T, LessonError>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value if no error was found, or else the first error.
    pub(crate) fn first_or<T>(self, value: Option<T>) -> Result<T, LessonError> {
        let none = || Position { line: 1, column: 1 }.at(LessonErrorKind::NoFrontMatter);
        match self.0.into_iter().next() {
            Some(error) => Err(error),
            None => value.ok_or_else(none),
        }
    }

    /// The value if no error was found, or else all errors in the order of the text.
    pub(crate) fn all_or<T>(mut self, value: Option<T>) -> Result<T, Vec<LessonError>> {
        if let Some(value) = value.filter(|_| self.is_empty()) {
            return Ok(value);
        }
        self.0.sort_by_key(LessonError::position);
        Err(self.0)
    }
}

/// A place in a file, both numbers from 1, the column in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Position {
    pub(crate) fn at(self, kind: LessonErrorKind) -> LessonError {
        LessonError::new(self, kind)
    }
}

/// An error in a lesson's text.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LessonErrorKind {
    /// The text does not begin with front matter.
    #[error("a lesson begins with a line \"---\", lines such as \"title: Two tensors\", and a line \"---\"")]
    NoFrontMatter,
    /// A line of the front matter, or of a fenced block, is not `key: value`.
    #[error("expected a line such as \"{expected}\"")]
    NotAKey {
        /// How such a line looks.
        expected: &'static str,
    },
    /// A key is not known here.
    #[error("unknown key \"{key}\"{known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys that are allowed here.
        known: KnownNames,
    },
    /// A key is given twice.
    #[error("\"{key}\" is given twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key is missing.
    #[error("{place} has no \"{key}\"")]
    MissingKey {
        /// Where the key should be.
        place: &'static str,
        /// The key.
        key: &'static str,
    },
    /// The identifier of a lesson has other characters than these.
    #[error("an id has lowercase letters, digits and hyphens, and begins with a letter")]
    NotAnId,
    /// A size or a number cannot be read.
    #[error("expected {expected}, found \"{found}\"")]
    Unexpected {
        /// The text that is expected here.
        expected: &'static str,
        /// The text that is here.
        found: String,
    },
    /// The file has text before the first card.
    #[error("the first card begins with a line \"## Title\"; only blank lines may come before it")]
    BeforeFirstCard,
    /// A form of Markdown that lessons do not have.
    #[error(
        "{form} is not a form of a lesson: paragraphs, lists with \"-\", links, **strong**, *emphasis*, `code` and fenced blocks are"
    )]
    Form {
        /// The form.
        form: &'static str,
    },
    /// A mark is opened and not closed in its paragraph.
    #[error("this \"{mark}\" is never closed")]
    Unclosed {
        /// The mark.
        mark: &'static str,
    },
    /// The word after a fence is not known.
    #[error(
        "no block has the name \"{found}\"; near it is \"{near}\". What is only shown is \"text\" or \"python\""
    )]
    UnknownBlock {
        /// The word.
        found: String,
        /// The word that was most likely meant.
        near: &'static str,
    },
    /// A title has a value.
    #[error("a title has no values: put \"{{{{\" for a brace")]
    ValueInTitle,
    /// A card has two blocks of a kind of which a card may have one.
    #[error("this card has a second block \"{block}\"")]
    SecondBlock {
        /// The word after the fence.
        block: &'static str,
    },
    /// A block `python run` has no requests of its run.
    #[error("the program has not run as it is now; \"Make a lesson\" in the page runs it")]
    NotRecorded,
    /// A card has an exercise without a start, or a start without an exercise.
    #[error("an exercise has a block \"exercise\" and a block \"start\" or \"python start\"")]
    HalfExercise,
    /// The solution does not meet the goals.
    #[error("the solution does not solve the exercise: {why}")]
    Solution {
        /// The goals that the solution misses, or why the solution is not an answer.
        why: String,
    },
    /// The comments around the lines that the reader may change are missing, repeated or in the wrong order.
    #[error("\"{from}\" and then \"{to}\" occur once each, or not at all", from = crate::exercise::REGION_FROM, to = crate::exercise::REGION_TO)]
    Region,
    /// Neither a condition nor another goal can be read in a goal.
    #[error("there is no goal \"{found}\"{known}")]
    UnknownGoal {
        /// The words.
        found: String,
        /// The forms of goals.
        known: KnownNames,
    },
    /// A goal of a program that only a workload can have.
    #[error("\"{goal}\" is a goal of workloads: tensors and labels of a program have no names here")]
    GoalOfWorkload {
        /// The goal.
        goal: String,
    },
    /// The workload has an error.
    #[error("{0}")]
    Workload(ParseErrorKind),
    /// A loop of the workload reaches over two cards.
    #[error("a loop ends in the block in which it begins")]
    LoopOverCards,
    /// The workloads make more requests than a lesson may.
    #[error("the workloads of a lesson make at most {most} requests")]
    TooLong {
        /// The most that they may make.
        most: u64,
    },
    /// A block `rerun` has nothing to run again.
    #[error("there is no workload before this to run again")]
    NothingToRerun,
    /// The settings have an error.
    #[error("settings: {0}")]
    Settings(#[source] ConfigError),
    /// A quantity or condition cannot be read, or has no value.
    #[error("{0}")]
    Measure(MeasureError),
    /// No choice of a question is right, or several are.
    #[error("{right} of the choices are right, and one has to be: the allocator says {answer}")]
    Choices {
        /// How many choices are right.
        right: usize,
        /// The value from the allocator.
        answer: String,
    },
    /// The condition of a claim does not hold.
    #[error("the text says \"{claim}\", and that is not so: {found}")]
    Claim {
        /// The condition.
        claim: String,
        /// The values from the allocator.
        found: String,
    },
    /// A question has no answer, or several.
    #[error("a question has \"measure\", perhaps with \"choices\", or else two or more \"choice\"")]
    Question,
    /// The allocator had no result.
    #[error("{0}")]
    Run(#[source] RunError),
}

/// An error in a quantity or a condition, or in computing its value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The front matter has no measurement of this name.
    #[error("there is no line \"measured: {name} = SIZE, SOURCE\" in the front matter{known}")]
    NoMeasurement {
        /// The name.
        name: String,
        /// The names that the front matter has.
        known: KnownNames,
    },
    /// No quantity has this name.
    #[error("there is no quantity \"{found}\"{known}")]
    UnknownQuantity {
        /// The words.
        found: String,
        /// All quantities.
        known: KnownNames,
    },
    /// Words after a quantity name no moment.
    #[error(
        "expected \"before\", \"at \\\"a label\\\"\", \"on \\\"a card\\\"\" or \"after a_tensor\", found \"{found}\""
    )]
    UnknownMoment {
        /// The words.
        found: String,
    },
    /// A quantity of a tensor has no tensor's name after it, or a message has no number.
    #[error("\"{quantity}\" needs the name of a tensor after it")]
    NeedsTensor {
        /// The quantity's name.
        quantity: String,
    },
    /// A condition cannot be read.
    #[error(
        "expected a condition such as \"peak reserved at most 40 MiB\", \"reserved falls\" or \"x passes\", found \"{found}\": \
         a condition compares with at most, at least, exactly, less than or more than, or ends with rises, falls, \
         stays, passes or fails"
    )]
    NotACondition {
        /// The words.
        found: String,
    },
    /// A number in a condition or among choices cannot be read.
    #[error("expected {expected}, found \"{found}\"")]
    NotANumber {
        /// The text that is expected here.
        expected: &'static str,
        /// The text that is here.
        found: String,
    },
    /// A quantity that is not a number is compared.
    #[error("\"{quantity}\" is not a number")]
    NotComparable {
        /// The quantity.
        quantity: String,
    },
    /// The workload has no such label.
    #[error("no step has the label \"{label}\"{known}")]
    NoLabel {
        /// The label.
        label: String,
        /// The labels of the run.
        known: KnownNames,
    },
    /// The lesson has no such card.
    #[error("no card has the title \"{title}\"{known}")]
    NoCard {
        /// The title.
        title: String,
        /// The titles of the cards up to here.
        known: KnownNames,
    },
    /// The workload has no such tensor.
    #[error("no request before this moment allocates \"{name}\"{known}")]
    NoTensor {
        /// The name.
        name: String,
        /// The names of the tensors that are allocated before this moment.
        known: KnownNames,
    },
    /// The tensor's request failed.
    #[error("the request for \"{name}\" fails, so it has no block")]
    NoBlock {
        /// The name.
        name: String,
    },
    /// No request has failed.
    #[error("no request before this moment fails")]
    NoMessage,
    /// The message has fewer sentences.
    #[error("the message has {count} sentences")]
    NoSentence {
        /// The number of sentences of the message.
        count: usize,
    },
    /// The recording does not add up, which is a defect of the allocator.
    #[error("the recording does not add up")]
    Damaged,
}
