use blockyard_record::Bytes;

use crate::{ParseErrorKind, Request, Workload};

/// Reads a size as the language writes it: `3 MiB`, `1.5 GiB`, `4096`, `10000 x 10000 float32`.
///
/// # Errors
///
/// The error in the words that an error in a text has.
pub fn parse_size(text: &str) -> Result<Bytes, ParseErrorKind> {
    let expected = || ParseErrorKind::Unexpected {
        expected: "a size such as \"3 MiB\"",
        found: format!("\"{}\"", text.trim()),
    };
    if text.contains(['\n', ';', '#', '{', '}', '"']) {
        return Err(expected());
    }
    let workload = Workload::parse(&format!("a = alloc {text}")).map_err(|error| error.kind().clone())?;
    match workload.requests() {
        [Request::Allocate { size, stream, .. }] if stream.get() == 0 && !text.contains(" on ") => Ok(*size),
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stand_alone() {
        assert_eq!(parse_size("1.5 GiB").unwrap(), Bytes::mib(1536));
        assert_eq!(parse_size("10000 x 10000 float32").unwrap(), Bytes::new(400_000_000));
        assert_eq!(parse_size(" 18446744073709551615 ").unwrap(), Bytes::new(u64::MAX));
        for text in ["", "3 MBB", "3 MiB; empty_cache", "3 MiB on default", "3 MiB\nempty_cache", "-1"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
