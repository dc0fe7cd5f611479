//! How a reader's program has ended.

use std::ops::Range;

use blockyard_record::{Recording, StepOutcome};
use blockyard_workload::{Request, Workload};

/// How a program that a reader wrote has ended.
#[derive(Clone, Debug)]
pub struct EndedProgram {
    /// The recording of the first GPU, up to the end or the exception.
    pub recording: Recording,
    /// The exit status: 0, the argument of `sys.exit`, or 1 after an exception.
    pub status: i32,
    /// The traceback of an exception that the program did not catch; empty after `sys.exit()`.
    pub traceback: Option<String>,
}

/// The most letters of an exception in a clause; the traceback has the whole text. The sentences of an
/// out-of-memory error have room.
const MAX_LETTERS: usize = 420;

impl EndedProgram {
    /// Why the program did not run to its end, as a clause with the line of the program, which is quoted;
    /// `None` where it did. Of the calls that led to an exception, the clause names the line in `own`, the
    /// reader's lines from 0, and not the line of a function that the reader does not change.
    pub(crate) fn failure(&self, program: &str, own: &Range<usize>) -> Option<String> {
        if self.status == 0 && self.traceback.is_none() {
            return None;
        }
        let traceback = self.traceback.as_deref().unwrap_or_default();
        let Some(exception) = exception(traceback) else {
            if self.status == 0 {
                return Some("`SystemExit` ends the program before its last line".to_owned());
            }
            return Some(format!("the program ends with the status {}", self.status));
        };
        let place = |line: u32| usize::try_from(line).ok()?.checked_sub(1);
        let is_own = |line: &u32| place(*line).is_some_and(|place| own.contains(&place));
        let line = called_lines(traceback).rfind(is_own).or_else(|| failing_line(traceback));
        // A check of the task, after the reader's lines, says what they leave out.
        if let Some(line) = line.filter(|line| place(*line).is_some_and(|place| place >= own.end))
            && let Some(wanted) = exception.strip_prefix("AssertionError: ")
        {
            return Some(format!("the check in line {line}, after your lines, is not met: {wanted}"));
        }
        let text = line.and_then(|line| program.lines().nth(place(line)?));
        Some(match (line, text.map(str::trim).filter(|text| !text.is_empty())) {
            (Some(line), Some(text)) => format!("the program ends in line {line}, `{text}`: {exception}"),
            (Some(line), None) => format!("the program ends in line {line}: {exception}"),
            (None, _) => format!("the program ends: {exception}"),
        })
    }
}

/// PyTorch's words about a setting of the workload that it refuses, since the requests ran without that
/// setting; `None` if it refuses none.
pub(crate) fn refused_setting(workload: &Workload, recording: &Recording) -> Option<String> {
    let mut failed = recording.failed_steps().iter();
    failed.find_map(|(step, outcome)| match (outcome, workload.requests().get(*step as usize)?) {
        (StepOutcome::Refused(why), Request::Set { .. }) => {
            Some(format!("PyTorch refuses the setting: {why}"))
        }
        _ => None,
    })
}

/// The last exception of a traceback with its message, without the full stop: the first line after the frames
/// that is not indented, and in an out-of-memory error without the advice about settings. The caller's sentence goes on after the text. A long exception ends after a whole
/// sentence, or else after a word.
pub fn exception(traceback: &str) -> Option<String> {
    let lines: Vec<&str> = traceback.lines().collect();
    let last_frame = lines.iter().rposition(|line| frame(line).is_some()).map_or(0, |frame| frame + 1);
    let after = lines.get(last_frame..).unwrap_or_default();
    let text = after.iter().find(|line| line.starts_with(|first: char| !first.is_whitespace()))?;
    // What follows in an out-of-memory error is advice about settings, also where no setting helps.
    let text = text.split(" If reserved but unallocated").next().unwrap_or(text).trim_end_matches('.');
    if text.chars().count() <= MAX_LETTERS {
        return Some(text.to_owned());
    }
    let short: String = text.chars().take(MAX_LETTERS).collect();
    if let Some((whole_sentences, _)) = short.rsplit_once(". ") {
        return Some(whole_sentences.to_owned());
    }
    let whole_words = short.rsplit_once(' ').map_or(short.as_str(), |(words, _)| words);
    Some(format!("{whole_words} …"))
}

