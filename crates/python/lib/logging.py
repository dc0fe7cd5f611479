"""Log messages, which go to standard error."""

import sys as _sys
import time as _time

CRITICAL = FATAL = 50
ERROR, WARNING, INFO, DEBUG, NOTSET = 40, 30, 20, 10, 0
WARN = WARNING
_names = {50: "CRITICAL", 40: "ERROR", 30: "WARNING", 20: "INFO", 10: "DEBUG", 0: "NOTSET"}
_levels = {name: level for level, name in _names.items()} | {"WARN": 30, "FATAL": 50}
BASIC_FORMAT = "%(levelname)s:%(name)s:%(message)s"
raiseExceptions = True


def getLevelName(level):
    return _names.get(level, _levels.get(level, f"Level {level}"))


def addLevelName(level, name):
    _names[level], _levels[name] = name, level


def _level(level):
    if isinstance(level, int):
        return level
    if level not in _levels:
        raise ValueError(f"Unknown level: {level!r}")
    return _levels[level]


class LogRecord:
    def __init__(self, name, level, pathname, lineno, msg, args, exc_info, func=None):
        self.name, self.levelno, self.levelname, self.pathname, self.lineno = (
            name,
            level,
            getLevelName(level),
            pathname,
            lineno,
        )
        self.filename = pathname.rpartition("/")[2]
        self.module, self.funcName, self.msg, self.args, self.exc_info = (
            self.filename.partition(".")[0],
            func,
            msg,
            args,
            exc_info,
        )
        self.created = _time.time()
        self.msecs, self.process, self.processName, self.thread, self.threadName = 0, 1, "MainProcess", 1, "MainThread"

    def getMessage(self):
        return str(self.msg) % self.args if self.args else str(self.msg)


class Formatter:
    def __init__(self, fmt=None, datefmt=None, style="%", **kwargs):
        self._fmt, self.datefmt, self._style = fmt or "%(message)s", datefmt, style

    def formatTime(self, record, datefmt=None):
        moment = _time.localtime(record.created)
        return _time.strftime(datefmt, moment) if datefmt else _time.strftime("%Y-%m-%d %H:%M:%S", moment) + ",000"

    def format(self, record):
        record.message = record.getMessage()
        if "asctime" in self._fmt:
            record.asctime = self.formatTime(record, self.datefmt)
        text = self._fmt.format(**vars(record)) if self._style == "{" else self._fmt % vars(record)
        if record.exc_info:
            error = record.exc_info[1]
            text += f"\n{type(error).__name__}: {error}"
        return text


class Filter:
    def __init__(self, name=""):
        self.name = name

    def filter(self, record):
        return True


class _Filtered:
    def addFilter(self, filter):
        self.filters.append(filter)

    def removeFilter(self, filter):
        if filter in self.filters:
            self.filters.remove(filter)

    def filter(self, record):
        return all(f.filter(record) if hasattr(f, "filter") else f(record) for f in self.filters)


class Handler(_Filtered):
    def __init__(self, level=NOTSET):
        self.level, self.formatter, self.filters = _level(level), None, []

    def setLevel(self, level):
        self.level = _level(level)

    def setFormatter(self, formatter):
        self.formatter = formatter

    def format(self, record):
        return (self.formatter or Formatter()).format(record)

    def handle(self, record):
        if self.filter(record):
            self.emit(record)

    def emit(self, record):
        pass

    def flush(self):
        pass

    close = flush


NullHandler = Handler


class StreamHandler(Handler):
    terminator = "\n"

    def __init__(self, stream=None):
        super().__init__()
        self.stream = stream

    def emit(self, record):
        (self.stream or _sys.stderr).write(self.format(record) + self.terminator)


class FileHandler(StreamHandler):
    def __init__(self, filename, mode="a", encoding=None, delay=False):
        super().__init__(open(filename, mode))


