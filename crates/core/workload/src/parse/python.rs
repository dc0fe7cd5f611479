//! Spellings of PyTorch programs that are statements of the language: `x = torch.empty(1000, 1000)`, `del x`,
//! `torch.cuda.empty_cache()`.

use blockyard_record::Bytes;

use super::Parser;
use crate::error::ParseError;
use crate::request::Request;
use crate::size::dtype_size;
use crate::syntax::StatementKind;
use crate::token::TokenKind;

/// Functions that make a tensor of the size that their arguments say.
const MAKERS: [&str; 6] =
    ["torch.empty", "torch.zeros", "torch.ones", "torch.rand", "torch.randn", "torch.full"];

const ARGUMENT: &str = "a size such as \"1000\", or an argument such as \"dtype=torch.float16\"";

impl Parser<'_> {
    /// Whether the next word makes a tensor as a PyTorch program does.
    pub(super) fn is_maker(&self) -> bool {
        self.token.kind == TokenKind::Word && MAKERS.contains(&self.token.span.slice(self.text))
    }

    /// `torch.cuda.empty_cache()`
    pub(super) fn call(&mut self, request: Request) -> Result<StatementKind, ParseError> {
        self.take();
        self.expect_symbol('(', "\"()\"")?;
        self.expect_symbol(')', "\")\"")?;
        Ok(StatementKind::Plain(request))
    }

    /// `torch.empty(1000, 1000, dtype=torch.float16, device="cuda")`: the bytes of all its elements.
    pub(super) fn made_size(&mut self) -> Result<Bytes, ParseError> {
        let first = self.take();
        self.expect_symbol('(', "\"(\"")?;
        let mut sides: Vec<u64> = Vec::new();
        let mut element = 4;
        // The sides may be a tuple or a list.
        let mut is_nested = false;
        loop {
            match self.token.kind {
                TokenKind::Number => sides.push(self.whole_number("a whole number")?),
                TokenKind::Symbol('(' | '[') if sides.is_empty() && !is_nested => {
                    self.take();
                    is_nested = true;
                    continue;
                }
                TokenKind::Symbol(')' | ']') if is_nested => {
                    self.take();
                    is_nested = false;
                }
                TokenKind::Symbol(')') => break,
                TokenKind::Word => self.keyword(&mut element)?,
                // `1000 x 1000` is a shape of the language and not of PyTorch.
                _ => return Err(self.unexpected(ARGUMENT)),
            }
            if self.is_symbol(',') {
                self.take();
            } else if !matches!(self.token.kind, TokenKind::Symbol(')' | ']')) {
                return Err(self.unexpected("\",\" or \")\""));
            }
        }
        let span = first.to(self.take());
        self.shape_size(&sides, element, span)
    }

    /// `dtype=torch.float16`, `device="cuda"`, `requires_grad=True`; only the first changes the size.
    fn keyword(&mut self, element: &mut u64) -> Result<(), ParseError> {
        let name = self.take();
        self.expect_symbol('=', "\"=\"")?;
        let value = self.token.span;
        match (name.slice(self.text), self.token.kind) {
            ("dtype", TokenKind::Word) => {
                let dtype = value.slice(self.text).trim_start_matches("torch.");
                let dtype = match dtype {
                    "float" => "float32",
                    "half" => "float16",
                    "double" => "float64",
                    "long" => "int64",
                    other => other,
                };
                *element =
                    dtype_size(dtype).ok_or_else(|| self.unexpected("a dtype such as \"torch.float32\""))?;
                self.take();
            }
            ("device", TokenKind::Quoted) => {
                if !value.slice(self.text).trim_matches('"').starts_with("cuda") {
                    return Err(self.unexpected("\"cuda\": only the GPU's memory is shown here"));
                }
                self.take();
            }
            ("device", TokenKind::Symbol('\'')) => {
                self.take();
                if self.token.kind != TokenKind::Word || !self.token.span.slice(self.text).starts_with("cuda")
                {
                    return Err(self.unexpected("'cuda': only the GPU's memory is shown here"));
                }
                while !self.is_symbol('\'') {
                    if matches!(self.token.kind, TokenKind::LineEnd | TokenKind::End) {
                        return Err(self.unexpected("a closing quote on the same line"));
                    }
                    self.take();
                }
                self.take();
            }
            (_, TokenKind::Word | TokenKind::Number | TokenKind::Quoted) => {
                self.take();
            }
            _ => return Err(self.unexpected("a value")),
        }
        Ok(())
    }

    fn expect_symbol(&mut self, symbol: char, expected: &'static str) -> Result<(), ParseError> {
        if !self.is_symbol(symbol) {
            return Err(self.unexpected(expected));
        }
        self.take();
        Ok(())
    }
}
