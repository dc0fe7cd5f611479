//! The first file of a zip archive that may be a snapshot.

use std::io::{BufRead, Read};

use flate2::bufread::DeflateDecoder;

use super::container::container;
use super::{ContainerError, OtherFile, SnapshotError};

const LOCAL_HEADER: u32 = 0x0403_4b50;
/// The sizes follow after the data.
const SIZES_FOLLOW: u16 = 8;
const ENCRYPTED: u16 = 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Reads the archive from its front, without its directory at the end.
pub(super) fn open<'r>(mut reader: impl BufRead + 'r) -> Result<Box<dyn Read + 'r>, SnapshotError> {
    loop {
        let header: [u8; 30] = array(&mut reader)?;
        let word =
            |at: usize| header.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        let long = |at: usize| u32::from(word(at)) | u32::from(word(at + 2)) << 16;
        if long(0) != LOCAL_HEADER {
            return Err(SnapshotError::OtherKind(OtherFile::Zip));
        }
        let (flags, method, packed, unpacked) = (word(6), word(8), long(18), long(22));
        let mut name = vec![0; usize::from(word(26))];
        reader.read_exact(&mut name).map_err(|error| container(&error))?;
        let mut extra = vec![0; usize::from(word(28))];
        reader.read_exact(&mut extra).map_err(|error| container(&error))?;
        let name = String::from_utf8_lossy(&name).into_owned();
        if name.ends_with("/data.pkl") {
            return Err(SnapshotError::OtherKind(OtherFile::TorchSave));
        }
        let packed = size_of_data(packed, unpacked, &extra);
        let is_known = flags & SIZES_FOLLOW == 0;
        if flags & ENCRYPTED != 0 {
            return Err(SnapshotError::Container(ContainerError::Encrypted { name }));
        }
        if is_known && !is_candidate(&name) {
            let mut data = (&mut reader).take(packed);
            std::io::copy(&mut data, &mut std::io::sink()).map_err(|error| container(&error))?;
            continue;
        }
        return match method {
            STORED if is_known => Ok(Box::new(reader.take(packed))),
            DEFLATED => Ok(Box::new(DeflateDecoder::new(reader))),
            _ => Err(SnapshotError::Container(ContainerError::ZipMethod { name })),
        };
    }
}

fn is_candidate(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pickle", "pkl", "gz", "zst", "json", "html"].iter().any(|end| name.ends_with(end))
}

fn array<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], SnapshotError> {
    let mut bytes = [0; N];
    let length = super::container::read_up_to(reader, &mut bytes).map_err(|error| container(&error))?;
    if length == N { Ok(bytes) } else { Err(SnapshotError::OtherKind(OtherFile::Zip)) }
}

/// How many bytes the data has; from 4 GiB on an extra field has it.
fn size_of_data(packed: u32, unpacked: u32, extra: &[u8]) -> u64 {
    if packed != u32::MAX {
        return packed.into();
    }
    let mut rest = extra;
    while let Some(([a, b, c, d], following)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_le_bytes([*c, *d]));
        let field = following.get(..length).unwrap_or_default();
        if u16::from_le_bytes([*a, *b]) == 1 {
            let at = if unpacked == u32::MAX { 8 } else { 0 };
            let bytes = field.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            return bytes.map_or(0, u64::from_le_bytes);
        }
        rest = following.get(length..).unwrap_or_default();
    }
    packed.into()
}
