//! The place of each statement in a text, and the requests that the statement makes.

use std::ops::Range;

use blockyard_record::StreamId;

use super::EditError;
use super::splice::{InsertionPoint, remove_item, remove_statement};
use crate::error::ParseError;
use crate::expand::expand;
use crate::names::TensorName;
use crate::request::{Request, TensorId};
use crate::syntax::{BaseRef, FreeTarget, Index, NameRef, Statement, StatementKind};
use crate::token::Span;
use crate::workload::Workload;

pub(super) struct Outline {
    pub(super) workload: Workload,
    /// The statements outside of loops, in the order of the text.
    items: Vec<Item>,
}

struct Item {
    span: Span,
    requests: Range<usize>,
    kind: ItemKind,
    /// The statements that allocate: the statement itself, or those of a loop.
    made: Vec<AllocationStatement>,
}

/// A statement that allocates.
#[derive(Clone, Copy)]
struct AllocationStatement {
    line: u32,
    /// The base name; `None` where a loop's variable stands for it.
    base: Option<u32>,
    /// How the size is written.
    span: Span,
}

enum ItemKind {
    Free(Vec<FreedName>),
    Streams(Vec<StreamId>),
    Other,
}

/// One of the names that a `free` lists.
struct FreedName {
    span: Span,
    /// The name, or the plain name whose elements are freed.
    name: TensorName,
    is_elements: bool,
}

impl Item {
    fn new(statement: &Statement, requests: Range<usize>) -> Self {
        let kind = match &statement.kind {
            StatementKind::Free(targets) => ItemKind::Free(targets.iter().map(FreedName::new).collect()),
            StatementKind::DeclareStreams(streams) => ItemKind::Streams(streams.clone()),
            _ => ItemKind::Other,
        };
        let mut made = Vec::new();
        collect_made(statement, &mut made);
        Self { span: statement.span, requests, kind, made }
    }

    fn declares(&self, stream: StreamId) -> bool {
        matches!(&self.kind, ItemKind::Streams(streams) if streams.contains(&stream))
    }
}

/// The statements that allocate, in a statement and in the loops in it.
fn collect_made(statement: &Statement, found: &mut Vec<AllocationStatement>) {
    match &statement.kind {
        StatementKind::Allocate { name, made, .. } => {
            let base = match name.base {
                BaseRef::Base(base) => Some(base),
                BaseRef::Variable(_) => None,
            };
            found.push(AllocationStatement { line: statement.span.line, base, span: *made });
        }
        StatementKind::Repeat { body, .. } | StatementKind::ForEach { body, .. } => {
            body.statements.iter().for_each(|statement| collect_made(statement, found));
        }
        _ => {}
    }
}

impl FreedName {
    /// Reads a name outside of loops, which has no variables.
    fn new(target: &FreeTarget) -> Self {
        let plain = |base: BaseRef| match base {
            BaseRef::Base(base) => TensorName { base, ..TensorName::default() },
            BaseRef::Variable(_) => TensorName::default(),
        };
        match target {
            FreeTarget::Elements { base, span } => {
                Self { span: *span, name: plain(*base), is_elements: true }
            }
            FreeTarget::Name(NameRef { base, index, span }) => {
                let index = index.map(|index| match index {
                    Index::Number(number) => number.saturating_add(1),
                    Index::Absent | Index::Variable(_) => 0,
                });
                Self { span: *span, name: TensorName { index, ..plain(*base) }, is_elements: false }
            }
        }
    }
}

impl Outline {
    pub(super) fn new(text: &str) -> Result<Self, ParseError> {
        let mut items = Vec::new();
        let workload = expand(text, |statement, requests| items.push(Item::new(statement, requests)))?;
        Ok(Self { workload, items })
    }

    /// The statement that makes a request, with its place among the statements.
    fn item_of(&self, request: usize) -> Option<(usize, &Item)> {
        let place = self.items.partition_point(|item| item.requests.end <= request);
        self.items.get(place).map(|item| (place, item))
    }

    /// Where the text writes the size of the tensor that a request allocates; `None` where several statements
    /// of a line may allocate the tensor.
    pub(super) fn size_of(&self, request: usize, tensor: TensorId) -> Option<Span> {
        let (_, item) = self.item_of(request)?;
        let (line, base) =
            (self.workload.line(request), self.workload.names.get(tensor.get() as usize)?.base);
        let is_it = |made: &&AllocationStatement| {
            Some(made.line) == line && made.base.is_none_or(|other| other == base)
        };
        let mut found = item.made.iter().filter(|made| item.made.len() == 1 || is_it(made));
        let only = found.next()?;
        found.next().is_none().then_some(only.span)
    }

