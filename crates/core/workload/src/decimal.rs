//! Sizes in units of a thousand, which people type and allocators do not use.

use std::fmt;

use blockyard_record::{Bytes, grouped};

use crate::size::{decimal_number, decimal_unit};
use crate::token::{Lexer, TokenKind};

/// A size that a text writes in a unit of a thousand.
///
/// Reads as `3 GB is 3,000,000,000 bytes, 2.79 GiB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecimalSize {
    /// The size as it is written, with one blank before the unit.
    pub written: String,
    /// The size.
    pub bytes: Bytes,
}

impl fmt::Display for DecimalSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} bytes, {}", self.written, grouped(self.bytes.get()), self.bytes)
    }
}

/// The first size in a unit of a thousand in a line, or in a size that stands alone.
///
/// ```
/// let hint = blockyard_workload::decimal_size("a = alloc 3 GB").unwrap();
/// assert_eq!(hint.to_string(), "3 GB is 3,000,000,000 bytes, 2.79 GiB");
/// assert_eq!(blockyard_workload::decimal_size("a = alloc 3 GiB # not 3 GB"), None);
/// ```
#[must_use]
pub fn decimal_size(line: &str) -> Option<DecimalSize> {
    let mut lexer = Lexer::new(line);
    let mut number = None;
    loop {
        let token = lexer.next();
        match token.kind {
            TokenKind::End => return None,
            TokenKind::Number => number = Some(token.span.slice(line)),
            TokenKind::Word => {
                let unit = token.span.slice(line);
                if let (Some(number), Some(multiple)) = (number, decimal_unit(unit))
                    && let Ok(bytes) = decimal_number(number, multiple)
                {
                    return Some(DecimalSize {
                        written: format!("{number} {unit}"),
                        bytes: Bytes::new(bytes),
                    });
                }
                number = None;
            }
            _ => number = None,
        }
    }
}
