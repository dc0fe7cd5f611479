//! Which allocations of two runs correspond.

use std::collections::HashMap;

use blockyard_workload::Request;

use super::Part;
use crate::{Alignment, Run};

/// The most differences that are searched for at once; memory grows with the square of this number.
const MAX_DIFFERENCES: usize = 1000;

pub(super) fn aligned(before: &Part<'_>, after: &Part<'_>) -> Alignment {
    let mut names: HashMap<(&[String], u64, u64), u32> = HashMap::new();
    let (left, left_requests) = keys(before, &mut names);
    let (right, right_requests) = keys(after, &mut names);
    let mut alignment = Alignment::default();
    let (mut from_left, mut from_right) = (0, 0);
    // The lists are compared stretch by stretch, so that two long runs with many differences stay cheap to
    // compare.
    while from_left < left.len() || from_right < right.len() {
        let stretch = Stretch::of(
            left.get(from_left..).unwrap_or_default(),
            right.get(from_right..).unwrap_or_default(),
        );
        let number = |run: &Run, requests: &[usize], at: Option<usize>| {
            at.and_then(|at| requests.get(at)).map(|at| run.request_number(*at)).filter(|number| *number > 0)
        };
        let (first_left, first_right) = (stretch.only_left.first(), stretch.only_right.first());
        let first = number(before.run, &left_requests, first_left.map(|at| from_left + at));
        alignment.first_only_before = alignment.first_only_before.or(first);
        let first = number(after.run, &right_requests, first_right.map(|at| from_right + at));
        alignment.first_only_after = alignment.first_only_after.or(first);
        let add = |count: &mut u64, more: usize| *count = count.saturating_add(more as u64);
        add(&mut alignment.only_before, stretch.only_left.len());
        add(&mut alignment.only_after, stretch.only_right.len());
        add(&mut alignment.same, stretch.left - stretch.only_left.len());
        if stretch.left + stretch.right == 0 {
            break;
        }
        (from_left, from_right) = (from_left + stretch.left, from_right + stretch.right);
    }
    alignment
}

/// The allocations of a part of a run as numbers that are equal for equal allocations, and their requests.
fn keys<'a>(part: &Part<'a>, names: &mut HashMap<(&'a [String], u64, u64), u32>) -> (Vec<u32>, Vec<usize>) {
    let (mut keys, mut requests) = (Vec::new(), Vec::new());
    let sites = part.sites;
    let all = part.run.requests().iter().enumerate();
    for (index, request) in all.take(part.requests.end).skip(part.requests.start) {
        let Request::Allocate { size, stream, .. } = request else { continue };
        let site = sites.names.get(sites.at(index) as usize).map(Vec::as_slice).unwrap_or_default();
        // There are no more names than allocations, which `TensorId` can count.
        let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
        // Handles of streams other than the default one differ from process to process.
        let is_default = u64::from(stream.get() == 0);
        keys.push(*names.entry((site, size.get(), is_default)).or_insert(next));
        requests.push(index);
    }
    (keys, requests)
}

/// The beginnings of two lists, with the fewest differences between them (Myers' algorithm).
struct Stretch {
    left: usize,
    right: usize,
    /// The places that only the left list has, ascending.
    only_left: Vec<usize>,
    only_right: Vec<usize>,
}

impl Stretch {
    fn of(left: &[u32], right: &[u32]) -> Self {
        // Diagonal `place - middle` is how much further a path is on the left; `reached` is its furthest
        // place there.
        let middle = MAX_DIFFERENCES + 1;
        let mut reached = vec![0_usize; 2 * middle + 1];
        let mut history: Vec<Vec<usize>> = Vec::new();
        let at = |reached: &[usize], place: usize| reached.get(place).copied().unwrap_or_default();
        for differences in 0..=MAX_DIFFERENCES {
            for place in (middle - differences..=middle + differences).step_by(2) {
                let is_first = place == middle - differences;
                let is_last = place == middle + differences;
                let comes_from_above =
                    is_first || (!is_last && at(&reached, place - 1) < at(&reached, place + 1));
                let mut x = match (differences, comes_from_above) {
                    (0, _) => 0,
                    (_, true) => at(&reached, place + 1),
                    (_, false) => at(&reached, place - 1) + 1,
                };
                let mut y = (x + middle).saturating_sub(place);
                while let (Some(one), Some(other)) = (left.get(x), right.get(y)) {
                    if one != other {
                        break;
                    }
                    (x, y) = (x + 1, y + 1);
                }
                if let Some(reached) = reached.get_mut(place) {
                    *reached = x;
                }
                if x >= left.len() && y >= right.len() {
                    return Self::along(&history, middle, place, x.min(left.len()), y.min(right.len()));
                }
            }
            history
                .push(reached.get(middle - differences..=middle + differences).unwrap_or_default().to_vec());
        }
        let last = history.pop().unwrap_or_default();
        let inside = |place: usize, x: usize| {
            let y = (x + middle).saturating_sub(place);
            (x <= left.len() && y <= right.len()).then_some((x + y, place, x, y))
        };
        let first = middle - MAX_DIFFERENCES;
        let ends = last.iter().enumerate().step_by(2).filter_map(|(index, x)| inside(first + index, *x));
        match ends.max() {
            Some((_, place, x, y)) => Self::along(&history, middle, place, x, y),
            None => Self {
                left: left.len(),
                right: right.len(),
                only_left: (0..left.len()).collect(),
                only_right: (0..right.len()).collect(),
            },
        }
    }

    /// The path to a place, followed backwards through the places that fewer differences reach.
    fn along(history: &[Vec<usize>], middle: usize, place: usize, left: usize, right: usize) -> Self {
        let mut stretch = Self { left, right, only_left: Vec::new(), only_right: Vec::new() };
        let mut place = place;
        for (differences, reached) in history.iter().enumerate().rev() {
            let first = middle - differences;
            let at = |place: usize| place.checked_sub(first).and_then(|index| reached.get(index)).copied();
            let (above, below) = (at(place + 1), at(place - 1));
            let comes_from_above = match (above, below) {
                (Some(above), Some(below)) => below < above,
                (above, _) => above.is_some(),
            };
            if comes_from_above {
                place += 1;
                stretch.only_right.push((above.unwrap_or_default() + middle).saturating_sub(place));
            } else {
                place -= 1;
                stretch.only_left.push(below.unwrap_or_default());
            }
        }
        stretch.only_left.reverse();
        stretch.only_right.reverse();
        stretch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_differences_are_found() {
        let stretch = Stretch::of(&[1, 2, 3, 4, 5], &[1, 3, 4, 9, 5, 6]);
        assert_eq!((stretch.left, stretch.right), (5, 6));
        assert_eq!((stretch.only_left, stretch.only_right), (vec![1], vec![3, 5]));
        let stretch = Stretch::of(&[], &[7]);
        assert_eq!((stretch.only_left, stretch.only_right), (vec![], vec![0]));
        let stretch = Stretch::of(&[7, 8], &[7, 8]);
        assert!(stretch.only_left.is_empty() && stretch.only_right.is_empty());
    }
}
