//! How a program ended that gives no answer.

use std::path::Path;

use blockyard_answers::ProgramLine;
use blockyard_dry_run::Report;
use blockyard_record::shortened_path;

/// At most this many lines of a failed program are shown.
const MAX_LINES: usize = 20;

/// Why a program that did not run out of memory gives no answer: a sentence, and the last lines that the
/// program printed to `output`. `None` if it gives one.
pub(crate) fn failure(report: &Report, output: &Path) -> Option<String> {
    let why = if report.status != 0 || report.error.is_some() || report.is_cut {
        let error = report.error.as_deref().unwrap_or("no exception");
        let at = report.error_at.as_ref().map(|place| format!(" at {}", line(place))).unwrap_or_default();
        format!("the program ended with status {} ({error}{at})", report.status)
    } else if report.devices.is_empty() {
        "the program did not use the GPU: move its model and its data to `cuda`".to_owned()
    } else {
        return None;
    };
    Some(why + &last_lines(&std::fs::read_to_string(output).unwrap_or_default()))
}

/// A line of the program, with the last part of its path.
pub(crate) fn line(place: &ProgramLine) -> String {
    format!("{}:{}", shortened_path(&place.file), place.line)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(MAX_LINES);
    let last = lines.get(from..).unwrap_or_default();
    if last.is_empty() { String::new() } else { format!("\n    {}", last.join("\n    ")) }
}
