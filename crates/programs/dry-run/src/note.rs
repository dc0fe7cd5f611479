//! Why numbers of a run are estimates.

use blockyard_record::counted;
use serde::Deserialize;

/// Why the numbers after a note are estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The program called a function that the stand-in does not implement.
    Function,
    /// The host read bytes that a kernel would have computed.
    Read,
    /// An assumption, in a sentence.
    #[default]
    Estimate,
}

impl NoteKind {
    /// The name in the report's JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Read => "read",
            Self::Estimate => "estimate",
        }
    }
}

/// A note of the report: the numbers after the note are estimates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct EstimateNote {
    /// Why the numbers are estimates.
    pub kind: NoteKind,
    /// The function that the stand-in does not implement; empty in other notes.
    #[serde(default)]
    pub name: String,
    /// The assumption, in a sentence; empty for a function.
    #[serde(default)]
    pub text: String,
    /// Bytes that the host read; 0 in other notes.
    #[serde(default)]
    pub bytes: u64,
    /// The program's file; empty where the line is not known.
    #[serde(default)]
    pub file: String,
    /// The line in this file, counted from 1; 0 where the line is not known.
    #[serde(default)]
    pub line: u32,
}

impl EstimateNote {
    /// A note with this sentence.
    pub(crate) fn estimate(text: String) -> Self {
        Self { kind: NoteKind::Estimate, text, ..Self::default() }
    }

    /// The note as a sentence.
    pub fn sentence(&self) -> String {
        let what = match self.kind {
            NoteKind::Function => {
                format!(
                    "{} was called and did nothing: only the name of the function is known here",
                    self.name
                )
            }
            NoteKind::Read => format!(
                "the program reads {} that a kernel would have computed: {}",
                counted(self.bytes, "byte"),
                if self.text.is_empty() { "assumed to be 0" } else { &self.text }
            ),
            NoteKind::Estimate => self.text.clone(),
        };
        if self.line == 0 { what } else { format!("{}:{}: {what}", self.file, self.line) }
    }
}
