//! Statements into requests: runs the loops and knows which names hold a tensor.

use std::collections::BTreeMap;
use std::ops::Range;

use blockyard_record::{Bytes, StreamId};

use crate::builder::WorkloadBuilder;
use crate::error::{ParseError, ParseErrorKind};
use crate::names::{TensorName, shorten};
use crate::parse::Parser;
use crate::request::{Request, TensorId};
use crate::syntax::{BaseRef, Body, Cost, FreeTarget, Index, NameRef, Piece, Statement, StatementKind};
use crate::token::Span;
use crate::workload::Workload;
use crate::{MAX_LABEL_BYTES, MAX_REQUESTS};

/// Parses `text`, and shows each statement outside of loops to `visit` with the requests that it made.
pub(crate) fn expand(
    text: &str,
    mut visit: impl FnMut(&Statement, Range<usize>),
) -> Result<Workload, ParseError> {
    let mut parser = Parser::new(text);
    let mut cost = Cost::default();
    let mut expansion = Expansion {
        text,
        builder: WorkloadBuilder::new(),
        bases: Vec::new(),
        live: Vec::new(),
        values: Vec::new(),
        destroyed: BTreeMap::new(),
        label_bytes: 0,
    };
    while let Some(statement) = parser.next_statement()? {
        cost = cost.add(statement.kind.cost());
        parser.check_cost(statement.span, cost)?;
        let known = expansion.bases.len();
        expansion.bases.extend_from_slice(parser.bases().get(known..).unwrap_or_default());
        expansion.live.resize_with(expansion.bases.len(), LiveTensors::default);
        let first = expansion.builder.requests().len();
        expansion.run(&statement)?;
        visit(&statement, first..expansion.builder.requests().len());
    }
    let mut builder = expansion.builder;
    builder.set_bases(expansion.bases.into_iter().map(str::to_owned).collect());
    for name in parser.streams() {
        builder.stream(name);
    }
    for name in parser.pools() {
        builder.pool(name);
    }
    for text in parser.settings() {
        builder.settings(text);
    }
    builder.header(parser.header().capacity, parser.header().conf);
    Ok(builder.finish())
}

/// How many requests, labels and rounds of loops without requests `text` makes, found without running its
/// loops.
pub(crate) fn length(text: &str) -> Result<u64, ParseError> {
    let mut parser = Parser::new(text);
    let mut cost = Cost::default();
    while let Some(statement) = parser.next_statement()? {
        cost = cost.add(statement.kind.cost());
        parser.check_cost(statement.span, cost)?;
    }
    Ok(cost.requests.saturating_add(cost.rounds).saturating_add(cost.labels))
}

struct Expansion<'t> {
    text: &'t str,
    builder: WorkloadBuilder,
    /// The text of each base name.
    bases: Vec<&'t str>,
    /// The live tensors of each base name.
    live: Vec<LiveTensors>,
    /// The variables of the loops that are running, outermost first.
    values: Vec<Value>,
    /// The lines that destroyed memory pools.
    destroyed: BTreeMap<u32, u32>,
    label_bytes: usize,
}

#[derive(Default)]
struct LiveTensors {
    plain: Option<TensorId>,
    elements: BTreeMap<[u32; 2], TensorId>,
}

#[derive(Clone, Copy)]
enum Value {
    Count(u32),
    Name(TensorName),
}

