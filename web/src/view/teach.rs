//! The pages for teachers, and chapters on a projector.

pub(crate) mod grading;
pub(crate) mod handout;
pub(crate) mod make_lesson;
pub(crate) mod present;
pub(crate) mod teachers;
