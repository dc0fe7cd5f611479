//! Writes a long snapshot (`write FILE BYTES OUT`), or opens one and says in JSON what that cost
//! (`open FILE`); a separate process, so that its peak of memory is that of one file.
#![allow(clippy::print_stdout, reason = "the answer goes to the program that started this one")]

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use blockyard_measure::write_long;
use blockyard_pytorch::snapshot::{SnapshotFile, read};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["write", file, bytes, out] => {
            let mut out = BufWriter::new(File::create(out)?);
            write_long(&open(file)?, &mut out, bytes.parse()?)?;
            out.flush()?;
        }
        ["open", file] => {
            let begun = Instant::now();
            let snapshot = open(file)?;
            let read_seconds = begun.elapsed().as_secs_f64();
            let longest =
                (0..snapshot.devices.len()).max_by_key(|place| snapshot.devices[*place].trace.len());
            let found = blockyard_pytorch::trace::record(&snapshot, longest.unwrap_or(0), file, &mut |_| {
                ControlFlow::Continue(())
            })?;
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "{{\"read_seconds\": {read_seconds:.3}, \"seconds\": {seconds:.3}, \"entries\": \
                 {}, \"events\": {}, \"peak_bytes\": {}}}",
                snapshot.devices.iter().map(|device| device.trace.len()).sum::<usize>(),
                found.recording.event_count(),
                peak_bytes()?
            );
        }
        _ => bail!("write FILE BYTES OUT, or open FILE"),
    }
    Ok(())
}

fn open(file: &str) -> Result<SnapshotFile> {
    Ok(read(BufReader::new(File::open(file)?), &mut |_| ControlFlow::Continue(()))?)
}

/// The most memory that this process had, in bytes.
fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).context("the system does not say")?;
    Ok(kib.trim().parse::<u64>()? * 1024)
}
