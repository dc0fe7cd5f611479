//! The files that a class hands in, alone or in a zip archive, and the students whose files they are.

use std::io::Read as _;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipSliceEntry, ZipVerification};

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFile {
    /// The file's path in the archive, without a folder that all files are in.
    pub path: String,
    /// The file's content, or why it cannot be read.
    pub content: Result<Vec<u8>, &'static str>,
}

/// The most files of an archive that are read.
const MAX_FILES: usize = 5000;

/// The files of a zip archive, in the order of the archive, without files that operating systems add. `most`
/// is the most bytes of a file. `None` for other bytes, and for an archive whose directory is damaged.
pub fn archive_files(bytes: &[u8], most: usize) -> Option<Vec<ArchiveFile>> {
    let archive = ZipArchive::from_slice(bytes).ok()?;
    let mut entries = archive.entries();
    let mut files = Vec::new();
    while files.len() < MAX_FILES
        && let Some(entry) = entries.next_entry().ok()?
    {
        let path = String::from_utf8_lossy(entry.file_path().as_bytes()).replace('\\', "/");
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.is_empty() || name.starts_with('.') || path.starts_with("__MACOSX/") {
            continue;
        }
        let content = match archive.get_entry(entry.wayfinder()) {
            _ if entry.flags().is_encrypted() => Err("encrypted"),
            _ if entry.uncompressed_size_hint() > most as u64 => Err("larger than 1 MB: an answer is a text"),
            Ok(packed) => unpacked(&packed, entry.compression_method(), most as u64),
            Err(_) => Err("damaged"),
        };
        files.push(ArchiveFile { path, content });
    }
    let folder = common_folder(&files);
    for file in &mut files {
        file.path.drain(..folder);
    }
    Some(files)
}

fn unpacked(
    packed: &ZipSliceEntry<'_>,
    method: CompressionMethod,
    most: u64,
) -> Result<Vec<u8>, &'static str> {
    let mut content = Vec::new();
    // One byte more than the archive may state, so that a file which is longer than stated is found.
    let most = most.saturating_add(1);
    let read = match method {
        CompressionMethod::STORE => packed.data().take(most).read_to_end(&mut content),
        CompressionMethod::DEFLATE => DeflateDecoder::new(packed.data()).take(most).read_to_end(&mut content),
        _ => return Err("packed in a way that is not read here"),
    };
    // The checksum of the crate that decompresses: the tables of another would weigh 16 kB in the page.
    let mut sum = Crc::new();
    sum.update(&content);
    let found = ZipVerification { crc: sum.sum(), uncompressed_size: content.len() as u64 };
    match (read, packed.claim_verifier().valid(found)) {
        (Ok(_), Ok(())) => Ok(content),
        _ => Err("damaged"),
    }
}

/// How long the path is of a folder that all files are in, with its slash. A single file keeps its folder,
/// which may be its student's.
fn common_folder(files: &[ArchiveFile]) -> usize {
    let [first, .., last] = files else { return 0 };
    let mut length = 0;
    let (mut low, mut high) = (first.path.as_str(), last.path.as_str());
    for file in files {
        (low, high) = (low.min(&file.path), high.max(&file.path));
    }
    for ((index, one), other) in low.char_indices().zip(high.chars()) {
        if one != other {
            break;
        }
        if one == '/' {
            length = index + 1;
        }
    }
    length
}

/// The student whose file this is: the folder in an archive, or else the name of the file, up to the first
/// `_` or `-`. Empty for a file with the name of a lesson.
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
    use rawzip::ZipArchiveWriter;

    use super::*;

    /// A zip archive of these files, every other one deflated; a name that ends with a slash is a folder's.
    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipArchiveWriter::new(Vec::new());
        for (index, (name, content)) in files.iter().enumerate() {
            if name.ends_with('/') {
                archive.new_dir(*name).create().unwrap();
                continue;
            }
            let method = if index % 2 == 0 { CompressionMethod::STORE } else { CompressionMethod::DEFLATE };
            let (mut entry, config) = archive.new_file(*name).compression_method(method).start().unwrap();
            let descriptor = if method == CompressionMethod::STORE {
                let mut writer = config.wrap(&mut entry);
                writer.write_all(content).unwrap();
                writer.finish().unwrap().1
            } else {
                let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
                writer.write_all(content).unwrap();
                let (encoder, descriptor) = writer.finish().unwrap();
                encoder.finish().unwrap();
                descriptor
            };
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap()
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
        // An archive that is cut has no directory.
        for end in 0..archive.len() {
            assert_eq!(archive_files(&archive[..end], 100), None, "{end}");
        }
        // A byte that changed in a file's content is found by its checksum, and the other files are read.
        let read = ZipArchive::from_slice(&archive).unwrap();
        let mut entries = read.entries();
        entries.next_entry().unwrap();
        let entry = entries.next_entry().unwrap().unwrap();
        let (start, _) = read.get_entry(entry.wayfinder()).unwrap().compressed_data_range();
        let mut damaged = archive.clone();
        let content = usize::try_from(start).unwrap();
        damaged[content + 1] ^= 0x10;
        let files = archive_files(&damaged, 1 << 20).unwrap();
        assert_eq!(files[0].content, Err("damaged"));
        assert_eq!(files[1].content, Ok(long.into_bytes()));
    }

    #[test]
    fn a_file_has_the_name_of_its_student() {
        for (path, name) in [
            ("meyer_pools.py", "meyer"),
            ("Anna Meyer-3.workload", "Anna Meyer"),
            ("schmidt.tar.gz", "schmidt"),
            ("pools.workload", ""),
            ("what-to-change.py", ""),
            ("week 1/meyer/pools.py", "meyer"),
            ("", ""),
        ] {
            assert_eq!(student_name(path), name, "{path}");
        }
    }
}
