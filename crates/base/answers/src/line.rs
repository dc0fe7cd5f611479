//! A line of `--json`: an answer under the name of its question, with the version of the contract.

use serde::{Deserialize, Serialize};

use crate::{
    AllocatorsAnswer, AutopsyAnswer, BoundAnswer, DiffAnswer, LeaksAnswer, SearchAnswer, VerdictAnswer,
    WhatIfAnswer,
};

/// One line of `--json`: the answer about one run, or why one file has no answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum QuestionLine {
    /// The answer about one run.
    Answer(Box<AnswerLine>),
    /// Why one file has no answer.
    Error(ErrorLine),
}

/// The answer about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerLine {
    /// 1; the version grows when a field changes its meaning or goes.
    pub version: u32,
    /// The file as the command line names it. Absent where no file was named, as in the Python package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The name of the run: a file may have several, one for each device.
    pub run: String,
    /// The question and its answer.
    #[serde(flatten)]
    pub answer: Answer,
}

/// Why a file has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorLine {
    /// 1; the version grows when a field changes its meaning or goes.
    pub version: u32,
    /// The file as the command line names it.
    pub file: String,
    /// The reason, in a sentence.
    pub error: String,
}

/// Declares the questions: the kind of each, the name that its command, JSON and links have, its title in the
/// page, and its answer.
macro_rules! questions {
    ($($(#[$about:meta])* $kind:ident, $name:literal, $title:literal, $answer:ident;)+) => {
        /// A question about a run. Each is a command of `blockyard`, and has an [`Answer`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum QuestionKind {
            $($(#[$about])* $kind,)+
        }

        impl QuestionKind {
            /// All questions, in the order in which a reader asks them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind,)+];

            /// The name of the command, which JSON and links have too.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// The title of the question in the page.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$kind => $title,)+
                }
            }

            /// The question with this name; `None` for other names.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|kind| kind.name() == name)
            }
        }

        /// An answer with the name of its question, which is the name of the command.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "question")]
        pub enum Answer {
            $(
                #[doc = concat!("`blockyard ", $name, "`.")]
                #[serde(rename = $name)]
                $kind($answer),
            )+
        }

        impl Answer {
            /// The question that is answered.
            #[must_use]
            pub const fn kind(&self) -> QuestionKind {
                match self {
                    $(Self::$kind(_) => QuestionKind::$kind,)+
                }
            }
        }

        $(impl From<$answer> for Answer {
            fn from(answer: $answer) -> Self {
                Self::$kind(answer)
            }
        })+
    };
}

questions! {
    /// What happened.
    #[default]
    Verdict, "verdict", "Verdict", VerdictAnswer;
    /// Why the run goes out of memory.
    Autopsy, "autopsy", "Why out of memory", AutopsyAnswer;
    /// The run under other settings.
    WhatIf, "what-if", "What if", WhatIfAnswer;
    /// The run under all sensible settings.
    Search, "search", "Best setting", SearchAnswer;
    /// What grows from iteration to iteration.
    Leaks, "leaks", "What grows", LeaksAnswer;
    /// What changed from one run to another.
    Diff, "diff", "What changed", DiffAnswer;
    /// The run through other allocators.
    CompareAllocators, "compare-allocators", "Other allocators", AllocatorsAnswer;
    /// How good any allocator could be.
    Bound, "bound", "How good could it be", BoundAnswer;
}
