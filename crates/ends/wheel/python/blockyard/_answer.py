"""What all answers have in common: how JSON becomes an answer.

The answers themselves are in `_answers`, which is written from the types of the command's JSON.
"""

import dataclasses
import functools
import json
import typing
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

from blockyard import _native

A = TypeVar("A", bound="Answer")

# How a field is read that has a simpler type here than in JSON.
ID: dict[str, Any] = {"of": lambda gpu: gpu["id"]}
KIND: dict[str, Any] = {"of": lambda growth: growth and growth["kind"]}
# A word, or an object whose one field has the word as its name.
WORD: dict[str, Any] = {"of": lambda kind: kind if isinstance(kind, str) else next(iter(kind))}
KINDS: dict[str, Any] = {"of": lambda rows: [row["kind"] for row in rows]}
BY_HOLDER: dict[str, Any] = {"of": lambda rows: {row["what"]: row["bytes"] for row in rows}}
BOUNDS: dict[str, Any] = {"of": lambda bounds: (bounds["least"], bounds["most"])}


def size(count: int | None) -> str:
    """A size for people, rounded to two digits but never up to a whole number, as the command writes it.

    >>> size(2545942528)
    '2.37 GiB'
    >>> size(512)
    '512 B'
    """
    return "an unknown size" if count is None else _native.size_text(count)


@dataclasses.dataclass(frozen=True, repr=False)
class Answer:
    """An answer of the command, or a part of one."""

    raw: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    @overload
    @classmethod
    def of(cls: type[A], raw: dict[str, Any], **others: Any) -> A: ...

    @overload
    @classmethod
    def of(cls, raw: None, **others: Any) -> None: ...

    @classmethod
    def of(cls: type[A], raw: dict[str, Any] | None, **others: Any) -> A | None:
        """The answer that JSON has. `others` are fields that are not in the JSON."""
        if raw is None:
            return None
        read = cls.completed(raw)
        fields = {name: of(read.get(name)) for name, of in _readers(cast(Any, cls)) if name not in others}
        return cls(raw, **fields, **others)

    @classmethod
    def from_json(cls: type[A], text: str, **others: Any) -> A:
        """The answer in a text."""
        raw: dict[str, Any] = json.loads(text)
        return cls.of(raw, **others)

    @staticmethod
    def completed(raw: Any) -> Any:
        """JSON with the values that a class reads otherwise than the JSON has them."""
        return raw

    def to_dict(self) -> dict[str, Any]:
        """The answer as the command prints it with `--json`."""
        return self.raw

    def __str__(self) -> str:
        # The sentences name the classes, which inherit from this one.
        from blockyard import _sentences

        return _sentences.sentence(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


@functools.cache
def _readers(cls: type[Answer]) -> list[tuple[str, Callable[[Any], Any]]]:
    """How each field is read."""
    kinds = typing.get_type_hints(cls)
    fields = [field for field in dataclasses.fields(cls) if field.name != "raw"]
    return [(field.name, field.metadata.get("of") or _reader(kinds[field.name])) for field in fields]


def _reader(kind: Any) -> Callable[[Any], Any]:
    """How a value of this type is read. A list that is absent is read as an empty list."""
    parts = typing.get_args(kind)
    # Of a list or of a value that may be None, the first part is the type of the item or of the value.
    of: Any = parts[0] if parts else kind
    is_answer = isinstance(of, type) and not typing.get_args(of) and issubclass(of, Answer)
    if typing.get_origin(kind) is list:
        return (lambda rows: [of.of(row) for row in rows or []]) if is_answer else (lambda rows: rows or [])
    return of.of if is_answer else (lambda raw: raw)


class OutcomeBase(Answer):
    error: str | None
    ooms: int | None
    ooms_at_high: int | None

    @property
    def fits(self) -> bool:
        """Whether the whole run fits, whatever the limit is."""
        return self.error is None and self.ooms == 0 and self.ooms_at_high == 0

    @property
    def depends_on_limit(self) -> bool:
        """Whether the run goes out of memory at one bound of the limit and not at the other."""
        return bool(self.ooms) != bool(self.ooms_at_high)


class SearchBase(Answer):
    @staticmethod
    def completed(raw: Any) -> Any:
        return {**raw, "front": [raw["settings"][index] for index in raw["front"]]}


class ChangeBase(Answer):
    @property
    def value(self) -> Any:
        """What is set or freed: a text for `setting`, bytes for `limit`, requests and their bytes for `free_tensors`,
        else None."""
        kind = self.raw["kind"]
        return None if isinstance(kind, str) else next(iter(kind.values()))


class AutopsyBase(Answer):
    @staticmethod
    def completed(raw: Any) -> Any:
        return {"sentence": "the run does not go out of memory", **raw}


class LeaksBase(Answer):
    growing: list[Any]

    def __bool__(self) -> bool:
        """Whether anything grows."""
        return bool(self.growing)


class DiffBase(Answer):
    allocated: Any
    reserved: Any

    def __bool__(self) -> bool:
        """Whether a peak is another one."""
        return bool(self.allocated.change or self.reserved.change)


class CertificateBase(Answer):
    is_complete: bool

    def __bool__(self) -> bool:
        """Whether every placement, and everything else, is identical."""
        return self.is_complete


class HolderBase(Answer):
    frames: list[dict[str, Any]]

    @property
    def stack(self) -> str:
        """The stack as a text, a line a frame, innermost first."""
        return "\n".join(f"{frame['filename']}:{frame['line']} {frame['name']}" for frame in self.frames)
