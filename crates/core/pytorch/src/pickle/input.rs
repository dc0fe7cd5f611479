//! Bytes from a reader, counted.

use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;

use blockyard_record::OnDone;

/// How many bytes are read at once; no single piece that a caller takes may be longer.
const BUFFER: usize = 1 << 16;

/// Why there are no more bytes.
#[derive(Debug)]
pub(crate) enum InputError {
    /// The bytes end where more are needed.
    Ended,
    /// The reader failed; the text says how.
    Failed(String),
    /// The caller cancelled the work.
    Cancelled,
    /// More bytes than this program reads.
    TooLarge,
}

/// A reader with a buffer.
pub(crate) struct Input<'a, R> {
    reader: R,
    buffer: Box<[u8]>,
    /// The part of the buffer that is not read yet.
    start: usize,
    end: usize,
    /// The bytes before the buffer's beginning.
    before: u64,
    most: u64,
    on_done: OnDone<'a, u64>,
}

impl<'a, R: Read> Input<'a, R> {
    /// At most `most` bytes of the reader; `on_done` gets how many there were after each piece.
    pub(crate) fn new(reader: R, most: u64, on_done: OnDone<'a, u64>) -> Self {
        Self { reader, buffer: vec![0; BUFFER].into(), start: 0, end: 0, before: 0, most, on_done }
    }

    /// How many bytes have been read.
    pub(crate) fn offset(&self) -> u64 {
        self.before.saturating_add(self.start as u64)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, InputError> {
        if let Some(byte) = self.buffer.get(self.start).filter(|_| self.start < self.end) {
            self.start += 1;
            return Ok(*byte);
        }
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], InputError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| InputError::Ended)
    }

    /// The next bytes, at most 64 KiB of them.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&[u8], InputError> {
        if self.end - self.start < length {
            self.fill(length)?;
        }
        let start = self.start;
        self.start += length;
        // `fill` has read them.
        self.buffer.get(start..start + length).ok_or(InputError::Ended)
    }

    /// Puts the next `length` bytes, however many, into `text`.
    pub(crate) fn text(&mut self, length: usize, text: &mut Vec<u8>) -> Result<(), InputError> {
        text.clear();
        while text.len() < length {
            let piece = self.take((length - text.len()).min(BUFFER))?;
            text.extend_from_slice(piece);
        }
        Ok(())
    }

    /// Skips `length` bytes.
    pub(crate) fn skip(&mut self, length: u64) -> Result<(), InputError> {
        let mut left = length;
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
            self.take(piece)?;
            left = left.saturating_sub(piece as u64);
        }
        Ok(())
    }

    #[cold]
    fn fill(&mut self, length: usize) -> Result<(), InputError> {
        if length > BUFFER {
            return Err(InputError::Ended);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.before = self.before.saturating_add(self.start as u64);
        self.end -= self.start;
        self.start = 0;
        while self.end < length {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(InputError::Ended),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(InputError::Failed(error.to_string())),
            }
        }
        if self.before > self.most {
            return Err(InputError::TooLarge);
        }
        match (self.on_done)(self.before.saturating_add(self.end as u64)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(InputError::Cancelled),
        }
    }
}
