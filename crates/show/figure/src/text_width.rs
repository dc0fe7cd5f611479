//! The width of texts in the typeface of figures ([`crate::typeface`]), without reading the font.

mod advances;

use crate::scene::Weight;
use advances::{OTHERS, REGULAR, SEMIBOLD};

// The width of a character that the typeface does not have, rather too large than too small.
const UNKNOWN: u16 = 1000;

/// The width of a text in pixels: exact for the characters of the typeface, which has no kerning. Any other
/// character counts as one font size, which is rather too large than too small.
pub fn text_width_px(text: &str, size_px: f32, weight: Weight) -> f32 {
    let thousandths: u32 =
        text.chars().map(|character| u32::from(advance(character, weight).unwrap_or(UNKNOWN))).sum();
    crate::conversions::px(f64::from(thousandths)) / 1000.0 * size_px
}

/// Whether the typeface has all characters of the text, so that its width is exact.
pub(crate) fn is_measured(text: &str) -> bool {
    text.chars().all(|character| advance(character, Weight::Normal).is_some())
}

/// Thousandths of the font size; `None` for a character that the typeface does not have.
fn advance(character: char, weight: Weight) -> Option<u16> {
    let latin = match weight {
        Weight::Normal => &REGULAR,
        Weight::Bold => &SEMIBOLD,
    };
    // ASCII from the space to `~`, and Latin-1 after the control characters.
    let place = match u32::from(character) {
        code @ 0x20..=0x7e => code as usize - 0x20,
        code @ 0xa0..=0xff => code as usize - 0xa0 + 95,
        _ => {
            let found = OTHERS.binary_search_by_key(&character, |(other, ..)| *other).ok()?;
            let (_, regular, semibold) = OTHERS.get(found)?;
            return Some(if weight == Weight::Normal { *regular } else { *semibold });
        }
    };
    latin.get(place).copied()
}

/// The text, or its longest beginning of whole words that fits with `…` after it; `None` where not even three
/// characters do.
pub(crate) fn fitted(text: &str, size_px: f32, weight: Weight, room_px: f32) -> Option<String> {
    if text_width_px(text, size_px, weight) <= room_px {
        return Some(text.to_owned());
    }
    let mut used = text_width_px("…", size_px, weight);
    let mut kept = "";
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        // A word ends before, and after, a character that is not alphanumeric.
        if !(character.is_alphanumeric() && before.is_alphanumeric()) {
            kept = text.get(..at).unwrap_or_default();
        }
        used += text_width_px(character.encode_utf8(&mut [0; 4]), size_px, weight);
        if used > room_px {
            break;
        }
        before = character;
    }
    let kept = kept.trim_end_matches(|end: char| end.is_whitespace() || "([{,.:;-_".contains(end));
    (kept.chars().count() >= 3).then(|| kept.to_owned() + "…")
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
    use std::collections::BTreeSet;

    use skrifa::instance::{LocationRef, Size};
    use skrifa::{FontRef, MetadataProvider as _};

    use super::*;
    use crate::typeface;

    #[test]
    fn a_text_is_cut_only_where_it_does_not_fit() {
        assert_eq!(fitted("weights", 11.0, Weight::Normal, 200.0).as_deref(), Some("weights"));
        let cut = |text: &str, room_px: f32| fitted(text, 11.0, Weight::Normal, room_px);
        assert_eq!(cut("weights of the first layer", 80.0).as_deref(), Some("weights of…"));
        assert_eq!(cut("step 2: optimizer.step()", 110.0).as_deref(), Some("step 2: optimizer…"));
        assert_eq!(cut("weights", 40.0), None, "no part of a word");
        assert_eq!(cut("weights", 5.0), None);
        for room_px in 0_u8..200 {
            let room_px = f32::from(room_px);
            let Some(text) = cut("model.layers[0] (attention, größer): 12 tensors", room_px) else {
                continue;
            };
            assert!(text_width_px(&text, 11.0, Weight::Normal) <= room_px);
        }
    }

    #[test]
    fn letters_are_narrower_than_the_font_size_and_bold_is_wider() {
        let normal = text_width_px("allocated 512 MiB", 12.0, Weight::Normal);
        assert!(normal > 80.0 && normal < 120.0, "{normal}");
        assert!(text_width_px("allocated 512 MiB", 12.0, Weight::Bold) > normal);
    }

    #[test]
    fn the_widths_are_those_of_the_font_files_for_every_character() {
        let files = [(Weight::Normal, typeface::SANS_REGULAR), (Weight::Bold, typeface::SANS_SEMIBOLD)];
        for (weight, files) in files {
            let font = FontRef::new(files.ttf).unwrap();
            let metrics = font.glyph_metrics(Size::new(1000.0), LocationRef::default());
            let charmap = font.charmap();
            for character in '\0'..=char::MAX {
                let wanted = charmap.map(character).and_then(|glyph| metrics.advance_width(glyph));
                let ours = advance(character, weight).map(f32::from);
                assert_eq!(ours, wanted, "{character:?} {weight:?}");
            }
        }
    }

    #[test]
    fn digits_have_one_width_so_that_numbers_stand_below_each_other() {
        for weight in [Weight::Normal, Weight::Bold] {
            let widths: BTreeSet<_> = ('0'..='9').map(|digit| advance(digit, weight)).collect();
            assert_eq!(widths.len(), 1, "{weight:?}");
        }
    }

    #[test]
    fn a_width_is_exact_only_where_the_typeface_has_every_character() {
        assert!(is_measured("2 × 20 MiB ≤ 1 GiB … “größer” ✓"));
        assert!(!is_measured("重み"));
    }
}
