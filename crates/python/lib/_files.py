"""Files that a program writes: they are kept in memory until the program ends. A program finds no other files."""

from _io import BytesIO, StringIO

from _host import read_module as _read_module

_contents = {}
_folders = set()


def name_of(path):
    path = path.__fspath__() if hasattr(path, "__fspath__") else path
    if not isinstance(path, str):
        raise TypeError(f"expected str, bytes or os.PathLike object, not {type(path).__name__}")
    from os.path import normpath

    return normpath(path)


def missing(path):
    return FileNotFoundError(
        f"{path}: a program here finds no files but those that it wrote itself; put the contents into the program"
    )


class _Writer:
    def __init__(self, path, mode, begin):
        self._path, self.mode, self.name = name_of(path), mode, str(path)
        # Subclasses are a stream of texts or one of bytes.
        if begin is not None:
            self.write(begin)
        self._store()

    def _store(self):
        _contents[self._path] = self.getvalue()

    def flush(self):
        self._store()

    def close(self):
        if not self.closed:
            self._store()
            super().close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class _TextWriter(_Writer, StringIO):
    def __new__(cls, *args):
        return StringIO.__new__(cls)


class _BytesWriter(_Writer, BytesIO):
    def __new__(cls, *args):
        return BytesIO.__new__(cls)


class _Kept(BytesIO):
    """An object that `torch.save` or `pickle.dump` stored."""

    def __new__(cls, value):
        return BytesIO.__new__(cls)

    def __init__(self, value):
        BytesIO.__init__(self)
        self.value = value


def open(file, mode="r", *args, **kwargs):
    is_binary = "b" in mode
    path = name_of(file)
    if "r" in mode:
        if path not in _contents and path.endswith(".py"):
            # A part of the program's own text, as `exec(open("settings.py").read())` takes one.
            found = _read_module(path)
            if found is not None:
                _contents[path] = found[1]
        if path not in _contents:
            raise missing(file)
        value = _contents[path]
        if not isinstance(value, (str, bytes)):
            return _Kept(value)
        if is_binary:
            return BytesIO(value.encode() if isinstance(value, str) else value)
        return StringIO(value.decode() if isinstance(value, bytes) else value)
    if "x" in mode and path in _contents:
        raise FileExistsError(f"[Errno 17] File exists: {str(file)!r}")
    begin = _contents.get(path) if "a" in mode else None
    writer = _BytesWriter if is_binary else _TextWriter
    made = writer.__new__(writer)
    (BytesIO if is_binary else StringIO).__init__(made)
    _Writer.__init__(made, file, mode, begin)
    return made


def store(path, value):
    """Keeps any object under a name, for `torch.save`."""
    _contents[name_of(path)] = value


def load(path):
    if name_of(path) not in _contents:
        raise missing(path)
    return _contents[name_of(path)]


def is_file(path):
    return name_of(path) in _contents


def is_folder(path):
    path = name_of(path)
    return path in ("/", ".") or path in _folders or any(name.startswith(path + "/") for name in _contents)


def make_folder(path):
    _folders.add(name_of(path))


def remove(path):
    if name_of(path) not in _contents:
        raise missing(path)
    del _contents[name_of(path)]


def size(path):
    if name_of(path) not in _contents:
        raise missing(path)
    value = _contents[name_of(path)]
    return len(value) if isinstance(value, (str, bytes)) else 0


def names_in(path):
    path = name_of(path)
    prefix = "" if path == "." else path.rstrip("/") + "/"
    return sorted(
        {
            name[len(prefix) :].split("/")[0]
            for name in [*_contents, *_folders]
            if name.startswith(prefix) and name != path
        }
    )
