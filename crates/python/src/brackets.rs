//! A bracket that is never closed. The parser's error is about the line after the bracket; CPython's error
//! names the bracket.

use rustpython_vm::builtins::PyBaseExceptionRef;
use rustpython_vm::{AsObject, VirtualMachine};

/// An opening bracket without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenBracket {
    bracket: char,
    /// The line, from 1.
    line: usize,
    /// The column in characters, from 1.
    column: usize,
}

/// CPython's syntax error in the place of the parser's: where a bracket before the error's line is never
/// closed, the error is about the bracket. `None` for all other errors.
pub(crate) fn name_unclosed_bracket(
    vm: &VirtualMachine,
    error: PyBaseExceptionRef,
    source: &str,
    file: &str,
) -> PyBaseExceptionRef {
    let line_of_error = || {
        let line = error.as_object().get_attr("lineno", vm).ok()?;
        line.try_into_value::<usize>(vm).ok()
    };
    let (Some(unclosed), Some(line)) = (unclosed(source), line_of_error()) else { return error };
    // An error in the bracket's own line is about that line, unless the program ends there.
    if line <= unclosed.line && line < source.lines().count() {
        return error;
    }
    let OpenBracket { bracket, line, column } = unclosed;
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let place = vec![
        vm.ctx.new_str(file).into(),
        vm.ctx.new_int(line).into(),
        vm.ctx.new_int(column).into(),
        vm.ctx.new_str(text).into(),
        vm.ctx.new_int(line).into(),
        vm.ctx.new_int(column + 1).into(),
    ];
    let message = vm.ctx.new_str(format!("'{bracket}' was never closed")).into();
    let arguments = vec![message, vm.ctx.new_tuple(place).into()];
    vm.invoke_exception(vm.ctx.exceptions.syntax_error.to_owned(), arguments).unwrap_or(error)
}

/// The innermost bracket that is open at the end of the source; `None` where no bracket is open, or where a
/// bracket is closed by one of another kind, which is another error.
fn unclosed(source: &str) -> Option<OpenBracket> {
    let mut open: Vec<OpenBracket> = Vec::new();
    let (mut line, mut column) = (1, 0);
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => string_length(rest),
            _ => first.len_utf8(),
        };
        let (piece, after) = rest.split_at_checked(length)?;
        match first {
            '(' | '[' | '{' => open.push(OpenBracket { bracket: first, line, column: column + 1 }),
            ')' | ']' | '}' => {
                let opened = open.pop()?;
                if !["()", "[]", "{}"].contains(&format!("{}{first}", opened.bracket).as_str()) {
                    return None;
                }
            }
            _ => {}
        }
        match piece.rsplit_once('\n') {
            Some((before, last)) => {
                line += before.matches('\n').count() + 1;
                column = last.chars().count();
            }
            None => column += piece.chars().count(),
        }
        rest = after;
    }
    open.pop()
}

/// How many bytes the string at the beginning of the text has, its quotes included. A string in single quotes
/// ends with its line at the latest.
fn string_length(text: &str) -> usize {
    let quote = text.chars().next().unwrap_or('"');
    let triple = quote.to_string().repeat(3);
    let (end, is_long) = if text.starts_with(&triple) {
        (triple.as_str(), true)
    } else {
        (triple.get(..1).unwrap_or("\""), false)
    };
    let mut place = end.len();
    while let Some(rest) = text.get(place..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(end) {
            return place + end.len();
        }
        let first = rest.chars().next().unwrap_or(' ');
        if first == '\n' && !is_long {
            return place;
        }
        place += first.len_utf8();
        if first == '\\' {
            place += text.get(place..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Option<(char, usize, usize)> {
        unclosed(source).map(|found| (found.bracket, found.line, found.column))
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        assert_eq!(found("x = f(1)\n"), None);
        assert_eq!(found("a = 1\nx = f(1, [2]\nprint(x)\n"), Some(('(', 2, 6)));
        assert_eq!(found("x = '(' + \"[\" # {\ny = '''(\n(''' + \"\\\"(\"\n"), None);
        assert_eq!(found("é = '''\n''' + [\n"), Some(('[', 2, 7)));
        assert_eq!(found("x = 'never ends (\ny = (\n"), Some(('(', 2, 5)));
        assert_eq!(found("x = (]\n"), None);
        assert_eq!(found("x = 1)\n"), None);
        for end in 0.."f('\\é', \"\"\"é".len() {
            let _ = "f('\\é', \"\"\"é".get(..end).map(found);
        }
    }
}
