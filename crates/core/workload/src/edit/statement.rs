//! Statements as people would write them, with names that are still unused.

use std::collections::HashSet;

use blockyard_record::StreamId;

use crate::request::Request;
use crate::size::write_size;
use crate::token::{Lexer, TokenKind};
use crate::workload::Workload;

/// The statement that makes a request.
pub(super) fn write(text: &str, workload: &Workload, request: Request) -> String {
    let name_of = |tensor| workload.tensor_name(tensor).unwrap_or_default();
    let stream_name = |stream| workload.stream_name(stream).unwrap_or_default();
    let pool_name = |pool| workload.pool_name(pool).unwrap_or_default();
    match request {
        Request::Allocate { size, stream, .. } => {
            let statement = format!("{} = alloc {}", fresh_name(text, tensor_names()), write_size(size));
            if stream == StreamId::DEFAULT {
                return statement;
            }
            format!("{statement} on {}", stream_name(stream))
        }
        Request::Free { tensor } => format!("free {}", name_of(tensor)),
        Request::RecordStream { tensor, stream } => {
            format!("record_stream {} {}", name_of(tensor), stream_name(stream))
        }
        Request::Advance { stream: Some(stream) } => format!("advance {}", stream_name(stream)),
        Request::Advance { stream: None } => "advance".to_owned(),
        Request::EmptyCache => "empty_cache".to_owned(),
        Request::SetFraction { fraction } => format!("set_fraction {}", fraction.abs()),
        Request::ResetPeak => "reset_peak".to_owned(),
        Request::ResetAccumulated => "reset_accumulated".to_owned(),
        Request::CreatePool { pool_id, never_splits, serves_on_oom } => {
            let option = |is_set: bool, word: &'static str| if is_set { word } else { "" };
            let options = [option(never_splits, " no_split"), option(serves_on_oom, " use_on_oom")];
            format!("pool {}{}", pool_name(pool_id), options.concat())
        }
        Request::EnterPool { pool_id } => format!("enter {}", pool_name(pool_id)),
        Request::LeavePool { pool_id } => format!("leave {}", pool_name(pool_id)),
        Request::DestroyPool { pool_id } => format!("destroy {}", pool_name(pool_id)),
        Request::Set { settings } => {
            format!("set {}", workload.settings(settings).unwrap_or_default()).trim_end().to_owned()
        }
        Request::Snapshot => "snapshot".to_owned(),
    }
}

/// The statement that declares a further stream.
pub(super) fn declaration(text: &str) -> String {
    let names = std::iter::once("side".to_owned()).chain((2..).map(|number| format!("side{number}")));
    format!("stream {}", fresh_name(text, names))
}

/// `a` to `z`, then `a1` to `z1`, and so on.
fn tensor_names() -> impl Iterator<Item = String> {
    let letters = || (b'a'..=b'z').map(char::from);
    let numbered = (1_u64..).flat_map(move |number| letters().map(move |letter| format!("{letter}{number}")));
    letters().map(String::from).chain(numbered)
}

/// The first of the names that is not a word of the text, so that it is neither a tensor nor a variable.
fn fresh_name(text: &str, mut names: impl Iterator<Item = String>) -> String {
    let mut lexer = Lexer::new(text);
    let mut words = HashSet::new();
    loop {
        let token = lexer.next();
        match token.kind {
            TokenKind::Word => words.insert(token.span.slice(text)),
            TokenKind::End => break,
            _ => false,
        };
    }
    names.find(|name| !words.contains(name.as_str())).unwrap_or_default()
}
