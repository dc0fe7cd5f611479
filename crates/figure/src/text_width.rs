//! Estimates of the width of texts, without a font.

use crate::scene::Weight;

// Thousandths of the font size for the printable ASCII characters, as in Arial and fonts made to fit it.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

// Other fonts of the stack run up to this much wider, bold ones a little more.
const SLACK: f32 = 1.05;
const BOLD: f32 = 1.08;

/// The width in pixels, rather too large than too small; characters beyond ASCII count as one font size.
///
/// The layout relies on the width: a renderer with a wider font has to squeeze the text.
#[must_use]
pub fn text_width_px(text: &str, size_px: f32, weight: Weight) -> f32 {
    let thousandths: u32 = text.chars().map(|character| u32::from(char_width(character))).sum();
    let wide = if weight == Weight::Bold { BOLD } else { 1.0 };
    crate::numbers::px(f64::from(thousandths)) / 1000.0 * size_px * SLACK * wide
}

fn char_width(character: char) -> u16 {
    match character {
        '…' => 1000,
        '·' => 333,
        '×' | '→' | '≥' | '≤' => 600,
        _ => u32::from(character)
            .checked_sub(32)
            .and_then(|index| WIDTHS.get(index as usize))
            .copied()
            .unwrap_or(1000),
    }
}

/// The text, or its longest beginning that fits with `…` behind it; `None` where not even three characters do.
pub(crate) fn fitted(text: &str, size_px: f32, weight: Weight, room_px: f32) -> Option<String> {
    if text_width_px(text, size_px, weight) <= room_px {
        return Some(text.to_owned());
    }
    let dots = text_width_px("…", size_px, weight);
    let mut kept = String::new();
    let mut used = dots;
    for character in text.chars() {
        used += text_width_px(character.encode_utf8(&mut [0; 4]), size_px, weight);
        if used > room_px {
            break;
        }
        kept.push(character);
    }
    (kept.chars().count() >= 3).then(|| kept.trim_end().to_owned() + "…")
}

/// The first of `texts` that fits.
pub(crate) fn first_fitting<T: AsRef<str>>(
    texts: &[T],
    size_px: f32,
    weight: Weight,
    room_px: f32,
) -> Option<&str> {
    texts.iter().map(AsRef::as_ref).find(|text| text_width_px(text, size_px, weight) <= room_px)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_only_where_it_does_not_fit() {
        assert_eq!(fitted("weights", 11.0, Weight::Normal, 200.0).as_deref(), Some("weights"));
        let cut = fitted("weights of the first layer", 11.0, Weight::Normal, 60.0).unwrap();
        assert!(cut.ends_with('…') && cut.starts_with("we"), "{cut}");
        assert!(text_width_px(&cut, 11.0, Weight::Normal) <= 60.0);
        assert_eq!(fitted("weights", 11.0, Weight::Normal, 5.0), None);
    }

    #[test]
    fn letters_are_narrower_than_the_font_size_and_bold_is_wider() {
        let normal = text_width_px("allocated 512 MiB", 12.0, Weight::Normal);
        assert!(normal > 80.0 && normal < 120.0, "{normal}");
        assert!(text_width_px("allocated 512 MiB", 12.0, Weight::Bold) > normal);
    }
}
