//! Reading documents of every version that Blockyard has written.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{
    DRY_RUN_VERSION, DryRunAnswer, FIT_VERSION, FitAnswer, GUARD_VERSION, GuardAnswer, QUESTIONS_VERSION,
    QuestionLine, SNAPSHOT_VERSION, SnapshotLine,
};

/// A document that [`read`] reads.
pub trait Document: DeserializeOwned {
    /// The newest version, which the types of this crate describe.
    const VERSION: u32;

    /// The name of the document, for errors: `an answer of`, and then the command.
    const NAME: &'static str;

    /// Changes a document of an older version into the document of the newest version that says the same.
    #[doc(hidden)]
    fn upgrade(_document: &mut Value) {}
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
    /// A newer Blockyard wrote the document.
    #[error(
        "the text has version {found} of {document}, and this Blockyard reads versions 1 to {newest}: a \
         newer Blockyard reads the text"
    )]
    UnknownVersion {
        /// The name of the document.
        document: &'static str,
        /// The version of the document.
        found: u64,
        /// The newest version that this crate reads.
        newest: u32,
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

/// Reads a document of any version up to the newest. A document of an older version is changed into the
/// document of the newest version that says the same.
///
/// # Errors
///
/// [`DocumentError`]: no JSON, no version, a version that is not known, or a document of another form.
///
/// # Example
///
/// ```
/// use blockyard_answers::{Answer, QuestionLine, read};
///
/// // Version 1 had no limit in answers of what-if.
/// let printed = r#"{"version": 1, "file": "run.jsonl", "run": "run", "question": "what-if", "requests": 2, "baseline":
///     {"conf": "", "capacity": 1024, "limit": null, "error": "no such setting"}, "settings": [], "notes": []}"#;
/// let QuestionLine::Answer(line) = read(printed)? else { panic!("no answer") };
/// let Answer::WhatIf(answer) = line.answer else { panic!("another question") };
/// assert_eq!((line.version, answer.limit), (2, None));
/// # Ok::<(), blockyard_answers::DocumentError>(())
/// ```
pub fn read<T: Document>(text: &str) -> Result<T, DocumentError> {
    let document = T::NAME;
    let mut value: Value = serde_json::from_str(text).map_err(DocumentError::NotJson)?;
    let found = value.get("version").and_then(Value::as_u64).filter(|version| *version > 0);
    let found = found.ok_or(DocumentError::NoVersion { document })?;
    if found > u64::from(T::VERSION) {
        return Err(DocumentError::UnknownVersion { document, found, newest: T::VERSION });
    }
    T::upgrade(&mut value);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("version".to_owned(), json!(T::VERSION));
    }
    serde_json::from_value(value).map_err(|error| DocumentError::OtherForm { document, error })
}

impl Document for QuestionLine {
    const VERSION: u32 = QUESTIONS_VERSION;
    const NAME: &'static str = "an answer to a question about a run";

    fn upgrade(document: &mut Value) {
        let Some(fields) = document.as_object_mut() else { return };
        let question = fields.get("question").and_then(Value::as_str).unwrap_or_default().to_owned();
        // Only answers of `autopsy` had a limit in version 1.
        if !matches!(question.as_str(), "" | "verdict" | "leaks") {
            add(fields, "limit", Value::Null);
        }
        if let Some(limit) = fields.get_mut("limit").and_then(Value::as_object_mut) {
            upgrade_limit(limit);
        }
        match question.as_str() {
            "what-if" | "search" => {
                if let Some(row) = fields.get_mut("baseline").and_then(Value::as_object_mut) {
                    upgrade_setting(row);
                }
                each(fields, "settings", upgrade_setting);
            }
            "autopsy" => {
                let add_dependence = |change: &mut Fields| add(change, "depends_on_limit", json!(false));
                each(fields, "changes", add_dependence);
                each(fields, "in_vain", add_dependence);
            }
            "bound" => {
                add(fields, "ooms", Value::Null);
                add(fields, "ooms_at_high", Value::Null);
            }
            "compare-allocators" => {
                each(fields, "allocators", |row| copy(row, "failed", "failed_at_high"));
            }
            "diff" => add(fields, "limit_before", Value::Null),
            "leaks" => each(fields, "growing", |row| add(row, "first_request", json!(0))),
            _ => {}
        }
    }
}

impl Document for SnapshotLine {
    const VERSION: u32 = SNAPSHOT_VERSION;
    const NAME: &'static str = "an answer of blockyard snapshot";
}

impl Document for GuardAnswer {
    const VERSION: u32 = GUARD_VERSION;
    const NAME: &'static str = "a report of blockyard guard";
}

impl Document for DryRunAnswer {
    const VERSION: u32 = DRY_RUN_VERSION;
    const NAME: &'static str = "a report of blockyard dry-run";
}

impl Document for FitAnswer {
    const VERSION: u32 = FIT_VERSION;
    const NAME: &'static str = "a report of blockyard fit";
}

type Fields = Map<String, Value>;

/// Changes a limit of version 1: its fields had other names, and its source said what the limit is.
fn upgrade_limit(limit: &mut Fields) {
    for (old, new) in [("lowest", "low"), ("highest", "high")] {
        if let Some(bytes) = limit.remove(old) {
            limit.insert(new.to_owned(), bytes);
        }
    }
    let (source, by) = match limit.get("source").and_then(Value::as_str) {
        Some("fraction") => ("inferred", "memory_fraction"),
        Some("device") => ("inferred", "device"),
        Some("capacity") => ("given", "device"),
        Some("given") => ("given", "memory_fraction"),
        _ => return,
    };
    limit.insert("source".to_owned(), json!(source));
    add(limit, "by", json!(by));
}

/// Changes a row of version 1, which had no release and no numbers at the upper bound: these were equal to
/// the numbers at the lower bound.
fn upgrade_setting(row: &mut Fields) {
    add(row, "release", json!(""));
    if row.contains_key("ooms") {
        copy(row, "ooms", "ooms_at_high");
        copy(row, "peak_reserved", "peak_reserved_at_high");
    }
}

/// Adds a field, unless the object has one of that name.
fn add(fields: &mut Fields, name: &str, value: Value) {
    fields.entry(name).or_insert(value);
}

/// Adds a field with the value of another one.
fn copy(fields: &mut Fields, from: &str, to: &str) {
    let value = fields.get(from).cloned().unwrap_or(Value::Null);
    add(fields, to, value);
}

/// Changes each object of a list.
fn each(fields: &mut Fields, list: &str, change: impl Fn(&mut Fields)) {
    let rows = fields.get_mut(list).and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten().filter_map(Value::as_object_mut) {
        change(row);
    }
}
