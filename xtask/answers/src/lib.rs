//! The files that follow from the types of `crates/base/answers`: one JSON Schema for each document that the
//! command prints, the classes of the Python package, and the tables of fields in the documents.
//!
//! `cargo xtask update answers` writes these files; a test fails if a file in the repository differs.

mod fields;
mod python;
mod schema;
mod tables;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file that follows from the types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// The path from the repository's root.
    pub path: PathBuf,
    /// The content.
    pub text: String,
}

/// All files that follow from the types.
///
/// # Errors
///
/// If a source of the types cannot be read, or a schema cannot be written as JSON.
pub fn files() -> Result<Vec<WrittenFile>> {
    let types = fields::Types::read()?;
    let mut files = schema::files()?;
    files.push(python::file(&types)?);
    files.extend(tables::files(&types)?);
    Ok(files)
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes the files that differ from those in the repository, and returns their paths.
///
/// # Errors
///
/// The errors of [`files`], and a file that cannot be written.
pub fn update() -> Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    for file in files()? {
        let path = root().join(&file.path);
        if std::fs::read_to_string(&path).is_ok_and(|text| text == file.text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, &file.text).with_context(|| path.display().to_string())?;
        changed.push(file.path);
    }
    Ok(changed)
}
