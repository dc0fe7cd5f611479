//! Texts inside HTML and SVG.

/// A text as HTML and XML hold it, also in the value of an attribute. Letters that reorder the text around
/// them, and control characters, are shown as a box: a name of a file must not change what a page says.
pub fn escaped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_text() {
        assert_eq!(
            escaped("</script><img onerror='x'>&\""),
            "&lt;/script&gt;&lt;img onerror=&#39;x&#39;&gt;&amp;&quot;"
        );
        assert_eq!(escaped("a\u{202e}b\u{1}\n"), "a\u{fffd}b\u{fffd}\n");
    }
}
