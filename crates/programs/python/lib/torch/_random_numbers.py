"""Random numbers of the host: PyTorch's own, once a seed was set."""

import _torch
from _torch import operator as _operator

import torch
from torch import contiguous_format, empty, full, is_grad_enabled, no_grad, uint8
from torch._tensor import Tensor

_new_generator, _seed_generator, _seed_of, _choose_generator, _forget_generator = map(
    _operator, ("_generator", "_generator_seed", "_generator_initial_seed", "_generator_choose", "_generator_forget")
)


def _signed(seed):
    if not -0x8000_0000_0000_0000 <= seed <= 0xFFFF_FFFF_FFFF_FFFF:
        raise RuntimeError("Overflow when unpacking long long")
    return seed - (1 << 64) if seed > 0x7FFF_FFFF_FFFF_FFFF else seed


class Generator:
    __module__ = "torch"

    def __init__(self, device="cpu"):
        self.device = _torch.device(device)
        self._number = _new_generator()

    def manual_seed(self, seed):
        _seed_generator(self._number, _signed(int(seed)))
        return self

    def initial_seed(self):
        return _seed_of(self._number) & 0xFFFF_FFFF_FFFF_FFFF

    def seed(self):
        # PyTorch takes a random number of the system, which is not known.
        with _drawing_from(self):
            _forget_generator()
        return self.initial_seed()

    def get_state(self):
        return empty(5056, dtype=uint8)

    def set_state(self, state):
        with _drawing_from(self):
            _forget_generator()


class _drawing_from:
    def __init__(self, generator):
        self.generator = generator

    def __enter__(self):
        self.before = _choose_generator(self.generator._number)

    def __exit__(self, *exception):
        _choose_generator(self.before)


default_generator = object.__new__(Generator)
default_generator.device, default_generator._number = _torch.device("cpu"), 0


def manual_seed(seed):
    return default_generator.manual_seed(seed)


def seed():
    return default_generator.seed()


def initial_seed():
    return default_generator.initial_seed()


def get_rng_state():
    return empty(5056, dtype=uint8)


def set_rng_state(state):
    default_generator.set_state(state)


def _drawn(name):
    """An operator that takes `generator=`."""
    plain = _operator(name)

    def function(*args, generator=None, **kwargs):
        if generator is None:
            return plain(*args, **kwargs)
        with _drawing_from(generator):
            return plain(*args, **kwargs)

    function.__name__ = name
    return function


rand, randn, randperm, bernoulli, multinomial = map(_drawn, ("rand", "randn", "randperm", "bernoulli", "multinomial"))
_normal = _drawn("normal")


def normal(mean, std=1.0, size=None, **options):
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors:
        return _normal(mean, std, size, **options)
    if is_grad_enabled() and any(t.requires_grad for t in tensors):
        raise NotImplementedError(
            "torch.normal is modeled for tensors without a gradient; use mean + std * torch.randn_like(mean)"
        )
    with no_grad():
        return _normal_of(mean, std, options.get("generator"))


def _normal_of(mean, std, generator):
    if not isinstance(std, Tensor):
        result = torch.empty_like(mean, memory_format=contiguous_format).normal_(0, std, generator=generator)
        # The sum is made beside the result and then copied.
        return result.copy_(result + mean)
    if std.is_cuda and std.numel() > 0:
        least = std.min()
        is_valid = least.ge(0)
        del is_valid
        del least
    if not isinstance(mean, Tensor):
        result = torch.empty_like(std, memory_format=contiguous_format).normal_(0, 1, generator=generator)
        mean = full((), mean, dtype=result.dtype, device=result.device)
        return result.mul_(std).add_(mean)
    result = empty(torch.broadcast_shapes(mean.shape, std.shape), dtype=mean.dtype, device=mean.device)
    return result.normal_(0, 1, generator=generator).mul_(std).add_(mean)


for _name in ("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "multinomial", "bernoulli"):
    setattr(Tensor, _name, _drawn(_name))


_placeholders = None
_drawn_integers = _drawn("randint")


def randint(*args, **kwargs):
    global _placeholders
    two = len(args) > 1 and isinstance(args[1], int)
    low, high = kwargs.get("low", args[0] if two else 0), kwargs.get("high", args[1] if two else args[0] if args else 1)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    made = _drawn_integers(*args, **kwargs)
    if made.is_cpu and made.numel() <= 4096 and made._known_values() is None:
        # Without a seed the numbers are from the range, so that slices can have them; a program that reads one gets a note that the number is not PyTorch's.
        if _placeholders is None:
            from random import Random

            _placeholders = Random(0)
        made._set_values([_placeholders.randrange(low, high) for _ in range(made.numel())])
    return made
