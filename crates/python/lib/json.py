"""JSON texts."""

import re as _re


class JSONDecodeError(ValueError):
    def __init__(self, msg, doc, pos):
        line = doc.count("\n", 0, pos) + 1
        column = pos - doc.rfind("\n", 0, pos)
        super().__init__(f"{msg}: line {line} column {column} (char {pos})")
        self.msg, self.doc, self.pos, self.lineno, self.colno = msg, doc, pos, line, column


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def _text(value, ascii_only):
    parts = ['"']
    for character in value:
        if character in _SHORT:
            parts.append(_SHORT[character])
        elif character < " " or ascii_only and character > "~":
            code = ord(character)
            if code > 0xFFFF:
                code -= 0x10000
                parts.append(f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}")
            else:
                parts.append(f"\\u{code:04x}")
        else:
            parts.append(character)
    parts.append('"')
    return "".join(parts)


def _number(value, allow_nan):
    if value != value or value in (float("inf"), -float("inf")):
        if getattr(value, "is_unknown", False):
            return "null"
        if not allow_nan:
            raise ValueError(f"Out of range float values are not JSON compliant: {value!r}")
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return float.__repr__(value)


class JSONEncoder:
    def __init__(
        self,
        *,
        skipkeys=False,
        ensure_ascii=True,
        check_circular=True,
        allow_nan=True,
        sort_keys=False,
        indent=None,
        separators=None,
        default=None,
    ):
        self.skipkeys, self.ensure_ascii, self.allow_nan, self.sort_keys = skipkeys, ensure_ascii, allow_nan, sort_keys
        self.indent = " " * indent if isinstance(indent, int) else indent
        self.item_separator, self.key_separator = separators or ((", ", ": ") if indent is None else (",", ": "))
        if default is not None:
            self.default = default

    def default(self, o):
        raise TypeError(f"Object of type {o.__class__.__name__} is not JSON serializable")

    def encode(self, o):
        return "".join(self.iterencode(o))

    def iterencode(self, o):
        yield from self._parts(o, "\n", ())

    def _parts(self, o, newline, around):
        if o is None:
            yield "null"
        elif o is True or o is False:
            yield "true" if o else "false"
        elif isinstance(o, str):
            yield _text(o, self.ensure_ascii)
        elif isinstance(o, int):
            yield int.__repr__(o)
        elif isinstance(o, float):
            yield _number(o, self.allow_nan)
        elif isinstance(o, (list, tuple, dict)):
            if any(o is other for other in around):
                raise ValueError("Circular reference detected")
            yield from self._container(o, newline, around + (o,))
        else:
            yield from self._parts(self.default(o), newline, around)

    def _container(self, o, newline, around):
        is_dict = isinstance(o, dict)
        if not o:
            yield "{}" if is_dict else "[]"
            return
        inner = newline + self.indent if self.indent is not None else ""
        yield ("{" if is_dict else "[") + inner
        items = o.items() if is_dict else o
        if is_dict and self.sort_keys:
            items = sorted(items)
        is_first = True
        for item in items:
            if is_dict:
                key, item = item
                key = self._key(key)
                if key is None:
                    continue
            if not is_first:
                yield self.item_separator + inner
            is_first = False
            if is_dict:
                yield _text(key, self.ensure_ascii) + self.key_separator
            yield from self._parts(item, inner, around)
        yield (newline if self.indent is not None else "") + ("}" if is_dict else "]")

    def _key(self, key):
        if isinstance(key, str):
            return key
        if key is None or key is True or key is False:
            return {None: "null", True: "true", False: "false"}[key]
        if isinstance(key, int):
            return int.__repr__(key)
        if isinstance(key, float):
            return _number(key, self.allow_nan)
        if self.skipkeys:
            return None
        raise TypeError(f"keys must be str, int, float, bool or None, not {key.__class__.__name__}")


def dumps(obj, *, cls=None, **settings):
    return (cls or JSONEncoder)(**settings).encode(obj)


def dump(obj, fp, **settings):
    fp.write(dumps(obj, **settings))


_NUMBER = _re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_SPACE = _re.compile(r"[ \t\n\r]*")
_PLAIN = _re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": -float("inf"),
}


