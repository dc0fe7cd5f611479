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

/// A question about a run. Each is a command of `blockyard`, and has an [`Answer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuestionKind {
    /// What happened.
    #[default]
    Verdict,
    /// Why the run goes out of memory.
    Autopsy,
    /// The run under other settings.
    WhatIf,
    /// The run under all sensible settings.
    Search,
    /// What grows from iteration to iteration.
    Leaks,
    /// What changed from one run to another.
    Diff,
    /// The run through other allocators.
    CompareAllocators,
    /// How good any allocator could be.
    Bound,
}

impl QuestionKind {
    /// All questions, in the order in which a reader asks them.
    pub const ALL: [Self; 8] = [
        Self::Verdict,
        Self::Autopsy,
        Self::WhatIf,
        Self::Search,
        Self::Leaks,
        Self::Diff,
        Self::CompareAllocators,
        Self::Bound,
    ];

    /// The name of the command, which JSON and links have too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Autopsy => "autopsy",
            Self::WhatIf => "what-if",
            Self::Search => "search",
            Self::Leaks => "leaks",
            Self::Diff => "diff",
            Self::CompareAllocators => "compare-allocators",
            Self::Bound => "bound",
        }
    }

    /// The question with this name; `None` for other names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Each answer is a variant of [`Answer`], so that a caller gives the answer alone.
macro_rules! from_answers {
    ($($variant:ident($answer:ident)),+ $(,)?) => {
        $(impl From<$answer> for Answer {
            fn from(answer: $answer) -> Self {
                Self::$variant(answer)
            }
        })+

        impl Answer {
            /// The question that is answered.
            #[must_use]
            pub const fn kind(&self) -> QuestionKind {
                match self {
                    $(Self::$variant(_) => QuestionKind::$variant,)+
                }
            }
        }
    };
}

from_answers! {
    Verdict(VerdictAnswer),
    WhatIf(WhatIfAnswer),
    Search(SearchAnswer),
    Autopsy(AutopsyAnswer),
    Bound(BoundAnswer),
    CompareAllocators(AllocatorsAnswer),
    Diff(DiffAnswer),
    Leaks(LeaksAnswer),
}
