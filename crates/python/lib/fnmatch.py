"""Patterns of file names."""

import re as _re


def translate(pat):
    text = ""
    for character in pat:
        text += {"*": ".*", "?": "."}.get(character) or (character if character in "[]" else _re.escape(character))
    return f"(?s:{text})\\Z"


def fnmatchcase(name, pat):
    return _re.match(translate(pat), name) is not None


fnmatch = fnmatchcase


def filter(names, pat):
    return [name for name in names if fnmatchcase(name, pat)]
