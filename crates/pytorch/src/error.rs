/// Why a file is not a recording that can be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// A gzip file that stops in the middle or is damaged.
    #[error("the gzip data is cut off or damaged: {0}")]
    Gzip(String),
    /// More text than this program takes on.
    #[error("the file unpacks to more than {most_mib} MiB")]
    TooLarge {
        /// The most, in MiB.
        most_mib: u64,
    },
    /// A known kind of file that is not a recording.
    #[error("this is {0}, not a recording: a recording has one JSON value a line and begins with \"meta\"")]
    OtherKind(&'static str),
    /// A line that cannot be read.
    #[error("line {line}: {message}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A recording in which nothing happens.
    #[error("the recording is empty: it holds neither operations nor a trace")]
    Nothing,
    /// A recording that begins in the middle of a run.
    #[error(
        "the recording begins late: entry {entry} ({what}) needs memory that was there before the first entry, and \
         what was there is not recorded"
    )]
    BeginsLate {
        /// The entry's index in the trace, counted from 0.
        entry: usize,
        /// The entry in words.
        what: String,
    },
}
