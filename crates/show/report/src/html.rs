//! Texts as HTML.

pub(crate) use blockyard_figure::{escaped, percent};
use blockyard_record::{Bytes, counted, sentence};

/// The text with a capital letter as [`sentence`] gives one, and without a full stop: a heading.
pub(crate) fn sentence_case(text: &str) -> String {
    sentence(text).trim_end_matches('.').to_owned()
}

/// `20,971,520 bytes`.
pub(crate) fn bytes_text(bytes: Bytes) -> String {
    counted(bytes.get(), "byte")
}

/// A size with its bytes below, as HTML.
pub(crate) fn two_sizes(bytes: Bytes) -> String {
    if bytes < Bytes::kib(1) {
        return bytes_text(bytes);
    }
    format!("{bytes}<small>{}</small>", bytes_text(bytes))
}
