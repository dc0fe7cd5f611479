//! The gzip container (RFC 1952) around deflated data.
//!
//! `flate2` could read the container too, but its checksum has a table of 16 KiB that does not compress, and
//! every visitor of the page would download the table.

use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::OnceLock;

use flate2::bufread::DeflateDecoder;

use crate::error::GzipError;

/// The content of all members, at most `most` bytes and one more.
pub(crate) fn gunzip(bytes: &[u8], most: u64) -> Result<Vec<u8>, GzipError> {
    let mut content = Vec::new();
    let mut reader = GzipReader::new(bytes).take(most.saturating_add(1));
    match reader.read_to_end(&mut content) {
        Ok(_) => Ok(content),
        Err(error) => Err(cause(&error)),
    }
}

/// Why a [`GzipReader`] failed.
fn cause(error: &io::Error) -> GzipError {
    let known = error.get_ref().and_then(|source| source.downcast_ref::<GzipError>()).copied();
    known.unwrap_or_else(|| match error.kind() {
        ErrorKind::UnexpectedEof => GzipError::CutShort,
        ErrorKind::InvalidData | ErrorKind::InvalidInput => GzipError::Data,
        other => GzipError::Reader(other),
    })
}

/// The content of all members of a gzip file, as it is read.
pub(crate) struct GzipReader<R: BufRead> {
    state: State<R>,
    crc: u32,
    length: u64,
    /// Why reading failed: a caller who reads on after an error gets the same error again.
    failure: Option<GzipError>,
}

enum State<R: BufRead> {
    /// Before a member, or at the end.
    Between(R),
    Inside(DeflateDecoder<R>),
    /// The bytes so far are damaged.
    Failed,
}

impl<R: BufRead> GzipReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { state: State::Between(reader), crc: !0, length: 0, failure: None }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.read_some(buffer);
        if let (Err(error), State::Failed) = (&read, &self.state) {
            self.failure = Some(cause(error));
        }
        read
    }
}

impl<R: BufRead> GzipReader<R> {
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Failed) {
                State::Between(mut reader) => {
                    if reader.fill_buf()?.is_empty() {
                        self.state = State::Between(reader);
                        return Ok(0);
                    }
                    skip_header(&mut reader)?;
                    (self.crc, self.length) = (!0, 0);
                    self.state = State::Inside(DeflateDecoder::new(reader));
                }
                State::Inside(mut decoder) => match decoder.read(buffer) {
                    Ok(0) => {
                        let mut reader = decoder.into_inner();
                        self.check_trailer(&mut reader)?;
                        self.state = State::Between(reader);
                    }
                    Ok(count) => {
                        self.crc = crc32(self.crc, buffer.get(..count).unwrap_or_default());
                        self.length = self.length.saturating_add(count as u64);
                        self.state = State::Inside(decoder);
                        return Ok(count);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {
                        self.state = State::Inside(decoder);
                        return Err(error);
                    }
                    Err(error) => return Err(failed(cause(&error))),
                },
                State::Failed => return Err(failed(self.failure.unwrap_or(GzipError::Data))),
            }
        }
    }

    fn check_trailer(&self, reader: &mut R) -> io::Result<()> {
        let (crc, length): ([u8; 4], [u8; 4]) = (array(reader)?, array(reader)?);
        // The length is kept modulo 2^32.
        let is_sound = u32::from_le_bytes(crc) == !self.crc
            && u64::from(u32::from_le_bytes(length)) == self.length & 0xffff_ffff;
        if is_sound { Ok(()) } else { Err(failed(GzipError::Checksum)) }
    }
}

fn failed(error: GzipError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn array<const N: usize>(reader: &mut impl BufRead) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => failed(GzipError::CutShort),
        _ => error,
    })?;
    Ok(bytes)
}

