"""`ast`, as far as `literal_eval`: a value is written out, and nothing else is evaluated."""

_WORDS = {"None": None, "True": True, "False": False}


class _Reader:
    """Reads a value from a text, from left to right."""

    def __init__(self, text):
        self._text, self._at = text, 0

    def all(self):
        value = self._value()
        if self._peek():
            self._refuse()
        return value

    def _refuse(self):
        raise ValueError(f"malformed node or string: {self._text!r}")

    def _peek(self):
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _take(self, character):
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _value(self):
        first = self._peek()
        if first in ("(", "["):
            self._at += 1
            items, has_comma = self._items(")" if first == "(" else "]", self._value)
            return items if first == "[" else tuple(items) if has_comma or not items else items[0]
        if first == "{":
            self._at += 1
            items, _ = self._items("}", self._entry)
            if items and not all(isinstance(item, _Pair) for item in items):
                return set(items)
            return {item.key: item.value for item in items}
        if first and first in "'\"":
            return self._string(first)
        return self._word()

    def _items(self, end, read):
        items, has_comma = [], False
        while not self._take(end):
            if items and not has_comma:
                self._refuse()
            items.append(read())
            has_comma = self._take(",")
        return items, has_comma

    def _entry(self):
        key = self._value()
        return _Pair(key, self._value()) if self._take(":") else key

    def _string(self, quote):
        end = self._at + 1
        while self._text[end : end + 1] != quote:
            if end >= len(self._text):
                self._refuse()
            end += 2 if self._text[end] == "\\" else 1
        literal, self._at = self._text[self._at : end + 1], end + 1
        return eval(literal, {"__builtins__": {}})  # A string between its quotes has no names in it.

    def _word(self):
        start = self._at
        while self._text[self._at : self._at + 1] and (
            self._text[self._at].isalnum()
            or self._text[self._at] in "._"
            or (self._text[self._at] in "+-" and (self._at == start or self._text[self._at - 1] in "eE"))
        ):
            self._at += 1
        word = self._text[start : self._at]
        if word in _WORDS:
            return _WORDS[word]
        for kind in (lambda text: int(text, 0), float):
            try:
                if word.lstrip("+-")[:1].isdigit() or word.lstrip("+-")[:1] == ".":
                    return kind(word)
            except ValueError:
                pass
        self._refuse()


class _Pair:
    def __init__(self, key, value):
        self.key, self.value = key, value


def literal_eval(node_or_string):
    return _Reader(node_or_string.strip(" \t")).all()


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"ast.{name} is not modeled here: literal_eval is")
