//! A file of any kind, opened.

use std::io::{self, Read};

use blockyard_record::OnDone;

use crate::snapshot::{
    self, ContainerError, FileKind, Limits, PartialTrace, SnapshotError, SnapshotFile, file_kind,
};
use crate::{ReadError, RecordedRun, unpack};

/// The kind of a file is recognized by this many bytes at its beginning.
const FIRST_BYTES: u64 = 4096;

/// A file about memory.
#[derive(Debug)]
pub enum MemoryFile {
    /// A memory snapshot of PyTorch.
    Snapshot(Box<SnapshotFile>),
    /// A recording of this project.
    Recording(Box<RecordedRun>),
    /// Another text, unpacked: that of a workload, if it is one.
    Text(String),
}

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The recording cannot be read, or the archive is damaged.
    #[error(transparent)]
    Recording(ReadError),
    /// The file is of no kind that is opened; the error of the file as a recording.
    #[error(
        "neither a recording nor a snapshot nor a workload's text: open what \
         `torch.cuda.memory._dump_snapshot` or `scripts/record.py` wrote, or a text in UTF-8"
    )]
    Unknown(ReadError),
}

impl MemoryFile {
    /// Opens a file, plain or packed; `on_done` gets the bytes of a snapshot that have been read.
    ///
    /// # Errors
    ///
    /// [`OpenError`] says which kind of file cannot be read, and why.
    pub fn read(content: impl Read, on_done: OnDone<'_, u64>) -> Result<Self, OpenError> {
        Self::read_with_partial_trace(content, on_done, &mut |_| ())
    }

    /// Opens a file as [`MemoryFile::read`] does, in pieces; `on_trace` as in
    /// [`read_with_partial_trace`](snapshot::read_with_partial_trace).
    ///
    /// # Errors
    ///
    /// The errors of [`MemoryFile::read`].
    pub fn read_with_partial_trace(
        mut content: impl Read,
        on_done: OnDone<'_, u64>,
        on_trace: &mut dyn FnMut(&PartialTrace),
    ) -> Result<Self, OpenError> {
        let unreadable = |error: io::Error| {
            let reason = format!("the file cannot be read: {error}");
            SnapshotError::Container(ContainerError::Read { reason })
        };
        let mut bytes = Vec::new();
        content.by_ref().take(FIRST_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
        let kind = file_kind(&bytes);
        if matches!(kind, FileKind::Snapshot | FileKind::Packed) {
            let whole = bytes.chain(content);
            let file = snapshot::read_with_partial_trace(whole, Limits::default(), on_done, on_trace)?;
            return Ok(Self::Snapshot(Box::new(file)));
        }
        content.read_to_end(&mut bytes).map_err(unreadable)?;
        if kind == FileKind::Recording {
            return RecordedRun::read(&bytes)
                .map(|run| Self::Recording(Box::new(run)))
                .map_err(OpenError::Recording);
        }
        match unpack(&bytes) {
            Ok(text) => Ok(Self::Text(text)),
            Err(ReadError::Empty) => Ok(Self::Text(String::new())),
            Err(error @ ReadError::OtherKind(_)) => Err(OpenError::Unknown(error)),
            Err(error) => Err(OpenError::Recording(error)),
        }
    }
}
