//! Exceptions as CPython prints them: the lines of the program, with carets below the part that failed.

use std::fmt::Write as _;

use rustpython_vm::builtins::{PyBaseExceptionRef, PyCode, PyTraceback};
use rustpython_vm::bytecode::{BinaryOperator, Instruction};
use rustpython_vm::{AsObject, PyRef, VirtualMachine};

use crate::host;
use crate::position::{is_own, is_program};

/// Whether frames of the crate's own Python are shown: for developers who change it.
const SHOWS_LIBRARY: bool = option_env!("BLOCKYARD_SHOW_LIBRARY").is_some();
const HEADER: &str = "Traceback (most recent call last):\n";
const CAUSE: &str = "\nThe above exception was the direct cause of the following exception:\n\n";
const CONTEXT: &str = "\nDuring handling of the above exception, another exception occurred:\n\n";
/// How often a line is written before its further repetitions are counted.
const MAX_REPEATED: usize = 3;
/// Chains longer than this are cut off; a chain may be a ring.
const MAX_CHAIN: usize = 16;

/// The text of an exception that the program did not catch.
pub(crate) fn format(vm: &VirtualMachine, exception: &PyBaseExceptionRef, source: &str) -> String {
    let mut text = String::new();
    write_chain(vm, exception, source, MAX_CHAIN, &mut text);
    text
}

fn write_chain(
    vm: &VirtualMachine,
    exception: &PyBaseExceptionRef,
    source: &str,
    left: usize,
    text: &mut String,
) {
    if left > 0 {
        if let Some(cause) = exception.__cause__() {
            write_chain(vm, &cause, source, left - 1, text);
            text.push_str(CAUSE);
        } else if let Some(context) =
            exception.__context__().filter(|_| !is_context_suppressed(vm, exception))
        {
            write_chain(vm, &context, source, left - 1, text);
            text.push_str(CONTEXT);
        }
    }
    let frames = frames(exception.__traceback__().as_ref());
    if !frames.is_empty() {
        text.push_str(HEADER);
        write_frames(&frames, source, text);
    }
    if let Some(place) = syntax_error(vm, exception) {
        text.push_str(&place);
    }
    text.push_str(&last_line(vm, exception));
    text.push('\n');
}

/// Writes the frames. As in CPython, a frame that is repeated many times in a row is written three times.
fn write_frames(frames: &[Frame], source: &str, text: &mut String) {
    for same in frames.chunk_by(Frame::is_same_place) {
        for frame in same.iter().take(MAX_REPEATED) {
            frame.write(source, text);
        }
        match same.len().saturating_sub(MAX_REPEATED) {
            0 => {}
            1 => text.push_str("  [Previous line repeated 1 more time]\n"),
            more => {
                let _ = writeln!(text, "  [Previous line repeated {more} more times]");
            }
        }
    }
}

fn is_context_suppressed(vm: &VirtualMachine, exception: &PyBaseExceptionRef) -> bool {
    let suppressed = exception.as_object().get_attr("__suppress_context__", vm);
    suppressed.and_then(|value| value.try_to_bool(vm)).unwrap_or(false)
}

/// `ValueError: text`, with the module of classes that are not built in.
pub(crate) fn last_line(vm: &VirtualMachine, exception: &PyBaseExceptionRef) -> String {
    let class = exception.class();
    let text_of = |name: &str| {
        let value = class.as_object().get_attr(vm.ctx.intern_str(name), vm).ok()?;
        Some(value.str(vm).ok()?.to_string_lossy().into_owned())
    };
    let name = text_of("__qualname__").unwrap_or_else(|| class.name().to_string());
    let module = text_of("__module__").filter(|module| module != "builtins" && module != "__main__");
    let name = module.map_or_else(|| name.clone(), |module| format!("{module}.{name}"));
    if exception.fast_isinstance(vm.ctx.exceptions.syntax_error)
        && let Some(message) = exception.get_arg(0).and_then(|message| message.str(vm).ok())
    {
        return format!("{name}: {}", message.to_string_lossy());
    }
    match exception.as_object().str(vm) {
        Ok(message) if message.is_empty() => name,
        Ok(message) => format!("{name}: {}", message.to_string_lossy().trim_end_matches(' ')),
        Err(_failed) => format!("{name}: <exception str() failed>"),
    }
}

