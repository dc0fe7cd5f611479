"""Parses regular expressions into trees."""

import enum as _enum


class RegexFlag(_enum.IntFlag):
    IGNORECASE = I = 2  # noqa: E741 - names of Python's own
    MULTILINE = M = 8
    DOTALL = S = 16
    UNICODE = U = 32
    VERBOSE = X = 64
    ASCII = A = 256
    NOFLAG = 0


IGNORECASE, MULTILINE, DOTALL, UNICODE, VERBOSE, ASCII, NOFLAG = 2, 8, 16, 32, 64, 256, 0
I, M, S, U, X, A = IGNORECASE, MULTILINE, DOTALL, UNICODE, VERBOSE, ASCII  # noqa: E741
_MANY = 4294967295
# The engine's operations.
(_FAILURE, _SUCCESS, _ANY, _ANY_ALL, _ASSERT, _ASSERT_NOT, _AT, _BRANCH, _CATEGORY) = range(9)
(
    _GROUPREF,
    _GROUPREF_EXISTS,
    _IN,
    _JUMP,
    _LITERAL,
    _MARK,
    _MAX_UNTIL,
    _MIN_UNTIL,
    _NOT_LITERAL,
    _NEGATE,
    _RANGE,
    _REPEAT,
    _REPEAT_ONE,
) = (11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
(
    _MIN_REPEAT_ONE,
    _GROUPREF_UNI_IGNORE,
    _IN_UNI_IGNORE,
    _LITERAL_UNI_IGNORE,
    _NOT_LITERAL_UNI_IGNORE,
    _RANGE_UNI_IGNORE,
) = 26, 38, 39, 40, 41, 42
_CATEGORIES = {"d": 0, "D": 1, "s": 2, "S": 3, "w": 4, "W": 5}
_UNICODE_CATEGORIES = {"d": 10, "D": 11, "s": 12, "S": 13, "w": 14, "W": 15}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "\\": "\\"}


class error(Exception):
    def __init__(self, msg, pattern=None, pos=None):
        self.msg, self.pattern, self.pos = msg, pattern, pos
        super().__init__(msg if pos is None else f"{msg} at position {pos}")


PatternError = error


