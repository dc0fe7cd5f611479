"""Files by patterns of their names."""

from fnmatch import fnmatchcase as _matches

import _files


def glob(pathname, *, root_dir=None, recursive=False, **kwargs):
    return sorted(name for name in [*_files._contents, *_files._folders] if _matches(name, _files.name_of(pathname)))


def iglob(pathname, **kwargs):
    return iter(glob(pathname, **kwargs))
