"""Versions, and which one is later."""

import re
from functools import total_ordering

__all__ = ["InvalidVersion", "Version", "parse"]
VERSION_PATTERN = r"""
    v?(?:(?P<epoch>[0-9]+)!)?(?P<release>[0-9]+(?:\.[0-9]+)*)
    (?P<pre>[-_.]?(?P<pre_kind>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>[0-9]+)?)?
    (?P<post>-(?P<post_bare>[0-9]+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>[0-9]+)?)?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>[0-9]+)?)?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?
"""
_PATTERN = re.compile(r"\s*" + VERSION_PATTERN + r"\s*", re.VERBOSE | re.IGNORECASE)
_KINDS = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
# Something before and something after every number.
_FIRST, _LAST = (-1,), (2,)


class InvalidVersion(ValueError):
    """A text that is not a version."""


@total_ordering
class Version:
    def __init__(self, version):
        found = _PATTERN.fullmatch(version)
        if found is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        self.epoch = int(found["epoch"] or 0)
        self.release = tuple(map(int, found["release"].split(".")))
        kind = (found["pre_kind"] or "").lower()
        self.pre = (_KINDS.get(kind, kind), int(found["pre_number"] or 0)) if found["pre"] else None
        self.post = int(found["post_bare"] or found["post_number"] or 0) if found["post"] else None
        self.dev = int(found["dev_number"] or 0) if found["dev"] else None
        parts = re.split(r"[-_.]", found["local"].lower()) if found["local"] else []
        self._local = [int(part) if part.isdecimal() else part for part in parts]
        self.local = ".".join(map(str, self._local)) or None

    major = property(lambda self: self.release[0])
    minor = property(lambda self: self.release[1] if len(self.release) > 1 else 0)
    micro = property(lambda self: self.release[2] if len(self.release) > 2 else 0)
    is_prerelease = property(lambda self: self.dev is not None or self.pre is not None)
    is_postrelease = property(lambda self: self.post is not None)
    is_devrelease = property(lambda self: self.dev is not None)

    @property
    def base_version(self):
        return (f"{self.epoch}!" if self.epoch else "") + ".".join(map(str, self.release))

    @property
    def public(self):
        text = self.base_version
        if self.pre is not None:
            text += f"{self.pre[0]}{self.pre[1]}"
        if self.post is not None:
            text += f".post{self.post}"
        return text + (f".dev{self.dev}" if self.dev is not None else "")

    @property
    def _key(self):
        release = list(self.release)
        while len(release) > 1 and release[-1] == 0:
            release.pop()
        if self.pre is None and self.post is None and self.dev is not None:
            pre = _FIRST  # A development release comes before what comes before a release.
        else:
            pre = (1, *self.pre) if self.pre is not None else _LAST
        post = _FIRST if self.post is None else (1, self.post)
        dev = _LAST if self.dev is None else (1, self.dev)
        local = [(1, part, "") if isinstance(part, int) else (0, 0, part) for part in self._local]
        return self.epoch, release, pre, post, dev, bool(local), local

    def __eq__(self, other):
        return self._key == other._key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other):
        return self._key < other._key if isinstance(other, Version) else NotImplemented

    def __hash__(self):
        return hash(str(self._key))

    def __str__(self):
        return self.public + (f"+{self.local}" if self.local else "")

    def __repr__(self):
        return f"<Version('{self}')>"


def parse(version):
    return Version(version)
