//! Which line of a changed program is which line of the program before.

use blockyard_answers::GuardHolder;

/// For each line of the run, its index in the baseline's list if it has one.
pub(crate) type Pairs = Vec<Option<usize>>;

/// For each line of the run, its index in the baseline's list. Lines are compared within their file and
/// function: first by the text of the line, lines with one text in their order; then by a text of which more
/// than two thirds, at its beginning and its end, are equal; by the number if a text was not read; and by the
/// sentence for lines of no file. So a line that only moved is the same line, and so is a line of which a
/// part changed.
pub(crate) fn pairs(before: &[GuardHolder], after: &[GuardHolder]) -> Pairs {
    let mut pairs: Pairs = vec![None; after.len()];
    let mut is_taken = vec![false; before.len()];
    let orders: [fn(&GuardHolder, &GuardHolder) -> bool; 4] = [
        // A line that kept its place is the same line, even if another line has the same text.
        |one, other| one.at == other.at && one.function == other.function && one.code == other.code,
        |one, other| !one.code.is_empty() && one.code == other.code && is_near(one, other),
        |one, other| is_alike(&one.code, &other.code) && is_near(one, other),
        |one, other| {
            (one.code.is_empty() || other.code.is_empty())
                && place(one).1 == place(other).1
                && is_near(one, other)
        },
    ];
    for is_same in orders {
        for place in by_line(after) {
            let Some(holder) = after.get(place).filter(|_| pairs.get(place) == Some(&None)) else { continue };
            let found = by_line(before).into_iter().find(|old| {
                is_taken.get(*old) == Some(&false) && before.get(*old).is_some_and(|old| is_same(old, holder))
            });
            if let (Some(found), Some(pair)) = (found, pairs.get_mut(place)) {
                *pair = Some(found);
                if let Some(taken) = is_taken.get_mut(found) {
                    *taken = true;
                }
            }
        }
    }
    pairs
}

/// The file and the number of a line; the number is 0 if the line is not known.
pub(super) fn place(holder: &GuardHolder) -> (&str, u32) {
    let numbered = holder.at.rsplit_once(':');
    let numbered = numbered.and_then(|(file, number)| Some((file, number.parse().ok()?)));
    numbered.unwrap_or((&holder.at, 0))
}

/// Whether both lines are of one function.
fn is_near(one: &GuardHolder, other: &GuardHolder) -> bool {
    place(one).0 == place(other).0 && one.function == other.function
}

/// Whether more than two thirds of the longer text are the same, at the beginning and at the end.
fn is_alike(one: &str, other: &str) -> bool {
    let longest = one.chars().count().max(other.chars().count());
    let shortest = one.chars().count().min(other.chars().count());
    let begin = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let pairs = one.chars().rev().zip(other.chars().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    begin.saturating_add(end).min(shortest).saturating_mul(3) > longest.saturating_mul(2)
}

/// Places in the list, in the order of their lines.
fn by_line(holders: &[GuardHolder]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..holders.len()).collect();
    places.sort_by_key(|index| holders.get(*index).map(place));
    places
}

#[cfg(test)]
mod tests {
    use blockyard_record::Bytes;

    use super::*;

    fn holder(line: u32, code: &str) -> GuardHolder {
        GuardHolder {
            bytes: Bytes::new(1),
            at: format!("train.py:{line}"),
            function: "f".into(),
            code: code.into(),
        }
    }

    #[test]
    fn a_line_that_moved_is_the_same_line() {
        let before = [holder(3, "a()"), holder(5, "b()")];
        assert_eq!(pairs(&before, &[holder(4, "a()"), holder(6, "b()")]), [Some(0), Some(1)]);
        // One text twice: in their order.
        let before = [holder(9, "x = block(x)"), holder(8, "x = block(x)")];
        let after = [holder(10, "x = block(x)"), holder(11, "x = block(x)"), holder(12, "x = block(x)")];
        assert_eq!(pairs(&before, &after), [Some(1), Some(0), None]);
    }

    #[test]
    fn a_line_of_which_a_part_changed_is_the_same_line() {
        let before = [holder(3, "a(1)"), holder(4, "b()")];
        assert_eq!(pairs(&before, &[holder(9, "a(2)"), holder(5, "c()")]), [Some(0), None]);
        let (old, new) = ("return x + self.feed(x)", "x = x + self.feed(x)");
        assert_eq!(
            pairs(&[holder(4, old)], &[holder(5, "return x + self.more(x) * 2"), holder(4, new)]),
            [None, Some(0)]
        );
        assert_eq!(pairs(&[holder(4, "")], &[holder(5, "a()"), holder(4, "b()")]), [None, Some(0)]);
        assert_eq!(pairs(&[holder(4, "aaaa")], &[holder(4, "aa")]), [None], "no letter counts twice");
        let elsewhere = GuardHolder { at: "other.py:3".into(), ..holder(3, "a(1)") };
        assert_eq!(pairs(&before, &[elsewhere]), [None]);
    }
}
