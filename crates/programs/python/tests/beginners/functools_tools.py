import functools
import operator


def logged(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        print(f"{function.__name__}{args} -> {result}")
        return result

    return call


def repeat(times):
    def decorate(function):
        def call(*args):
            return [function(*args) for _ in range(times)]

        return call

    return decorate


@logged
def add(a, b=1):
    """Adds."""
    return a + b


@repeat(3)
def hello(name):
    return f"hello {name}"


@functools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.singledispatch
def describe(value):
    return "something"


@describe.register
def _(value: int):
    return f"int {value}"


@describe.register(list)
def _(value):
    return f"list of {len(value)}"


add(1)
add(2, b=5)
print(add.__name__, add.__doc__, hello("you"))
print(fibonacci(50), fibonacci.cache_info())
print(functools.reduce(operator.mul, range(1, 6)), functools.partial(int, base=2)("101"))
print(describe(3), describe([1]), describe("x"))
print(sorted(["b", "A", "c"], key=str.lower), sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)))
print(list(map(operator.itemgetter("n"), [{"n": 1}, {"n": 2}])), operator.attrgetter("real")(5))

# --- on the GPU
import torch
from torch import nn

compose = functools.reduce(lambda f, g: lambda x: g(f(x)), [nn.Linear(4, 8).cuda(), torch.relu, nn.Linear(8, 2).cuda()])
x = torch.ones(3, 4, device="cuda")
print(compose(x).shape)
half = functools.partial(nn.functional.dropout, p=0.5, training=True)
print(half(x).shape, functools.reduce(operator.add, [p.numel() for p in nn.Linear(4, 8).parameters()]))
