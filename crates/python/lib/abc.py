"""Abstract base classes: what a class must define before an instance can be made."""

from _abc import _abc_init, _abc_instancecheck, _abc_register, _abc_subclasscheck, get_cache_token


def abstractmethod(function):
    function.__isabstractmethod__ = True
    return function


class abstractproperty(property):
    __isabstractmethod__ = True


class ABCMeta(type):
    def __new__(mcls, name, bases, namespace, /, **kwargs):
        cls = super().__new__(mcls, name, bases, namespace, **kwargs)
        _abc_init(cls)
        return cls

    def register(cls, subclass):
        return _abc_register(cls, subclass)

    def __instancecheck__(cls, instance):
        return _abc_instancecheck(cls, instance)

    def __subclasscheck__(cls, subclass):
        return _abc_subclasscheck(cls, subclass)


class ABC(metaclass=ABCMeta):
    __slots__ = ()