/// Skips the header of a member.
fn skip_header(reader: &mut impl BufRead) -> io::Result<()> {
    let start: [u8; 2] = array(reader)?;
    if start != [0x1f, 0x8b] {
        return Err(failed(GzipError::NotGzip));
    }
    let [method, flags, ..]: [u8; 8] = array(reader)?;
    if method != 8 {
        return Err(failed(GzipError::Method));
    }
    if flags & 4 != 0 {
        for _ in 0..u16::from_le_bytes(array(reader)?) {
            array::<1>(reader)?;
        }
    }
    // A file name and a comment, each up to a zero byte.
    for flag in [8, 16] {
        if flags & flag != 0 {
            while array::<1>(reader)? != [0] {}
        }
    }
    if flags & 2 != 0 {
        array::<2>(reader)?;
    }
    Ok(())
}

/// The checksum of gzip, eight bytes at a time; `crc` begins as all ones and is inverted at the end.
fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    static TABLES: OnceLock<Box<[[u32; 256]; 8]>> = OnceLock::new();
    let tables = TABLES.get_or_init(tables);
    let at = |table: usize, byte: u32| tables[table & 7][(byte & 0xff) as usize];
    let (chunks, rest) = bytes.as_chunks::<8>();
    let crc = chunks.iter().fold(crc, |crc, [a, b, c, d, e, f, g, h]| {
        let low = crc ^ u32::from_le_bytes([*a, *b, *c, *d]);
        let high = u32::from_le_bytes([*e, *f, *g, *h]);
        let low = at(7, low) ^ at(6, low >> 8) ^ at(5, low >> 16) ^ at(4, low >> 24);
        low ^ at(3, high) ^ at(2, high >> 8) ^ at(1, high >> 16) ^ at(0, high >> 24)
    });
    rest.iter().fold(crc, |crc, byte| at(0, crc ^ u32::from(*byte)) ^ (crc >> 8))
}

/// The tables are computed when the first file is opened: as constants, 8 KiB that do not compress would be
/// part of every visitor's download.
fn tables() -> Box<[[u32; 256]; 8]> {
    let mut tables = Box::new([[0; 256]; 8]);
    for byte in 0..256_usize {
        let mut crc = u32::try_from(byte).unwrap_or(0);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
        }
        tables[0][byte] = crc;
    }
    for table in 1..8 {
        for byte in 0..256 {
            let below: u32 = tables[table - 1][byte];
            tables[table][byte] = (below >> 8) ^ tables[0][(below & 0xff) as usize];
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use flate2::{Compression, GzBuilder};

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(!crc32(!0, b"123456789"), 0xcbf4_3926);
        let long: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let (low, high) = long.split_at(333);
        assert_eq!(crc32(crc32(!0, low), high), crc32(!0, &long));
    }

    #[test]
    fn members_follow_each_other() {
        let text = "a line of text\n".repeat(1000);
        let both = [packed(&text), packed("and more")].concat();
        assert_eq!(gunzip(&both, 1 << 20).unwrap(), format!("{text}and more").as_bytes());
    }

    #[test]
    fn names_comments_and_extra_fields_are_skipped() {
        let mut encoder = GzBuilder::new()
            .extra(vec![1, 2, 3])
            .filename("x.jsonl")
            .comment("words")
            .write(Vec::new(), Compression::default());
        encoder.write_all(b"text").unwrap();
        assert_eq!(gunzip(&encoder.finish().unwrap(), 100).unwrap(), b"text");
    }

    #[test]
    fn every_cut_is_an_error() {
        let whole = packed(&"a line of text\n".repeat(20));
        for length in 1..whole.len() {
            assert!(gunzip(&whole[..length], 1 << 20).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn damage_and_what_is_no_gzip_behind_it_are_errors() {
        let mut whole = packed("text");
        let end = whole.len();
        whole[end - 6] ^= 1;
        assert!(gunzip(&whole, 100).is_err());
        assert!(gunzip(&[packed("text"), b"tail".repeat(10)].concat(), 100).is_err());
    }

    #[test]
    fn too_much_stops_early() {
        assert_eq!(gunzip(&packed(&"x".repeat(100_000)), 1000).unwrap().len(), 1001);
    }
}
