"""Names of files, as text: there are no files."""

sep = "/"


def join(first, *rest):
    result = str(first)
    for part in map(str, rest):
        result = part if part.startswith("/") else result + ("" if not result or result.endswith("/") else "/") + part
    return result


def split(name):
    name = str(name)
    at = name.rfind("/") + 1
    head, tail = name[:at], name[at:]
    return (head.rstrip("/") or head), tail


def basename(name):
    return split(name)[1]


def dirname(name):
    return split(name)[0]


def splitext(name):
    name = str(name)
    dot = name.rfind(".")
    if dot > name.rfind("/") + 1:
        return name[:dot], name[dot:]
    return name, ""


def isfile(name):
    import _files

    return _files.is_file(name)


def isdir(name):
    import _files

    return _files.is_folder(name)


def exists(name):
    return isfile(name) or isdir(name)


def islink(name):
    return False


def isabs(name):
    return str(name).startswith("/")


def normpath(name):
    parts = []
    for part in str(name).split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if isabs(name) else "") + "/".join(parts) or "."


def abspath(name):
    return normpath(name if isabs(name) else "/" + str(name))


realpath = abspath


def expanduser(name):
    return str(name).replace("~", "/", 1) if str(name).startswith("~") else str(name)


expandvars = expanduser


def getsize(name):
    import _files

    return _files.size(name)


def getmtime(name):
    getsize(name)
    return 0.0


def relpath(name, start="/"):
    name, start = abspath(name), abspath(start).rstrip("/") + "/"
    return name[len(start) :] if name.startswith(start) else name


def commonprefix(names):
    first, last = min(names), max(names)
    length = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    return first[:length]
