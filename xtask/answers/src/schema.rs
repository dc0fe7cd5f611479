//! JSON Schema of each document.

use anyhow::Result;
use blockyard_answers::{
    DryRunAnswer, FitAnswer, GuardAnswer, ProgramAnswer, QuestionLine, SnapshotLine, VerifyLine,
};
use schemars::{JsonSchema, SchemaGenerator};

use crate::WrittenFile;

/// One schema for each document that the command prints.
pub(crate) fn files() -> Result<Vec<WrittenFile>> {
    Ok(vec![
        file::<QuestionLine>("questions")?,
        file::<SnapshotLine>("snapshot")?,
        file::<VerifyLine>("verify")?,
        file::<GuardAnswer>("guard")?,
        file::<DryRunAnswer>("dry-run")?,
        file::<FitAnswer>("fit")?,
        file::<ProgramAnswer>("python")?,
    ])
}

fn file<T: JsonSchema>(name: &str) -> Result<WrittenFile> {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema)?;
    text.push('\n');
    Ok(WrittenFile { path: format!("docs/schema/{name}.json").into(), text })
}
