//! Pickles of protocol 4, with opcodes that `MemoryViz.js` knows too.

use blockyard_record::next_u32;
use std::io::{self, Write};

use super::opcode as op;

/// Items between two marks, as Python's own pickler has it.
pub(crate) const BATCH: usize = 1000;

/// Writes the opcodes of plain values.
pub(crate) struct PickleWriter<W: Write> {
    out: W,
    memo: u32,
}

impl<W: Write> PickleWriter<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&[op::PROTO, 4])?;
        Ok(Self { out, memo: 0 })
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&[op::STOP])?;
        self.out.flush()
    }

    pub(crate) fn opcode(&mut self, opcode: u8) -> io::Result<()> {
        self.out.write_all(&[opcode])
    }

    /// Keeps the last value in the memo, for [`PickleWriter::get`].
    pub(crate) fn memoize(&mut self) -> io::Result<u32> {
        self.opcode(op::MEMOIZE)?;
        Ok(next_u32(&mut self.memo))
    }

    pub(crate) fn get(&mut self, entry: u32) -> io::Result<()> {
        if let Ok(entry) = u8::try_from(entry) {
            return self.out.write_all(&[op::BINGET, entry]);
        }
        self.opcode(op::LONG_BINGET)?;
        self.out.write_all(&entry.to_le_bytes())
    }

    pub(crate) fn text(&mut self, text: &str) -> io::Result<u32> {
        if let Ok(length) = u8::try_from(text.len()) {
            self.out.write_all(&[op::SHORT_BINUNICODE, length])?;
        } else {
            let length = u32::try_from(text.len())
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text of more than 4 GiB"))?;
            self.opcode(op::BINUNICODE)?;
            self.out.write_all(&length.to_le_bytes())?;
        }
        self.out.write_all(text.as_bytes())?;
        self.memoize()
    }

    pub(crate) fn number(&mut self, number: u64) -> io::Result<()> {
        if let Ok(number) = u8::try_from(number) {
            return self.out.write_all(&[op::BININT1, number]);
        }
        if let Ok(number) = u16::try_from(number) {
            self.opcode(op::BININT2)?;
            return self.out.write_all(&number.to_le_bytes());
        }
        if let Ok(number) = i32::try_from(number) {
            self.opcode(op::BININT)?;
            return self.out.write_all(&number.to_le_bytes());
        }
        // Two's complement in as few bytes as hold the sign too.
        let bytes = number.to_le_bytes();
        let digits = 8 - number.leading_zeros() as usize / 8;
        let has_sign = bytes.get(digits - 1).is_some_and(|top| *top >= 0x80);
        let length = digits + usize::from(has_sign);
        self.out.write_all(&[op::LONG1, u8::try_from(length).unwrap_or(9)])?;
        self.out.write_all(bytes.get(..digits).unwrap_or_default())?;
        if has_sign { self.out.write_all(&[0]) } else { Ok(()) }
    }

    pub(crate) fn signed(&mut self, number: i64) -> io::Result<()> {
        match (u64::try_from(number), i32::try_from(number)) {
            (Ok(number), _) => self.number(number),
            (_, Ok(number)) => {
                self.opcode(op::BININT)?;
                self.out.write_all(&number.to_le_bytes())
            }
            _ => {
                self.out.write_all(&[op::LONG1, 8])?;
                self.out.write_all(&number.to_le_bytes())
            }
        }
    }

    pub(crate) fn float(&mut self, number: f64) -> io::Result<()> {
        self.opcode(op::BINFLOAT)?;
        self.out.write_all(&number.to_be_bytes())
    }

    pub(crate) fn boolean(&mut self, is: bool) -> io::Result<()> {
        self.opcode(if is { op::NEWTRUE } else { op::NEWFALSE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_python_writes_them() {
        let written = |number: u64| {
            let mut bytes = Vec::new();
            let mut writer = PickleWriter::new(&mut bytes).unwrap();
            writer.number(number).unwrap();
            bytes.split_off(2)
        };
        assert_eq!(written(255), [op::BININT1, 255]);
        assert_eq!(written(256), [op::BININT2, 0, 1]);
        assert_eq!(written(65536), [op::BININT, 0, 0, 1, 0]);
        assert_eq!(written(0x8000_0000), [op::LONG1, 5, 0, 0, 0, 0x80, 0]);
        assert_eq!(written(0x1_0000_0000), [op::LONG1, 5, 0, 0, 0, 0, 1]);
        assert_eq!(written(u64::MAX), [op::LONG1, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0]);
    }
}
