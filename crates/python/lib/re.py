"""Regular expressions: a compiler from patterns to the programs of the interpreter's matching engine."""

import _sre
import enum as _enum
from functools import lru_cache as _lru_cache


class RegexFlag(_enum.IntFlag):
    IGNORECASE = I = 2
    MULTILINE = M = 8
    DOTALL = S = 16
    UNICODE = U = 32
    VERBOSE = X = 64
    ASCII = A = 256
    NOFLAG = 0


IGNORECASE, MULTILINE, DOTALL, UNICODE, VERBOSE, ASCII, NOFLAG = 2, 8, 16, 32, 64, 256, 0
I, M, S, U, X, A = IGNORECASE, MULTILINE, DOTALL, UNICODE, VERBOSE, ASCII
_MANY = 4294967295

# The engine's operations.
(_FAILURE, _SUCCESS, _ANY, _ANY_ALL, _ASSERT, _ASSERT_NOT, _AT, _BRANCH, _CATEGORY) = range(9)
_GROUPREF, _GROUPREF_EXISTS, _IN, _JUMP, _LITERAL, _MARK, _MAX_UNTIL, _MIN_UNTIL, _NOT_LITERAL, _NEGATE, _RANGE, _REPEAT, _REPEAT_ONE = (
    11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
_MIN_REPEAT_ONE, _GROUPREF_UNI_IGNORE, _IN_UNI_IGNORE, _LITERAL_UNI_IGNORE, _NOT_LITERAL_UNI_IGNORE, _RANGE_UNI_IGNORE = 26, 38, 39, 40, 41, 42
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
        found, self.at = self.text[self.at:stop], stop + 1
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
            inside = self.text[self.at + 1:stop] if stop >= 0 else ""
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
        if self.peek() and self.peek() in "*+?" or (self.peek() == "{" and self.text[self.at + 1:self.at + 2].isdigit()):
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
            digits = self.text[self.at:self.at + length]
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
            if self.peek() == "-" and self.text[self.at + 1:self.at + 2] not in ("]", ""):
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
                flags |= {"a": ASCII, "i": IGNORECASE, "L": 0, "m": MULTILINE, "s": DOTALL, "u": UNICODE, "x": VERBOSE}[self.take()]
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


class _Compiler:
    def __init__(self, flags):
        self.flags, self.code = flags, []

    def category(self, letter):
        return (_CATEGORIES if self.flags & ASCII else _UNICODE_CATEGORIES)[letter]

    def lower(self, code):
        return _sre.unicode_tolower(code) if self.flags & IGNORECASE else code

    def skip_over(self, emit):
        """A word with the distance to the end of what `emit` appends."""
        place = len(self.code)
        self.code.append(0)
        emit()
        self.code[place] = len(self.code) - place

    def items(self, items):
        for item in items:
            getattr(self, "_" + item[0])(*item[1:])

    def _literal(self, code):
        folded = self.flags & IGNORECASE and _sre.unicode_iscased(code)
        self.code += [_LITERAL_UNI_IGNORE if folded else _LITERAL, self.lower(code) if folded else code]

    def _any(self, with_newline):
        self.code.append(_ANY_ALL if with_newline else _ANY)

    def _at(self, where):
        self.code += [_AT, where]

    def _category(self, letter):
        self._set(False, [("category", letter)])

    def _set(self, negated, items):
        ignore = self.flags & IGNORECASE
        self.code.append(_IN_UNI_IGNORE if ignore else _IN)

        def emit():
            if negated:
                self.code.append(_NEGATE)
            for item in items:
                if item[0] == "literal":
                    self.code += [_LITERAL, self.lower(item[1])]
                elif item[0] == "range":
                    self.code += [_RANGE_UNI_IGNORE if ignore else _RANGE, item[1], item[2]]
                else:
                    self.code += [_CATEGORY, self.category(item[1])]
            self.code.append(_FAILURE)
        self.skip_over(emit)

    def _group(self, number, items):
        if number is not None:
            self.code += [_MARK, (number - 1) * 2]
        self.items(items)
        if number is not None:
            self.code += [_MARK, (number - 1) * 2 + 1]

    def _branch(self, parts):
        self.code.append(_BRANCH)
        ends = []
        for part in parts:
            def emit():
                self.items(part)
                self.code.append(_JUMP)
                ends.append(len(self.code))
                self.code.append(0)
            self.skip_over(emit)
        self.code.append(_FAILURE)
        for end in ends:
            self.code[end] = len(self.code) - end

    def _repeat(self, least, most, lazy, item):
        if item[0] in ("literal", "any", "set", "category"):
            self.code.append(_MIN_REPEAT_ONE if lazy else _REPEAT_ONE)

            def emit():
                self.code.extend((least, most))
                self.items([item])
                self.code.append(_SUCCESS)
            self.skip_over(emit)
            return
        self.code.append(_REPEAT)

        def emit():
            self.code.extend((least, most))
            self.items([item])
        self.skip_over(emit)
        self.code.append(_MIN_UNTIL if lazy else _MAX_UNTIL)

    def _assert(self, operation, behind, items):
        low, high = _widths(items) if behind else (0, 0)
        if low != high:
            raise error("look-behind requires fixed-width pattern")
        self.code.append(operation)

        def emit():
            self.code.append(low)
            self.items(items)
            self.code.append(_SUCCESS)
        self.skip_over(emit)

    def _reference(self, number):
        self.code += [_GROUPREF_UNI_IGNORE if self.flags & IGNORECASE else _GROUPREF, number - 1]

    def _exists(self, number, yes, no):
        self.code += [_GROUPREF_EXISTS, number - 1]
        place = len(self.code)
        self.code.append(0)
        self.items(yes)
        if no is None:
            self.code[place] = len(self.code) - place + 1
            return
        self.code.append(_JUMP)
        end = len(self.code)
        self.code.append(0)
        self.code[place] = len(self.code) - place + 1
        self.items(no)
        self.code[end] = len(self.code) - end


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
    # Flags in the pattern itself (`(?i)`) stand at its beginning and hold for all of it, so it is read again with them.
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
    return _sre.compile(pattern, flags & ~ASCII if kind is bytes else flags, compiler.code, parser.groups, parser.names, tuple(names))


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
        if character == "g" and text[at:at + 1] == "<":
            stop = text.index(">", at)
            group(text[at + 1:stop])
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
