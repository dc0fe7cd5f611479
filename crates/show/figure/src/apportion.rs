//! Divides a width among parts, to the pixel.

use blockyard_record::Bytes;

use crate::conversions::{bytes_f64, floor_count};

/// Divides `width` pixels among `parts` in proportion. The widths add up to `width`. Every part that is not
/// empty gets at least one pixel, if there are enough pixels; the widest part gets fewer then.
pub(crate) fn apportion(parts: &[Bytes], width: usize) -> Vec<usize> {
    let total: f64 = parts.iter().map(|part| bytes_f64(*part)).sum();
    let mut widths = vec![0; parts.len()];
    if total <= 0.0 {
        if let Some(last) = widths.last_mut() {
            *last = width;
        }
        return widths;
    }
    let (mut sum, mut edge) = (0.0, 0);
    for (part, slot) in parts.iter().zip(&mut widths) {
        sum += bytes_f64(*part);
        let next = floor_count(sum / total * crate::conversions::count_f64(width) + 0.5).clamp(edge, width);
        *slot = next - edge;
        edge = next;
    }
    // Rounding must not leave a pixel without a part.
    if let Some(last) = parts.iter().rposition(|part| !part.is_zero()) {
        widths[last] += width - edge;
    }
    for index in 0..parts.len() {
        if parts[index].is_zero() || widths[index] > 0 {
            continue;
        }
        if let Some(widest) = (0..widths.len()).max_by_key(|other| widths[*other])
            && widths[widest] > 1
        {
            widths[widest] -= 1;
            widths[index] = 1;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_byte_beside_a_gibibyte_is_seen() {
        let parts = [Bytes::new(1), Bytes::ZERO, Bytes::gib(1), Bytes::new(7)];
        assert_eq!(apportion(&parts, 100), [1, 0, 98, 1]);
    }

    #[test]
    fn nothing_at_all_belongs_to_the_last_part() {
        assert_eq!(apportion(&[Bytes::ZERO, Bytes::ZERO], 9), [0, 9]);
        assert_eq!(apportion(&[], 9), Vec::<usize>::new());
    }

    proptest! {
        #[test]
        fn widths_add_up_and_hide_nothing(
            parts in prop::collection::vec(prop_oneof![Just(0), 1_u64..1000, any::<u64>()], 1..8),
            width in 8_usize..4000,
        ) {
            let parts: Vec<_> = parts.into_iter().map(Bytes::new).collect();
            let widths = apportion(&parts, width);
            prop_assert_eq!(widths.iter().sum::<usize>(), width);
            for (part, part_width) in parts.iter().zip(&widths) {
                prop_assert!(part.is_zero() || *part_width >= 1, "{:?} of {:?}", part, parts);
            }
        }
    }
}