class JSONDecoder:
    def __init__(self, *, object_hook=None, parse_float=None, parse_int=None, object_pairs_hook=None, **settings):
        self.object_hook, self.object_pairs_hook = object_hook, object_pairs_hook
        self.parse_float, self.parse_int = parse_float or float, parse_int or int

    def decode(self, s):
        value, end = self.raw_decode(s, _SPACE.match(s).end())
        end = _SPACE.match(s, end).end()
        if end != len(s):
            raise JSONDecodeError("Extra data", s, end)
        return value

    def raw_decode(self, s, idx=0):
        character = s[idx : idx + 1]
        if character == '"':
            return self._string(s, idx + 1)
        if character == "{":
            return self._object(s, idx + 1)
        if character == "[":
            return self._array(s, idx + 1)
        for word, value in _WORDS.items():
            if s.startswith(word, idx):
                return value, idx + len(word)
        found = _NUMBER.match(s, idx)
        if found is None:
            raise JSONDecodeError("Expecting value", s, idx)
        parse = self.parse_float if found.group(1) or found.group(2) else self.parse_int
        return parse(found.group()), found.end()

    def _string(self, s, at):
        begin, parts = at - 1, []
        while True:
            found = _PLAIN.match(s, at)
            parts.append(found.group())
            at = found.end()
            character = s[at : at + 1]
            if character == '"':
                return "".join(parts), at + 1
            if character != "\\":
                raise JSONDecodeError(
                    "Unterminated string starting at" if not character else "Invalid control character at",
                    s,
                    at if character else begin,
                )
            escape = s[at + 1 : at + 2]
            if escape == "u":
                code, at = int(s[at + 2 : at + 6], 16), at + 6
                if 0xD800 <= code < 0xDC00 and s.startswith("\\u", at):
                    code, at = 0x10000 + ((code - 0xD800) << 10 | int(s[at + 2 : at + 6], 16) - 0xDC00), at + 6
                parts.append(chr(code))
            elif escape in _ESCAPED:
                parts.append(_ESCAPED[escape])
                at += 2
            else:
                raise JSONDecodeError("Invalid \\escape", s, at)

    def _object(self, s, at):
        pairs = []
        at = _SPACE.match(s, at).end()
        if s[at : at + 1] == "}":
            at += 1
        else:
            while True:
                if s[at : at + 1] != '"':
                    raise JSONDecodeError("Expecting property name enclosed in double quotes", s, at)
                key, at = self._string(s, at + 1)
                at = _SPACE.match(s, at).end()
                if s[at : at + 1] != ":":
                    raise JSONDecodeError("Expecting ':' delimiter", s, at)
                value, at = self.raw_decode(s, _SPACE.match(s, at + 1).end())
                pairs.append((key, value))
                at = _SPACE.match(s, at).end()
                at += 1
                if s[at - 1 : at] == "}":
                    break
                if s[at - 1 : at] != ",":
                    raise JSONDecodeError("Expecting ',' delimiter", s, at - 1)
                at = _SPACE.match(s, at).end()
        if self.object_pairs_hook is not None:
            return self.object_pairs_hook(pairs), at
        value = dict(pairs)
        return (self.object_hook(value) if self.object_hook is not None else value), at

    def _array(self, s, at):
        values = []
        at = _SPACE.match(s, at).end()
        if s[at : at + 1] == "]":
            return values, at + 1
        while True:
            value, at = self.raw_decode(s, _SPACE.match(s, at).end())
            values.append(value)
            at = _SPACE.match(s, at).end() + 1
            if s[at - 1 : at] == "]":
                return values, at
            if s[at - 1 : at] != ",":
                raise JSONDecodeError("Expecting ',' delimiter", s, at - 1)


def loads(s, *, cls=None, **settings):
    if isinstance(s, (bytes, bytearray)):
        s = s.decode("utf-8")
    if not isinstance(s, str):
        raise TypeError(f"the JSON object must be str, bytes or bytearray, not {s.__class__.__name__}")
    return (cls or JSONDecoder)(**settings).decode(s)


def load(fp, **settings):
    return loads(fp.read(), **settings)
