//! Reductions over the bytes of the ranks of a group.

use crate::memory::Certainty;

/// Bytes of an element, by NCCL's numbers of types; `None` for a type that is not known.
pub(super) fn element(kind: i32) -> Option<u64> {
    match kind {
        0 | 1 | 10 | 11 => Some(1),
        6 | 9 => Some(2),
        2 | 3 | 7 => Some(4),
        4 | 5 | 8 => Some(8),
        _ => None,
    }
}

/// Element by element: the sum, product, most, least or mean (NCCL's operators 0 to 4) of what the ranks
/// have, and whether its last digits may be others on a GPU. `None` where the type or operator is not
/// computed here.
pub(super) fn reduce(parts: &[&[u8]], kind: i32, operator: i32) -> Option<(Vec<u8>, Certainty)> {
    let size = usize::try_from(element(kind)?).ok()?;
    let length = parts.first()?.len();
    if parts.iter().any(|part| part.len() != length) {
        return None;
    }
    let is_float = matches!(kind, 7 | 8);
    if !is_float && !(0..=5).contains(&kind) {
        return None;
    }
    let mut sum = Vec::with_capacity(length);
    for start in (0..length).step_by(size) {
        let elements = parts.iter().filter_map(|part| part.get(start..start.checked_add(size)?));
        if is_float {
            let numbers: Vec<f64> = elements.filter_map(|bytes| float(bytes, kind)).collect();
            put_float(&mut sum, of_floats(&numbers, kind, operator)?, kind);
        } else {
            let numbers: Vec<i128> = elements.filter_map(|bytes| integer(bytes, kind)).collect();
            sum.extend(of_integers(&numbers, operator)?.to_le_bytes().get(..size)?);
        }
    }
    let chooses = matches!(operator, 2 | 3);
    // The sum of two numbers is rounded once, the sum of more numbers in an order that NCCL chooses.
    let is_rounded = is_float && !chooses && (parts.len() > 2 || operator == 4);
    Some((sum, if is_rounded { Certainty::Rounded } else { Certainty::Exact }))
}

fn of_integers(numbers: &[i128], operator: i32) -> Option<i128> {
    let all = numbers.iter().copied();
    match operator {
        0 => Some(all.fold(0, i128::wrapping_add)),
        1 => Some(all.fold(1, i128::wrapping_mul)),
        2 => all.max(),
        3 => all.min(),
        4 => all.fold(0, i128::wrapping_add).checked_div(i128::try_from(numbers.len()).ok()?),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as a GPU rounds")]
fn of_floats(numbers: &[f64], kind: i32, operator: i32) -> Option<f64> {
    let rounded = |number: f64| if kind == 7 { f64::from(number as f32) } else { number };
    let all = numbers.iter().copied();
    match operator {
        0 => Some(all.fold(0.0, |sum, number| rounded(sum + number))),
        1 => Some(all.fold(1.0, |product, number| rounded(product * number))),
        2 => all.reduce(f64::max),
        3 => all.reduce(f64::min),
        4 => Some(rounded(all.fold(0.0, |sum, number| rounded(sum + number)) / numbers.len() as f64)),
        _ => None,
    }
}

fn float(bytes: &[u8], kind: i32) -> Option<f64> {
    if kind == 7 {
        Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)))
    } else {
        Some(f64::from_le_bytes(bytes.try_into().ok()?))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the number was rounded to this type")]
fn put_float(to: &mut Vec<u8>, number: f64, kind: i32) {
    if kind == 7 { to.extend((number as f32).to_le_bytes()) } else { to.extend(number.to_le_bytes()) }
}

fn integer(bytes: &[u8], kind: i32) -> Option<i128> {
    Some(match kind {
        0 => i8::from_le_bytes(bytes.try_into().ok()?).into(),
        1 => u8::from_le_bytes(bytes.try_into().ok()?).into(),
        2 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        3 => u32::from_le_bytes(bytes.try_into().ok()?).into(),
        4 => i64::from_le_bytes(bytes.try_into().ok()?).into(),
        5 => u64::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::reduce;
    use crate::memory::Certainty;

    #[test]
    fn ranks_are_summed_as_their_type_says() {
        let integers = |numbers: &[i64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let (first, second) = (integers(&[3, -4]), integers(&[5, 1]));
        let parts = [first.as_slice(), second.as_slice()];
        for (operator, expected) in [(0, [8, -3]), (1, [15, -4]), (2, [5, 1]), (3, [3, -4])] {
            assert_eq!(reduce(&parts, 4, operator), Some((integers(&expected), Certainty::Exact)));
        }
        let floats = |number: f32| number.to_le_bytes().to_vec();
        let (a, b, c) = (floats(0.1), floats(0.2), floats(0.3));
        assert_eq!(reduce(&[&a, &b], 7, 0), Some((floats(0.1 + 0.2), Certainty::Exact)));
        assert_eq!(reduce(&[&a, &b, &c], 7, 0).unwrap().1, Certainty::Rounded);
        assert_eq!(reduce(&[&a, &b], 6, 0), None, "half precision is not computed");
        assert_eq!(reduce(&[&a, &b], 7, 5), None, "nor is an operator of PyTorch's own");
    }
}
