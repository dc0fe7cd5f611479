//! Where in the snapshot the machine is, for messages.

use std::io::Read;

use super::Machine;
use crate::snapshot::heap::{Object, Value};

impl<R: Read> Machine<'_, '_, R> {
    /// Where in the snapshot the value at `place` of the stack belongs: `device_traces[0][17].size`.
    pub(super) fn path(&self, place: usize) -> String {
        let mut path = String::new();
        for (index, mark) in self.marks.iter().enumerate() {
            if *mark > place {
                break;
            }
            let next = self.marks.get(index + 1).copied().unwrap_or(usize::MAX);
            // The container of the next mark, or the value itself.
            let child = next.saturating_sub(1).min(place);
            self.push_path(&mut path, *mark, child);
            if child == place {
                break;
            }
        }
        path
    }

    /// The way from the container below `mark` to the value at `child`.
    fn push_path(&self, path: &mut String, mark: usize, child: usize) {
        let container = mark.checked_sub(1).and_then(|place| self.stack.get(place));
        let Some(Value::Object(container)) = container else { return };
        // Marks on each other have nothing between them.
        if child < mark {
            return;
        }
        let mut place = mark;
        if matches!(self.heap.object(*container), Object::Dict(_)) {
            while place < child {
                let is_value = place + 1 == child;
                let mut last = place + 1;
                // Items after a value that are not keys belong to the value.
                while last < child && !matches!(self.stack.get(last + 1), Some(Value::Text(_)) | None) {
                    last += 1;
                }
                if is_value || last >= child {
                    self.push_key(path, place);
                    self.push_indices(path, place + 1, child);
                    return;
                }
                place = last + 1;
            }
            return;
        }
        let is_dict = |place: usize| match self.stack.get(place) {
            Some(Value::Object(object)) => Some(matches!(self.heap.object(*object), Object::Dict(_))),
            _ => None,
        };
        // A dictionary that follows a list is added to that list.
        let is_inner = child > mark && is_dict(child) == Some(true) && is_dict(child - 1) == Some(false);
        let outer = if is_inner { child - 1 } else { child };
        push_index(path, self.heap.length(*container) + (outer - mark));
        self.push_indices(path, outer, child);
    }

    fn push_key(&self, path: &mut String, place: usize) {
        let key = self.stack.get(place).and_then(|key| self.heap.text_of(*key));
        if !path.is_empty() {
            path.push('.');
        }
        path.extend(key.unwrap_or("?").chars().take(80));
    }

    /// Each of the values from `from` on goes into the one before.
    fn push_indices(&self, path: &mut String, from: usize, child: usize) {
        for place in from..child {
            if let Some(Value::Object(list)) = self.stack.get(place) {
                push_index(path, self.heap.length(*list));
            }
        }
    }
}

fn push_index(path: &mut String, index: usize) {
    path.extend(["[", &index.to_string(), "]"]);
}
