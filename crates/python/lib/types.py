"""Types of the interpreter's own objects."""

from _types import *
from _types import FunctionType, GeneratorType, MappingProxyType, MethodType, ModuleType, SimpleNamespace

NoneType = type(None)
EllipsisType = type(...)
NotImplementedType = type(NotImplemented)
GenericAlias = type(list[int])
UnionType = type(int | str)


class DynamicClassAttribute(property):
    pass


def new_class(name, bases=(), kwds=None, exec_body=None):
    namespace = {}
    if exec_body is not None:
        exec_body(namespace)
    kwds = dict(kwds or {})
    return kwds.pop("metaclass", type)(name, bases, namespace, **kwds)
