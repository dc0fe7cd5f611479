//! Lists of rows: which lists are lists of rows, and how their items become rows.

use blockyard_record::{StackId, TextId};

use super::rows::Row;
use super::{Heap, Misfit, Object, SkippedItems, Value, count_one, fields};
use crate::snapshot::keys as key;
use crate::snapshot::partial_trace::PartialTrace;
use crate::snapshot::trace::DeviceTrace;
use crate::snapshot::{FieldError, SnapshotBlock};

/// The kinds of lists that become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snapshot) enum RowKind {
    Trace,
    Segments,
    Blocks,
    Annotations,
}

impl RowKind {
    /// The number of the list, if it is of this kind.
    fn number(self, list: Object) -> Option<u32> {
        match (self, list) {
            (Self::Trace, Object::Trace(number))
            | (Self::Segments, Object::Segments(number))
            | (Self::Blocks, Object::Blocks(number))
            | (Self::Annotations, Object::Annotations(number)) => Some(number),
            _ => None,
        }
    }
}

impl Heap {
    /// How many items the list has.
    pub(crate) fn length(&self, list: u32) -> usize {
        match self.object(list) {
            Object::List(slot) | Object::Tuple(slot) => self.values(slot).len(),
            Object::Dict(slot) => self.values(slot).len() / 2,
            Object::Stack(stack) => self.stacks.frames(stack).len(),
            Object::Frame(_) | Object::Taken => 0,
            rows => self.items(rows),
        }
    }

    /// How many items a list of rows had, those that were passed over among them.
    fn items(&self, list: Object) -> usize {
        let rows = match list {
            Object::Trace(number) => {
                let trace = self.traces.get(number as usize);
                trace.map_or(0, |trace| trace.len() + trace.tensor_annotations().len())
            }
            Object::Segments(number) => self.segment_lists.get(number as usize).map_or(0, Vec::len),
            Object::Blocks(number) => self.block_lists.get(number as usize).map_or(0, Vec::len),
            Object::Annotations(number) => self.annotation_lists.get(number as usize).map_or(0, Vec::len),
            _ => 0,
        };
        rows + self.skipped.get(&list).map_or(0, |passed| passed.items)
    }

    /// Sets keys of a dictionary; keys and values alternate.
    pub(crate) fn set_items(&mut self, dict: u32, pairs: &[Value]) -> Result<(), Misfit> {
        let Object::Dict(slot) = self.object(dict) else {
            return Err(Misfit::new("", FieldError::NoDictionary));
        };
        self.fill(slot, pairs);
        Ok(())
    }

    /// Appends to a list.
    pub(crate) fn append(&mut self, list: u32, values: &[Value]) -> Result<(), Misfit> {
        if let Object::List(slot) = self.object(list) {
            let first = values.first().filter(|_| self.values(slot).is_empty());
            let Some(rows) = first.and_then(|first| self.rows_of(*first)) else {
                self.fill(slot, values);
                return Ok(());
            };
            self.release(slot);
            self.set(list, rows);
        }
        let rows = self.object(list);
        if !matches!(
            rows,
            Object::Trace(_) | Object::Segments(_) | Object::Blocks(_) | Object::Annotations(_)
        ) {
            return Err(Misfit::new("", FieldError::NoList));
        }
        for value in values {
            self.append_item(rows, *value);
        }
        Ok(())
    }

    /// The number of the value as a list of rows of this kind. A list that did not begin with a row of a
    /// known kind becomes a list of rows here.
    pub(in crate::snapshot) fn as_rows(&mut self, value: Value, kind: RowKind) -> Option<u32> {
        let Value::Object(object) = value else { return None };
        let slot = match self.object(object) {
            Object::List(slot) | Object::Tuple(slot) => Some(slot),
            Object::Stack(StackId::EMPTY) => None,
            found => return kind.number(found),
        };
        let values = slot.map(|slot| self.values(slot).to_vec()).unwrap_or_default();
        let rows = self.new_rows(kind)?;
        if let Some(slot) = slot {
            self.release(slot);
        }
        self.set(object, rows);
        for value in values {
            self.append_item(rows, value);
        }
        kind.number(rows)
    }

    /// Takes the items of a list of rows that were skipped.
    pub(in crate::snapshot) fn take_skipped(&mut self, kind: RowKind, number: u32) -> SkippedItems {
        let list = match kind {
            RowKind::Trace => Object::Trace(number),
            RowKind::Segments => Object::Segments(number),
            RowKind::Blocks => Object::Blocks(number),
            RowKind::Annotations => Object::Annotations(number),
        };
        self.skipped.remove(&list).unwrap_or_default()
    }

