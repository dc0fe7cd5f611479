//! Texts as HTML.

pub(crate) use blockyard_figure::{escaped, percent};
use blockyard_record::{Bytes, counted};

/// A sentence: with a full stop, and a capital letter where the first word is not a name.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::with_capacity(text.len().saturating_add(1));
    let first_word = text.split(' ').next().unwrap_or_default();
    let is_plain = first_word.bytes().all(|letter| letter.is_ascii_lowercase());
    match letters.next() {
        Some(first) if is_plain => out.push(first.to_ascii_uppercase()),
        Some(first) => out.push(first),
        None => return out,
    }
    out.push_str(letters.as_str());
    if !out.ends_with(['.', '!', '?']) {
        out.push('.');
    }
    out
}

/// The text with a capital letter as [`sentence`] gives one, and without a full stop: a heading.
pub(crate) fn sentence_case(text: &str) -> String {
    sentence(text).trim_end_matches('.').to_owned()
}

/// `20 MiB (20,971,520 bytes)`: a size with two digits always has its bytes beside it.
pub(crate) fn exact(bytes: Bytes) -> String {
    if bytes < Bytes::kib(1) {
        return bytes_text(bytes);
    }
    format!("{bytes} ({})", bytes_text(bytes))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_letter_but_names_stay() {
        assert_eq!(sentence("the run ended"), "The run ended.");
        assert_eq!(sentence("a limit"), "A limit.");
        assert_eq!(sentence("loss_1 is live."), "loss_1 is live.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn sizes_have_their_bytes_beside_them() {
        assert_eq!(exact(Bytes::new(1)), "1 byte");
        assert_eq!(exact(Bytes::mib(20)), "20 MiB (20,971,520 bytes)");
    }
}
