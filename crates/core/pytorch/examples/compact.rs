//! Writes a recording with its trace in columns: `cargo run -p blockyard-pytorch --example compact --
//! IN.jsonl.gz OUT.jsonl.gz`.
//!
//! This example makes the page's samples from the recordings in `tests/fixtures/programs`.

use std::error::Error;
use std::io::Write as _;

use blockyard_pytorch::{CompactTrace, RecordedRun, unpack};
use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("two paths are needed: a recording, and where to write".into());
    };
    let text = unpack(&std::fs::read(from)?)?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for line in text.lines() {
        let mut value: serde_json::Value = serde_json::from_str(line)?;
        if let Some(members) = value.as_object_mut()
            && members.remove("trace").is_some()
        {
            // `RecordedRun` reads the entries of a trace, but only in the text of a whole recording.
            let run = RecordedRun::parse(&format!("{{\"meta\":{{\"total_memory\":1}}}}\n{line}"))?;
            let columns = CompactTrace::of(run.trace.as_deref().unwrap_or_default());
            members.insert("compact_trace".to_owned(), serde_json::to_value(columns)?);
        }
        writeln!(packed, "{value}")?;
    }
    std::fs::write(to, packed.finish()?)?;
    Ok(())
}
