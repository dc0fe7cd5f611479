//! Statements with their names resolved to numbers: the parser makes them, the expansion runs them.

use blockyard_record::{Bytes, StreamId};

use crate::names::MAX_INDICES;
use crate::request::Request;
use crate::token::Span;

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    /// From the first to the last token; the line is that of the first.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StatementKind {
    Allocate {
        name: NameRef,
        size: Bytes,
        /// Where the text writes the size: from `alloc` or a function of PyTorch's to its end.
        made: Span,
        stream: StreamId,
    },
    Free(Vec<FreeTarget>),
    RecordStream {
        names: Vec<NameRef>,
        stream: StreamId,
    },
    Advance(Vec<StreamId>),
    /// A request that names nothing.
    Plain(Request),
    /// A request about the memory pool with this number, counted from 0.
    Pool {
        pool: u32,
        request: Request,
        /// The pool's name.
        span: Span,
    },
    DeclareStreams(Vec<StreamId>),
    Label(Vec<Piece>),
    /// A line about the whole run, which requests nothing.
    Header,
    Repeat {
        count: u32,
        first: u32,
        is_down: bool,
        body: Body,
    },
    ForEach {
        names: Vec<NameRef>,
        body: Body,
    },
}

/// The statements of a loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) statements: Vec<Statement>,
    pub(crate) cost: Cost,
}

/// What a statement `free` frees.
#[derive(Clone, Debug)]
pub(crate) enum FreeTarget {
    Name(NameRef),
    /// `x[*]`: all live elements of the base, in ascending order.
    Elements {
        base: BaseRef,
        span: Span,
    },
}

/// A name as written; its indices in front, then [`Index::Absent`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameRef {
    pub(crate) base: BaseRef,
    pub(crate) index: [Index; MAX_INDICES],
    pub(crate) span: Span,
}

/// The part of a name before the brackets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BaseRef {
    /// The number of a base name.
    Base(u32),
    /// The variable of the loop over names at this depth, counted from the outside.
    Variable(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Index {
    Absent,
    Number(u32),
    /// The variable of the counting loop at this depth, counted from the outside.
    Variable(usize),
}

/// A piece of a label.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Literal(String),
    /// The variable of the loop at this depth, counted from the outside.
    Variable(usize),
}

/// The cost of running statements, computed without running them. All sums saturate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// All requests but those of `free x[*]`, which cannot outnumber the allocations.
    pub(crate) requests: u64,
    /// Rounds of loops without requests, and frees of `x[*]`: both take time too.
    pub(crate) rounds: u64,
    pub(crate) labels: u64,
}

impl Cost {
    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            rounds: self.rounds.saturating_add(other.rounds),
            labels: self.labels.saturating_add(other.labels),
        }
    }

    fn repeated(self, count: u64) -> Self {
        let rounds = if self.requests == 0 { self.rounds.max(1) } else { self.rounds };
        Self {
            requests: self.requests.saturating_mul(count),
            rounds: rounds.saturating_mul(count),
            labels: self.labels.saturating_mul(count),
        }
    }

    /// The cost of `count` rounds over `body`.
    pub(crate) fn of_loop(body: &Body, count: u64) -> Self {
        body.cost.repeated(count)
    }
}

impl StatementKind {
    pub(crate) fn cost(&self) -> Cost {
        let requests = |count: usize| Cost { requests: count as u64, ..Cost::default() };
        match self {
            Self::Allocate { .. } | Self::Plain(_) | Self::Pool { .. } => requests(1),
            Self::Free(targets) => {
                let names = targets.iter().filter(|target| matches!(target, FreeTarget::Name(_))).count();
                Cost { rounds: (targets.len() - names) as u64, ..requests(names) }
            }
            Self::RecordStream { names, .. } => requests(names.len()),
            Self::Advance(streams) => requests(streams.len()),
            Self::DeclareStreams(_) | Self::Header => Cost::default(),
            Self::Label(_) => Cost { labels: 1, ..Cost::default() },
            Self::Repeat { count, body, .. } => Cost::of_loop(body, u64::from(*count)),
            Self::ForEach { names, body } => Cost::of_loop(body, names.len() as u64),
        }
    }
}