    /// An item becomes a row, or it is counted.
    fn append_item(&mut self, list: Object, item: Value) {
        let outcome = self.append_value(list, item);
        let lost_blocks = self.lost_blocks.take();
        let (items, misfits, first) = match outcome {
            Ok(true) => {
                let Some((misfits, first)) = lost_blocks else { return };
                (0, misfits, Some(first.inside(&format!("[{}]", self.items(list).saturating_sub(1)))))
            }
            Ok(false) => (1, 0, None),
            Err(misfit) => (1, 1, Some(misfit.inside(&format!("[{}]", self.items(list))))),
        };
        let passed = self.skipped.entry(list).or_default();
        passed.items = passed.items.saturating_add(items);
        passed.misfits = passed.misfits.saturating_add(misfits);
        passed.first = passed.first.take().or(first);
    }

    /// Whether the item became a row; it does not if its kind of row is not known.
    fn append_value(&mut self, list: Object, item: Value) -> Result<bool, Misfit> {
        let Value::Object(object) = item else { return Err(self.wrong(item, "", "a dictionary")) };
        let Object::Dict(slot) = self.object(object) else {
            return Err(self.wrong(item, "", "a dictionary"));
        };
        // The values are taken out of the heap while they are read.
        let values = self.slots.get_mut(slot as usize).map(std::mem::take).unwrap_or_default();
        let result = self.append_row(list, &values);
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = values;
        }
        self.release(slot);
        self.set(object, Object::Taken);
        result
    }

    pub(super) fn set(&mut self, object: u32, now: Object) {
        if let Some(place) = self.objects.get_mut(object as usize) {
            *place = now;
        }
    }

    /// The kind of a list by its first item, if it is a list of rows.
    fn rows_of(&mut self, first: Value) -> Option<Object> {
        let Value::Object(object) = first else { return None };
        let Object::Dict(slot) = self.object(object) else { return None };
        let has = |wanted: TextId| fields(self.values(slot)).any(|(key, _)| key == wanted);
        // A later release may add any of these keys to frames, or one of them to another kind of row.
        let kind = if has(key::FILENAME) {
            return None;
        } else if has(key::ACTION) {
            RowKind::Trace
        } else if has(key::STAGE) {
            RowKind::Annotations
        } else if has(key::TOTAL_SIZE) || has(key::BLOCKS) {
            RowKind::Segments
        } else if has(key::STATE) {
            RowKind::Blocks
        } else {
            return None;
        };
        self.new_rows(kind)
    }

    fn new_rows(&mut self, kind: RowKind) -> Option<Object> {
        let number = |length: usize| u32::try_from(length).ok();
        Some(match kind {
            RowKind::Trace => {
                let number = number(self.traces.len())?;
                self.traces.push(DeviceTrace::default());
                self.so_far.push(PartialTrace::default());
                Object::Trace(number)
            }
            RowKind::Segments => {
                let number = number(self.segment_lists.len())?;
                self.segment_lists.push(Vec::new());
                Object::Segments(number)
            }
            RowKind::Blocks => {
                let number = number(self.block_lists.len())?;
                self.block_lists.push(Vec::new());
                Object::Blocks(number)
            }
            RowKind::Annotations => {
                let number = number(self.annotation_lists.len())?;
                self.annotation_lists.push(Vec::new());
                Object::Annotations(number)
            }
        })
    }

    fn append_row(&mut self, list: Object, row: &[Value]) -> Result<bool, Misfit> {
        match list {
            Object::Trace(number) => self.append_entry(number, row),
            Object::Segments(number) => {
                let segment = self.segment(row)?;
                if let Some(list) = self.segment_lists.get_mut(number as usize) {
                    list.push(segment);
                }
                Ok(true)
            }
            Object::Blocks(number) => {
                let Some(block) = self.block(row)? else { return Ok(false) };
                if let Some(list) = self.block_lists.get_mut(number as usize) {
                    list.push(block);
                    self.rows += size_of::<SnapshotBlock>();
                }
                Ok(true)
            }
            Object::Annotations(number) => {
                let Some(annotation) = self.annotation(row)? else { return Ok(false) };
                if let Some(list) = self.annotation_lists.get_mut(number as usize) {
                    list.push(annotation);
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn append_entry(&mut self, number: u32, row: &[Value]) -> Result<bool, Misfit> {
        let row = self.entry(row)?;
        let Some(trace) = self.traces.get_mut(number as usize) else { return Ok(false) };
        match row {
            Row::Entry(entry) => {
                if !trace.push(&entry) {
                    return Err(Misfit::new(".stream", FieldError::StreamCount));
                }
                if let Some(so_far) = self.so_far.get_mut(number as usize) {
                    so_far.push(&entry.entry);
                }
                Ok(true)
            }
            Row::Annotation(annotation) => {
                trace.annotate(annotation);
                Ok(true)
            }
            Row::Unknown(action) => {
                count_one(self.unknown.actions.entry(action).or_default());
                Ok(false)
            }
        }
    }
}
