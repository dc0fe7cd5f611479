//! The lines of the program that hold the peak of allocated memory, with their texts.

use std::collections::BTreeMap;
use std::path::Path;

use blockyard_answers::GuardHolder;
use blockyard_record::{Bytes, Frame, shortened_path};

use crate::progress::Bar;
use crate::snapshot::{self, WITHOUT_LINE, lines_at_peak};

/// A line's text is cut off after this many letters.
const MAX_LETTERS: usize = 100;

/// The file, the number, the function and the text of a line.
type ProgramLine = (String, u32, String, String);

/// All lines by descending bytes, without host memory.
pub(super) fn holders(file: &Path, folder: &Path) -> anyhow::Result<Vec<GuardHolder>> {
    let file = snapshot::open(file, &Bar::hidden())?;
    let mut sources = Sources { folder, files: BTreeMap::new() };
    let lines = lines_at_peak(&file, 0..file.devices.len(), |frame| match frame {
        Some(frame) => sources.line(frame),
        None => (WITHOUT_LINE.to_owned(), 0, String::new(), String::new()),
    })?;
    let holder = |((file, line, function, code), bytes): (ProgramLine, Bytes)| {
        let at = if line == 0 { file } else { format!("{file}:{line}") };
        GuardHolder { bytes, at, function, code }
    };
    Ok(lines.into_iter().map(holder).collect())
}

/// The program's files, each read once.
struct Sources<'a> {
    folder: &'a Path,
    files: BTreeMap<String, Vec<String>>,
}

impl Sources<'_> {
    fn line(&mut self, frame: Frame<'_>) -> ProgramLine {
        // Python names a program by the path with which it was started, relative to the folder.
        let path = self.folder.join(frame.filename);
        let inside = path.strip_prefix(self.folder).ok().filter(|_| !frame.is_of_library());
        let name = inside.and_then(Path::to_str).unwrap_or_else(|| shortened_path(frame.filename));
        let code = if inside.is_some() { self.code(&path, frame.line) } else { String::new() };
        (name.to_owned(), frame.line, frame.name.to_owned(), code)
    }

    fn code(&mut self, path: &Path, line: u32) -> String {
        let lines = self.files.entry(path.display().to_string()).or_insert_with(|| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().map(|line| line.trim().chars().take(MAX_LETTERS).collect()).collect()
        });
        let place = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        place.and_then(|place| lines.get(place)).cloned().unwrap_or_default()
    }
}
