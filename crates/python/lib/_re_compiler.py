"""Compiles the trees of regular expressions to code of the interpreter's matching engine."""

import _sre

from _re_parser import (
    _ANY,
    _ANY_ALL,
    _AT,
    _BRANCH,
    _CATEGORIES,
    _CATEGORY,
    _FAILURE,
    _GROUPREF,
    _GROUPREF_EXISTS,
    _GROUPREF_UNI_IGNORE,
    _IN,
    _IN_UNI_IGNORE,
    _JUMP,
    _LITERAL,
    _LITERAL_UNI_IGNORE,
    _MARK,
    _MAX_UNTIL,
    _MIN_REPEAT_ONE,
    _MIN_UNTIL,
    _NEGATE,
    _RANGE,
    _RANGE_UNI_IGNORE,
    _REPEAT,
    _REPEAT_ONE,
    _SUCCESS,
    _UNICODE_CATEGORIES,
    ASCII,
    IGNORECASE,
    _widths,
    error,
)


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

            def emit(part=part):
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
