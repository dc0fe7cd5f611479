//! Texts as HTML.

pub(crate) use blockyard_figure::escaped;
use blockyard_record::{Bytes, grouped};

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

/// The same without a full stop: a heading.
pub(crate) fn sentence_case(text: &str) -> String {
    sentence(text).trim_end_matches('.').to_owned()
}

/// `20 MiB (20,971,520 bytes)`: a size with two digits never stands alone.
pub(crate) fn exact(bytes: Bytes) -> String {
    if bytes < Bytes::kib(1) {
        return bytes_text(bytes);
    }
    format!("{bytes} ({})", bytes_text(bytes))
}

/// `20,971,520 bytes`.
pub(crate) fn bytes_text(bytes: Bytes) -> String {
    if bytes.get() == 1 { "1 byte".to_owned() } else { format!("{} bytes", grouped(bytes.get())) }
}

/// A size with its bytes below, as HTML.
pub(crate) fn two_sizes(bytes: Bytes) -> String {
    if bytes < Bytes::kib(1) {
        return bytes_text(bytes);
    }
    format!("{bytes}<small>{}</small>", bytes_text(bytes))
}

/// `12.3 %`; `-` of nothing.
pub(crate) fn share(part: Bytes, whole: Bytes) -> String {
    let whole = u128::from(whole.get());
    // To the nearest, as the page says it; only the whole is 100 %.
    let nearest = u128::from(part.get()).saturating_mul(1000).saturating_add(whole / 2).checked_div(whole);
    let tenths = nearest.map(|tenths| if u128::from(part.get()) < whole { tenths.min(999) } else { tenths });
    match tenths {
        None => "-".to_owned(),
        Some(0) if !part.is_zero() => "< 0.1 %".to_owned(),
        Some(tenths) => format!("{}.{} %", tenths / 10, tenths % 10),
    }
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
    fn shares_are_rounded_to_the_nearest_but_not_to_the_whole() {
        assert_eq!(share(Bytes::new(2986), Bytes::new(10_000)), "29.9 %");
        assert_eq!(share(Bytes::new(9999), Bytes::new(10_000)), "99.9 %");
        assert_eq!(share(Bytes::new(7), Bytes::new(7)), "100.0 %");
        assert_eq!(share(Bytes::new(999), Bytes::new(1000)), "99.9 %");
        assert_eq!(share(Bytes::new(1), Bytes::gib(1)), "< 0.1 %");
        assert_eq!(share(Bytes::ZERO, Bytes::ZERO), "-");
        assert_eq!(exact(Bytes::new(1)), "1 byte");
        assert_eq!(exact(Bytes::mib(20)), "20 MiB (20,971,520 bytes)");
    }
}
