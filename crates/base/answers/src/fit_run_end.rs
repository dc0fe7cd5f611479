//! Why a run of `blockyard fit` gave no answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a run gave no answer: in JSON `Ctrl-C`, or the error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum FitRunEnd {
    /// The run was stopped by Ctrl-C.
    Stopped,
    /// The program failed for another reason than memory, or did not run.
    Failed(String),
}

/// How JSON has a run that was stopped.
const STOPPED: &str = "Ctrl-C";

impl FitRunEnd {
    /// The end of a run that failed with this error.
    pub fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Why the run gave no answer, after "the run".
    #[must_use]
    pub fn why_text(&self) -> String {
        match self {
            Self::Stopped => "was stopped".to_owned(),
            Self::Failed(error) => format!("failed: {error}"),
        }
    }
}

impl From<String> for FitRunEnd {
    fn from(text: String) -> Self {
        if text == STOPPED { Self::Stopped } else { Self::Failed(text) }
    }
}

impl From<FitRunEnd> for String {
    fn from(end: FitRunEnd) -> Self {
        match end {
            FitRunEnd::Stopped => STOPPED.to_owned(),
            FitRunEnd::Failed(error) => error,
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for FitRunEnd {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FitRunEnd".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}
