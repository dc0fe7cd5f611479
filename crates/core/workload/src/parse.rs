//! Tokens into statements, one top-level statement at a time; knows names, not whether they are allocated.

mod loops;
mod parts;
mod pools;
mod python;

use std::collections::HashMap;

use blockyard_record::{Bytes, StreamId, index_u32};

use crate::error::{ParseError, ParseErrorKind};
use crate::request::Request;
use crate::syntax::{FreeTarget, NameRef, Statement, StatementKind};
use crate::token::{Lexer, Span, Token, TokenKind};

const STATEMENT: &str = "a statement such as \"a = alloc 3 MiB\" or \"free a\"";

pub(crate) struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The next token, not used up yet.
    token: Token,
    /// The last token that was used up.
    last: Span,
    bases: Names<'t>,
    /// Declared streams, of which the first has handle 1, with the lines that declared them.
    streams: Names<'t>,
    stream_lines: Vec<u32>,
    /// Declared memory pools, of which the first has the number (0,1), with the lines that declared them.
    pools: Names<'t>,
    pool_lines: Vec<u32>,
    settings: Vec<&'t str>,
    /// The device and the `PYTORCH_CUDA_ALLOC_CONF` that the text is written for.
    header: Header<'t>,
    /// The loops around the next statement, outermost first.
    scopes: Vec<Scope<'t>>,
}

/// The lines of a text that name the device and the settings that the text is written for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header<'t> {
    pub(crate) capacity: Option<Bytes>,
    pub(crate) conf: Option<&'t str>,
}

/// A loop's variable.
#[derive(Clone, Copy, Debug)]
struct Scope<'t> {
    /// Empty for a loop without a variable.
    variable: &'t str,
    kind: ScopeKind,
}

#[derive(Clone, Copy, Debug)]
enum ScopeKind {
    Count,
    /// `indices` is the most indices that one of the names has.
    Names {
        indices: usize,
    },
}

/// Names numbered in order of appearance.
#[derive(Default)]
struct Names<'t> {
    numbers: HashMap<&'t str, u32>,
    names: Vec<&'t str>,
}

