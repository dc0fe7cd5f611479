//! The page that `_memory_viz.py trace_plot` writes: a script with the pickle in base64.

use std::io::{self, BufRead, Read};

use super::container::container;
use super::{OtherFile, SnapshotError};

/// The text in front of the pickle.
const MARK: &[u8] = b"\"base64\": \"";
/// How many bytes of the page are searched for the mark.
const MAX_SEARCHED: usize = 1 << 20;

pub(super) fn open<'r>(mut reader: impl BufRead + 'r) -> Result<Box<dyn Read + 'r>, SnapshotError> {
    let mut matched = 0;
    let mut searched = 0;
    while matched < MARK.len() {
        let buffer = reader.fill_buf().map_err(|error| container(&error))?;
        if buffer.is_empty() || searched > MAX_SEARCHED {
            return Err(SnapshotError::OtherKind(OtherFile::WebPage));
        }
        let mut used = 0;
        for byte in buffer {
            used += 1;
            // No part of the mark but its first character begins like the mark.
            matched =
                if MARK.get(matched) == Some(byte) { matched + 1 } else { usize::from(*byte == MARK[0]) };
            if matched == MARK.len() {
                break;
            }
        }
        searched += used;
        reader.consume(used);
    }
    Ok(Box::new(Base64 { reader, is_done: false, ready: [0; 3], count: 0 }))
}

/// Bytes out of base64, up to a quotation mark.
struct Base64<R> {
    reader: R,
    is_done: bool,
    /// Bytes that are decoded and not yet read; the last `count` of them.
    ready: [u8; 3],
    count: usize,
}

impl<R: BufRead> Base64<R> {
    fn group(&mut self) -> io::Result<()> {
        let (mut bits, mut digits) = (0_u32, 0_u32);
        while digits < 4 {
            let byte = self.byte()?;
            match byte {
                Some(b'"') | None if digits == 0 => {
                    self.is_done = true;
                    return Ok(());
                }
                Some(b'"') | None => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the base64 of the web page is cut short",
                    ));
                }
                Some(b'=') => {
                    self.is_done = true;
                    break;
                }
                Some(b'\n' | b'\r' | b' ' | b'\\') => {}
                Some(byte) => {
                    let digit = digit(byte).ok_or_else(|| {
                        io::Error::new(
                            io::ErrorKind::InvalidData,
                            "the web page has no base64 in the place of the snapshot",
                        )
                    })?;
                    bits = bits << 6 | digit;
                    digits = digits.saturating_add(1);
                }
            }
        }
        bits <<= 4_u32.saturating_sub(digits).saturating_mul(6);
        let [_, a, b, c] = bits.to_be_bytes();
        self.count = usize::try_from(digits).unwrap_or(0).saturating_sub(1);
        self.ready = match self.count {
            3 => [a, b, c],
            2 => [0, a, b],
            _ => [0, 0, a],
        };
        Ok(())
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.reader.fill_buf()?.first().copied();
        self.reader.consume(usize::from(byte.is_some()));
        Ok(byte)
    }
}

impl<R: BufRead> Read for Base64<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut written = 0;
        for place in buffer {
            if self.count == 0 {
                if self.is_done {
                    break;
                }
                self.group()?;
                if self.count == 0 {
                    break;
                }
            }
            *place = self.ready[3 - self.count];
            self.count -= 1;
            written += 1;
        }
        Ok(written)
    }
}

fn digit(byte: u8) -> Option<u32> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const NONE: u8 = u8::MAX;
    const VALUES: [u8; 256] = {
        let (mut values, mut digit) = ([NONE; 256], 0_u8);
        while digit < 64 {
            values[DIGITS[digit as usize] as usize] = digit;
            digit = digit.saturating_add(1);
        }
        values
    };
    let value = VALUES[usize::from(byte)];
    (value != NONE).then(|| u32::from(value))
}
