//! Carets and frames of tracebacks, as CPython 3.13 prints them.

#![allow(clippy::expect_used, reason = "helpers of tests")]

#[path = "support/run.rs"]
mod support;

use support::run;

#[track_caller]
fn check(source: &str, expected: &str) {
    let (_, finished) = run(source);
    let text = finished.traceback.expect("it fails");
    assert_eq!(
        text.strip_prefix("Traceback (most recent call last):\n").unwrap_or(&text),
        expected,
        "{source}"
    );
}

#[test]
fn an_attribute_is_marked_to_its_end() {
    check(
        "class A: pass\na = A()\na.b = A()\nprint(a.b.c)\n",
        "  File \"x.py\", line 4, in <module>\n    print(a.b.c)\n          ^^^^^\nAttributeError: 'A' object has no attribute 'c'\n",
    );
    check(
        "x = [1]\nx.push(2)\n",
        "  File \"x.py\", line 2, in <module>\n    x.push(2)\n    ^^^^^^\nAttributeError: 'list' object has no attribute 'push'\n",
    );
}

#[test]
fn methods_have_their_own_name_and_statements_no_carets() {
    check(
        "class A:\n    def __init__(self, x):\n        raise ValueError(x)\nA('s')\n",
        "  File \"x.py\", line 4, in <module>\n    A('s')\n    ~^^^^^\n  File \"x.py\", line 3, in __init__\n    raise ValueError(x)\nValueError: s\n",
    );
    check(
        "x = 3\nassert x == 4, 'not four'\n",
        "  File \"x.py\", line 2, in <module>\n    assert x == 4, 'not four'\n           ^^^^^^\nAssertionError: not four\n",
    );
}

/// The parser stumbles over the next line, which is not the one to mend.
#[test]
fn a_bracket_that_is_never_closed_has_its_own_line() {
    check(
        "x = len([1, 2]\nprint(x)\n",
        "  File \"x.py\", line 1\n    x = len([1, 2]\n           ^\nSyntaxError: '(' was never closed\n",
    );
    check(
        "y = [1,\n",
        "  File \"x.py\", line 1\n    y = [1,\n        ^\nSyntaxError: '[' was never closed\n",
    );
    check(
        "x = (1 +)\ny = (2\n",
        "  File \"x.py\", line 1\n    x = (1 +)\n            ^\nSyntaxError: invalid syntax\n",
    );
}

#[test]
fn an_assignment_marks_what_is_assigned_to() {
    check(
        "a, b = 1, 2, 3\n",
        "  File \"x.py\", line 1, in <module>\n    a, b = 1, 2, 3\n    ^^^^\nValueError: too many values to unpack (expected 2, got 3)\n",
    );
    check(
        "x = 5\nx.y = 3\n",
        "  File \"x.py\", line 2, in <module>\n    x.y = 3\n    ^^^\nAttributeError: 'int' object has no attribute 'y'\n",
    );
}

#[test]
fn a_comprehension_has_no_frame_and_a_line_that_is_all_of_an_operator_has_carets() {
    check(
        "def f():\n    return [1 / x for x in [1, 0]]\nf()\n",
        "  File \"x.py\", line 3, in <module>\n    f()\n    ~^^\n  File \"x.py\", line 2, in f\n    return [1 / x for x in [1, 0]]\n            ~~^~~\nZeroDivisionError: division by zero\n",
    );
    check(
        "1/0\n",
        "  File \"x.py\", line 1, in <module>\n    1/0\n    ~^~\nZeroDivisionError: division by zero\n",
    );
}
