//! The machine that runs the opcodes of a pickle.

mod path;
mod stack;

use std::io::Read;

use super::input::{Input, InputError};
use super::opcode as op;
use crate::snapshot::heap::{Heap, Misfit, Value};
use crate::snapshot::{ContainerError, Excess, PartialTrace, PickleError, SnapshotError};

/// The most marks that may be open: how deep lists and dictionaries may be nested.
const MAX_MARKS: usize = 256;
/// The longest text of a snapshot. Texts are names of functions and annotations of the program.
const MAX_TEXT_BYTES: u64 = 16 << 20;
/// By how much the number of a memo entry may exceed the number of entries before it.
const MEMO_LEAP: usize = 1 << 16;

/// A value of the memo, in eight bytes.
#[derive(Clone, Copy, Debug)]
enum MemoValue {
    Nothing,
    Text(u32),
    Object(u32),
    /// Any other value, such as a number: an index into `others`.
    Other(u32),
}

/// Runs a pickle.
pub(crate) struct Machine<'a, 'h, R> {
    input: Input<'a, R>,
    heap: &'h mut Heap,
    stack: Vec<Value>,
    /// The heights of the stack at the open marks.
    marks: Vec<usize>,
    memo: Vec<MemoValue>,
    others: Vec<Value>,
    text: Vec<u8>,
    most_memory: usize,
    checked_at: u64,
    on_trace: OnTrace<'h>,
}

/// Gets the part of the longest trace that has been read, every 64 KiB of the file.
pub(crate) type OnTrace<'a> = &'a mut dyn FnMut(&PartialTrace);