impl<'t> Names<'t> {
    fn number(&mut self, name: &'t str) -> u32 {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            index_u32(self.names.len() - 1)
        })
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Self {
            text,
            lexer,
            token,
            last: token.span,
            bases: Names::default(),
            streams: Names::default(),
            stream_lines: Vec::new(),
            pools: Names::default(),
            pool_lines: Vec::new(),
            settings: Vec::new(),
            header: Header::default(),
            scopes: Vec::new(),
        }
    }

    pub(crate) fn header(&self) -> Header<'t> {
        self.header
    }

    pub(crate) fn bases(&self) -> &[&'t str] {
        &self.bases.names
    }

    pub(crate) fn streams(&self) -> &[&'t str] {
        &self.streams.names
    }

    pub(crate) fn pools(&self) -> &[&'t str] {
        &self.pools.names
    }

    pub(crate) fn settings(&self) -> &[&'t str] {
        &self.settings
    }

    /// The next statement outside of loops, `None` at the end of the text.
    pub(crate) fn next_statement(&mut self) -> Result<Option<Statement>, ParseError> {
        self.skip_separators();
        if self.token.kind == TokenKind::End {
            return Ok(None);
        }
        if self.is_symbol('}') {
            return Err(self.error(self.token.span, ParseErrorKind::NothingToClose));
        }
        let statement = self.statement()?;
        // A stray brace right after a statement deserves the message above.
        if self.is_symbol('}') {
            return Err(self.error(self.token.span, ParseErrorKind::NothingToClose));
        }
        Ok(Some(statement))
    }

    /// A statement. A separator, a closing brace or the end must follow, and is not consumed.
    fn statement(&mut self) -> Result<Statement, ParseError> {
        let first = self.token.span;
        let kind = self.statement_kind()?;
        if !self.is_ended() {
            return Err(self.unexpected("the end of the statement: a new line or \";\""));
        }
        Ok(Statement { kind, span: first.to(self.last) })
    }

    /// Whether the next token may follow a statement.
    fn is_ended(&self) -> bool {
        matches!(self.token.kind, TokenKind::LineEnd | TokenKind::End | TokenKind::Symbol(';' | '}'))
    }

    fn statement_kind(&mut self) -> Result<StatementKind, ParseError> {
        if self.token.kind != TokenKind::Word {
            return Err(self.unexpected(STATEMENT));
        }
        let word = self.token;
        match word.span.slice(self.text) {
            "alloc" => Err(self.unexpected("a name and \"=\" first, as in \"a = alloc 3 MiB\"")),
            "free" | "del" => self.free(),
            "capacity" if !self.is_assigned() => self.capacity(),
            "conf" if !self.is_assigned() => self.conf(),
            "torch.cuda.empty_cache" => self.call(Request::EmptyCache),
            "torch.cuda.reset_peak_memory_stats" => self.call(Request::ResetPeak),
            "torch.cuda.reset_accumulated_memory_stats" => self.call(Request::ResetAccumulated),
            "record_stream" => self.record_stream(),
            "stream" => self.declare_streams(),
            "advance" => self.advance(),
            "empty_cache" => self.plain(Request::EmptyCache),
            "reset_peak" => self.plain(Request::ResetPeak),
            "reset_accumulated" => self.plain(Request::ResetAccumulated),
            "snapshot" => self.plain(Request::Snapshot),
            "set_fraction" => self.set_fraction(),
            "set" => self.set(),
            "pool" => self.declare_pool(),
            "enter" => self.pool_request(|pool_id| Request::EnterPool { pool_id }),
            "leave" => self.pool_request(|pool_id| Request::LeavePool { pool_id }),
            "destroy" => self.pool_request(|pool_id| Request::DestroyPool { pool_id }),
            "step" => self.label(),
            "repeat" => self.repeat(),
            "for" => self.for_each(),
            _ => self.allocate(),
        }
    }

    fn allocate(&mut self) -> Result<StatementKind, ParseError> {
        let word = self.token;
        let name = self.name()?;
        if !self.is_symbol('=') {
            // A lone word is more likely a misspelled statement than a name.
            let is_name = name.span != word.span || self.is_word("alloc");
            return Err(if is_name {
                self.unexpected("\"=\", as in \"a = alloc 3 MiB\"")
            } else {
                ParseError::unexpected(self.text, STATEMENT, word)
            });
        }
        self.take();
        let begins = self.token.span;
        let size = if self.is_maker() {
            self.made_size()?
        } else {
            self.expect_word("alloc", "\"alloc\" and a size")?;
            self.size()?
        };
        let made = begins.to(self.last);
        let stream = if self.is_word("on") {
            self.take();
            self.stream_name()?
        } else {
            StreamId::DEFAULT
        };
        Ok(StatementKind::Allocate { name, size, made, stream })
    }

    /// Whether the word is the name of a tensor that is allocated: a tensor may have the name of a line of
    /// the header.
    fn is_assigned(&self) -> bool {
        let after = self.text.get(self.token.span.end..).unwrap_or_default().trim_start_matches([' ', '\t']);
        after.starts_with(['=', '['])
    }

    /// `capacity 64 MiB`
    fn capacity(&mut self) -> Result<StatementKind, ParseError> {
        let keyword = self.take();
        let capacity = self.size()?;
        self.check_header(keyword, self.header.capacity.is_some())?;
        self.header.capacity = Some(capacity);
        Ok(StatementKind::Header)
    }

    /// `conf expandable_segments:True`
    fn conf(&mut self) -> Result<StatementKind, ParseError> {
        let keyword = self.take();
        let text = self.settings_text()?;
        self.check_header(keyword, self.header.conf.is_some())?;
        self.header.conf = Some(text);
        Ok(StatementKind::Header)
    }

    /// Fails unless the line of the header is outside of loops and the first of its kind: it holds for the
    /// whole run.
    fn check_header(&self, keyword: Span, is_there: bool) -> Result<(), ParseError> {
        if is_there || !self.scopes.is_empty() {
            return Err(self.error(keyword, ParseErrorKind::HeaderTwice));
        }
        Ok(())
    }

    fn free(&mut self) -> Result<StatementKind, ParseError> {
        self.take();
        let targets = self.list(Self::target)?;
        Ok(StatementKind::Free(targets))
    }

    fn record_stream(&mut self) -> Result<StatementKind, ParseError> {
        self.take();
        let names = self.list(Self::name)?;
        let stream = self.stream_name()?;
        Ok(StatementKind::RecordStream { names, stream })
    }

    fn declare_streams(&mut self) -> Result<StatementKind, ParseError> {
        let keyword = self.take();
        if !self.scopes.is_empty() {
            return Err(self.error(keyword, ParseErrorKind::StreamInLoop));
        }
        let streams = self.list(Self::new_stream)?;
        Ok(StatementKind::DeclareStreams(streams))
    }

    fn advance(&mut self) -> Result<StatementKind, ParseError> {
        self.take();
        if self.token.kind != TokenKind::Word {
            return Ok(StatementKind::Plain(Request::Advance { stream: None }));
        }
        let streams = self.list(Self::stream_name)?;
        Ok(StatementKind::Advance(streams))
    }

    #[expect(clippy::unnecessary_wraps, reason = "one shape for all statements")]
    fn plain(&mut self, request: Request) -> Result<StatementKind, ParseError> {
        self.take();
        Ok(StatementKind::Plain(request))
    }

    fn set_fraction(&mut self) -> Result<StatementKind, ParseError> {
        self.take();
        let number = self.token;
        if number.kind != TokenKind::Number {
            return Err(self.unexpected("a number from 0 to 1 such as \"0.5\""));
        }
        self.take();
        let digits = number.span.slice(self.text).replace('_', "");
        match digits.parse::<f64>() {
            Ok(fraction) if (0.0..=1.0).contains(&fraction) => {
                Ok(StatementKind::Plain(Request::SetFraction { fraction }))
            }
            _ => Err(self.error(
                number.span,
                ParseErrorKind::FractionOutOfRange { found: number.describe(self.text) },
            )),
        }
    }

    fn label(&mut self) -> Result<StatementKind, ParseError> {
        self.take();
        let quoted = self.token;
        match quoted.kind {
            TokenKind::Quoted => {
                let pieces = self.label_pieces(quoted.span)?;
                self.take();
                Ok(StatementKind::Label(pieces))
            }
            TokenKind::OpenQuote => Err(self.unexpected("a closing quote on the same line")),
            _ => Err(self.unexpected("a label in quotes, as in step \"setup\"")),
        }
    }

    /// One or more items with commas between them.
    fn list<T>(&mut self, item: fn(&mut Self) -> Result<T, ParseError>) -> Result<Vec<T>, ParseError> {
        let mut items = vec![item(self)?];
        while self.is_symbol(',') {
            self.take();
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn target(&mut self) -> Result<FreeTarget, ParseError> {
        self.name_or_elements(true)
    }

    fn name(&mut self) -> Result<NameRef, ParseError> {
        match self.name_or_elements(false)? {
            FreeTarget::Name(name) => Ok(name),
            FreeTarget::Elements { .. } => Err(self.unexpected("a name")),
        }
    }

    fn take(&mut self) -> Span {
        self.last = self.token.span;
        self.token = self.lexer.next();
        self.last
    }

    fn skip_separators(&mut self) {
        while matches!(self.token.kind, TokenKind::LineEnd | TokenKind::Symbol(';')) {
            self.take();
        }
    }

    fn is_symbol(&self, symbol: char) -> bool {
        self.token.kind == TokenKind::Symbol(symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        self.token.kind == TokenKind::Word && self.token.span.slice(self.text) == word
    }

    fn expect_word(&mut self, word: &str, expected: &'static str) -> Result<(), ParseError> {
        if !self.is_word(word) {
            return Err(self.unexpected(expected));
        }
        self.take();
        Ok(())
    }

    fn unexpected(&self, expected: &'static str) -> ParseError {
        ParseError::unexpected(self.text, expected, self.token)
    }

    fn error(&self, span: Span, kind: ParseErrorKind) -> ParseError {
        ParseError::new(self.text, span, kind)
    }
}