/// The line of the program, counted from 1, outside of all functions, that led to the exception: the first frame
/// of the traceback.
pub(crate) fn called_line(traceback: &str) -> Option<u32> {
    called_lines(traceback).next()
}

/// The line of the program, counted from 1, in which an exception ended it: the last frame of the traceback
/// in the program's file, which is the file of the first frame.
pub fn failing_line(traceback: &str) -> Option<u32> {
    called_lines(traceback).next_back()
}

/// The lines of the program's file that led to the exception, from the outermost call.
fn called_lines(traceback: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
    let frames = || traceback.lines().filter_map(frame);
    let file = frames().next().map(|(file, _)| file);
    frames().filter(move |frame| Some(frame.0) == file).filter_map(|frame| frame.1.parse().ok())
}

/// File and line of `  File "mine.py", line 3, in <module>`.
fn frame(line: &str) -> Option<(&str, &str)> {
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    Some((file, rest.split(',').next()?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clause_names_the_line_of_the_program_and_the_exception() {
        let nested = "Traceback (most recent call last):\n  File \"mine.py\", line 3, in <module>\n    f()\n  File \
                      \"mine.py\", line 2, in f\n    g()\n  File \"torch/nn.py\", line 90, in g\n    h()\nValueError: two \
                      words.\nand more\n";
        let found = (failing_line(nested), exception(nested));
        assert_eq!((found.0, found.1.as_deref()), (Some(2), Some("ValueError: two words")));
        let end = |traceback: &str, own| {
            let recording = blockyard_record::Recorder::new(blockyard_record::RunInfo::default());
            let (recording, traceback) = (recording.finish().unwrap(), Some(traceback.to_owned()));
            EndedProgram { recording, status: 1, traceback }.failure("def f():\n    g()\nf()\nassert x", &own)
        };
        let own = end(nested, 2..3).unwrap();
        assert_eq!(own, "the program ends in line 3, `f()`: ValueError: two words");
        let helper = end(nested, 3..4).unwrap();
        assert_eq!(helper, "the program ends in line 2, `g()`: ValueError: two words");
        let check = "  File \"mine.py\", line 4, in <module>\n    assert x\nAssertionError: x is made\n";
        assert_eq!(end(check, 2..3).unwrap(), "the check in line 4, after your lines, is not met: x is made");
        let syntax = "  File \"mine.py\", line 4\n    x =\n       ^\nSyntaxError: invalid syntax\n";
        assert_eq!(
            (failing_line(syntax), exception(syntax).as_deref()),
            (Some(4), Some("SyntaxError: invalid syntax"))
        );
        assert_eq!((failing_line("stop\n"), exception("stop\n").as_deref()), (None, Some("stop")));
        let advice = format!(
            "If reserved but unallocated memory is large try setting X=True to avoid it.  See {}",
            "X ".repeat(20)
        );
        let memory = format!(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of \
             1024.00 MiB of which 62.00 MiB is free. Of the allocated memory 945.00 MiB is allocated by PyTorch, and \
             17.00 MiB is reserved by PyTorch but unallocated. {advice}"
        );
        let shown = exception(&memory).unwrap();
        assert!(shown.ends_with("62.00 MiB is free. Of the allocated memory 945.00 MiB is allocated by PyTorch, and 17.00 MiB is reserved by PyTorch but unallocated"), "{shown}");
        let long = format!("  File \"a\", line 1\nMemoryError: {}", "word ".repeat(100));
        let short = exception(&long).unwrap();
        assert!(short.chars().count() <= MAX_LETTERS + 2 && short.ends_with(" word …"), "{short}");
    }
}
