//! Reading documents.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{DryRunAnswer, FitAnswer, GuardAnswer, QuestionLine, SnapshotLine};

/// The version of every document that has one.
pub const VERSION: u32 = 1;

/// A document that [`read`] reads.
pub trait Document: DeserializeOwned {
    /// The name of the document, for errors: `an answer of`, and then the command.
    const NAME: &'static str;
}

/// Why a document is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text is not JSON.
    #[error("the text is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// The document has no version.
    #[error("{document} has a version, and the text has none")]
    NoVersion {
        /// The name of the document.
        document: &'static str,
    },
    /// Another Blockyard wrote the document.
    #[error("the text has version {found} of {document}, and this Blockyard reads version {VERSION}")]
    OtherVersion {
        /// The name of the document.
        document: &'static str,
        /// The version of the document.
        found: u64,
    },
    /// A field is missing or has another form.
    #[error("the text is not {document}: {error}")]
    OtherForm {
        /// The name of the document.
        document: &'static str,
        /// What is wrong.
        #[source]
        error: serde_json::Error,
    },
}

/// Reads a document.
///
/// # Errors
///
/// [`DocumentError`]: no JSON, no version, another version, or a document of another form.
///
/// # Example
///
/// ```
/// use blockyard_answers::{Answer, QuestionLine, read};
///
/// let printed = r#"{"version": 1, "file": "run.jsonl", "run": "run", "question": "what-if", "requests": 2,
///     "limit": null, "baseline": {"conf": "", "release": "2.15", "capacity": 1024, "limit": null,
///     "error": "no such setting"}, "settings": [], "notes": []}"#;
/// let QuestionLine::Answer(line) = read(printed)? else { panic!("no answer") };
/// let Answer::WhatIf(answer) = line.answer else { panic!("another question") };
/// assert_eq!((answer.requests, answer.limit), (2, None));
/// # Ok::<(), blockyard_answers::DocumentError>(())
/// ```
pub fn read<T: Document>(text: &str) -> Result<T, DocumentError> {
    let document = T::NAME;
    let value: Value = serde_json::from_str(text).map_err(DocumentError::NotJson)?;
    match value.get("version").and_then(Value::as_u64) {
        None => Err(DocumentError::NoVersion { document }),
        Some(found) if found != u64::from(VERSION) => Err(DocumentError::OtherVersion { document, found }),
        Some(_) => {
            serde_json::from_value(value).map_err(|error| DocumentError::OtherForm { document, error })
        }
    }
}

impl Document for QuestionLine {
    const NAME: &'static str = "an answer to a question about a run";
}

impl Document for SnapshotLine {
    const NAME: &'static str = "an answer of blockyard snapshot";
}

impl Document for GuardAnswer {
    const NAME: &'static str = "a report of blockyard guard";
}

impl Document for DryRunAnswer {
    const NAME: &'static str = "a report of blockyard dry-run";
}

impl Document for FitAnswer {
    const NAME: &'static str = "a report of blockyard fit";
}
