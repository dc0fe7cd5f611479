//! Why a file is not a recording that can be replayed.

/// Why a file is not a recording that can be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// A gzip file that stops in the middle or is damaged.
    #[error("the gzip data is cut off or damaged: {0}")]
    Gzip(GzipError),
    /// More text than this program reads.
    #[error("the file unpacks to more than {most_mib} MiB")]
    TooLarge {
        /// The most that is read, in MiB.
        most_mib: u64,
    },
    /// A known kind of file that is not a recording.
    #[error("this is {0}, not a recording: a recording has one JSON value a line and begins with \"meta\"")]
    OtherKind(&'static str),
    /// A line that cannot be read.
    #[error("line {line}: {error}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        error: LineError,
    },
    /// A recording in which nothing happens.
    #[error("the recording is empty: it holds neither operations nor a trace")]
    Nothing,
    /// A recording that begins in the middle of a run.
    #[error(
        "the recording begins late: entry {entry} ({what}) needs memory from before the first entry, which \
         is not recorded"
    )]
    BeginsLate {
        /// The entry's index in the trace, counted from 0.
        entry: usize,
        /// The entry in words.
        what: String,
    },
}

/// What is wrong with a line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// Not a JSON object.
    #[error("a line of a recording is a JSON object: it begins with \"{{\"")]
    NotAnObject,
    /// A line that is not JSON, or not the JSON of a line of recordings.
    #[error("column {column}: {cause}")]
    Json {
        /// The column, counted from 1.
        column: usize,
        /// The message of the JSON reader.
        cause: String,
    },
    /// An operation lacks a member.
    #[error("the operation has no \"{0}\"")]
    NoMember(&'static str),
    /// An operation of no known kind.
    #[error("unknown operation \"{0}\"")]
    UnknownOperation(String),
    /// An operation on an allocation that does not exist.
    #[error("no allocation with id {0} is live here")]
    NotLive(u64),
    /// A stream without a handle.
    #[error("stream {0} is not in the list of streams of the first line")]
    UnknownStream(u64),
}

/// What is wrong with a gzip file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GzipError {
    /// The file ends too early.
    #[error("it ends too early: the file is cut short")]
    CutShort,
    /// The content does not have the checksum or the length of the file.
    #[error("its checksum does not match: the file is damaged")]
    Checksum,
    /// The packed bytes encode nothing.
    #[error("its packed bytes are damaged")]
    Data,
    /// A method of compression that gzip does not define.
    #[error("its compression is not supported")]
    Method,
    /// The bytes after the first member of the file are not a gzip member.
    #[error("what follows its first part is not gzip")]
    NotGzip,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Reader(std::io::ErrorKind),
}