impl Expansion<'_> {
    fn run(&mut self, statement: &Statement) -> Result<(), ParseError> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Allocate { name, size, stream, .. } => self.allocate(name, *size, *stream, span),
            StatementKind::Free(targets) => targets.iter().try_for_each(|target| self.free(target, span)),
            StatementKind::RecordStream { names, stream } => names.iter().try_for_each(|name| {
                let tensor = self.find(name)?;
                self.push(Request::RecordStream { tensor, stream: *stream }, span)
            }),
            StatementKind::Advance(streams) => {
                let mut requests = streams.iter().map(|stream| Request::Advance { stream: Some(*stream) });
                requests.try_for_each(|request| self.push(request, span))
            }
            StatementKind::Plain(request) => self.push(*request, span),
            StatementKind::Pool { pool, request, span: named } => {
                // A pool that was entered before it was destroyed can still be left.
                let is_leaving = matches!(request, Request::LeavePool { .. });
                if let Some(line) = self.destroyed.get(pool).copied().filter(|_| !is_leaving) {
                    let name = shorten(named.slice(self.text)).to_string();
                    return Err(self.error(*named, ParseErrorKind::PoolDestroyed { name, line }));
                }
                if matches!(request, Request::DestroyPool { .. }) {
                    self.destroyed.insert(*pool, span.line);
                }
                self.push(*request, span)
            }
            StatementKind::DeclareStreams(_) | StatementKind::Header => Ok(()),
            StatementKind::Label(pieces) => self.label(pieces, span),
            StatementKind::Repeat { count, first, is_down, body } => (0..*count).try_for_each(|round| {
                let place = if *is_down { count.saturating_sub(1).saturating_sub(round) } else { round };
                self.round(Value::Count(first.saturating_add(place)), body)
            }),
            StatementKind::ForEach { names, body } => {
                names.iter().try_for_each(|name| self.round(Value::Name(self.resolve(name)), body))
            }
        }
    }

    fn round(&mut self, value: Value, body: &Body) -> Result<(), ParseError> {
        self.values.push(value);
        let outcome = body.statements.iter().try_for_each(|statement| self.run(statement));
        self.values.pop();
        outcome
    }

    fn allocate(
        &mut self,
        name: &NameRef,
        size: Bytes,
        stream: StreamId,
        span: Span,
    ) -> Result<(), ParseError> {
        let resolved = self.resolve(name);
        if let Some(live) = self.tensor(resolved) {
            let line = self
                .line_where(|request| matches!(request, Request::Allocate { tensor, .. } if *tensor == live));
            let holder_name = self.write_name(resolved);
            let kind = if line == name.span.line {
                ParseErrorKind::StillAllocatedHere { name: holder_name }
            } else {
                ParseErrorKind::StillAllocated { name: holder_name, line }
            };
            return Err(self.error(name.span, kind));
        }
        self.check_room(span)?;
        let tensor = self.builder.allocate_as(resolved, size, stream);
        if let Some(live) = self.live.get_mut(resolved.base as usize) {
            if resolved.is_plain() {
                live.plain = Some(tensor);
            } else {
                live.elements.insert(resolved.index, tensor);
            }
        }
        Ok(())
    }

    fn free(&mut self, target: &FreeTarget, span: Span) -> Result<(), ParseError> {
        match target {
            FreeTarget::Name(name) => {
                let tensor = self.find(name)?;
                let resolved = self.resolve(name);
                if let Some(live) = self.live.get_mut(resolved.base as usize) {
                    if resolved.is_plain() {
                        live.plain = None;
                    } else {
                        live.elements.remove(&resolved.index);
                    }
                }
                self.push(Request::Free { tensor }, span)
            }
            FreeTarget::Elements { base, span: named } => {
                let base = self.resolve_base(*base);
                let live = self.live.get_mut(base.base as usize);
                let elements = live.map(|live| std::mem::take(&mut live.elements)).unwrap_or_default();
                if elements.is_empty() {
                    let name = self.write_name(base);
                    return Err(self.error(*named, ParseErrorKind::NoElements { name }));
                }
                elements.into_values().try_for_each(|tensor| self.push(Request::Free { tensor }, span))
            }
        }
    }

    /// The tensor that a name holds.
    fn find(&self, name: &NameRef) -> Result<TensorId, ParseError> {
        let resolved = self.resolve(name);
        self.tensor(resolved).ok_or_else(|| {
            let earlier = self.builder.names().iter().rposition(|known| *known == resolved);
            let freed = |number: usize| {
                self.line_where(
                    |request| matches!(request, Request::Free { tensor } if tensor.get() as usize == number),
                )
            };
            let text = self.write_name(resolved);
            let kind = match earlier {
                Some(number) => ParseErrorKind::AlreadyFreed { name: text, line: freed(number) },
                None => ParseErrorKind::NotAllocated { name: text },
            };
            self.error(name.span, kind)
        })
    }

    fn tensor(&self, name: TensorName) -> Option<TensorId> {
        let live = self.live.get(name.base as usize)?;
        if name.is_plain() { live.plain } else { live.elements.get(&name.index).copied() }
    }

    fn resolve(&self, name: &NameRef) -> TensorName {
        let mut resolved = self.resolve_base(name.base);
        let written = name.index.iter().filter_map(|index| match *index {
            Index::Absent => None,
            Index::Number(number) => Some(number),
            Index::Variable(depth) => match self.values.get(depth) {
                Some(Value::Count(count)) => Some(*count),
                _ => None,
            },
        });
        // The parser has counted the indices: those of the variable and those written fit.
        let free_places = resolved.index.iter_mut().filter(|place| **place == 0);
        for (place, number) in free_places.zip(written) {
            *place = number.saturating_add(1);
        }
        resolved
    }

    fn resolve_base(&self, base: BaseRef) -> TensorName {
        match base {
            BaseRef::Base(base) => TensorName { base, ..TensorName::default() },
            BaseRef::Variable(depth) => match self.values.get(depth) {
                Some(Value::Name(name)) => *name,
                _ => TensorName::default(),
            },
        }
    }

    fn label(&mut self, pieces: &[Piece], span: Span) -> Result<(), ParseError> {
        let mut label = String::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => label.push_str(literal),
                Piece::Variable(depth) => match self.values.get(*depth) {
                    Some(Value::Count(count)) => label.push_str(&count.to_string()),
                    Some(Value::Name(name)) => label.push_str(&self.write_name(*name)),
                    None => {}
                },
            }
        }
        self.label_bytes += label.len();
        if self.label_bytes > MAX_LABEL_BYTES {
            return Err(self.error(span, ParseErrorKind::TooManyLabels));
        }
        self.builder.label(label);
        Ok(())
    }

    fn push(&mut self, request: Request, span: Span) -> Result<(), ParseError> {
        self.check_room(span)?;
        self.builder.push(request);
        Ok(())
    }

    /// Makes sure that one more request fits; it belongs to the statement at `span`. The cost was checked
    /// before, except for `free x[*]`.
    fn check_room(&mut self, span: Span) -> Result<(), ParseError> {
        if self.builder.requests().len() == MAX_REQUESTS {
            return Err(self.error(span, ParseErrorKind::TooManyRequests));
        }
        self.builder.at_line(span.line);
        Ok(())
    }

    /// The line of the last request that is `wanted`. The search goes through all requests, so it is for
    /// errors only.
    fn line_where(&self, wanted: impl Fn(&Request) -> bool) -> u32 {
        let place = self.builder.requests().iter().rposition(wanted);
        place.and_then(|place| self.builder.line(place)).unwrap_or(1)
    }

    fn write_name(&self, name: TensorName) -> String {
        let base = self.bases.get(name.base as usize).copied().unwrap_or_default();
        shorten(&name.with_base(base)).to_string()
    }

    fn error(&self, span: Span, kind: ParseErrorKind) -> ParseError {
        ParseError::new(self.text, span, kind)
    }
}
