//! Containers of a snapshot (gzip, zstd, zip, HTML), and the kind of a file.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

use super::{ContainerError, OtherFile, SnapshotError, html, zip};
use crate::gzip::GzipReader;

/// The beginning of a file, which shows its kind.
const HEAD: usize = 1 << 10;
/// How many containers may be inside each other: a gzip file in a zip archive is two.
const MAX_CONTAINERS: usize = 4;

/// The format of a snapshot.
pub(super) enum Content<'r> {
    Pickle(Box<dyn Read + 'r>),
    Json(Box<dyn Read + 'r>),
}

/// The kinds of files that their beginning shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A pickle, or JSON or HTML that may hold a snapshot: [`read`](super::read) opens it.
    Snapshot,
    /// A recording of this project, one JSON value a line.
    Recording,
    /// gzip, zstd or zip around something else, which the beginning does not show.
    Packed,
    /// None of the other kinds.
    Other,
}

/// Tells the kind of a file by its beginning (a few hundred bytes are enough); unpacks gzip to look inside.
#[must_use]
pub fn file_kind(bytes: &[u8]) -> FileKind {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut head = vec![0; HEAD];
        let length = read_up_to(&mut GzipReader::new(bytes), &mut head).unwrap_or(0);
        return match head.get(..length) {
            Some([]) | None => FileKind::Packed,
            Some(content) => file_kind(content),
        };
    }
    match kind(bytes) {
        Kind::Pickle | Kind::Json | Kind::Html => FileKind::Snapshot,
        Kind::Recording => FileKind::Recording,
        Kind::Gzip | Kind::Zstd | Kind::Zip => FileKind::Packed,
        Kind::Other(_) => FileKind::Other,
    }
}

enum Kind {
    Pickle,
    Json,
    Html,
    Recording,
    Gzip,
    Zstd,
    Zip,
    Other(OtherFile),
}

fn kind(head: &[u8]) -> Kind {
    match head {
        [0x80, 2..=5, ..] => return Kind::Pickle,
        [0x1f, 0x8b, ..] => return Kind::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => return Kind::Zstd,
        [b'P', b'K', 3, 4, ..] => return Kind::Zip,
        [0x89, b'P', b'N', b'G', ..] => return Kind::Other(OtherFile::Png),
        [b'%', b'P', b'D', b'F', ..] => return Kind::Other(OtherFile::Pdf),
        [0x80, ..] => return Kind::Other(OtherFile::NewPickle),
        _ => {}
    }
    let text = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).trim_ascii_start();
    match text {
        [b'<', ..] => Kind::Html,
        [b'{', rest @ ..] if rest.trim_ascii_start().starts_with(b"\"meta\"") => Kind::Recording,
        // A pickle of protocol 0 begins with an opcode too: `(dp0`, `]p0`.
        [b'{' | b'[', rest @ ..]
            if rest.trim_ascii_start().first().is_none_or(|byte| b"\"{[]}".contains(byte)) =>
        {
            Kind::Json
        }
        [b'(', b'd' | b'l', ..] | [b']' | b'}', ..] => Kind::Other(OtherFile::OldPickle),
        _ if std::str::from_utf8(head).is_ok_and(|text| !text.contains('\0')) => Kind::Other(OtherFile::Text),
        _ => Kind::Other(OtherFile::Unknown),
    }
}

/// Opens nested containers until the content is reached.
pub(super) fn open<'r>(reader: Box<dyn Read + 'r>) -> Result<Content<'r>, SnapshotError> {
    let mut reader = reader;
    for _ in 0..MAX_CONTAINERS {
        let mut head = vec![0; HEAD];
        let length = read_up_to(&mut reader, &mut head).map_err(|error| container(&error))?;
        head.truncate(length);
        if head.is_empty() {
            return Err(SnapshotError::Empty);
        }
        let kind = kind(&head);
        let whole: Box<dyn Read + 'r> = Box::new(Cursor::new(head).chain(reader));
        reader = match kind {
            Kind::Pickle => return Ok(Content::Pickle(whole)),
            Kind::Json => return Ok(Content::Json(whole)),
            Kind::Gzip => Box::new(Gzip(GzipReader::new(BufReader::with_capacity(1 << 16, whole)))),
            Kind::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(whole);
                Box::new(decoder.map_err(|error| {
                    SnapshotError::Container(ContainerError::Zstd { reason: error.to_string() })
                })?)
            }
            Kind::Zip => zip::open(BufReader::with_capacity(1 << 16, whole))?,
            Kind::Html => html::open(BufReader::with_capacity(1 << 16, whole))?,
            Kind::Recording => {
                return Err(SnapshotError::OtherKind(OtherFile::Recording));
            }
            Kind::Other(kind) => return Err(SnapshotError::OtherKind(kind)),
        };
    }
    Err(SnapshotError::OtherKind(OtherFile::NestedArchives))
}

/// Marks its errors as errors of gzip, as files of recordings do.
struct Gzip<R: BufRead>(GzipReader<R>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let described = |error: io::Error| {
            io::Error::new(error.kind(), format!("the gzip data is cut off or damaged: {error}"))
        };
        self.0.read(buffer).map_err(described)
    }
}

/// Reads up to 1 MiB after the snapshot, so that the checksum of a container is checked.
pub(super) fn finish(reader: impl Read) -> Result<(), SnapshotError> {
    let mut rest = reader.take(1 << 20);
    io::copy(&mut rest, &mut io::sink()).map_err(|error| container(&error))?;
    Ok(())
}

pub(super) fn container(error: &io::Error) -> SnapshotError {
    SnapshotError::Container(ContainerError::Read { reason: error.to_string() })
}

/// Fills the buffer, or the part of it for which the reader has bytes. Returns how many bytes were read.
pub(super) fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The bytes so far may be enough; if not, the next call reports the error again.
            Err(_) if length > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Counts the bytes of a reader.
pub(super) struct CountingReader<R> {
    reader: R,
    count: Rc<Cell<u64>>,
}

impl<R> CountingReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, count: Rc::default() }
    }

    pub(super) fn count(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.count)
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count.set(self.count.get().saturating_add(count as u64));
        Ok(count)
    }
}
