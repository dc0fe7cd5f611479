"""Files and folders in memory."""

import _files


def rmtree(path, ignore_errors=False, onerror=None, **kwargs):
    prefix = _files.name_of(path) + "/"
    for name in [name for name in _files._contents if name.startswith(prefix)]:
        _files.remove(name)
    _files._folders.discard(_files.name_of(path))


def copyfile(src, dst, **kwargs):
    _files.store(dst, _files.load(src))
    return dst


copy = copy2 = copyfile


def move(src, dst, **kwargs):
    copyfile(src, dst)
    _files.remove(src)
    return dst


def which(cmd, mode=None, path=None):
    return None


def get_terminal_size(fallback=(80, 24)):
    from os import terminal_size

    return terminal_size(fallback)