class _Parser:
    """A pattern as a tree: lists of (operation, operands)."""

    def __init__(self, text, flags):
        self.text, self.flags, self.at = text, flags, 0
        self.groups, self.names, self.opened = 0, {}, []

    def fail(self, message):
        raise error(message, self.text, self.at)

    def peek(self):
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self):
        character = self.peek()
        self.at += 1
        return character

    def accept(self, text):
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def until(self, end):
        stop = self.text.find(end, self.at)
        if stop < 0:
            self.fail(f"missing {end}, unterminated name")
        found, self.at = self.text[self.at : stop], stop + 1
        return found

    def alternatives(self):
        found = [self.sequence()]
        while self.accept("|"):
            found.append(self.sequence())
        return found[0] if len(found) == 1 else [("branch", found)]

    def sequence(self):
        items = []
        while self.peek() not in ("", "|", ")"):
            if self.flags & VERBOSE:
                if self.peek() in " \t\n\r\f\v":
                    self.at += 1
                    continue
                if self.peek() == "#":
                    stop = self.text.find("\n", self.at)
                    self.at = len(self.text) if stop < 0 else stop + 1
                    continue
            start = self.at
            item = self.atom()
            if item is None:
                continue
            items.append(self.repeats(item, start))
        return items

    def repeats(self, item, start):
        least = most = None
        character = self.peek()
        if character == "*":
            least, most = 0, _MANY
        elif character == "+":
            least, most = 1, _MANY
        elif character == "?":
            least, most = 0, 1
        elif character == "{":
            stop = self.text.find("}", self.at)
            inside = self.text[self.at + 1 : stop] if stop >= 0 else ""
            low, comma, high = inside.partition(",")
            if (low or comma) and not (low + high).strip("0123456789"):
                least = int(low) if low else 0
                most = (int(high) if high else _MANY) if comma else least
                self.at = stop
        if least is None:
            return item
        if most < least:
            self.fail("min repeat greater than max repeat")
        if item[0] in ("at", "repeat"):
            self.at = start
            self.fail("nothing to repeat" if item[0] == "at" else "multiple repeat")
        self.at += 1
        lazy = self.accept("?")
        if (
            self.peek()
            and self.peek() in "*+?"
            or (self.peek() == "{" and self.text[self.at + 1 : self.at + 2].isdigit())
        ):
            self.fail("multiple repeat")
        return ("repeat", least, most, lazy, item)

    def atom(self):
        character = self.take()
        if character == ".":
            return ("any", bool(self.flags & DOTALL))
        if character == "^":
            return ("at", 1 if self.flags & MULTILINE else 0)
        if character == "$":
            return ("at", 6 if self.flags & MULTILINE else 5)
        if character == "[":
            return self.characters()
        if character == "(":
            return self.group()
        if character == "\\":
            return self.escape(False)
        if character in "*+?":
            self.at -= 1
            self.fail("nothing to repeat")
        return ("literal", ord(character))

    def escape(self, in_set):
        character = self.take()
        if character == "":
            self.fail("bad escape (end of pattern)")
        if character in _CATEGORIES:
            return ("category", character)
        if not in_set:
            if character == "b":
                return ("at", 3 if self.flags & ASCII else 10)
            if character == "B":
                return ("at", 4 if self.flags & ASCII else 11)
            if character == "A":
                return ("at", 2)
            if character == "Z":
                return ("at", 7)
            if character.isdigit() and character != "0":
                number = character
                if self.peek().isdigit():
                    number += self.take()
                if int(number) > self.groups:
                    self.fail(f"invalid group reference {number}")
                return ("reference", int(number))
        elif character == "b":
            return ("literal", 8)
        if character in _ESCAPES:
            return ("literal", ord(_ESCAPES[character]))
        if character in "xuU":
            length = {"x": 2, "u": 4, "U": 8}[character]
            digits = self.text[self.at : self.at + length]
            self.at += length
            return ("literal", int(digits, 16))
        if character == "0":
            digits = ""
            while len(digits) < 2 and self.peek() in tuple("01234567"):
                digits += self.take()
            return ("literal", int(digits or "0", 8))
        if character.isalpha() and character.isascii():
            self.fail(f"bad escape \\{character}")
        return ("literal", ord(character))

    def characters(self):
        negated = self.accept("^")
        items = []
        while True:
            character = self.take()
            if character == "":
                self.fail("unterminated character set")
            if character == "]" and items:
                break
            low = self.escape(True) if character == "\\" else ("literal", ord(character))
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                character = self.take()
                high = self.escape(True) if character == "\\" else ("literal", ord(character))
                if low[0] != "literal" or high[0] != "literal" or high[1] < low[1]:
                    self.fail("bad character range")
                items.append(("range", low[1], high[1]))
            else:
                items.append(low)
        return ("set", negated, items)

    def group(self):
        number = None
        self.opened.append(self.at - 1)
        if not self.accept("?"):
            number = self.new_group()
        elif self.accept(":"):
            pass
        elif self.accept("P<"):
            number = self.new_group(self.until(">"))
        elif self.accept("P="):
            name = self.until(")")
            self.opened.pop()
            if name not in self.names:
                self.fail(f"unknown group name {name!r}")
            return ("reference", self.names[name])
        elif self.accept("#"):
            self.until(")")
            self.opened.pop()
            return None
        elif self.accept("="):
            return ("assert", _ASSERT, False, self.inside())
        elif self.accept("!"):
            return ("assert", _ASSERT_NOT, False, self.inside())
        elif self.accept("<="):
            return ("assert", _ASSERT, True, self.inside())
        elif self.accept("<!"):
            return ("assert", _ASSERT_NOT, True, self.inside())
        elif self.accept("("):
            name = self.until(")")
            reference = int(name) if name.isdigit() else self.names.get(name)
            if reference is None:
                self.fail(f"unknown group name {name!r}")
            yes, no = self.sequence(), None
            if self.accept("|"):
                no = self.sequence()
            self.close()
            return ("exists", reference, yes, no)
        else:
            flags = 0
            while self.peek() in tuple("aiLmsux"):
                flags |= {"a": ASCII, "i": IGNORECASE, "L": 0, "m": MULTILINE, "s": DOTALL, "u": UNICODE, "x": VERBOSE}[
                    self.take()
                ]
            if self.accept(")"):
                self.opened.pop()
                self.flags |= flags
                return None
            if not self.accept(":"):
                self.fail("unknown extension ?" + self.peek())
            before, self.flags = self.flags, self.flags | flags
            items = self.inside()
            self.flags = before
            return ("group", None, items)
        return ("group", number, self.inside())

    def new_group(self, name=None):
        self.groups += 1
        if name is not None:
            if not name.isidentifier():
                self.fail(f"bad character in group name {name!r}")
            if name in self.names:
                self.fail(f"redefinition of group name {name!r} as group {self.groups}; was group {self.names[name]}")
            self.names[name] = self.groups
        return self.groups

    def inside(self):
        items = self.alternatives()
        self.close()
        return items

    def close(self):
        if not self.accept(")"):
            self.at = self.opened[-1]
            self.fail("missing ), unterminated subpattern")
        self.opened.pop()


def _widths(items):
    """How many characters a sequence matches at least and at most."""
    low = high = 0
    for item in items:
        kind = item[0]
        if kind in ("literal", "any", "set", "category"):
            least = most = 1
        elif kind == "group":
            least, most = _widths(item[2])
        elif kind == "branch":
            all_widths = [_widths(part) for part in item[1]]
            least, most = min(w[0] for w in all_widths), max(w[1] for w in all_widths)
        elif kind == "repeat":
            least, most = _widths([item[4]])
            least, most = least * item[1], min(most * item[2], _MANY)
        elif kind == "reference":
            least, most = 0, _MANY
        elif kind == "exists":
            yes, no = _widths(item[2]), _widths(item[3] or [])
            least, most = min(yes[0], no[0]), max(yes[1], no[1])
        else:
            least = most = 0
        low, high = low + least, min(high + most, _MANY)
    return low, high
