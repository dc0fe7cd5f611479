"""What random programs with cycles are made of: each class and function keeps something alive in its own way."""

import functools
import gc
import time
import weakref  # noqa: F401 (the programs use it)

import torch
import torch.nn as nn

BASE, KEPT = [0], []


def begin(is_automatic):
    KEPT.clear()
    cached.cache_clear()
    gc.collect()
    gc.enable() if is_automatic else gc.disable()
    torch.cuda.empty_cache()
    BASE[0] = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()


def used():
    return torch.cuda.memory_allocated() - BASE[0]


def show(label):
    # The thread of the backward pass lets go of the last gradients once it gets Python's lock.
    time.sleep(0.001)
    print(label, used(), torch.cuda.max_memory_allocated() - BASE[0])


def collect(label):
    time.sleep(0.001)
    gc.collect()
    show(label)


def attempt(label, function):
    try:
        result = function()
    except NotImplementedError:
        raise
    except Exception as error:
        # The thread of the backward pass has a reference to the exception, too, and lets go of it once it gets Python's lock.
        time.sleep(0.002)
        print(label, type(error).__name__)
        result = None
    time.sleep(0.001)
    return result


def backward(label, y, **how):
    return attempt(label, lambda: y.sum().backward(**how))


def gradient(label, y, x, **how):
    return attempt(label, lambda: torch.autograd.grad(y.sum(), [x], allow_unused=True, **how))


class Box:
    pass


class Slotted:
    __slots__ = ("__weakref__", "item", "other")


class Loud(Box):
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("dies:", self.name, used())


class Emptied(Loud):
    def __del__(self):
        self.__dict__.clear()
        print("emptied:", used())


class Returning(Loud):
    def __del__(self):
        if len(KEPT) < 3:
            KEPT.append(self)
        print("returns:", self.name, used())


def holding(*things):
    def hold(*arguments):
        things

    return hold


def changing(*things):
    def change(grad):
        things
        return grad * 2

    return change


def noting(name, into=None):
    def note(reference):
        if into is not None:
            into.clear()
        print("gone:", name, used())

    return note


class Method:
    def __init__(self, *things):
        self.things = things

    def hook(self, *arguments):
        self.last = len(arguments)

    def keep(self, *arguments):
        self.last = arguments


class KeepInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.x, ctx.held = x, held
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


class KeepOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.y = x.exp()
        return ctx.y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y, None


class SaveInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.save_for_backward(x)
        ctx.held = held
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x, None


class SaveOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        y = x.exp()
        ctx.save_for_backward(y, x)
        ctx.held = held
        return y

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        return grad * y, None


class SaveMiddle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        middle = x + 1
        ctx.save_for_backward(x, middle)
        ctx.run = lambda: (middle, held)
        return middle * x

    @staticmethod
    def backward(ctx, grad):
        x, middle = ctx.saved_tensors
        return grad * middle, None


class LeakContext(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.save_for_backward(x)
        put(held, "ctx", ctx)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos(), None


class TwoOutputs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        ctx.held, ctx.b = held, b
        return a, b

    @staticmethod
    def backward(ctx, first, second):
        return first * 2, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.mark_dirty(x)
        ctx.held = held
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.held = held
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class KeepGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.set_materialize_grads(False)
        ctx.held = held
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.grad = grad
        put(ctx.held, "grad", grad)
        return grad * 2, None


class SetUp(torch.autograd.Function):
    @staticmethod
    def forward(x, held):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.held = inputs
        ctx.save_for_backward(output, x)

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        return grad * y, None


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.held = held
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        middle = grad * x
        raise RuntimeError("the backward function fails")


def put(held, name, item):
    if isinstance(held, dict):
        held[name] = item
    elif isinstance(held, list):
        held.append(item)
    elif isinstance(held, Slotted):
        held.item = item
    elif held is not None:
        setattr(held, name, item)


class Layer(nn.Module):
    def __init__(self, parent=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1000, device="cuda"))
        self.seen = []
        if parent is not None:
            self.seen.append(parent)
            parent.seen.append(self)

    def forward(self, x):
        return x * self.weight.sum()


class Keeping(Layer):
    def forward(self, x):
        self.last = super().forward(x).relu()
        return self.last * 2


class Linked(Layer):
    def __init__(self, parent=None):
        super().__init__()
        self.parent = parent
        self.other = nn.Linear(30, 40, device="cuda")


def fail(x, held):
    middle = x * 3
    raise ValueError("fails")


def fail_from(x, held):
    try:
        fail(x, held)
    except ValueError as error:
        other = x * 5
        raise KeyError("after") from error


def fail_in_context(x, held):
    try:
        fail(x, held)
    except ValueError:
        other = x * 5
        raise KeyError("after")


def keep_own(x, held):
    try:
        fail(x, held)
    except ValueError as error:
        own = error
    return x.sum()


def caught(function, x, held):
    try:
        function(x, held)
    except Exception as error:
        return error


def steps(x, held):
    y = x * 2
    try:
        yield y
        z = y + 1
        yield z
        del y
        yield z
    finally:
        print("finally:", used())


def plain_steps(x, held):
    for i in range(3):
        y = x * i
        yield y


def sending(x):
    got = yield x
    while got is not None:
        x = x + got
        got = yield x


def delegating(x, held):
    yield from steps(x, held)


@functools.lru_cache(maxsize=2)
def cached(box):
    return torch.empty(2000, device="cuda")
