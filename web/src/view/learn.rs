//! Chapters, practice and words, which a student sees.

pub(crate) mod lesson;
pub(crate) mod lessons;
pub(crate) mod practice;
pub(crate) mod term_row;
