"""Signatures of functions, and kinds of objects."""

import sys as _sys
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType


class _Empty:
    pass


class _Kind(int):
    def __new__(cls, value, name):
        self = int.__new__(cls, value)
        self.name = name
        return self

    def __repr__(self):
        return self.name

    __str__ = __repr__


class Parameter:
    empty = _Empty
    POSITIONAL_ONLY, POSITIONAL_OR_KEYWORD, VAR_POSITIONAL, KEYWORD_ONLY, VAR_KEYWORD = (
        _Kind(value, name)
        for value, name in enumerate(
            ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD")
        )
    )

    def __init__(self, name, kind, *, default=_Empty, annotation=_Empty):
        self.name, self.kind, self.default, self.annotation = name, kind, default, annotation

    def replace(self, **changes):
        return Parameter(
            changes.pop("name", self.name),
            changes.pop("kind", self.kind),
            **{"default": self.default, "annotation": self.annotation, **changes},
        )

    def __str__(self):
        text = {2: "*", 4: "**"}.get(int(self.kind), "") + self.name
        if self.annotation is not _Empty:
            text += ": " + (
                self.annotation
                if isinstance(self.annotation, str)
                else getattr(self.annotation, "__name__", repr(self.annotation))
            )
        if self.default is not _Empty:
            text += (" = " if self.annotation is not _Empty else "=") + repr(self.default)
        return text

    def __repr__(self):
        return f'<Parameter "{self}">'


class BoundArguments:
    def __init__(self, signature, arguments):
        self.signature, self.arguments = signature, arguments

    def apply_defaults(self):
        filled = {}
        for name, parameter in self.signature.parameters.items():
            if name in self.arguments:
                filled[name] = self.arguments[name]
            elif parameter.kind == 2:
                filled[name] = ()
            elif parameter.kind == 4:
                filled[name] = {}
            elif parameter.default is not _Empty:
                filled[name] = parameter.default
        self.arguments = filled


class Signature:
    empty = _Empty

    def __init__(self, parameters=(), *, return_annotation=_Empty):
        self.parameters = {parameter.name: parameter for parameter in parameters}
        self.return_annotation = return_annotation

    def _bind(self, args, kwargs, is_partial):
        arguments, args, kwargs = {}, list(args), dict(kwargs)
        for name, parameter in self.parameters.items():
            if parameter.kind == 2:
                if args:
                    arguments[name], args = tuple(args), []
            elif parameter.kind == 4:
                if kwargs:
                    arguments[name], kwargs = kwargs, {}
            elif args and parameter.kind != 3:
                if name in kwargs:
                    raise TypeError(f"multiple values for argument {name!r}")
                arguments[name] = args.pop(0)
            elif name in kwargs:
                arguments[name] = kwargs.pop(name)
            elif parameter.default is _Empty and not is_partial:
                raise TypeError(f"missing a required argument: {name!r}")
        if args:
            raise TypeError("too many positional arguments")
        if kwargs:
            raise TypeError(f"got an unexpected keyword argument {next(iter(kwargs))!r}")
        return BoundArguments(self, arguments)

    def bind(self, *args, **kwargs):
        return self._bind(args, kwargs, False)

    def bind_partial(self, *args, **kwargs):
        return self._bind(args, kwargs, True)

    def __str__(self):
        parts, star = [], False
        for parameter in self.parameters.values():
            if parameter.kind == 2:
                star = True
            elif parameter.kind == 3 and not star:
                parts.append("*")
                star = True
            parts.append(str(parameter))
        return "(" + ", ".join(parts) + ")"

    def __repr__(self):
        return f"<Signature {self}>"


def _of_function(function):
    code = function.__code__
    names, count = code.co_varnames, code.co_argcount
    defaults = function.__defaults__ or ()
    only = function.__kwdefaults__ or {}
    annotations = getattr(function, "__annotations__", {})
    parameters = []

    def add(name, kind, default=_Empty):
        parameters.append(Parameter(name, kind, default=default, annotation=annotations.get(name, _Empty)))

    for index, name in enumerate(names[:count]):
        at = index - (count - len(defaults))
        kind = (
            Parameter.POSITIONAL_ONLY
            if index < getattr(code, "co_posonlyargcount", 0)
            else Parameter.POSITIONAL_OR_KEYWORD
        )
        add(name, kind, defaults[at] if at >= 0 else _Empty)
    after = count + code.co_kwonlyargcount
    if code.co_flags & 4:
        add(names[after], Parameter.VAR_POSITIONAL)
    for name in names[count : count + code.co_kwonlyargcount]:
        add(name, Parameter.KEYWORD_ONLY, only.get(name, _Empty))
    if code.co_flags & 8:
        add(names[after + (1 if code.co_flags & 4 else 0)], Parameter.VAR_KEYWORD)
    return Signature(parameters, return_annotation=annotations.get("return", _Empty))


