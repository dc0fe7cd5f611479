//! Texts as HTML.

use blockyard_record::{Bytes, grouped};

/// A text as HTML, also in the value of an attribute. Letters that reorder the text around them, and control characters, are shown
/// as a box: a name of a file must not change what the page says.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

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

/// `20 MiB (20,971,520 bytes)`: a size that is cut off never stands alone.
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
    fn hostile_texts_stay_texts() {
        assert_eq!(
            escaped("</script><img onerror='x'>&\""),
            "&lt;/script&gt;&lt;img onerror=&#39;x&#39;&gt;&amp;&quot;"
        );
        assert_eq!(escaped("a\u{202e}b\u{0}c"), "a\u{fffd}b\u{fffd}c");
    }

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
