//! How a reader's program has ended.

use blockyard_record::Recording;

/// How a program that a reader wrote has ended.
#[derive(Clone, Debug)]
pub struct ProgramEnd {
    /// The recording of the first GPU, up to the end or the exception.
    pub recording: Recording,
    /// The exit status: 0, what `sys.exit` was given, or 1 after an exception.
    pub status: i32,
    /// The traceback of an exception that nobody caught.
    pub traceback: Option<String>,
}

/// The most letters of an exception in a sentence; the traceback has all of them.
const MOST_LETTERS: usize = 140;

impl ProgramEnd {
    /// Why the program did not run to its end, as a clause with the line of the program; none where it did.
    pub(crate) fn failure(&self) -> Option<String> {
        if self.status == 0 && self.traceback.is_none() {
            return None;
        }
        let traceback = self.traceback.as_deref().unwrap_or_default();
        let Some(exception) = exception(traceback) else {
            return Some(format!("the program ends with the status {}", self.status));
        };
        Some(match line(traceback) {
            Some(line) => format!("the program ends in line {line}: {exception}"),
            None => format!("the program ends: {exception}"),
        })
    }
}

/// The last exception of a traceback with its message, without the full stop: the first line after the frames that is not indented. A
/// caller's sentence goes on after the text.
fn exception(traceback: &str) -> Option<String> {
    let lines: Vec<&str> = traceback.lines().collect();
    let last_frame = lines.iter().rposition(|line| frame(line).is_some()).map_or(0, |frame| frame + 1);
    let after = lines.get(last_frame..).unwrap_or_default();
    let text = after.iter().find(|line| line.starts_with(|first: char| !first.is_whitespace()))?;
    let text = text.trim_end_matches('.');
    if text.chars().count() <= MOST_LETTERS {
        return Some(text.to_owned());
    }
    let short: String = text.chars().take(MOST_LETTERS).collect();
    let whole_words = short.rsplit_once(' ').map_or(short.as_str(), |(words, _)| words);
    Some(format!("{whole_words} …"))
}

/// The line of the program, which is the file of the first frame, in the last frame that is in it.
fn line(traceback: &str) -> Option<&str> {
    let mut frames = traceback.lines().filter_map(frame);
    let first = frames.next()?;
    Some(frames.rfind(|(file, _)| *file == first.0).unwrap_or(first).1)
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
        assert_eq!((line(nested), exception(nested).as_deref()), (Some("2"), Some("ValueError: two words")));
        let syntax = "  File \"mine.py\", line 4\n    x =\n       ^\nSyntaxError: invalid syntax\n";
        assert_eq!(
            (line(syntax), exception(syntax).as_deref()),
            (Some("4"), Some("SyntaxError: invalid syntax"))
        );
        assert_eq!((line("stop\n"), exception("stop\n").as_deref()), (None, Some("stop")));
        let long = format!("  File \"a\", line 1\nMemoryError: {}", "word ".repeat(60));
        let short = exception(&long).unwrap();
        assert!(short.chars().count() <= MOST_LETTERS + 2 && short.ends_with(" word …"), "{short}");
    }
}
