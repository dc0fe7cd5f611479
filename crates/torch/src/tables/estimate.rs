//! What cuDNN takes for a convolution that was not recorded, estimated from those that were.
//!
//! `trees.bin` holds a decision tree for each pass, learned by `scripts/convolutions.py` from the recorded workspaces. A leaf is the code
//! of a workspace ([`super::encode`]): which operands it copies, and what remains. An estimate is always marked as one.

use std::cell::OnceCell;

use super::{Operands, decode, number};

static TREES: &[u8] = include_bytes!("../trees.bin");

/// Forward, gradient of the input, gradient of the weight.
const PASSES: usize = 3;

/// The shapes of a convolution, as its numbers name them (`Convolution::numbers` in `ops/conv.rs`).
struct Shape<'a> {
    pass: usize,
    is_transposed: i64,
    dtype: i64,
    is_channels_last: i64,
    groups: i64,
    /// Input, weight, stride, padding, dilation.
    lists: [&'a [i64]; 5],
}

impl<'a> Shape<'a> {
    fn of(numbers: &'a [i64]) -> Option<Self> {
        let (&[kind, pass, is_transposed, dtype, is_channels_last, groups, separator], rest) =
            numbers.split_first_chunk()?;
        if kind != 1 || separator != -1 {
            return None;
        }
        let mut lists = rest.split(|number| *number == -1);
        let mut list = || lists.next();
        let lists = [list()?, list()?, list()?, list()?, list()?];
        Some(Self {
            pass: usize::try_from(pass).ok()?,
            is_transposed,
            dtype,
            is_channels_last,
            groups,
            lists,
        })
    }
}

/// What a tree asks about a convolution: its pass, and numbers in an order that `trees.bin` relies on.
///
/// `None` for what is no convolution.
#[must_use]
pub fn features(numbers: &[i64], operands: &Operands) -> Option<(usize, Vec<i64>)> {
    let shape = Shape::of(numbers)?;
    let [input, weight, stride, padding, dilation] = shape.lists;
    let size = |list: &[i64], index: usize| list.get(index).copied().unwrap_or(1);
    let product =
        |list: &[i64]| list.iter().skip(2).fold(1_i64, |product, size| product.saturating_mul(*size));
    let times = |factors: &[i64]| factors.iter().fold(1_i64, |product, size| product.saturating_mul(*size));
    let up = |number: i64, unit: i64| number.saturating_add(unit - 1) / unit;
    let groups = shape.groups.max(1);
    let (batch, channels) = (size(input, 0), size(input, 1));
    let filters = if shape.is_transposed == 0 { size(weight, 0) } else { times(&[size(weight, 1), groups]) };
    let [of_input, of_weight, of_output] =
        operands.plain.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    // Bytes of an element: a partial filter has `float32`.
    let width = operands.plain[1].saturating_mul(4).checked_div(operands.partial).unwrap_or(4);
    let width = i64::try_from(width).unwrap_or(4).max(1);
    let places_in = product(input);
    let places_out = of_output / width / times(&[batch, filters]).max(1);
    let kernel = product(weight);
    let rows = times(&[batch, places_out]);
    let columns = times(&[channels / groups, kernel]);
    let last = input.len().saturating_sub(1);
    let all = vec![
        shape.is_transposed,
        shape.dtype,
        shape.is_channels_last,
        groups,
        i64::try_from(input.len()).unwrap_or(0),
        batch,
        channels,
        filters,
        size(input, 2),
        size(input, last),
        size(weight, 2),
        size(weight, last),
        size(stride, 0),
        size(padding, 0),
        size(dilation, 0),
        places_out,
        of_input,
        of_weight,
        of_output,
        channels % 8,
        filters % 8,
        size(weight, 1),
        channels / groups,
        filters / groups,
        rows,
        columns,
        times(&[batch, places_in]),
        places_in,
        kernel,
        times(&[rows, filters, columns]),
        times(&[up(rows, 128), up(filters, 128)]),
        times(&[up(rows, 64), up(filters, 64)]),
        times(&[up(columns, 128), up(filters, 128)]),
        places_out.saturating_sub(places_in).max(0),
        times(&[channels, filters]),
        of_output.saturating_sub(of_input).max(0),
    ];
    Some((shape.pass, all))
}

/// A node of a tree. The node behind a question is its answer "at most".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Question { feature: usize, most: i64, if_more: usize },
    Leaf { code: u64 },
}

/// Bytes that cuDNN probably takes for a convolution; `None` for what is none.
pub(crate) fn estimate(numbers: &[i64], operands: &Operands) -> Option<u64> {
    thread_local! {
        static READ: OnceCell<Vec<Vec<Node>>> = const { OnceCell::new() };
    }
    let (pass, features) = features(numbers, operands)?;
    let code = READ.with(|trees| find(trees.get_or_init(|| read(TREES)).get(pass)?, &features))?;
    Some(decode(code, operands))
}

fn find(tree: &[Node], features: &[i64]) -> Option<u64> {
    let mut at = 0;
    loop {
        // Answers lie behind their question, so that this ends.
        match *tree.get(at)? {
            Node::Leaf { code } => return Some(code),
            Node::Question { feature, most, if_more } => {
                at = if *features.get(feature)? <= most { at + 1 } else { if_more };
            }
        }
    }
}

/// The codes, each once, and the trees: a question is twice its feature plus one and its threshold, a leaf twice the place of its code.
fn read(mut bytes: &[u8]) -> Vec<Vec<Node>> {
    let count = number(&mut bytes).unwrap_or(0);
    let codes: Vec<u64> = (0..count).map_while(|_| number(&mut bytes)).collect();
    (0..PASSES).map_while(|_| read_tree(&mut bytes, &codes)).collect()
}

fn read_tree(bytes: &mut &[u8], codes: &[u64]) -> Option<Vec<Node>> {
    let mut tree: Vec<Node> = Vec::new();
    // Questions whose answer "more" has not been read.
    let mut open = Vec::new();
    loop {
        let head = number(bytes)?;
        if head & 1 == 1 {
            open.push(tree.len());
            let most = i64::try_from(number(bytes)?).ok()?;
            tree.push(Node::Question { feature: usize::try_from(head >> 1).ok()?, most, if_more: 0 });
            continue;
        }
        tree.push(Node::Leaf { code: *codes.get(usize::try_from(head >> 1).ok()?)? });
        let next = tree.len();
        let Some(question) = open.pop() else { return Some(tree) };
        if let Some(Node::Question { if_more, .. }) = tree.get_mut(question) {
            *if_more = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, find, read};

    #[test]
    fn a_tree_is_read_and_asked() {
        // Codes 8 and 16; feature 1 at most 5: code 8, else feature 0 at most 2: code 16, else code 8. The other trees are leaves.
        let trees = read(&[2, 8, 16, 3, 5, 0, 1, 2, 2, 0, 0, 2]);
        assert_eq!(trees.len(), 3);
        assert_eq!(trees[1], [Node::Leaf { code: 8 }]);
        let answers = [[9, 5], [2, 6], [3, 6]].map(|features| find(&trees[0], &features));
        assert_eq!(answers, [Some(8), Some(16), Some(8)]);
        assert_eq!(find(&trees[0], &[]), None);
        assert!(read(&[1, 8, 3]).is_empty());
    }
}
