//! Why a file is not a snapshot that can be shown.

mod parts;

use std::borrow::Cow;

pub use parts::{ContainerError, Excess, FieldError, OtherFile, PickleError};

/// Why a file is not a snapshot that can be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// A known kind of file that is not a snapshot.
    #[error("this is {0}, not a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot writes one)")]
    OtherKind(OtherFile),
    /// The gzip, zstd, zip or base64 around the snapshot is damaged, or the reader failed.
    #[error(transparent)]
    Container(ContainerError),
    /// The file ends too early.
    #[error("the file is cut short: it ends after byte {byte}{}", at(path))]
    CutShort {
        /// The byte of the unpacked content.
        byte: u64,
        /// The place in the snapshot: `device_traces[0][17].size`.
        path: String,
    },
    /// The pickle or the JSON does not make sense.
    #[error("byte {byte}{}: {error}", at(path))]
    Damaged {
        /// The byte of the unpacked content.
        byte: u64,
        /// The place in the snapshot: `device_traces[0][17].size`.
        path: String,
        /// Why the pickle or the JSON makes no sense.
        error: PickleError,
    },
    /// The pickle names code, which a snapshot has no need of.
    #[error(
        "byte {byte}{}: the opcode {opcode}{} would run code, which this program never does; a memory snapshot has none, a \
         file of torch.save (a model, a checkpoint) or of another program has",
        at(path),
        named(name)
    )]
    Code {
        /// The byte of the unpacked content.
        byte: u64,
        /// The place in the snapshot: `device_traces[0][17].size`.
        path: String,
        /// The name of pickle's opcode.
        opcode: &'static str,
        /// The global's name in the pickle; empty for opcodes without a name.
        name: String,
    },
    /// A part of the snapshot is missing or has the wrong type.
    #[error("{}{}: {error}", byte_of(*byte), if path.is_empty() { "the snapshot".into() } else { short(path) })]
    Field {
        /// The byte of the unpacked content, where it is known.
        byte: Option<u64>,
        /// The place in the snapshot: `device_traces[0][17].size`.
        path: String,
        /// What is wrong.
        error: FieldError,
    },
    /// More than this program reads.
    #[error("the file is too large: {0}")]
    TooLarge(Excess),
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
    /// The trace and the segments do not add up to a recording.
    #[error(transparent)]
    Recording(#[from] blockyard_record::RecordingError),
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(", in {}", short(path)) }
}

/// The path, without its middle where it is too long to read.
fn short(path: &str) -> Cow<'_, str> {
    const END: usize = 40;
    let count = path.chars().count();
    if count <= 2 * END {
        return path.into();
    }
    let (first, last) = (path.chars().take(END), path.chars().skip(count - END));
    first.chain(" ... ".chars()).chain(last).collect::<String>().into()
}

fn byte_of(byte: Option<u64>) -> String {
    byte.map_or_else(String::new, |byte| format!("byte {byte}, "))
}

fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" of {name}") }
}