/// The place that a syntax error names.
fn syntax_error(vm: &VirtualMachine, exception: &PyBaseExceptionRef) -> Option<String> {
    if !exception.fast_isinstance(vm.ctx.exceptions.syntax_error) {
        return None;
    }
    let attribute = |name: &'static str| exception.as_object().get_attr(name, vm).ok();
    let file = attribute("filename")?.str(vm).ok()?.to_string_lossy().into_owned();
    let line: usize = attribute("lineno")?.try_into_value(vm).ok()?;
    let mut text = format!("  File \"{file}\", line {line}\n");
    let shown = attribute("text")
        .and_then(|value| value.str(vm).ok())
        .map(|value| value.to_string_lossy().into_owned());
    if let Some(shown) = shown.filter(|shown| shown != "None") {
        let trimmed = shown.trim_start();
        let indent = shown.chars().count() - trimmed.chars().count();
        let offset: usize = attribute("offset").and_then(|value| value.try_into_value(vm).ok()).unwrap_or(1);
        let end: usize = attribute("end_offset").and_then(|value| value.try_into_value(vm).ok()).unwrap_or(0);
        let start = offset.saturating_sub(1 + indent);
        let width = end.saturating_sub(offset).max(1);
        let _ = writeln!(text, "    {}\n    {}{}", trimmed.trim_end(), " ".repeat(start), "^".repeat(width));
    }
    Some(text)
}

/// One frame of a traceback: where it is, and from which to which column (in characters, from 0) the failing
/// part runs.
#[derive(Debug)]
struct Frame {
    file: String,
    function: String,
    line: usize,
    columns: Option<(usize, usize)>,
    failing: FailedPart,
}

/// The part of a line that failed, where the interpreter's columns are not CPython's.
#[derive(Debug)]
enum FailedPart {
    /// The part between the interpreter's columns.
    Expression,
    /// This attribute of the expression between the columns.
    Attribute(String),
    /// The target of an assignment or a `for`.
    Target,
    /// The asserted expression.
    Assertion,
    /// The whole statement.
    Statement,
}

impl FailedPart {
    fn of(code: &PyCode, instruction: usize) -> Self {
        let Some(unit) = code.instructions.get(instruction) else { return Self::Expression };
        match unit.op.deoptimize() {
            Instruction::LoadAttr { .. } => {
                // The lowest bit says whether a method is called.
                let name = code.names.get(usize::from(u8::from(unit.arg) >> 1));
                name.map_or(Self::Expression, |name| Self::Attribute(name.as_str().to_owned()))
            }
            Instruction::StoreAttr { .. } | Instruction::StoreSubscr | Instruction::UnpackSequence { .. } => {
                Self::Target
            }
            Instruction::RaiseVarargs { .. } => Self::Assertion,
            Instruction::BinaryOp { .. }
                if u8::from(unit.arg) >= u8::from(BinaryOperator::InplaceAdd)
                    && u8::from(unit.arg) < u8::from(BinaryOperator::Subscr) =>
            {
                Self::Statement
            }
            _ => Self::Expression,
        }
    }
}

fn frames(traceback: Option<&PyRef<PyTraceback>>) -> Vec<Frame> {
    let all = traceback.into_iter().flat_map(PyRef::<PyTraceback>::iter);
    let all =
        all.filter(|entry| SHOWS_LIBRARY || is_own(entry.frame.code.source_path().as_str())).map(|entry| {
            let code = &entry.frame.code;
            // Counted in bytes, as CPython does; an instruction is two.
            let instruction = usize::try_from(entry.lasti / 2).unwrap_or(usize::MAX);
            let columns = code.locations.get(instruction).filter(|(start, end)| start.line == end.line).map(
                |(start, end)| {
                    (start.character_offset.to_zero_indexed(), end.character_offset.to_zero_indexed())
                },
            );
            Frame {
                file: code.source_path().as_str().to_owned(),
                function: code.obj_name.as_str().to_owned(),
                line: entry.lineno.get(),
                columns,
                failing: FailedPart::of(code, instruction),
            }
        });
    let mut frames: Vec<Frame> = Vec::new();
    for mut frame in all {
        // CPython 3.12 has no frames of comprehensions.
        if matches!(frame.function.as_str(), "<listcomp>" | "<setcomp>" | "<dictcomp>")
            && let Some(outer) = frames.pop()
        {
            frame.function = outer.function;
        }
        frames.push(frame);
    }
    frames
}

impl Frame {
    fn is_same_place(&self, other: &Self) -> bool {
        self.file == other.file && self.line == other.line && self.function == other.function
    }

    fn write(&self, source: &str, text: &mut String) {
        let _ = writeln!(text, "  File \"{}\", line {}, in {}", self.file, self.line, self.function);
        let module = host::with(|host| host.modules.get(&self.file).cloned()).flatten();
        let source = if is_program(&self.file) { Some(source) } else { module.as_deref() };
        let line = source.and_then(|source| source.lines().nth(self.line.saturating_sub(1)));
        let Some(line) = line else { return };
        let shown = line.trim();
        if shown.is_empty() {
            return;
        }
        let _ = writeln!(text, "    {shown}");
        let indent = line.chars().count() - line.trim_start().chars().count();
        let Some((start, end)) = self.columns else { return };
        let (start, end) = (start.saturating_sub(indent), end.saturating_sub(indent));
        let characters: Vec<char> = shown.chars().collect();
        let Some((start, end)) = self.failing.place(&characters, start, end) else { return };
        let part: String = shown.chars().skip(start).take(end.saturating_sub(start)).collect();
        let carets = carets(&part);
        let is_all_of_line = start == 0 && end >= shown.chars().count();
        if carets.is_empty() || (is_all_of_line && !carets.contains('~')) {
            return;
        }
        let _ = writeln!(text, "    {}{carets}", " ".repeat(start));
    }
}

