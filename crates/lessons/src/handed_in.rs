//! What a class hands in: files, alone or in a zip archive, and whose they are.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Its path in the archive, without a folder that all files are in.
    pub path: String,
    /// Its content, or why it has none.
    pub content: Result<Vec<u8>, &'static str>,
}

/// The most files of an archive that are read.
const MOST_FILES: usize = 5000;

/// The files of a zip archive, in its order, without what operating systems add. `most` is the most bytes of a file. `None` for bytes that are no zip archive,
/// or a damaged one.
#[must_use]
pub fn archive_files(bytes: &[u8], most: usize) -> Option<Vec<ArchiveFile>> {
    const END: u32 = 0x0605_4b50;
    const LONGEST_COMMENT: usize = 65_535 + 22;
    let first = bytes.len().saturating_sub(LONGEST_COMMENT);
    let end = (first..bytes.len().saturating_sub(21)).rev().find(|at| long(bytes, *at) == Some(END))?;
    let count = usize::from(word(bytes, end + 10)?);
    let mut at = usize::try_from(long(bytes, end + 16)?).ok()?;
    let mut files = Vec::new();
    for _ in 0..count.min(MOST_FILES) {
        let (file, next) = entry(bytes, at, most)?;
        files.extend(file);
        at = next;
    }
    let folder = common_folder(&files);
    for file in &mut files {
        file.path.drain(..folder);
    }
    Some(files)
}

/// The file of an entry of the directory, where it is one that somebody wrote, and the place of the next entry.
fn entry(bytes: &[u8], at: usize, most: usize) -> Option<(Option<ArchiveFile>, usize)> {
    const ENTRY: u32 = 0x0201_4b50;
    const ENCRYPTED: u16 = 1;
    const STORED: u16 = 0;
    const DEFLATED: u16 = 8;
    if long(bytes, at)? != ENTRY {
        return None;
    }
    let of = |at: usize| word(bytes, at).map(usize::from);
    let (name_length, extra, comment) = (of(at + 28)?, of(at + 30)?, of(at + 32)?);
    let (packed, size) = (long(bytes, at + 20)? as usize, long(bytes, at + 24)? as usize);
    let path = String::from_utf8_lossy(bytes.get(at + 46..at + 46 + name_length)?).replace('\\', "/");
    let next = at + 46 + name_length + extra + comment;
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name.starts_with('.') || path.starts_with("__MACOSX/") {
        return Some((None, next));
    }
    let local = long(bytes, at + 42)? as usize;
    let data_at = local + 30 + of(local + 26)? + of(local + 28)?;
    let data = bytes.get(data_at..data_at.checked_add(packed)?)?;
    let (flags, method) = (word(bytes, at + 8)?, word(bytes, at + 10)?);
    let content = match method {
        _ if flags & ENCRYPTED != 0 => Err("encrypted"),
        _ if size > most => Err("larger than 1 MB: an answer is a text"),
        STORED => Ok(data.to_vec()),
        DEFLATED => inflated(data, most),
        _ => Err("packed in a way that is not read here"),
    };
    Some((Some(ArchiveFile { path, content }), next))
}

fn inflated(data: &[u8], most: usize) -> Result<Vec<u8>, &'static str> {
    let mut content = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    match DeflateDecoder::new(data).take(limit).read_to_end(&mut content) {
        Ok(_) => Ok(content),
        Err(_) => Err("damaged"),
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// How long the path is of a folder that all files are in, with its slash. A single file keeps its folder, which may be its student's.
fn common_folder(files: &[ArchiveFile]) -> usize {
    let [first, .., last] = files else { return 0 };
    let mut length = 0;
    let (mut low, mut high) = (first.path.as_str(), last.path.as_str());
    for file in files {
        (low, high) = (low.min(&file.path), high.max(&file.path));
    }
    for ((place, one), other) in low.char_indices().zip(high.chars()) {
        if one != other {
            break;
        }
        if one == '/' {
            length = place + 1;
        }
    }
    length
}

/// Whose file it is: the folder in an archive, or else the name of the file, up to the first `_` or `-`. Empty for a file that is called as a lesson.
#[must_use]
pub fn student_name(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    let of = match folder.rsplit('/').next() {
        Some(folder) if !folder.is_empty() => folder,
        _ if crate::course().any(|lesson| lesson.id == stem) => "",
        _ => stem,
    };
    of.split(['_', '-']).next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// A zip archive of these files, every other one deflated.
    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for (place, (name, content)) in files.iter().enumerate() {
            let mut data = content.to_vec();
            let method = if place % 2 == 0 { 0_u16 } else { 8 };
            if method == 8 {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(content).unwrap();
                data = encoder.finish().unwrap();
            }
            let long = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
            let word = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
            let at = bytes.len();
            let sizes =
                [&[0; 4][..], &long(data.len()), &long(content.len()), &word(name.len()), &[0; 2]].concat();
            bytes
                .extend([b"PK\x03\x04", &[20, 0, 0, 0][..], &method.to_le_bytes(), &[0; 4], &sizes].concat());
            bytes.extend(name.as_bytes());
            bytes.extend(&data);
            directory.extend(
                [b"PK\x01\x02", &[20, 0, 20, 0, 0, 0][..], &method.to_le_bytes(), &[0; 4], &sizes].concat(),
            );
            directory.extend([&[0; 10][..], &long(at), name.as_bytes()].concat());
        }
        let at = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let length = u32::try_from(directory.len()).unwrap().to_le_bytes();
        let count = u16::try_from(files.len()).unwrap().to_le_bytes();
        bytes.extend(directory);
        bytes.extend([b"PK\x05\x06", &[0; 4][..], &count, &count, &length, &at, &[0; 2]].concat());
        bytes
    }

    #[test]
    fn the_files_of_an_archive_are_read_without_their_common_folder() {
        let long = "x = alloc 8 MiB\n".repeat(200);
        let archive = zip(&[
            ("task/", b""),
            ("task/Anna Meyer_12_assign/pools.workload", b"a"),
            ("task/Bo-2/answer.py", long.as_bytes()),
            ("__MACOSX/task/._answer.py", b"?"),
            ("task/Bo-2/.DS_Store", b"?"),
        ]);
        let files = archive_files(&archive, 1 << 20).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["Anna Meyer_12_assign/pools.workload", "Bo-2/answer.py"]);
        assert_eq!(files[0].content, Ok(b"a".to_vec()));
        assert_eq!(files[1].content, Ok(long.clone().into_bytes()));
        let names: Vec<String> = paths.iter().map(|path| student_name(path)).collect();
        assert_eq!(names, ["Anna Meyer", "Bo"]);
        assert!(archive_files(&archive, 100).unwrap()[1].content.is_err());
        assert_eq!(archive_files(b"no archive, whatever it is called", 100), None);
        // A damaged archive is none, wherever it is cut.
        for end in 0..archive.len() {
            let _ = archive_files(&archive[..end], 100);
        }
    }

    #[test]
    fn a_file_has_the_name_of_its_student() {
        for (path, name) in [
            ("meyer_pools.py", "meyer"),
            ("Anna Meyer-3.workload", "Anna Meyer"),
            ("schmidt.tar.gz", "schmidt"),
            ("pools.workload", ""),
            ("oom-message.py", ""),
            ("week 1/meyer/pools.py", "meyer"),
            ("", ""),
        ] {
            assert_eq!(student_name(path), name, "{path}");
        }
    }
}
