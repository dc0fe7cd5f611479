//! Loops, and the cost of running them.

use super::{Parser, Scope, ScopeKind};
use crate::error::{ParseError, ParseErrorKind};
use crate::syntax::{Body, Cost, StatementKind};
use crate::token::{Span, TokenKind};
use crate::{MAX_LABELS, MAX_REQUESTS};

/// How deep loops may be nested.
const MAX_DEPTH: usize = 32;

impl<'t> Parser<'t> {
    pub(super) fn repeat(&mut self) -> Result<StatementKind, ParseError> {
        let keyword = self.take();
        let count = self.whole_number("how often to repeat, such as \"3\"")?;
        let mut variable = "";
        let (mut first, mut is_down) = (0, false);
        if self.is_word("as") {
            self.take();
            variable = self.variable()?;
            if self.is_word("from") {
                self.take();
                first = self.index_number()?;
            }
            if self.is_word("down") {
                self.take();
                is_down = true;
            }
        }
        let header = keyword.to(self.last);
        let body = self.body(header, Scope { variable, kind: ScopeKind::Count })?;
        self.check_cost(header, Cost::of_loop(&body, count))?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        // The variable's largest value must be an index too.
        if first.checked_add(count).is_none_or(|end| end == u32::MAX) {
            return Err(self.error(header, ParseErrorKind::IndexTooLarge));
        }
        Ok(StatementKind::Repeat { count, first, is_down, body })
    }

    pub(super) fn for_each(&mut self) -> Result<StatementKind, ParseError> {
        let keyword = self.take();
        let variable = self.variable()?;
        self.expect_word("in", "\"in\" and a list of names")?;
        let names = self.list(Self::name)?;
        let header = keyword.to(self.last);
        let indices = names.iter().map(|name| self.index_count(name)).max().unwrap_or(0);
        let body = self.body(header, Scope { variable, kind: ScopeKind::Names { indices } })?;
        self.check_cost(header, Cost::of_loop(&body, names.len() as u64))?;
        Ok(StatementKind::ForEach { names, body })
    }

    /// The statements in braces.
    fn body(&mut self, header: Span, scope: Scope<'t>) -> Result<Body, ParseError> {
        if self.scopes.len() == MAX_DEPTH {
            return Err(self.error(header, ParseErrorKind::TooDeep { limit: MAX_DEPTH }));
        }
        if !self.is_symbol('{') {
            return Err(self.unexpected("\"{\" and the statements to repeat"));
        }
        self.take();
        self.scopes.push(scope);
        let mut body = Body::default();
        loop {
            self.skip_separators();
            if self.is_symbol('}') {
                break;
            }
            if self.token.kind == TokenKind::End {
                return Err(self.error(header, ParseErrorKind::UnclosedLoop));
            }
            let statement = self.statement()?;
            body.cost = body.cost.add(statement.kind.cost());
            body.statements.push(statement);
        }
        self.take();
        self.scopes.pop();
        Ok(body)
    }

    /// Refuses statements that would take too long, before any of them runs.
    pub(crate) fn check_cost(&self, span: Span, cost: Cost) -> Result<(), ParseError> {
        let kind = if cost.requests > MAX_REQUESTS as u64 {
            ParseErrorKind::TooManyRequests
        } else if cost.labels > MAX_LABELS as u64 {
            ParseErrorKind::TooManyLabels
        } else if cost.rounds > MAX_REQUESTS as u64 {
            ParseErrorKind::TooManyRounds
        } else {
            return Ok(());
        };
        Err(self.error(span, kind))
    }
}