impl FailedPart {
    /// From where to where the failing part of a line runs, given the interpreter's columns; `None` where
    /// CPython shows none.
    fn place(&self, line: &[char], start: usize, end: usize) -> Option<(usize, usize)> {
        match self {
            Self::Statement => None,
            Self::Attribute(name) => Some((start, end_of_attribute(line, end, name).unwrap_or(end))),
            Self::Target => {
                if line.starts_with(&['f', 'o', 'r', ' ']) {
                    return Some((4, find(line, |at| line.get(at..at + 4) == Some(&[' ', 'i', 'n', ' ']))?));
                }
                let sign = find(line, |at| line.get(at) == Some(&'=') && line.get(at + 1) != Some(&'='))?;
                let is_name =
                    |character: &char| character.is_alphanumeric() || matches!(character, ')' | ']' | '_');
                Some((0, line.get(..sign)?.iter().rposition(is_name)? + 1))
            }
            Self::Assertion if line.starts_with(&['a', 's', 's', 'e', 'r', 't', ' ']) => {
                Some((7, find(line, |at| line.get(at) == Some(&',')).unwrap_or(line.len())))
            }
            Self::Expression | Self::Assertion => Some((start, end)),
        }
    }
}

/// Where the attribute `name` ends in a chain of attributes that continues at `at`; `None` if the chain does
/// not have it.
fn end_of_attribute(line: &[char], mut at: usize, name: &str) -> Option<usize> {
    while line.get(at) == Some(&'.') {
        let rest = line.get(at + 1..)?;
        let word: String =
            rest.iter().take_while(|character| character.is_alphanumeric() || **character == '_').collect();
        at += 1 + word.chars().count();
        if word == name {
            return Some(at);
        }
    }
    None
}

/// The first place outside of brackets and quotes.
fn find(line: &[char], is_there: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, &character) in line.iter().enumerate() {
        if depth == 0 && quote.is_none() && is_there(at) {
            return Some(at);
        }
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Carets below an expression: `~~^~~` at an operator, `~^^^` at a call's or an index's brackets, else all
/// carets.
fn carets(part: &str) -> String {
    let characters: Vec<char> = part.chars().collect();
    let all = || "^".repeat(characters.len());
    if part.starts_with("raise") {
        return all();
    }
    let Some((from, to)) = outermost(&characters) else { return all() };
    characters
        .iter()
        .enumerate()
        .map(|(index, _)| if (from..to).contains(&index) { '^' } else { '~' })
        .collect()
}

/// Where the operator or the last pair of brackets of an expression is: the first place, and the place after
/// the last.
fn outermost(characters: &[char]) -> Option<(usize, usize)> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut operator: Option<(u8, usize, usize)> = None;
    let mut bracket = None;
    let mut index = 0;
    while let Some(&character) = characters.get(index) {
        let next = characters.get(index + 1).copied();
        let mut length = 1;
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '[' | '{') => {
                if depth == 0 {
                    bracket = (index > 0).then_some(index);
                }
                depth += 1;
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, '=' | ',' | ':' | '<' | '>' | '!') if depth == 0 => return None,
            (None, '+' | '-' | '*' | '/' | '%' | '@' | '&' | '|' | '^') if depth == 0 && index > 0 => {
                length = if next == Some(character) && matches!(character, '*' | '/') { 2 } else { 1 };
                let binding = match (character, length) {
                    ('|', _) => 0,
                    ('^', _) => 1,
                    ('&', _) => 2,
                    ('+' | '-', _) => 3,
                    ('*', 2) => 5,
                    _ => 4,
                };
                // The last one of those that bind least is the outermost.
                if operator.is_none_or(|(least, _, _)| binding <= least) {
                    operator = Some((binding, index, index + length));
                }
            }
            _ => {}
        }
        index += length;
    }
    if let Some((_, from, to)) = operator {
        return Some((from, to));
    }
    let ends_in_bracket = matches!(characters.last(), Some(')' | ']'));
    bracket.filter(|_| ends_in_bracket).map(|from| (from, characters.len()))
}

#[cfg(test)]
mod tests {
    use super::carets;

    #[test]
    fn carets_stand_where_cpython_puts_them() {
        for (part, expected) in [
            ("a + b", "~~^~~"),
            ("f(1)", "~^^^"),
            ("x.y", "^^^"),
            ("a[i + 1]", "~^^^^^^^"),
            ("(a + b) * c", "~~~~~~~~^~~"),
            ("a ** b", "~~^^~~"),
            ("f('x(')", "~^^^^^^"),
        ] {
            assert_eq!(carets(part), expected, "{part}");
        }
    }
}
