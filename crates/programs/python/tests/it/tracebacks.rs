//! Tracebacks: Python's own, without the frames of our library.

use crate::support::run;

/// The lines of a program's traceback, without those that mark a part of a line, which differ between Pythons.
fn traceback(source: &str) -> Vec<String> {
    let (_, finished) = run(source);
    let text = finished.traceback.expect("it fails");
    let is_mark = |line: &str| !line.is_empty() && line.chars().all(|c| " ~^".contains(c));
    text.lines().filter(|line| !is_mark(line)).map(str::to_owned).collect()
}

#[test]
fn frames_of_the_library_are_left_out() {
    let source = "import torch
layer = torch.nn.Linear(2, 3)
def work(x):
    return layer(x)
work(torch.ones(5, 7))
";
    let expected = [
        "Traceback (most recent call last):",
        "  File \"x.py\", line 5, in <module>",
        "    work(torch.ones(5, 7))",
        "  File \"x.py\", line 4, in work",
        "    return layer(x)",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (5x7 and 2x3)",
    ];
    assert_eq!(traceback(source), expected);
}

#[test]
fn frames_of_the_library_are_left_out_of_causes_and_contexts() {
    let source = "import torch
def fail():
    torch.nn.Linear(2, 3)(torch.ones(5, 7))
try:
    fail()
except RuntimeError as error:
    try:
        raise ValueError('no') from error
    except ValueError:
        torch.nn.Linear(2, 3)(torch.ones(4, 4))
";
    let expected = [
        "Traceback (most recent call last):",
        "  File \"x.py\", line 5, in <module>",
        "    fail()",
        "  File \"x.py\", line 3, in fail",
        "    torch.nn.Linear(2, 3)(torch.ones(5, 7))",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (5x7 and 2x3)",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        "  File \"x.py\", line 8, in <module>",
        "    raise ValueError('no') from error",
        "ValueError: no",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        "  File \"x.py\", line 10, in <module>",
        "    torch.nn.Linear(2, 3)(torch.ones(4, 4))",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x4 and 2x3)",
    ];
    assert_eq!(traceback(source), expected);
}

#[test]
fn notes_are_shown() {
    // `add_note` is of Python 3.11.
    let source = "error = ValueError('no')
if hasattr(error, 'add_note'):
    error.add_note('a note')
else:
    error = ValueError('no\\na note')
raise error
";
    let shown = traceback(source);
    assert_eq!(shown.last_chunk(), Some(&["ValueError: no".to_owned(), "a note".to_owned()]));
}

#[test]
fn a_bracket_that_is_never_closed_has_its_own_line() {
    let shown = traceback("x = len([1, 2]\nprint(x)\n");
    assert_eq!(shown, ["  File \"x.py\", line 1", "    x = len([1, 2]", "SyntaxError: '(' was never closed"]);
}