    /// Whether a statement can go right after the first `done` requests.
    pub(super) fn check_point(&self, done: usize) -> Result<(), EditError> {
        match self.item_of(done) {
            Some((_, item)) if item.requests.start < done => {
                Err(EditError::InsideLoop { resume: item.requests.end })
            }
            _ => Ok(()),
        }
    }

    /// Where a statement goes that runs after the first `done` requests and needs `stream`.
    pub(super) fn place(&self, done: usize, stream: Option<StreamId>) -> Result<InsertionPoint, EditError> {
        let Some((next, _)) = self.item_of(done) else { return Ok(self.end()) };
        let previous = done.checked_sub(1).and_then(|last| self.item_of(last)).map(|(place, _)| place);
        let declares = |item: &Item| matches!(item.kind, ItemKind::Streams(_));
        let after = match stream.filter(|stream| *stream != StreamId::DEFAULT) {
            Some(stream) => {
                let declaration = self.items.iter().position(|item| item.declares(stream));
                if let Some(late) = declaration.filter(|place| *place > next) {
                    let name = self.workload.stream_name(stream).unwrap_or_default().to_owned();
                    let line = self.items.get(late).map_or(1, |item| item.span.line);
                    return Err(EditError::StreamDeclaredLater { name, line });
                }
                previous.max(declaration)
            }
            // Streams at the start of a text stay there.
            None if previous.is_none() => self.items.iter().take(next).rposition(declares),
            None => previous,
        };
        let place = match after {
            Some(place) => self.items.get(place).map(|item| InsertionPoint::After(item.span)),
            None => self.items.first().map(|item| InsertionPoint::Before(item.span)),
        };
        Ok(place.unwrap_or_else(|| self.end()))
    }

    /// Where the declaration of a further stream goes.
    pub(super) fn declaration_place(&self) -> InsertionPoint {
        let last = self.items.iter().rfind(|item| matches!(item.kind, ItemKind::Streams(_)));
        match (last, self.items.first()) {
            (Some(last), _) => InsertionPoint::After(last.span),
            (None, Some(first)) => InsertionPoint::Before(first.span),
            (None, None) => InsertionPoint::End(None),
        }
    }

    fn end(&self) -> InsertionPoint {
        InsertionPoint::End(self.items.last().map(|item| item.span))
    }

    /// The text without the free of `tensor` that comes after the first `done` requests, and the index of
    /// that free.
    pub(super) fn without_later_free(
        &self,
        text: &str,
        done: usize,
        tensor: TensorId,
    ) -> Result<(String, Option<usize>), EditError> {
        let is_use = |request: &Request| match request {
            Request::Free { tensor: used } | Request::RecordStream { tensor: used, .. } => *used == tensor,
            _ => false,
        };
        let later = self.workload.requests().iter().skip(done).position(is_use).map(|offset| done + offset);
        let Some(later) = later else { return Ok((text.to_owned(), None)) };
        let conflict = || EditError::Conflict {
            name: self.workload.tensor_name(tensor).unwrap_or_default().into_owned(),
            line: self.workload.line(later).unwrap_or(1),
        };
        let item = self.item_of(later).map(|(_, item)| item).ok_or_else(conflict)?;
        let ItemKind::Free(list) = &item.kind else { return Err(conflict()) };
        let name = self.workload.names.get(tensor.get() as usize).copied().ok_or_else(conflict)?;
        let listed = list.iter().position(|freed| !freed.is_elements && freed.name == name);
        // `x[*]` leaves the tensor out by itself, unless nothing else is left for it.
        let elements = || {
            let place = list.iter().position(|freed| freed.is_elements && freed.name.base == name.base)?;
            let named = list
                .iter()
                .filter(|freed| !freed.is_elements && freed.name.base == name.base && !freed.name.is_plain());
            (self.elements_freed(item, name.base) == named.count() + 1).then_some(place)
        };
        let Some(place) = listed.or_else(elements) else { return Ok((text.to_owned(), Some(later))) };
        let spans = list.iter().map(|freed| freed.span).collect::<Vec<_>>();
        let text = match spans.len() {
            1 => remove_statement(text, item.span),
            _ => remove_item(text, &spans, place),
        };
        Ok((text, Some(later)))
    }

    /// How many elements of a base name the requests of a statement free.
    fn elements_freed(&self, item: &Item, base: u32) -> usize {
        let requests = self.workload.requests().get(item.requests.clone()).unwrap_or_default();
        let is_element = |request: &&Request| match request {
            Request::Free { tensor } => {
                let name = self.workload.names.get(tensor.get() as usize);
                name.is_some_and(|name| name.base == base && !name.is_plain())
            }
            _ => false,
        };
        requests.iter().filter(is_element).count()
    }
}