class Logger(_Filtered):
    def __init__(self, name, level=NOTSET, parent=None):
        self.name, self.level, self.parent, self.propagate, self.handlers, self.filters, self.disabled = (
            name,
            _level(level),
            parent,
            True,
            [],
            [],
            False,
        )

    def setLevel(self, level):
        self.level = _level(level)

    def getEffectiveLevel(self):
        logger = self
        while logger is not None:
            if logger.level:
                return logger.level
            logger = logger.parent
        return NOTSET

    def isEnabledFor(self, level):
        return not self.disabled and level >= max(self.getEffectiveLevel(), _disabled + 1)

    def addHandler(self, handler):
        if handler not in self.handlers:
            self.handlers.append(handler)

    def removeHandler(self, handler):
        if handler in self.handlers:
            self.handlers.remove(handler)

    def hasHandlers(self):
        return bool(self.handlers) or self.propagate and self.parent is not None and self.parent.hasHandlers()

    def getChild(self, suffix):
        return getLogger(suffix if self is root else f"{self.name}.{suffix}")

    def log(self, level, msg, *args, exc_info=None, stack_info=False, stacklevel=1, extra=None):
        if not self.isEnabledFor(level):
            return
        if exc_info is True:
            exc_info = _sys.exc_info()
        frame = _sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") == "logging":
            frame = frame.f_back
        if len(args) == 1 and isinstance(args[0], dict) and args[0]:
            args = args[0]
        place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame is not None else ("", 0, "")
        record = LogRecord(self.name, level, place[0], place[1], msg, args, exc_info, place[2])
        vars(record).update(extra or {})
        self.handle(record)

    def handle(self, record):
        if not self.filter(record):
            return
        logger, found = self, False
        while logger is not None:
            for handler in logger.handlers:
                found = True
                if record.levelno >= handler.level:
                    handler.handle(record)
            logger = logger.parent if logger.propagate else None
        if not found and record.levelno >= WARNING:
            _sys.stderr.write(record.getMessage() + "\n")

    def debug(self, msg, *args, **kwargs):
        self.log(DEBUG, msg, *args, **kwargs)

    def info(self, msg, *args, **kwargs):
        self.log(INFO, msg, *args, **kwargs)

    def warning(self, msg, *args, **kwargs):
        self.log(WARNING, msg, *args, **kwargs)

    warn = warning

    def error(self, msg, *args, **kwargs):
        self.log(ERROR, msg, *args, **kwargs)

    def exception(self, msg, *args, exc_info=True, **kwargs):
        self.log(ERROR, msg, *args, exc_info=exc_info, **kwargs)

    def critical(self, msg, *args, **kwargs):
        self.log(CRITICAL, msg, *args, **kwargs)

    fatal = critical


root = Logger("root", WARNING)
_loggers = {}
_disabled = 0


def getLogger(name=None):
    if not name or name == "root":
        return root
    if name not in _loggers:
        parent = name.rpartition(".")[0]
        _loggers[name] = Logger(name, parent=getLogger(parent) if parent else root)
    return _loggers[name]


def basicConfig(
    *,
    filename=None,
    filemode="a",
    format=None,
    datefmt=None,
    style="%",
    level=None,
    stream=None,
    handlers=None,
    force=False,
    **kwargs,
):
    if force:
        root.handlers.clear()
    if not root.handlers:
        if handlers is None:
            handlers = [FileHandler(filename, filemode) if filename else StreamHandler(stream)]
        for handler in handlers:
            if handler.formatter is None:
                handler.setFormatter(Formatter(format or BASIC_FORMAT, datefmt, style))
            root.addHandler(handler)
    if level is not None:
        root.setLevel(level)


def disable(level=CRITICAL):
    global _disabled
    _disabled = level


def _of_root(name):
    def log(msg, *args, **kwargs):
        if not root.handlers:
            basicConfig()
        getattr(root, name)(msg, *args, **kwargs)

    return log


debug, info, warning, error, exception, critical = map(
    _of_root, ("debug", "info", "warning", "error", "exception", "critical")
)
warn, fatal = warning, critical


def log(level, msg, *args, **kwargs):
    if not root.handlers:
        basicConfig()
    root.log(level, msg, *args, **kwargs)


def captureWarnings(capture):
    pass


def shutdown():
    pass
