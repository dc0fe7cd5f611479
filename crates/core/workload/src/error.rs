//! Why a text is not a workload, with line and column.

use blockyard_record::{grouped, index_u32};
use thiserror::Error;

use crate::MAX_REQUESTS;
use crate::token::{Span, Token};

/// Why a text is not a workload, and where.
///
/// Lines and columns count from 1, columns in characters. Reads as `line 3, column 7: expected a size such as
/// "3 MiB", found "3 MBB"`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct ParseError {
    line: u32,
    column: u32,
    length: u32,
    kind: ParseErrorKind,
}

impl ParseError {
    pub(crate) fn new(text: &str, span: Span, kind: ParseErrorKind) -> Self {
        let count = |from, to| {
            let characters =
                text.get(from..to).unwrap_or_default().trim_end_matches(['\r', '\n']).chars().count();
            index_u32(characters)
        };
        Self {
            line: span.line,
            column: count(span.line_start, span.start).saturating_add(1),
            length: count(span.start, span.end).max(1),
            kind,
        }
    }

    pub(crate) fn unexpected(text: &str, expected: &'static str, found: Token) -> Self {
        Self::new(text, found.span, ParseErrorKind::Unexpected { expected, found: found.describe(text) })
    }

    /// The line and the column, both counted from 1, and the number of characters to underline, at least one.
    ///
    /// The underlined characters may begin one after the last character of the line.
    #[must_use]
    pub const fn position(&self) -> (u32, u32, u32) {
        (self.line, self.column, self.length)
    }

    /// What is wrong at this place.
    #[must_use]
    pub const fn kind(&self) -> &ParseErrorKind {
        &self.kind
    }
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text has a token where another one is expected.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// The expected token, in words.
        expected: &'static str,
        /// The token of the text: a piece of the text in quotes, or the end of the line or of the text.
        found: String,
    },
    /// A loop has no closing brace.
    #[error("the loop that starts here is never closed: expected \"}}\", found the end of the text")]
    UnclosedLoop,
    /// A closing brace has no loop.
    #[error("this \"}}\" closes nothing")]
    NothingToClose,
    /// A size is over 2^64-1 bytes.
    #[error("{found} is more than 2^64-1 bytes, the largest size there is")]
    SizeTooLarge {
        /// The size, in quotes.
        found: String,
    },
    /// A line about the whole run is in a loop, or comes a second time.
    #[error("the capacity and the settings of the run are given once, outside of loops")]
    HeaderTwice,
    /// A size has a part of a byte.
    #[error("{found} is not a whole number of bytes")]
    NotWholeBytes {
        /// The size, in quotes.
        found: String,
    },
    /// A shape has over five dimensions.
    #[error("a shape has at most 5 dimensions")]
    TooManyDimensions,
    /// A memory fraction is over 1.
    #[error("a memory fraction lies between 0 and 1, found {found}")]
    FractionOutOfRange {
        /// The number, in quotes.
        found: String,
    },
    /// A word of the language is used as a name.
    #[error("\"{word}\" is a word of the language and cannot be a name")]
    ReservedWord {
        /// The word that cannot be a name.
        word: String,
    },
    /// A name has too many indices.
    #[error("a name has at most 2 indices")]
    TooManyIndices,
    /// An index is too large.
    #[error("an index is at most 4294967294")]
    IndexTooLarge,
    /// An allocation would overwrite the tensor of the name.
    #[error("\"{name}\" is still allocated, since line {line}: free it first")]
    StillAllocated {
        /// The name of the tensor.
        name: String,
        /// The line that allocated it.
        line: u32,
    },
    /// An allocation would overwrite a tensor that the same line allocated, in an earlier round of a loop or
    /// earlier in the line.
    #[error(
        "\"{name}\" is still allocated, by this very line: free it first, in a loop before the next round"
    )]
    StillAllocatedHere {
        /// The name of the tensor.
        name: String,
    },
    /// A name is used that nothing has allocated.
    #[error("\"{name}\" is not allocated: no line before this one allocates it")]
    NotAllocated {
        /// The name of the tensor.
        name: String,
    },
    /// A name is used after its free.
    #[error("\"{name}\" is not allocated any more: line {line} freed it")]
    AlreadyFreed {
        /// The name of the tensor.
        name: String,
        /// The line that freed it.
        line: u32,
    },
    /// `x[*]` stands for nothing.
    #[error("no element of \"{name}\" is allocated here")]
    NoElements {
        /// The name before the brackets.
        name: String,
    },
    /// A stream is used that no line before declares.
    #[error("there is no stream \"{name}\" here: known are {}; declare it before with \"stream {name}\"", known.join(", "))]
    UnknownStream {
        /// The name of the stream.
        name: String,
        /// The streams that are known here: `default`, then the declared ones in order.
        known: Vec<String>,
    },
    /// A stream is declared again.
    #[error("the stream \"{name}\" exists already{}", .line.map(|line| format!(", since line {line}")).unwrap_or_default())]
    StreamExists {
        /// The name of the stream.
        name: String,
        /// The line that declared it; `None` for the default stream.
        line: Option<u32>,
    },
    /// A stream is declared inside a loop.
    #[error("a stream is declared once, outside of loops")]
    StreamInLoop,
    /// A memory pool is used that no line before declares.
    #[error("there is no pool \"{name}\" here{}; declare it before with \"pool {name}\"", known_pools(.known))]
    UnknownPool {
        /// The name of the pool.
        name: String,
        /// The pools that are known here, in order.
        known: Vec<String>,
    },
    /// A memory pool is declared again.
    #[error("the pool \"{name}\" exists already, since line {line}")]
    PoolExists {
        /// The name of the pool.
        name: String,
        /// The line that declared it.
        line: u32,
    },
    /// A memory pool is declared inside a loop.
    #[error("a pool is made once, outside of loops")]
    PoolInLoop,
    /// A memory pool is used after its end.
    #[error("the pool \"{name}\" does not exist any more: line {line} destroyed it")]
    PoolDestroyed {
        /// The name of the pool.
        name: String,
        /// The line that destroyed it.
        line: u32,
    },
    /// No enclosing loop has this variable.
    #[error("no loop around this has a variable \"{name}\"")]
    UnknownVariable {
        /// The name of the variable.
        name: String,
    },
    /// The variable of a loop over names is used as a number.
    #[error("\"{name}\" stands for tensors here and cannot be an index")]
    NotANumber {
        /// The variable.
        name: String,
    },
    /// Loops are nested too deep.
    #[error("loops may be nested {limit} deep")]
    TooDeep {
        /// The deepest allowed.
        limit: usize,
    },
    /// The workload would be too long.
    #[error("this makes more than {} requests, the most a workload may have", grouped(MAX_REQUESTS))]
    TooManyRequests,
    /// Loops have too many rounds, even though they make few requests.
    #[error("these loops run more than {} times in all, the limit of a text", grouped(MAX_REQUESTS))]
    TooManyRounds,
    /// The labels would be too many or too long.
    #[error("this makes more than a million labels or more than 64 MiB of them")]
    TooManyLabels,
}

fn known_pools(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(": known are {}", known.join(", ")) }
}
