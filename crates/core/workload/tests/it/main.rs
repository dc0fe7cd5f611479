//! The language, its errors, edits by hand and the presets, through the crate's public items.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it updates a text")]

mod edits;
mod errors;
mod language;
mod presets;
mod properties;

use std::fmt::Write as _;

use blockyard_workload::{Request, Workload};

/// A workload as lines: labels, and requests with the lines that made them.
fn describe(workload: &Workload) -> String {
    let mut text = String::new();
    let name = |tensor| workload.tensor_name(tensor).unwrap_or_default();
    let stream_name = |stream| workload.stream_name(stream).unwrap_or("?");
    for index in 0..=workload.requests().len() {
        for (_, label) in workload.labels().iter().filter(|(next, _)| *next as usize == index) {
            writeln!(text, "-- {label}").unwrap();
        }
        let Some(request) = workload.requests().get(index) else { break };
        write!(text, "{}: ", workload.line(index).unwrap()).unwrap();
        match *request {
            Request::Allocate { tensor, size, stream } => {
                writeln!(text, "#{tensor} {} = {} on {}", name(tensor), size.get(), stream_name(stream))
            }
            Request::Free { tensor } => writeln!(text, "free #{tensor} {}", name(tensor)),
            Request::RecordStream { tensor, stream } => {
                writeln!(text, "record #{tensor} {} on {}", name(tensor), stream_name(stream))
            }
            Request::Advance { stream } => writeln!(text, "advance {}", stream.map_or("all", stream_name)),
            other => writeln!(text, "{other:?}"),
        }
        .unwrap();
    }
    text
}