/// Why the machine stopped.
enum Stop {
    Input(InputError),
    /// The pickle does not make sense.
    Damaged(PickleError),
    /// An opcode that names or calls code.
    Code(&'static str, String),
    /// A value that a snapshot cannot have at this place of the stack: of a container, or of an item of it.
    Misfit(Misfit, usize),
    TooMuch,
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

fn damaged<T>(error: PickleError) -> Result<T, Stop> {
    Err(Stop::Damaged(error))
}

impl<'a, 'h, R: Read> Machine<'a, 'h, R> {
    /// A machine that takes at most about `most_memory` bytes.
    pub(crate) fn new(
        input: Input<'a, R>,
        heap: &'h mut Heap,
        most_memory: usize,
        on_trace: OnTrace<'h>,
    ) -> Self {
        Self {
            input,
            heap,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            others: Vec::new(),
            text: Vec::new(),
            most_memory,
            checked_at: 0,
            on_trace,
        }
    }

    /// Runs the pickle to its end and returns the value.
    pub(crate) fn run(mut self) -> Result<Value, SnapshotError> {
        loop {
            let at = self.input.offset();
            let result = if at < self.checked_at {
                self.step()
            } else {
                self.check_memory_and_report(at).and_then(|()| self.step())
            };
            match result {
                Ok(None) => {}
                Ok(Some(value)) => return Ok(value),
                Err(stop) => return Err(self.explain(stop, at)),
            }
        }
    }

    fn explain(&self, stop: Stop, at: u64) -> SnapshotError {
        let place = self.path(self.stack.len());
        match stop {
            Stop::Input(InputError::Ended) => {
                SnapshotError::CutShort { byte: self.input.offset(), path: place }
            }
            Stop::Input(InputError::Failed(message)) => {
                SnapshotError::Container(ContainerError::Read { reason: message })
            }
            Stop::Input(InputError::Cancelled) => SnapshotError::Cancelled,
            Stop::Input(InputError::TooLarge) => SnapshotError::TooLarge(Excess::Content),
            Stop::Damaged(error) => SnapshotError::Damaged { byte: at, path: place, error },
            Stop::Code(opcode, name) => SnapshotError::Code { byte: at, path: place, opcode, name },
            Stop::Misfit(Misfit { path, error }, container) => {
                SnapshotError::Field { byte: Some(at), path: self.path(container) + &path, error }
            }
            Stop::TooMuch => SnapshotError::TooLarge(Excess::Memory),
        }
    }

    /// Runs one opcode; returns the value of the pickle after the last opcode.
    #[expect(clippy::too_many_lines, reason = "one line an opcode")]
    fn step(&mut self) -> Result<Option<Value>, Stop> {
        let opcode = self.input.byte()?;
        match opcode {
            op::LONG_BINGET => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.get(number as usize)?;
            }
            op::BINGET => {
                let number = self.input.byte()?;
                self.get(usize::from(number))?;
            }
            op::MEMOIZE => self.put(self.memo.len())?,
            op::BINPUT => {
                let number = self.input.byte()?;
                self.put(usize::from(number))?;
            }
            op::LONG_BINPUT => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.put(number as usize)?;
            }
            op::BININT1 => {
                let number = self.input.byte()?;
                self.stack.push(Value::Int(number.into()));
            }
            op::BININT2 => {
                let number = u16::from_le_bytes(self.input.array()?);
                self.stack.push(Value::Int(number.into()));
            }
            op::BININT => {
                let number = i32::from_le_bytes(self.input.array()?);
                self.stack.push(Value::Int(number.into()));
            }
            op::LONG1 => {
                let length = usize::from(self.input.byte()?);
                let value = long(self.input.take(length)?);
                self.stack.push(value);
            }
            op::LONG4 => self.long4()?,
            op::BINFLOAT => {
                let number = f64::from_be_bytes(self.input.array()?);
                self.stack.push(Value::Float(number));
            }
            op::SHORT_BINUNICODE | op::SHORT_BINSTRING => {
                let length = usize::from(self.input.byte()?);
                let bytes = self.input.take(length)?;
                let Ok(text) = std::str::from_utf8(bytes) else { return damaged(PickleError::Utf8) };
                let value = self.heap.text(text).ok_or(Stop::TooMuch)?;
                self.stack.push(value);
            }
            op::BINUNICODE | op::BINSTRING => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.long_text(length.into())?;
            }
            op::BINUNICODE8 => {
                let length = u64::from_le_bytes(self.input.array()?);
                self.long_text(length)?;
            }
            op::SHORT_BINBYTES => {
                let length = self.input.byte()?;
                self.bytes(length.into())?;
            }
            op::BINBYTES => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.bytes(length.into())?;
            }
            op::BINBYTES8 | op::BYTEARRAY8 => {
                let length = u64::from_le_bytes(self.input.array()?);
                self.bytes(length)?;
            }
            op::NONE => self.stack.push(Value::None),
            op::NEWTRUE => self.stack.push(Value::Bool(true)),
            op::NEWFALSE => self.stack.push(Value::Bool(false)),
            op::MARK => {
                if self.marks.len() >= MAX_MARKS {
                    return damaged(PickleError::Depth);
                }
                self.marks.push(self.stack.len());
            }
            op::EMPTY_DICT => {
                let value = self.heap.new_dict().ok_or(Stop::TooMuch)?;
                self.stack.push(value);
            }
            op::EMPTY_LIST => {
                let value = self.heap.new_list().ok_or(Stop::TooMuch)?;
                self.stack.push(value);
            }
            op::SETITEMS => {
                let mark = self.mark()?;
                self.set_items(mark)?;
            }
            op::SETITEM => {
                let items = self.stack.len().checked_sub(2);
                self.set_items(self.above_marks(items)?)?;
            }
            op::APPENDS => {
                let mark = self.mark()?;
                self.append(mark)?;
            }
            op::APPEND => {
                let items = self.stack.len().checked_sub(1);
                self.append(self.above_marks(items)?)?;
            }
            op::LIST => {
                let mark = self.mark()?;
                let value = self.heap.new_list().ok_or(Stop::TooMuch)?;
                self.stack.insert(mark, value);
                self.append(mark + 1)?;
            }
            op::DICT => {
                let mark = self.mark()?;
                let value = self.heap.new_dict().ok_or(Stop::TooMuch)?;
                self.stack.insert(mark, value);
                self.set_items(mark + 1)?;
            }
            op::EMPTY_TUPLE => self.tuple(self.stack.len())?,
            op::TUPLE => {
                let mark = self.mark()?;
                self.tuple(mark)?;
            }
            op::TUPLE1 => self.tuple(self.above_marks(self.stack.len().checked_sub(1))?)?,
            op::TUPLE2 => self.tuple(self.above_marks(self.stack.len().checked_sub(2))?)?,
            op::TUPLE3 => self.tuple(self.above_marks(self.stack.len().checked_sub(3))?)?,
            // No release writes sets so far; their members are not kept.
            op::EMPTY_SET => self.stack.push(Value::Other),
            op::ADDITEMS => {
                let mark = self.mark()?;
                self.above_marks(mark.checked_sub(1))?;
                self.stack.truncate(mark);
            }
            op::FROZENSET => {
                let mark = self.mark()?;
                self.stack.truncate(mark);
                self.stack.push(Value::Other);
            }
            op::POP => {
                // Right after a mark, the opcode removes the mark.
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            op::POP_MARK => {
                let mark = self.mark()?;
                self.stack.truncate(mark);
            }
            op::DUP => {
                let top = self.top()?;
                self.stack.push(top);
            }
            op::PROTO => {
                let version = self.input.byte()?;
                if !(2..=5).contains(&version) {
                    return damaged(PickleError::Protocol(version));
                }
            }
            // A frame says how much to read at once. The buffer of the input decides that here.
            op::FRAME => self.input.skip(8)?,
            op::STOP => {
                let value = self.pop()?;
                if !self.stack.is_empty() || !self.marks.is_empty() {
                    return damaged(PickleError::Unfinished);
                }
                return Ok(Some(value));
            }
            _ => return self.refuse(opcode),
        }
        Ok(None)
    }

    fn refuse(&mut self, opcode: u8) -> Result<Option<Value>, Stop> {
        let name_in = |list: &[(u8, &'static str)]| {
            list.iter().find(|(known, _)| *known == opcode).map(|(_, name)| *name)
        };
        if let Some(name) = name_in(&op::CODE) {
            let named = match opcode {
                op::GLOBAL => self.two_lines(),
                op::STACK_GLOBAL => self.two_texts(),
                _ => String::new(),
            };
            return Err(Stop::Code(name, named));
        }
        match name_in(&op::OTHER) {
            Some(name) => damaged(PickleError::UnneededOpcode(name)),
            None => damaged(PickleError::UnknownOpcode(opcode)),
        }
    }

    /// The operands of GLOBAL: a module and a name, on a line each.
    fn two_lines(&mut self) -> String {
        let mut text = Vec::new();
        let mut lines = 0_usize;
        while lines < 2 && text.len() < 200 {
            match self.input.byte() {
                Ok(b'\n') => {
                    lines += 1;
                    text.push(b'.');
                }
                Ok(byte) => text.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8_lossy(&text).trim_end_matches('.').to_owned()
    }

    /// The operands of `STACK_GLOBAL`: a module and a name, on top of the stack.
    fn two_texts(&self) -> String {
        let texts = self.stack.iter().rev().take(2).rev();
        let texts: Vec<&str> = texts.filter_map(|value| self.heap.text_of(*value)).collect();
        texts.join(".")
    }

    /// `LONG4`: a number of up to 1 KiB.
    fn long4(&mut self) -> Result<(), Stop> {
        let length = u32::from_le_bytes(self.input.array()?);
        if length > 1 << 10 {
            return damaged(PickleError::LongNumber { bytes: length });
        }
        let value = long(self.input.take(length as usize)?);
        self.stack.push(value);
        Ok(())
    }

    /// A text of `length` bytes.
    fn long_text(&mut self, length: u64) -> Result<(), Stop> {
        let Some(length) = usize::try_from(length).ok().filter(|length| *length as u64 <= MAX_TEXT_BYTES)
        else {
            return damaged(PickleError::LongText { bytes: length });
        };
        let mut text = std::mem::take(&mut self.text);
        self.input.text(length, &mut text)?;
        let Ok(content) = std::str::from_utf8(&text) else { return damaged(PickleError::Utf8) };
        let value = self.heap.text(content).ok_or(Stop::TooMuch)?;
        self.text = text;
        self.stack.push(value);
        Ok(())
    }

    /// Skips a value of `length` bytes, which no snapshot needs.
    fn bytes(&mut self, length: u64) -> Result<(), Stop> {
        self.input.skip(length)?;
        self.stack.push(Value::Other);
        Ok(())
    }

    /// Passes the longest trace to `on_trace`, and checks how much memory the machine uses. `at` is the place
    /// in the file.
    fn check_memory_and_report(&mut self, at: u64) -> Result<(), Stop> {
        self.checked_at = at.saturating_add(1 << 16);
        if let Some(so_far) = self.heap.longest_trace_so_far() {
            (self.on_trace)(so_far);
        }
        let own = [
            self.stack.capacity() * size_of::<Value>(),
            self.memo.capacity() * size_of::<MemoValue>(),
            self.others.capacity() * size_of::<Value>(),
        ];
        // A list that grows is copied to one of twice the size, and has both until then.
        let largest = own.iter().copied().max().unwrap_or(0).max(self.heap.largest_list());
        let needed = own.iter().sum::<usize>().saturating_add(self.heap.size()).saturating_add(2 * largest);
        if needed > self.most_memory { Err(Stop::TooMuch) } else { Ok(()) }
    }
}

/// A number of any length: little-endian, two's complement. A number of more than 64 bits becomes
/// [`Value::Other`], because no snapshot needs it.
fn long(bytes: &[u8]) -> Value {
    let is_negative = bytes.last().is_some_and(|last| *last >= 0x80);
    let fill = if is_negative { 0xff } else { 0 };
    let mut low = [fill; 8];
    for (place, byte) in low.iter_mut().zip(bytes) {
        *place = *byte;
    }
    let is_short = bytes.get(8..).unwrap_or_default().iter().all(|byte| *byte == fill);
    let (signed, unsigned) = (i64::from_le_bytes(low), u64::from_le_bytes(low));
    match (is_short, is_negative, signed < 0) {
        (true, false, false) | (true, true, true) => Value::Int(signed),
        (true, false, true) => Value::Large(unsigned),
        _ => Value::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_read_with_their_sign() {
        assert_eq!(long(&[]), Value::Int(0));
        assert_eq!(long(&[0xff]), Value::Int(-1));
        assert_eq!(long(&[0xff, 0]), Value::Int(255));
        assert_eq!(long(&139_949_292_650_496_u64.to_le_bytes()), Value::Int(139_949_292_650_496));
        assert_eq!(long(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]), Value::Large(u64::MAX));
        assert_eq!(long(&[0; 9]), Value::Int(0));
        assert_eq!(long(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), Value::Other);
    }
}
