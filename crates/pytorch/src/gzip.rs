//! The gzip container (RFC 1952) around deflated data.
//!
//! `flate2` could read it too, but its checksum brings a table of 16 KiB that nothing compresses, and every visitor of the
//! page would download it.

use std::io::Read;

use flate2::bufread::DeflateDecoder;

const HEADER: usize = 10;
const TRAILER: usize = 8;

/// The content of all members, at most `most` bytes and one more.
pub(crate) fn gunzip(bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() && content.len() as u64 <= most {
        rest = member(rest, most, &mut content)?;
    }
    Ok(content)
}

/// Appends the first member's content and returns what follows the member; nothing once there is too much.
fn member<'b>(bytes: &'b [u8], most: u64, content: &mut Vec<u8>) -> Result<&'b [u8], String> {
    let deflated = skip_header(bytes)?;
    let start = content.len();
    let room = (most + 1).saturating_sub(start as u64);
    let mut decoder = DeflateDecoder::new(deflated).take(room);
    decoder.read_to_end(content).map_err(|error| error.to_string())?;
    if content.len() as u64 > most {
        return Ok(&[]);
    }
    let rest = decoder.into_inner().into_inner();
    let (trailer, rest) = rest.split_at_checked(TRAILER).ok_or_else(cut_short)?;
    let unpacked = content.get(start..).unwrap_or_default();
    let word =
        |at: usize| trailer.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
    // The length is kept modulo 2^32.
    let is_sound = word(0) == Some(crc32(unpacked))
        && word(4).map(u64::from) == Some(unpacked.len() as u64 & 0xffff_ffff);
    if is_sound { Ok(rest) } else { Err("its checksum does not fit: the file is damaged".to_owned()) }
}

fn cut_short() -> String {
    "it ends too early: the file is cut short".to_owned()
}

/// What follows the header.
fn skip_header(bytes: &[u8]) -> Result<&[u8], String> {
    let (header, mut rest) = bytes.split_at_checked(HEADER).ok_or_else(cut_short)?;
    let [0x1f, 0x8b, 8, flags, ..] = *header else {
        return Err("what follows its first part is not gzip".to_owned());
    };
    if flags & 4 != 0 {
        let (length, behind) = rest.split_first_chunk::<2>().ok_or_else(cut_short)?;
        rest = behind.get(usize::from(u16::from_le_bytes(*length))..).ok_or_else(cut_short)?;
    }
    // A file name and a comment, each up to a zero byte.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or_else(cut_short)?;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
    let checksum = if flags & 2 != 0 { 2 } else { 0 };
    rest.get(checksum..).ok_or_else(cut_short)
}

/// The checksum of gzip, four bits at a time.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = table();
    let step = |crc: u32, bits: u32| (crc >> 4) ^ TABLE[((crc ^ bits) & 15) as usize];
    !bytes.iter().fold(!0, |crc, byte| {
        let byte = u32::from(*byte);
        step(step(crc, byte), byte >> 4)
    })
}

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut index = 0;
    while index < 16 {
        #[expect(clippy::cast_possible_truncation, reason = "below 16")]
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
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
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
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
