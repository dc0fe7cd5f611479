"""Versions, as far as programs compare them: numbers, then the name and number of what comes before a release."""

import re
from functools import total_ordering


class InvalidVersion(ValueError):
    """A text that is not a version."""


@total_ordering
class Version:
    def __init__(self, version):
        found = re.match(
            r"\s*v?(\d+(?:\.\d+)*)(?:[-_.]?(a|alpha|b|beta|rc|c|pre|preview|dev)[-_.]?(\d*))?(?:[-_.]?post(\d+))?(?:\+([a-z0-9.]+))?\s*$",
            version.lower(),
        )
        if found is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        numbers, kind, number, post, self.local = found.groups()
        self.release, self._text = tuple(int(part) for part in numbers.split(".")), version.strip()
        self.major, self.minor, self.micro = (self.release + (0, 0))[:3]
        order = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, None: 4}
        release = list(self.release)
        while len(release) > 1 and release[-1] == 0:
            release.pop()
        self._key = (
            tuple(release),
            order.get(kind, 3),
            int(number or 0),
            int(post) + 1 if post else 0,
            self.local or "",
        )
        self.is_prerelease = kind is not None

    @property
    def base_version(self):
        return ".".join(str(part) for part in self.release)

    def __eq__(self, other):
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other):
        return self._key < other._key

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        return self._text

    def __repr__(self):
        return f"<Version('{self._text}')>"


def parse(version):
    return Version(version)
