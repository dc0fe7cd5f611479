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

/// An answer with the name of its question, which is the name of the command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "question", rename_all = "kebab-case")]
pub enum Answer {
    /// `blockyard verdict`.
    Verdict(VerdictAnswer),
    /// `blockyard what-if`.
    WhatIf(WhatIfAnswer),
    /// `blockyard search`.
    Search(SearchAnswer),
    /// `blockyard autopsy`.
    Autopsy(AutopsyAnswer),
    /// `blockyard bound`.
    Bound(BoundAnswer),
    /// `blockyard compare-allocators`.
    CompareAllocators(AllocatorsAnswer),
    /// `blockyard diff`.
    Diff(DiffAnswer),
    /// `blockyard leaks`.
    Leaks(LeaksAnswer),
}

/// Declares the questions: the kind of each, the name that its command, JSON and links have, and its answer.
macro_rules! questions {
    ($($(#[$about:meta])* $kind:ident, $name:literal, $answer:ident;)+) => {
        /// A question about a run. Each is a command of `blockyard`, and has an [`Answer`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum QuestionKind {
            $($(#[$about])* $kind,)+
        }

        impl QuestionKind {
            /// All questions, in the order in which a reader asks them.
            pub const ALL: [Self; 8] = [$(Self::$kind,)+];

            /// The name of the command, which JSON and links have too.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// The question with this name; `None` for other names.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|kind| kind.name() == name)
            }
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
    Verdict, "verdict", VerdictAnswer;
    /// Why the run goes out of memory.
    Autopsy, "autopsy", AutopsyAnswer;
    /// The run under other settings.
    WhatIf, "what-if", WhatIfAnswer;
    /// The run under all sensible settings.
    Search, "search", SearchAnswer;
    /// What grows from iteration to iteration.
    Leaks, "leaks", LeaksAnswer;
    /// What changed from one run to another.
    Diff, "diff", DiffAnswer;
    /// The run through other allocators.
    CompareAllocators, "compare-allocators", AllocatorsAnswer;
    /// How good any allocator could be.
    Bound, "bound", BoundAnswer;
}
