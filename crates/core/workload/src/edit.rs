//! Edits by hand: an action of a person in the figure becomes a statement in the text.
//!
//! An edit does not change comments, labels and the layout of a text. This module knows texts and requests,
//! and no result of an allocator.

mod header;
mod outline;
mod resize;
mod splice;
mod statement;

pub use header::with_header;
pub use resize::{ResizedText, resize};

use blockyard_record::{Bytes, StreamId, index_u32};
use thiserror::Error;

use crate::error::ParseError;
use crate::request::{Request, TensorId};
use crate::workload::Workload;
use outline::Outline;
use statement::{declaration, write};

/// An action of a person.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EditAction {
    /// Allocates a tensor under a name that the text does not use yet.
    Allocate {
        /// The size asked for.
        size: Bytes,
        /// A known stream.
        stream: StreamId,
    },
    /// Frees a tensor that is allocated at that point.
    Free {
        /// The tensor whose bytes are freed.
        tensor: TensorId,
    },
    /// Uses a tensor that is allocated at that point on a further stream.
    RecordStream {
        /// The tensor that a further stream uses.
        tensor: TensorId,
        /// A known stream.
        stream: StreamId,
    },
    /// Completes the work of a stream, or of every stream.
    Advance {
        /// A known stream, or `None` for every stream.
        stream: Option<StreamId>,
    },
    /// Releases all cached segments.
    EmptyCache,
    /// Sets peaks to the current values.
    ResetPeak,
    /// Sets accumulated counts to zero.
    ResetAccumulated,
    /// Limits the reserved bytes.
    SetFraction {
        /// The share of the device, from 0 to 1.
        fraction: f64,
    },
    /// Declares a further stream, which gets the next handle; adds no request.
    DeclareStream,
}

/// A text with one more statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The new text; it parses.
    pub text: String,
    /// The index of the request that the edit added, or before which it declared a stream.
    pub request: usize,
    /// How many requests the edit added: 1, or 0 for the declaration of a stream.
    pub added: usize,
    /// The line of the new statement, counted from 1.
    pub line: u32,
    /// The tensor that the new statement allocates.
    pub tensor: Option<TensorId>,
}

/// Why an action cannot become a statement of the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// The text does not parse.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// The workload is not the one of the text.
    #[error("the text has changed since it ran")]
    Stale,
    /// The edit should follow more requests than the workload has.
    #[error("there are {requests} requests, not {done}")]
    OutOfRange {
        /// The requests to be done before the edit.
        done: usize,
        /// The requests of the workload.
        requests: usize,
    },
    /// The point is inside a loop or between the names of a list, where no statement can be inserted.
    #[error("this point lies inside a loop or a list: nothing can be inserted before request {resume}")]
    InsideLoop {
        /// The first number of done requests, not smaller than the one asked for, that allows an edit.
        resume: usize,
    },
    /// The tensor is not allocated at that point.
    #[error("tensor {tensor} is not allocated at this point")]
    NotAllocated {
        /// The tensor that is not allocated.
        tensor: TensorId,
    },
    /// The text declares no such stream.
    #[error("there is no stream {stream}")]
    UnknownStream {
        /// The stream that the workload lacks.
        stream: StreamId,
    },
    /// The stream is declared after the point of the edit.
    #[error("the stream \"{name}\" is declared later, in line {line}")]
    StreamDeclaredLater {
        /// The stream's name.
        name: String,
        /// The line that declares it.
        line: u32,
    },
    /// A later line that cannot be adapted still needs the tensor.
    #[error("line {line} still needs \"{name}\"")]
    Conflict {
        /// The name of the tensor in the text.
        name: String,
        /// The line of the text, counted from 1.
        line: u32,
    },
    /// The memory fraction is not between 0 and 1.
    #[error("a memory fraction lies between 0 and 1")]
    FractionOutOfRange,
    /// The new text would not be a workload, for example since it would be too long.
    #[error("the text cannot say this: {0}")]
    Rejected(#[source] ParseError),
    /// The new text would make other requests than it should.
    #[error("the text cannot say this here")]
    NotExpressible,
}

/// Inserts a statement so that it runs right after the first `done` requests.
///
/// `workload` is the workload of `text`. The statement goes on a new line, indented like the one before it;
/// between statements that share a line it goes into that line. The declaration of a stream goes after those
/// that exist, or to the start, so that no handle changes. When the edit frees a tensor that a later `free`
/// outside of loops frees too, the name is removed from that statement; nothing else of the text changes.
///
/// # Errors
///
/// [`EditError::Text`] and [`EditError::Stale`] when `text` and `workload` do not belong together,
/// [`EditError::InsideLoop`] where the text has no place for a statement, [`EditError::Conflict`] when a
/// later line that cannot be adapted needs the tensor; the others when the action makes no sense at that
/// point.
pub fn insert(text: &str, workload: &Workload, done: usize, action: EditAction) -> Result<Edit, EditError> {
    let outline = Outline::new(text)?;
    if outline.workload.requests() != workload.requests() {
        return Err(EditError::Stale);
    }
    let requests = workload.requests().len();
    if done > requests {
        return Err(EditError::OutOfRange { done, requests });
    }
    check_action(workload, done, action)?;
    let Some(request) = request_of(workload, done, action) else {
        return declare_stream(text, &outline, done);
    };
    outline.check_point(done)?;
    let place = outline.place(done, stream_of(action))?;
    let statement = write(text, &outline.workload, request);

    // The later part of the text changes first, so that offsets in the earlier part stay valid.
    let (text, removed) = match action {
        EditAction::Free { tensor } => outline.without_later_free(text, done, tensor)?,
        _ => (text.to_owned(), None),
    };
    let (text, line) = splice::insert_line(&text, place, &statement);
    let after = Workload::parse(&text).map_err(EditError::Rejected)?;
    if !after.requests().iter().copied().eq(expected_requests(workload, done, request, removed)) {
        return Err(EditError::NotExpressible);
    }
    let tensor = match request {
        Request::Allocate { tensor, .. } => Some(tensor),
        _ => None,
    };
    Ok(Edit { text, request: done, added: 1, line, tensor })
}

