//! Which line of a changed program is which line of the program before.

use crate::{Holder, ProgramLine};

/// A line of the run, and its place in the baseline's list where it has one.
pub(crate) type Pairs = Vec<Option<usize>>;

/// For each line of the run, the line of the baseline that it is. Lines are first found by the text of the line, within their file and function,
/// those of one text in their order; then by file, function and number; the lines of no file by their sentence. So a line that only moved is
/// the same line, and so is one whose text alone was changed.
pub(crate) fn pairs(before: &[Holder], after: &[Holder]) -> Pairs {
    let mut pairs: Pairs = vec![None; after.len()];
    let mut is_taken = vec![false; before.len()];
    let orders: [fn(&ProgramLine, &ProgramLine) -> bool; 3] = [
        // A line that stayed where it was stays itself, even where its text stands elsewhere too.
        |one, other| one == other,
        |one, other| {
            !one.code.is_empty()
                && one.code == other.code
                && one.file == other.file
                && one.function == other.function
        },
        |one, other| one.file == other.file && one.line == other.line && one.function == other.function,
    ];
    for is_same in orders {
        for place in by_line(after) {
            let Some(holder) = after.get(place).filter(|_| pairs.get(place) == Some(&None)) else { continue };
            let found = by_line(before).into_iter().find(|old| {
                is_taken.get(*old) == Some(&false)
                    && before.get(*old).is_some_and(|old| is_same(&old.line, &holder.line))
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

/// Places in the list, in the order of their lines.
fn by_line(holders: &[Holder]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..holders.len()).collect();
    places.sort_by_key(|place| holders.get(*place).map(|holder| (&holder.line.file, holder.line.line)));
    places
}

#[cfg(test)]
mod tests {
    use blockyard_record::Bytes;

    use super::*;

    fn holder(line: u32, code: &str) -> Holder {
        let line = ProgramLine { file: "train.py".into(), line, function: "f".into(), code: code.into() };
        Holder { line, bytes: Bytes::new(1) }
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
    fn a_line_whose_text_changed_is_the_same_line() {
        let before = [holder(3, "a(1)"), holder(4, "b()")];
        assert_eq!(pairs(&before, &[holder(3, "a(2)"), holder(5, "c()")]), [Some(0), None]);
        let elsewhere = ProgramLine { file: "other.py".into(), ..holder(3, "a(1)").line };
        assert_eq!(pairs(&before, &[Holder { line: elsewhere, bytes: Bytes::new(1) }]), [None]);
    }
}
