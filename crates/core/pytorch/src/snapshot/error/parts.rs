//! What is wrong with a file, in its parts: the kind of the file, the container, the pickle, a field.

/// A file that is not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtherFile {
    /// An image.
    #[error("a PNG image")]
    Png,
    /// A document.
    #[error("a PDF document")]
    Pdf,
    /// A pickle of a protocol after 5.
    #[error("a pickle of a protocol that PyTorch does not write")]
    NewPickle,
    /// A pickle of a protocol before 2.
    #[error(
        "a pickle of protocol 0 or 1, which PyTorch does not write: load it in Python and write it again \
         with pickle.dump(snapshot, file, protocol=4)"
    )]
    OldPickle,
    /// A text that is neither JSON nor HTML.
    #[error("another kind of text")]
    Text,
    /// Bytes of no known kind.
    #[error("another kind of file")]
    Unknown,
    /// A recording of this project.
    #[error("a recording of operations (one JSON value a line)")]
    Recording,
    /// Archives that are nested deeper than this program opens.
    #[error("an archive in an archive in an archive in an archive")]
    NestedArchives,
    /// An archive.
    #[error("a zip archive without a snapshot")]
    Zip,
    /// A file of `torch.save`.
    #[error("a file of torch.save (a model, a checkpoint)")]
    TorchSave,
    /// A file of `torch.save` before release 1.6, which begins with a number that is a separate pickle.
    #[error("a file of an old torch.save, or another pickle")]
    OldTorchSave,
    /// HTML.
    #[error("a web page without a snapshot in it")]
    WebPage,
    /// A pickle of one value that is not a container.
    #[error("a pickle of {found}")]
    Pickle {
        /// The value.
        found: String,
    },
    /// A dictionary without the keys of a snapshot.
    #[error("a dictionary{}", with_keys(keys))]
    Dictionary {
        /// The first keys of the dictionary.
        keys: Vec<String>,
    },
    /// The list of entries of one device.
    #[error("the trace of one device without its segments")]
    Trace,
    /// A list of something else than segments.
    #[error("a list of something else")]
    List,
}

fn with_keys(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!(" with the keys {}", keys.join(", ")) }
}

/// What is wrong with a container of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The bytes cannot be read, or gzip, zip or base64 around them is damaged.
    #[error("{reason}")]
    Read {
        /// The message of the reader.
        reason: String,
    },
    /// The beginning of the zstd data is damaged.
    #[error("the zstd data is damaged: {reason}")]
    Zstd {
        /// The message of the decoder.
        reason: String,
    },
    /// A file of the zip archive has a password.
    #[error("{name} of the zip archive is encrypted")]
    Encrypted {
        /// The file.
        name: String,
    },
    /// A file of the zip archive is neither stored nor deflated.
    #[error("{name} of the zip archive has a compression that is not supported")]
    ZipMethod {
        /// The file.
        name: String,
    },
}

/// What is wrong with a pickle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickleError {
    /// A text has bytes that are not UTF-8.
    #[error("a text that is not UTF-8")]
    Utf8,
    /// Containers are nested deeper than in any snapshot.
    #[error("lists and dictionaries are nested too deep")]
    Depth,
    /// A version of the format that PyTorch does not write.
    #[error("pickle protocol {0}; PyTorch writes 2 to 5")]
    Protocol(u8),
    /// Values are left on the stack at the end.
    #[error("the pickle ends with something unfinished")]
    Unfinished,
    /// An opcode of other pickles.
    #[error("the opcode {0}, which no snapshot needs")]
    UnneededOpcode(&'static str),
    /// A byte that is not an opcode.
    #[error("{0:#04x} is not an opcode of a pickle")]
    UnknownOpcode(u8),
    /// A whole number that is too long.
    #[error("a number of {bytes} bytes")]
    LongNumber {
        /// The length of the number in bytes.
        bytes: u32,
    },
    /// A text that is too long.
    #[error("a text of {bytes} bytes")]
    LongText {
        /// The length of the text in bytes.
        bytes: u64,
    },
    /// An opcode needs a value.
    #[error("the stack is empty")]
    EmptyStack,
    /// An opcode needs a mark.
    #[error("a mark is missing")]
    NoMark,
    /// An opcode needs more values.
    #[error("the stack holds too little")]
    ShortStack,
    /// An opcode asks for an entry of the memo that was never stored.
    #[error("the memo has no entry {0}")]
    NoMemoEntry(usize),
    /// An entry of the memo far after the others.
    #[error("entry {0} of the memo comes before the ones below it")]
    MemoOrder(usize),
    /// Items have no container.
    #[error("items without a list or dictionary to put them in")]
    NoContainer,
    /// An odd number of keys and values.
    #[error("a key without a value")]
    NoValue,
}

/// What is wrong with a part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The field is missing.
    #[error("is missing")]
    Missing,
    /// A value of another type.
    #[error("{found} where {expected} is expected")]
    OtherType {
        /// The value.
        found: String,
        /// The type, with its article.
        expected: &'static str,
    },
    /// A list of values of another type.
    #[error("a list of something else")]
    OtherList,
    /// A list of something else than traces.
    #[error("a list of items other than traces")]
    NoTraces,
    /// Keys and values for a list.
    #[error("keys for something that is not a dictionary")]
    NoDictionary,
    /// Items for a list that became a part of the snapshot already.
    #[error("an item for something that is not a list any more")]
    NoList,
    /// A negative number.
    #[error("{0} is below zero")]
    Negative(i64),
    /// Traces of more devices than a machine has.
    #[error("traces of {0} devices")]
    DeviceCount(usize),
    /// The caller asked for requests to a GPU's allocator, and the memory is that of the host.
    #[error("not replayed: another allocator than that of a GPU hands out host (pinned) memory")]
    HostMemory,
    /// More streams than numbers of 16 bits can count.
    #[error("more than 65,536 different streams")]
    StreamCount,
    /// A stack that is too deep.
    #[error("a stack of {0} frames")]
    StackDepth(usize),
    /// More stacks than are kept.
    #[error("too many different stacks")]
    StackCount,
    /// More frames than are kept.
    #[error("too many different frames")]
    FrameCount,
    /// A segment that no address space holds.
    #[error("the segment ends after the last address")]
    SegmentEnd,
    /// Segments share addresses.
    #[error("the segments at {below:#x} and {above:#x} overlap")]
    SegmentOverlap {
        /// The first address of the lower segment.
        below: u64,
        /// The first address of the upper segment.
        above: u64,
    },
    /// Blocks share addresses.
    #[error("the block begins before the end of the block in front of it")]
    BlockOverlap,
    /// A block outside of its segment.
    #[error("the block ends after the end of its segment")]
    BlockEnd,
    /// The snapshot has no device.
    #[error("it has neither segments nor traces")]
    Empty,
    /// A device was asked for that the snapshot does not have.
    #[error("it has {count} devices, not {wanted}")]
    NoDevice {
        /// How many devices the snapshot has.
        count: usize,
        /// How many devices the snapshot would need to have.
        wanted: usize,
    },
    /// The JSON ends too early.
    #[error("the file is cut short ({reason})")]
    JsonCutShort {
        /// The message of the reader.
        reason: String,
    },
    /// The JSON does not make sense.
    #[error("{reason}")]
    Json {
        /// The message of the reader.
        reason: String,
    },
}

/// The part of a file that is larger than this program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Excess {
    /// The unpacked content.
    #[error("its content is too long")]
    Content,
    /// The memory of the values that the content describes.
    #[error("what it holds takes too much memory")]
    Memory,
}
