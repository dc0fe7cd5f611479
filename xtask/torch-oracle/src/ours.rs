//! A program on our operators.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use blockyard_python::{Program, ProgramSettings, run_on_thread};
use blockyard_torch::memory::LogEntry;

use crate::run::{PrintedLine, Run};

#[derive(Default)]
struct PrintedLines {
    lines: Vec<PrintedLine>,
    text: String,
}

impl PrintedLines {
    /// Takes what is printed; the program's own thread prints, so the session is the program's.
    fn take(&mut self, text: &str) {
        let session = blockyard_torch::session();
        for piece in text.split_inclusive('\n') {
            self.text.push_str(piece);
            if piece.ends_with('\n') {
                let text = std::mem::take(&mut self.text);
                self.lines.push(PrintedLine {
                    text: text.trim_end_matches('\n').to_owned(),
                    requests: usize::try_from(session.request_count()).unwrap_or(usize::MAX),
                    marked: session.times_marked(),
                    unsure: 0,
                });
            }
        }
    }
}

/// Runs a program on our operators.
///
/// # Errors
///
/// When the interpreter failed or there is no thread.
pub fn run_ours(source: &str) -> Result<Run> {
    let printed: Arc<Mutex<PrintedLines>> = Arc::default();
    let sink = Arc::clone(&printed);
    let program = Program { file: "calls.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let settings =
        ProgramSettings { most_operators: u64::MAX, most_requests: u64::MAX, ..ProgramSettings::default() };
    let finished = run_on_thread(program, settings, move |text: &str| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).take(text);
    })?;
    let lines = std::mem::take(&mut printed.lock().unwrap_or_else(PoisonError::into_inner).lines);
    let mut run = Run { lines, error: finished.traceback, ..Run::default() };
    let device = finished.devices.first().context("a program has a device")?;
    let mut sizes = Vec::new();
    for entry in &device.requests {
        match entry {
            LogEntry::Allocate(number, bytes) => {
                let (number, bytes) = (*number as usize, i64::try_from(*bytes)?);
                if sizes.len() <= number {
                    sizes.resize(number + 1, 0);
                }
                if let Some(size) = sizes.get_mut(number) {
                    *size = bytes;
                }
                run.events.push(bytes);
            }
            LogEntry::Free(number) => {
                run.events.push(-sizes.get(*number as usize).copied().unwrap_or_default());
            }
            LogEntry::Unordered(count) => {
                run.unordered.push(run.events.len()..run.events.len() + *count as usize);
            }
        }
    }
    Ok(run)
}
