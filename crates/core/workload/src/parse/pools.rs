//! Memory pools and settings.

use blockyard_record::{PoolId, index_u32};

use super::Parser;
use crate::error::{ParseError, ParseErrorKind};
use crate::names::shorten;
use crate::request::Request;
use crate::syntax::StatementKind;
use crate::token::TokenKind;

const OPTION: &str = "\"no_split\", \"use_on_oom\" or the end of the statement";

/// The number of the pool with this place among the declared ones: PyTorch counts pools of programs from
/// (0,1).
fn pool_id(place: u32) -> PoolId {
    PoolId { capture: 0, user: place.saturating_add(1) }
}

impl<'t> Parser<'t> {
    /// `pool p no_split use_on_oom`.
    pub(super) fn declare_pool(&mut self) -> Result<StatementKind, ParseError> {
        let keyword = self.take();
        if !self.scopes.is_empty() {
            return Err(self.error(keyword, ParseErrorKind::PoolInLoop));
        }
        let span = self.token.span;
        let name = self.free_word("a name for the pool")?;
        if let Some(known) = self.pools.find(name) {
            let line = self.pool_lines.get(known as usize).copied().unwrap_or(1);
            let kind = ParseErrorKind::PoolExists { name: shorten(name).to_string(), line };
            return Err(self.error(span, kind));
        }
        let pool = self.pools.number(name);
        self.pool_lines.push(span.line);
        let (mut never_splits, mut serves_on_oom) = (false, false);
        while !self.is_ended() {
            let option = if self.is_word("no_split") {
                &mut never_splits
            } else if self.is_word("use_on_oom") {
                &mut serves_on_oom
            } else {
                return Err(self.unexpected(OPTION));
            };
            *option = true;
            self.take();
        }
        let request = Request::CreatePool { pool_id: pool_id(pool), never_splits, serves_on_oom };
        Ok(StatementKind::Pool { pool, request, span })
    }

    /// `enter p`, `leave p`, `destroy p`.
    pub(super) fn pool_request(
        &mut self,
        request: fn(PoolId) -> Request,
    ) -> Result<StatementKind, ParseError> {
        self.take();
        let span = self.token.span;
        let name = self.free_word("the name of a pool")?;
        let Some(pool) = self.pools.find(name) else {
            let known = self.pools.names.iter().map(|known| (*known).to_owned()).collect();
            let kind = ParseErrorKind::UnknownPool { name: shorten(name).to_string(), known };
            return Err(self.error(span, kind));
        };
        Ok(StatementKind::Pool { pool, request: request(pool_id(pool)), span })
    }

    /// `set max_split_size_mb:64`: the rest of the statement, whatever it is, since the allocator judges it.
    pub(super) fn set(&mut self) -> Result<StatementKind, ParseError> {
        self.take();
        let text = self.settings_text()?;
        let settings = index_u32(self.settings.len());
        self.settings.push(text);
        Ok(StatementKind::Plain(Request::Set { settings }))
    }

    /// The rest of the statement, as it is written.
    pub(super) fn settings_text(&mut self) -> Result<&'t str, ParseError> {
        let first = self.token.span;
        let mut last = None;
        while !self.is_ended() {
            if self.token.kind == TokenKind::OpenQuote {
                return Err(self.unexpected("a closing quote on the same line"));
            }
            last = Some(self.take());
        }
        Ok(last.map_or("", |last| first.to(last).slice(self.text)))
    }
}
