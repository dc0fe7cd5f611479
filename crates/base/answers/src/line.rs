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

/// Each answer is a variant of [`Answer`], so that a caller gives the answer alone.
macro_rules! from_answers {
    ($($variant:ident($answer:ident)),+ $(,)?) => {
        $(impl From<$answer> for Answer {
            fn from(answer: $answer) -> Self {
                Self::$variant(answer)
            }
        })+
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
