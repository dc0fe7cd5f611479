//! Sizes that lessons have from measurements.

use blockyard_record::Bytes;

use crate::document::Field;
use crate::error::{LessonError, LessonErrorKind};
use crate::lesson::size_of;

/// A size that a lesson has from a measurement, since no run of the allocator can say how much memory lies
/// outside of PyTorch's segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredSize {
    /// The name of the size in values: `context` in `{measured context}`.
    pub name: String,
    /// The size.
    pub size: Bytes,
    /// The source of the measurement, in words.
    pub source: String,
}

impl MeasuredSize {
    /// Reads `NAME = SIZE, SOURCE`.
    pub(crate) fn parse(field: &Field) -> Result<Self, LessonError> {
        let unexpected = || {
            let found = field.value.clone();
            field.at.at(LessonErrorKind::Unexpected { expected: "NAME = SIZE, SOURCE", found })
        };
        let (name, rest) = field.value.split_once('=').ok_or_else(unexpected)?;
        let (size, source) = rest.split_once(',').ok_or_else(unexpected)?;
        let (name, source) = (name.trim(), source.trim());
        if name.is_empty() || name.contains(' ') || source.is_empty() {
            return Err(unexpected());
        }
        let size = size_of(field.at, size.trim())?;
        Ok(Self { name: name.to_owned(), size, source: source.to_owned() })
    }
}
