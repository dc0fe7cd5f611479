//! The stack, the memo, and containers that are filled from the stack.

use std::io::Read;

use super::{MEMO_LEAP, Machine, MemoValue, Stop, damaged};
use crate::snapshot::PickleError;
use crate::snapshot::heap::Value;

impl<R: Read> Machine<'_, '_, R> {
    /// The value on top of the stack.
    pub(super) fn top(&self) -> Result<Value, Stop> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(value) if self.stack.len() > floor => Ok(*value),
            _ => damaged(PickleError::EmptyStack),
        }
    }

    /// Removes the value on top of the stack.
    pub(super) fn pop(&mut self) -> Result<Value, Stop> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    /// Closes the last open mark. Returns the length that the stack had when the mark was set.
    pub(super) fn mark(&mut self) -> Result<usize, Stop> {
        match self.marks.pop() {
            Some(mark) => Ok(mark),
            None => damaged(PickleError::NoMark),
        }
    }

    /// A place of the stack that must not lie below an open mark.
    pub(super) fn above_marks(&self, place: Option<usize>) -> Result<usize, Stop> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match place {
            Some(place) if place >= floor => Ok(place),
            _ => damaged(PickleError::ShortStack),
        }
    }

    /// Pushes the entry of the memo with this number.
    pub(super) fn get(&mut self, number: usize) -> Result<(), Stop> {
        let value = match self.memo.get(number) {
            Some(MemoValue::Text(text)) => Value::Text(*text),
            Some(MemoValue::Object(object)) => Value::Object(*object),
            Some(MemoValue::Other(other)) => self.others.get(*other as usize).copied().unwrap_or(Value::None),
            Some(MemoValue::Nothing) | None => return damaged(PickleError::NoMemoEntry(number)),
        };
        self.stack.push(value);
        Ok(())
    }

    /// Stores the value on top of the stack in the memo, under this number.
    pub(super) fn put(&mut self, number: usize) -> Result<(), Stop> {
        let kept = match self.top()? {
            Value::Text(text) => MemoValue::Text(text),
            Value::Object(object) => MemoValue::Object(object),
            other => {
                let number = u32::try_from(self.others.len()).map_err(|_| Stop::TooMuch)?;
                self.others.push(other);
                MemoValue::Other(number)
            }
        };
        if number > self.memo.len().saturating_add(MEMO_LEAP) {
            return damaged(PickleError::MemoOrder(number));
        }
        while self.memo.len() < number {
            self.memo.push(MemoValue::Nothing);
        }
        match self.memo.get_mut(number) {
            Some(place) => *place = kept,
            None => self.memo.push(kept),
        }
        Ok(())
    }

    /// The list or dictionary below the values from `items` on: its place in the stack, and its number in the
    /// heap.
    pub(super) fn container(&self, items: usize) -> Result<(usize, u32), Stop> {
        let place = self.above_marks(items.checked_sub(1))?;
        match self.stack.get(place) {
            Some(Value::Object(object)) => Ok((place, *object)),
            _ => damaged(PickleError::NoContainer),
        }
    }

    /// Adds the values from `items` on, keys and values in turn, to the dictionary below them.
    pub(super) fn set_items(&mut self, items: usize) -> Result<(), Stop> {
        let (place, dict) = self.container(items)?;
        let pairs = self.stack.get(items..).unwrap_or_default();
        if !pairs.len().is_multiple_of(2) {
            return damaged(PickleError::NoValue);
        }
        self.heap.set_items(dict, pairs).map_err(|misfit| Stop::Misfit(misfit, place))?;
        self.stack.truncate(items);
        Ok(())
    }

    /// Adds the values from `items` on to the list below them.
    pub(super) fn append(&mut self, items: usize) -> Result<(), Stop> {
        let (place, list) = self.container(items)?;
        let values = self.stack.get(items..).unwrap_or_default();
        self.heap.append(list, values).map_err(|misfit| Stop::Misfit(misfit, place))?;
        self.stack.truncate(items);
        Ok(())
    }

    /// Makes a tuple of the values from `items` on.
    pub(super) fn tuple(&mut self, items: usize) -> Result<(), Stop> {
        let members = self.stack.get(items..).unwrap_or_default();
        let value = self.heap.new_tuple(members).ok_or(Stop::TooMuch)?;
        self.stack.truncate(items);
        self.stack.push(value);
        Ok(())
    }
}
