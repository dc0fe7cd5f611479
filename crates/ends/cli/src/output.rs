//! Input and output of the command: standard output in large pieces, warnings, whole files.

use std::fs::File;
use std::io::{self, BufWriter, Read, StdoutLock, Write};
use std::path::Path;

use anyhow::Context;

/// Standard output in large pieces: a call of the system for each line would be slow for half a million
/// operations.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

pub(crate) fn line(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

/// Writes a warning of PyTorch's to standard error.
pub(crate) fn warn(text: &str) -> io::Result<()> {
    line(&mut io::stderr().lock(), &format!("warning: {text}"))
}

pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The bytes of a file, or of standard input for `-`.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| path.display().to_string())
}

/// Writes a file as a whole: the content goes to a file beside it, which is renamed once it is complete.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(unfinished)?);
        out.write_all(content)?;
        out.flush()?;
        drop(out);
        std::fs::rename(unfinished, path)
    };
    write().with_context(|| path.display().to_string()).inspect_err(|_| {
        // An incomplete file is of no use to anybody.
        let _ = std::fs::remove_file(unfinished);
    })
}
