//! The tasks that may run now.

use super::node::Node;

/// The binary heap of the C++ standard library that PyTorch is built with (`std::priority_queue` of
/// libstdc++).
///
/// Several tasks may have the same sequence number: those that add up gradients of leaves all do, and so may
/// nodes that different threads made. Which of them runs first is decided by the heap's own steps, so these
/// are the same here.
pub(super) struct ReadyQueue<T>(Vec<(u64, T)>);

impl<T> Default for ReadyQueue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ReadyQueue<T> {
    /// Adds a task of a node; nodes with higher sequence numbers come out first, accumulators before all.
    pub(super) fn push(&mut self, node: &Node, task: T) {
        self.push_at(node.sequence(), task);
    }

    fn push_at(&mut self, sequence: u64, task: T) {
        self.0.push((sequence, task));
        self.raise(self.0.len() - 1);
    }

    /// Moves an element up, past parents whose number is lower.
    fn raise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.number(parent) >= self.number(at) {
                return;
            }
            self.0.swap(parent, at);
            at = parent;
        }
    }

    fn number(&self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |(number, _)| *number)
    }

    /// The task with the highest number. The hole that it leaves sinks to the bottom along the greater
    /// children, the right one of two that are equal; the last element fills the hole and rises again.
    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.0.len().checked_sub(1)?;
        self.0.swap(0, last);
        let (_, first) = self.0.pop()?;
        if last == 0 {
            return Some(first);
        }
        // The last element fills the hole while the hole sinks.
        let mut hole = 0;
        loop {
            let (left, right) = (2 * hole + 1, 2 * hole + 2);
            let child = if right < last {
                if self.number(right) < self.number(left) { left } else { right }
            } else if left < last {
                left
            } else {
                break;
            };
            self.0.swap(hole, child);
            hole = child;
        }
        self.raise(hole);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::ReadyQueue;

    /// What a program of C++ printed that pushed these numbers into a `std::priority_queue` and popped all of
    /// them.
    #[test]
    fn equal_numbers_come_out_as_from_libstdcxx() {
        let mut ready = ReadyQueue::default();
        let numbers = [5, 9, 9, 1, 9, 5, 9, 7, 9, 1, 5, 9];
        for (index, number) in numbers.into_iter().enumerate() {
            ready.push_at(number, index);
        }
        let order: Vec<usize> = std::iter::from_fn(|| ready.pop()).collect();
        assert_eq!(order, [1, 2, 6, 11, 4, 8, 7, 5, 10, 0, 3, 9]);
    }
}