def signature(obj, *, follow_wrapped=True, **kwargs):
    if isinstance(obj, MethodType):
        made = signature(obj.__func__)
        return Signature(list(made.parameters.values())[1:], return_annotation=made.return_annotation)
    if follow_wrapped and hasattr(obj, "__wrapped__"):
        return signature(obj.__wrapped__)
    if isinstance(obj, FunctionType):
        return _of_function(obj)
    if isinstance(obj, type):
        init = obj.__init__ if obj.__init__ is not object.__init__ else None
        return (
            Signature(list(_of_function(init).parameters.values())[1:])
            if isinstance(init, FunctionType)
            else Signature()
        )
    if hasattr(obj, "func") and hasattr(obj, "keywords"):
        made = signature(obj.func)
        rest = list(made.parameters.values())[len(obj.args) :]
        return Signature([p.replace(default=obj.keywords[p.name]) if p.name in obj.keywords else p for p in rest])
    if callable(obj) and isinstance(getattr(type(obj), "__call__", None), FunctionType):  # noqa: B004 - the kind of the method counts
        return signature(type(obj).__call__.__get__(obj))
    raise ValueError(f"no signature found for builtin {obj!r}")


def getfullargspec(func):
    from collections import namedtuple

    parameters = signature(func).parameters.values()
    kind = namedtuple("FullArgSpec", "args varargs varkw defaults kwonlyargs kwonlydefaults annotations")
    plain = [p for p in parameters if p.kind <= 1]
    only = [p for p in parameters if p.kind == 3]
    bound = ["self"] if isinstance(func, MethodType) else []
    return kind(
        bound + [p.name for p in plain],
        next((p.name for p in parameters if p.kind == 2), None),
        next((p.name for p in parameters if p.kind == 4), None),
        tuple(p.default for p in plain if p.default is not _Empty) or None,
        [p.name for p in only],
        {p.name: p.default for p in only if p.default is not _Empty} or None,
        {p.name: p.annotation for p in parameters if p.annotation is not _Empty},
    )


def isclass(obj):
    return isinstance(obj, type)


def isfunction(obj):
    return isinstance(obj, FunctionType)


def ismethod(obj):
    return isinstance(obj, MethodType)


def ismodule(obj):
    return isinstance(obj, ModuleType)


def isbuiltin(obj):
    return isinstance(obj, BuiltinFunctionType)


def isroutine(obj):
    return isbuiltin(obj) or isfunction(obj) or ismethod(obj)


def isgenerator(obj):
    return isinstance(obj, GeneratorType)


def isgeneratorfunction(obj):
    return isfunction(obj) and bool(obj.__code__.co_flags & 0x20)


def iscoroutinefunction(obj):
    return isfunction(obj) and bool(obj.__code__.co_flags & 0x80)


def isabstract(obj):
    return bool(getattr(obj, "__abstractmethods__", None))


def getmembers(obj, predicate=None):
    members = ((name, getattr(obj, name)) for name in dir(obj) if hasattr(obj, name))
    return [(name, value) for name, value in members if predicate is None or predicate(value)]


def getdoc(obj):
    doc = getattr(obj, "__doc__", None)
    return cleandoc(doc) if isinstance(doc, str) else None


def cleandoc(doc):
    from textwrap import dedent

    first, newline, rest = doc.expandtabs().partition("\n")
    return (first.lstrip() + newline + dedent(rest)).strip("\n")


def getmodule(obj):
    return _sys.modules.get(getattr(obj, "__module__", None))


def getmro(cls):
    return cls.__mro__


def currentframe():
    return _sys._getframe(1)


def unwrap(func):
    while hasattr(func, "__wrapped__"):
        func = func.__wrapped__
    return func


def getsource(obj):
    raise OSError("could not get source code: the text of a program is not kept here")


getsourcelines = getsourcefile = getfile = getsource
