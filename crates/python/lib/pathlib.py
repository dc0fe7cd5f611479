"""Names of files as objects."""

from os import path as _path

import _files


class PurePath:
    __slots__ = ("_text",)

    def __new__(cls, *parts):
        self = object.__new__(cls)
        text = (
            _path.join(*(part.__fspath__() if hasattr(part, "__fspath__") else part for part in parts))
            if parts
            else "."
        )
        self._text = _path.normpath(text) if text else "."
        return self

    def __fspath__(self):
        return self._text

    __str__ = __fspath__

    def __repr__(self):
        return f"{'PosixPath' if type(self) is Path else type(self).__name__}({self._text!r})"

    def __hash__(self):
        return hash(self._text)

    def __eq__(self, other):
        return isinstance(other, PurePath) and self._text == other._text

    def __lt__(self, other):
        return self._text < other._text

    def __truediv__(self, other):
        return type(self)(self, other)

    def __rtruediv__(self, other):
        return type(self)(other, self)

    name = property(lambda self: _path.basename(self._text))
    stem = property(lambda self: _path.splitext(self.name)[0])
    suffix = property(lambda self: _path.splitext(self._text)[1])
    parent = property(lambda self: type(self)(_path.dirname(self._text) or "."))

    @property
    def parts(self):
        return (("/",) if self._text.startswith("/") else ()) + tuple(
            part for part in self._text.split("/") if part not in ("", ".")
        )

    @property
    def parents(self):
        found, path = [], self
        while path.parent != path:
            path = path.parent
            found.append(path)
        return tuple(found)

    def as_posix(self):
        return self._text

    def is_absolute(self):
        return self._text.startswith("/")

    def joinpath(self, *others):
        return type(self)(self, *others)

    def with_name(self, name):
        return self.parent / name

    def with_suffix(self, suffix):
        return type(self)(_path.splitext(self._text)[0] + suffix)

    def with_stem(self, stem):
        return self.parent / (stem + self.suffix)

    def relative_to(self, other):
        other = str(other).rstrip("/") + "/"
        if not self._text.startswith(other):
            raise ValueError(f"{self._text!r} is not in the subpath of {other[:-1]!r}")
        return type(self)(self._text[len(other) :])


class Path(PurePath):
    __slots__ = ()

    @classmethod
    def cwd(cls):
        return cls("/")

    home = cwd

    def exists(self):
        return _path.exists(self._text)

    def is_file(self):
        return _path.isfile(self._text)

    def is_dir(self):
        return _path.isdir(self._text)

    def mkdir(self, mode=0o777, parents=False, exist_ok=False):
        _files.make_folder(self)

    def resolve(self, strict=False):
        return type(self)(_path.abspath(self._text))

    absolute = expanduser = resolve

    def open(self, mode="r", *args, **kwargs):
        return _files.open(self, mode)

    def read_text(self, encoding=None, errors=None):
        with self.open("r") as file:
            return file.read()

    def read_bytes(self):
        with self.open("rb") as file:
            return file.read()

    def write_text(self, data, encoding=None, errors=None, newline=None):
        with self.open("w") as file:
            return file.write(data)

    def write_bytes(self, data):
        with self.open("wb") as file:
            return file.write(data)

    def touch(self, mode=0o666, exist_ok=True):
        if not self.exists():
            self.write_text("")

    def unlink(self, missing_ok=False):
        if not missing_ok or self.exists():
            _files.remove(self)

    def iterdir(self):
        return iter([self / name for name in _files.names_in(self)])

    def glob(self, pattern):
        from fnmatch import fnmatch

        return iter([path for path in self.iterdir() if fnmatch(path.name, pattern)])

    rglob = glob

    def stat(self):
        from types import SimpleNamespace

        return SimpleNamespace(st_size=_files.size(self), st_mtime=0.0)


PosixPath, PurePosixPath = Path, PurePath
