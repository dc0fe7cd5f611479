//! The decision trees of `trees.bin`, written by `scripts/convolutions.py`.
//!
//! First the codes, each once. Then a tree for each operation, whose leaves are places of codes; another for
//! each, which is asked where the first says that the code is a rare one; and one for each formula that
//! counts partial filters, whose leaves are counts. A leaf is twice its number. A question is odd: above that
//! bit six bits of its feature, above these how many zero bits follow its threshold, which comes next; then
//! its answer "at most".

use std::cell::OnceCell;

use super::estimate::{Code, FORMULAS, OF_IMAGES, PARTIAL};
use super::number;

static TREES: &[u8] = include_bytes!("../trees.bin");

/// The number of operations: forward pass, gradient of the input, gradient of the filter.
const OPERATIONS: usize = 3;

/// A node of a tree. The node after a question is its answer "at most".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Question { feature: usize, most: i64, if_more: usize },
    Leaf(u64),
}

/// The code in a leaf that refers to the tree of rare codes.
const RARE: Code = Code(63);

/// All trees of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Trees {
    /// The codes, to whose places the leaves of `operations` and `rare` refer.
    codes: Vec<Code>,
    /// The first tree of each operation.
    operations: Vec<Vec<Node>>,
    /// The tree of each operation that is asked where the first tree gives [`RARE`].
    rare: Vec<Vec<Node>>,
    /// The trees of counts of partial filters, by formula from [`PARTIAL`] on, without [`OF_IMAGES`].
    counts: Vec<Vec<Node>>,
}

/// Calls a function with the trees, which each thread reads once.
pub(super) fn with_trees<T>(then: impl FnOnce(&Trees) -> T) -> T {
    thread_local! {
        static READ: OnceCell<Trees> = const { OnceCell::new() };
    }
    READ.with(|trees| then(trees.get_or_init(|| Trees::read(TREES))))
}

impl Trees {
    fn read(mut bytes: &[u8]) -> Self {
        let count = number(&mut bytes).unwrap_or(0);
        let codes = (0..count).map_while(|_| number(&mut bytes).map(Code)).collect();
        let operations = (0..OPERATIONS).map_while(|_| read_tree(&mut bytes)).collect();
        let rare = (0..OPERATIONS).map_while(|_| read_tree(&mut bytes)).collect();
        let counts = (PARTIAL + 1..FORMULAS).map_while(|_| read_tree(&mut bytes)).collect();
        Self { codes, operations, rare, counts }
    }

    /// The code of a convolution with these features; `None` for an operation without a tree.
    pub(super) fn find(&self, operation: usize, features: &[i64]) -> Option<Code> {
        let code_of = |trees: &[Vec<Node>]| {
            let place = find(trees.get(operation)?, features)?;
            self.codes.get(usize::try_from(place).ok()?).copied()
        };
        let mut code = code_of(&self.operations)?;
        if code == RARE {
            code = code_of(&self.rare)?;
        }
        let index = match code.formula() {
            PARTIAL => 0,
            formula if formula > OF_IMAGES => formula - OF_IMAGES,
            _ => return Some(code),
        };
        Some(code.with_count(find(self.counts.get(usize::try_from(index).ok()?)?, features)?))
    }
}

fn find(tree: &[Node], features: &[i64]) -> Option<u64> {
    let mut at = 0;
    loop {
        // Answers come after their question in the list, so the loop ends.
        match *tree.get(at)? {
            Node::Leaf(value) => return Some(value),
            Node::Question { feature, most, if_more } => {
                // The trees were learned from numbers of this precision.
                let value = *features.get(feature)? as f32 as i64;
                at = if value <= most { at + 1 } else { if_more };
            }
        }
    }
}

fn read_tree(bytes: &mut &[u8]) -> Option<Vec<Node>> {
    let mut tree: Vec<Node> = Vec::new();
    // Questions whose answer "more" has not been read.
    let mut open = Vec::new();
    loop {
        let head = number(bytes)?;
        if head & 1 == 1 {
            open.push(tree.len());
            let most = i64::try_from(number(bytes)?).ok()?.checked_shl(u32::try_from(head >> 7).ok()?)?;
            let feature = usize::try_from(head >> 1 & 63).ok()?;
            tree.push(Node::Question { feature, most, if_more: 0 });
            continue;
        }
        tree.push(Node::Leaf(head >> 1));
        let next = tree.len();
        let Some(question) = open.pop() else { return Some(tree) };
        if let Some(Node::Question { if_more, .. }) = tree.get_mut(question) {
            *if_more = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Trees};

    #[test]
    fn trees_are_read_and_asked() {
        // Code 16 << 18, the rare one, formula 24 with 144 bytes. Feature 1 at most 5: the first, else
        // feature 0 at most 2: the rare one, else the third. The rare tree says the first.
        let mut bytes = vec![3, 0x80, 0x80, 0x80, 0x02, 63, 0x98, 0x80, 0x80, 0x12];
        bytes.extend([3, 5, 0, 0x81, 1, 1, 2, 4]);
        bytes.extend([0, 0]);
        bytes.extend([0, 0, 0]);
        bytes.extend([2 * 7; 9]);
        let trees = Trees::read(&bytes);
        let plain = Code(16 << 18);
        assert_eq!(trees.find(0, &[9, 5]), Some(plain));
        assert_eq!(trees.find(0, &[2, 6]), Some(plain));
        assert_eq!(trees.find(0, &[3, 6]), Some(Code((144 << 18) + (7 << 6) + 24)));
        assert_eq!(trees.find(0, &[]), None);
        assert_eq!(trees.find(3, &[3, 6]), None);
        assert!(Trees::read(&[1, 8, 3]).operations.is_empty());
    }
}
