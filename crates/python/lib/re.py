"""Regular expressions: a compiler from patterns to the programs of the interpreter's matching engine."""

import _sre
import enum as _enum
from functools import lru_cache as _lru_cache

from _re_compiler import _Compiler
from _re_parser import (
    _ANY,
    _ANY_ALL,
    _ASSERT,
    _ASSERT_NOT,
    _AT,
    _BRANCH,
    _CATEGORIES,
    _CATEGORY,
    _ESCAPES,
    _FAILURE,
    _GROUPREF,
    _GROUPREF_EXISTS,
    _GROUPREF_UNI_IGNORE,
    _IN,
    _IN_UNI_IGNORE,
    _JUMP,
    _LITERAL,
    _LITERAL_UNI_IGNORE,
    _MANY,
    _MARK,
    _MAX_UNTIL,
    _MIN_REPEAT_ONE,
    _MIN_UNTIL,
    _NEGATE,
    _NOT_LITERAL,
    _NOT_LITERAL_UNI_IGNORE,
    _RANGE,
    _RANGE_UNI_IGNORE,
    _REPEAT,
    _REPEAT_ONE,
    _SUCCESS,
    _UNICODE_CATEGORIES,
    ASCII,
    DOTALL,
    IGNORECASE,
    MULTILINE,
    NOFLAG,
    UNICODE,
    VERBOSE,
    A,
    I,
    M,
    PatternError,
    RegexFlag,
    S,
    U,
    X,
    _Parser,
    _widths,
    error,
)


@_lru_cache(maxsize=512)
def _compile(kind, pattern, flags):
    text = pattern.decode("latin-1") if kind is bytes else pattern
    if kind is str and not flags & ASCII:
        flags |= UNICODE
    elif kind is bytes:
        flags |= ASCII
    parser = _Parser(text, flags)
    tree = parser.alternatives()
    if parser.at < len(text):
        parser.fail("unbalanced parenthesis")
    # Flags in the pattern itself (`(?i)`) are at its beginning and hold for the whole pattern, which is parsed again with them.
    if parser.flags != flags:
        flags = parser.flags
        parser = _Parser(text, flags)
        tree = parser.alternatives()
    compiler = _Compiler(flags)
    compiler.items(tree)
    compiler.code.append(_SUCCESS)
    names = [None] * (parser.groups + 1)
    for name, number in parser.names.items():
        names[number] = name
    return _sre.compile(
        pattern, flags & ~ASCII if kind is bytes else flags, compiler.code, parser.groups, parser.names, tuple(names)
    )


def compile(pattern, flags=0):
    if isinstance(pattern, Pattern):
        if flags:
            raise ValueError("cannot process flags argument with a compiled pattern")
        return pattern
    return _compile(type(pattern), pattern, int(flags))


def match(pattern, string, flags=0):
    return compile(pattern, flags).match(string)


def fullmatch(pattern, string, flags=0):
    return compile(pattern, flags).fullmatch(string)


def search(pattern, string, flags=0):
    return compile(pattern, flags).search(string)


def sub(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).sub(repl, string, count)


def subn(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).subn(repl, string, count)


def split(pattern, string, maxsplit=0, flags=0):
    return compile(pattern, flags).split(string, maxsplit)


def findall(pattern, string, flags=0):
    return compile(pattern, flags).findall(string)


def finditer(pattern, string, flags=0):
    return compile(pattern, flags).finditer(string)


_SPECIAL = {ord(c): "\\" + c for c in "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"}


def escape(pattern):
    if isinstance(pattern, bytes):
        return pattern.decode("latin-1").translate(_SPECIAL).encode("latin-1")
    return pattern.translate(_SPECIAL)


def purge():
    _compile.cache_clear()


def _compile_template(pattern, repl):
    """What `sub` puts in: text and numbers of groups in turn."""
    is_bytes = isinstance(repl, bytes)
    text = repl.decode("latin-1") if is_bytes else repl
    found, literal, at = [], "", 0

    def group(name):
        nonlocal literal
        if name.isdigit():
            number = int(name)
        elif name in pattern.groupindex:
            number = pattern.groupindex[name]
        else:
            raise IndexError(f"unknown group name {name!r}")
        if number > pattern.groups:
            raise error(f"invalid group reference {number}", text, at)
        found.extend((literal, number))
        literal = ""

    while at < len(text):
        character = text[at]
        at += 1
        if character != "\\" or at >= len(text):
            literal += character
            continue
        character = text[at]
        at += 1
        if character == "g" and text[at : at + 1] == "<":
            stop = text.index(">", at)
            group(text[at + 1 : stop])
            at = stop + 1
        elif character.isdigit() and character != "0":
            if at < len(text) and text[at].isdigit():
                character += text[at]
                at += 1
            group(character)
        elif character in _ESCAPES:
            literal += _ESCAPES[character]
        elif character == "0":
            literal += "\0"
        elif character.isalpha():
            raise error(f"bad escape \\{character}", text, at - 2)
        else:
            literal += "\\" + character
    found.append(literal)
    if is_bytes:
        found = [part.encode("latin-1") if isinstance(part, str) else part for part in found]
    return _sre.template(pattern, found)


template = None
Pattern = type(_sre.compile("", 0, [_SUCCESS], 0, {}, (None,)))
Match = type(compile("").match(""))
