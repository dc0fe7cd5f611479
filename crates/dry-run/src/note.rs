//! Why numbers of a run are estimates.

use serde::Deserialize;

/// A line of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ProgramLine {
    /// The file, as Python names it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

impl std::fmt::Display for ProgramLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why numbers are estimates from here on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The program called a function that our libraries do not implement.
    Function,
    /// The host read bytes that a kernel would have computed.
    Read,
    /// An assumption, in a sentence.
    #[default]
    Estimate,
}

impl NoteKind {
    /// The name in the report's JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Read => "read",
            Self::Estimate => "estimate",
        }
    }
}

/// Something that makes what follows an estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AssumptionNote {
    /// Why.
    pub kind: NoteKind,
    /// The function that our libraries do not implement.
    #[serde(default)]
    pub name: String,
    /// The assumption.
    #[serde(default)]
    pub text: String,
    /// Bytes that the host read.
    #[serde(default)]
    pub bytes: u64,
    /// The program's file; empty where the line is not known.
    #[serde(default)]
    pub file: String,
    /// The line in this file.
    #[serde(default)]
    pub line: u32,
}

impl AssumptionNote {
    /// A note with this sentence.
    pub(crate) fn estimate(text: String) -> Self {
        Self { kind: NoteKind::Estimate, text, ..Self::default() }
    }

    /// The note as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let what = match self.kind {
            NoteKind::Function => {
                format!(
                    "{} was called and did nothing: only the name of the function is known here",
                    self.name
                )
            }
            NoteKind::Read => format!(
                "the program reads {} {} that a kernel would have computed: {}",
                self.bytes,
                if self.bytes == 1 { "byte" } else { "bytes" },
                if self.text.is_empty() { "assumed to be 0" } else { &self.text }
            ),
            NoteKind::Estimate => self.text.clone(),
        };
        if self.line == 0 { what } else { format!("{}:{}: {what}", self.file, self.line) }
    }
}
