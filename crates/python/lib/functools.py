"""Functions over functions."""

from _functools import partial, reduce

WRAPPER_ASSIGNMENTS = ("__module__", "__name__", "__qualname__", "__doc__")
WRAPPER_UPDATES = ("__dict__",)


def update_wrapper(wrapper, wrapped, assigned=WRAPPER_ASSIGNMENTS, updated=WRAPPER_UPDATES):
    for name in assigned:
        try:
            setattr(wrapper, name, getattr(wrapped, name))
        except AttributeError:
            pass
    for name in updated:
        getattr(wrapper, name).update(getattr(wrapped, name, {}))
    wrapper.__wrapped__ = wrapped
    return wrapper


def wraps(wrapped, assigned=WRAPPER_ASSIGNMENTS, updated=WRAPPER_UPDATES):
    return partial(update_wrapper, wrapped=wrapped, assigned=assigned, updated=updated)


class partialmethod:
    def __init__(self, func, /, *args, **keywords):
        self.func, self.args, self.keywords = func, args, keywords

    def __get__(self, obj, cls=None):
        return partial(self.func.__get__(obj, cls), *self.args, **self.keywords)


class CacheInfo(tuple):
    def __new__(cls, hits, misses, maxsize, currsize):
        return tuple.__new__(cls, (hits, misses, maxsize, currsize))

    hits = property(lambda self: self[0])
    misses = property(lambda self: self[1])
    maxsize = property(lambda self: self[2])
    currsize = property(lambda self: self[3])

    def __repr__(self):
        return f"CacheInfo(hits={self[0]}, misses={self[1]}, maxsize={self[2]}, currsize={self[3]})"


def lru_cache(maxsize=128, typed=False):
    if callable(maxsize):
        return lru_cache()(maxsize)

    def decorate(function):
        cache, counts = {}, [0, 0]

        def wrapper(*args, **kwargs):
            key = (args, tuple(kwargs.items()), tuple(type(a) for a in args) if typed else None)
            if key in cache:
                counts[0] += 1
                result = cache.pop(key)
                cache[key] = result
                return result
            counts[1] += 1
            result = function(*args, **kwargs)
            cache[key] = result
            if maxsize is not None and len(cache) > maxsize:
                del cache[next(iter(cache))]
            return result

        def cache_clear():
            cache.clear()
            counts[:] = [0, 0]

        wrapper.cache_clear = cache_clear
        wrapper.cache_info = lambda: CacheInfo(counts[0], counts[1], maxsize, len(cache))
        return update_wrapper(wrapper, function)

    return decorate


def cache(function):
    return lru_cache(maxsize=None)(function)


class cached_property:
    def __init__(self, func):
        self.func, self.attrname, self.__doc__ = func, None, func.__doc__

    def __set_name__(self, owner, name):
        self.attrname = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = self.func(instance)
        instance.__dict__[self.attrname] = value
        return value


def cmp_to_key(compare):
    class Key:
        __slots__ = ("obj",)

        def __init__(self, obj):
            self.obj = obj

        def __lt__(self, other):
            return compare(self.obj, other.obj) < 0

        def __eq__(self, other):
            return compare(self.obj, other.obj) == 0

    return Key


def total_ordering(cls):
    own = {name for name in ("__lt__", "__le__", "__gt__", "__ge__") if getattr(cls, name) is not getattr(object, name)}
    if not own:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    if "__lt__" in own:
        less = cls.__lt__
    elif "__gt__" in own:

        def less(self, other):
            return other > self
    elif "__le__" in own:

        def less(self, other):
            return self <= other and not self == other
    else:

        def less(self, other):
            return other >= self and not self == other

    rest = {
        "__lt__": less,
        "__gt__": lambda self, other: not less(self, other) and not self == other,
        "__le__": lambda self, other: less(self, other) or self == other,
        "__ge__": lambda self, other: not less(self, other),
    }
    for name, function in rest.items():
        if name not in own:
            setattr(cls, name, function)
    return cls


def singledispatch(function):
    registry = {object: function}

    def dispatch(cls):
        for base in cls.__mro__:
            if base in registry:
                return registry[base]
        return function

    def register(cls, func=None):
        if func is None:
            if isinstance(cls, type):
                return lambda f: register(cls, f)
            func = cls
            cls = next(iter(func.__annotations__.values()))
        registry[cls] = func
        return func

    def wrapper(*args, **kwargs):
        return dispatch(type(args[0]))(*args, **kwargs)

    wrapper.register, wrapper.dispatch, wrapper.registry = register, dispatch, registry
    return update_wrapper(wrapper, function)