fn declare_stream(text: &str, outline: &Outline, done: usize) -> Result<Edit, EditError> {
    let place = outline.declaration_place();
    let mut statement = declaration(text);
    if let splice::InsertionPoint::Before(next) = place {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        // An empty line separates the declaration from the step that follows, and from a comment right above
        // that step.
        statement.push_str(newline);
        let before = text.get(..next.line_start).unwrap_or_default();
        if before.lines().next_back().is_some_and(|line| !line.trim().is_empty()) {
            statement.insert_str(0, newline);
        }
    }
    let (text, line) = splice::insert_line(text, place, &statement);
    let after = Workload::parse(&text).map_err(EditError::Rejected)?;
    if after.requests() != outline.workload.requests() {
        return Err(EditError::NotExpressible);
    }
    Ok(Edit { text, request: done, added: 0, line, tensor: None })
}

fn stream_of(action: EditAction) -> Option<StreamId> {
    match action {
        EditAction::Allocate { stream, .. } | EditAction::RecordStream { stream, .. } => Some(stream),
        EditAction::Advance { stream } => stream,
        _ => None,
    }
}

fn check_action(workload: &Workload, done: usize, action: EditAction) -> Result<(), EditError> {
    match action {
        EditAction::Free { tensor } | EditAction::RecordStream { tensor, .. }
            if !is_live(workload, done, tensor) =>
        {
            return Err(EditError::NotAllocated { tensor });
        }
        EditAction::SetFraction { fraction } if !(0.0..=1.0).contains(&fraction) => {
            return Err(EditError::FractionOutOfRange);
        }
        _ => {}
    }
    match stream_of(action) {
        Some(stream) if workload.stream_name(stream).is_none() => Err(EditError::UnknownStream { stream }),
        _ => Ok(()),
    }
}

/// Whether a tensor is allocated and not freed after the first `done` requests.
fn is_live(workload: &Workload, done: usize, wanted: TensorId) -> bool {
    let before = workload.requests().iter().take(done);
    let last = before.rev().find(|request| {
        matches!(request, Request::Allocate { tensor, .. } | Request::Free { tensor } if *tensor == wanted)
    });
    matches!(last, Some(Request::Allocate { .. }))
}

/// The request of an action after the first `done` requests, if it makes one.
fn request_of(workload: &Workload, done: usize, action: EditAction) -> Option<Request> {
    Some(match action {
        EditAction::Allocate { size, stream } => {
            let before = workload.requests().iter().take(done);
            let tensors = before.filter(|request| matches!(request, Request::Allocate { .. })).count();
            let tensor = TensorId::new(index_u32(tensors));
            Request::Allocate { tensor, size, stream }
        }
        EditAction::Free { tensor } => Request::Free { tensor },
        EditAction::RecordStream { tensor, stream } => Request::RecordStream { tensor, stream },
        EditAction::Advance { stream } => Request::Advance { stream },
        EditAction::EmptyCache => Request::EmptyCache,
        EditAction::ResetPeak => Request::ResetPeak,
        EditAction::ResetAccumulated => Request::ResetAccumulated,
        EditAction::SetFraction { fraction } => Request::SetFraction { fraction },
        EditAction::DeclareStream => return None,
    })
}

/// The requests that the new text should make: the old requests without the removed one, and with the new
/// one.
fn expected_requests(
    workload: &Workload,
    done: usize,
    added: Request,
    removed: Option<usize>,
) -> impl Iterator<Item = Request> {
    // A new tensor moves the numbers of those after it.
    let first_moved = match added {
        Request::Allocate { tensor, .. } => tensor.get(),
        _ => u32::MAX,
    };
    let moved = move |tensor: TensorId| {
        if tensor.get() >= first_moved { TensorId::new(tensor.get().saturating_add(1)) } else { tensor }
    };
    let kept = workload.requests().iter().enumerate().filter(move |(place, _)| Some(*place) != removed);
    let kept = kept.map(move |(place, request)| {
        let request = match *request {
            Request::Allocate { tensor, size, stream } => {
                Request::Allocate { tensor: moved(tensor), size, stream }
            }
            Request::Free { tensor } => Request::Free { tensor: moved(tensor) },
            Request::RecordStream { tensor, stream } => {
                Request::RecordStream { tensor: moved(tensor), stream }
            }
            other => other,
        };
        (place, request)
    });
    // A request is only removed after the new request.
    let before = kept.clone().take(done).map(|(_, request)| request);
    before.chain(std::iter::once(added)).chain(kept.skip(done).map(|(_, request)| request))
}
