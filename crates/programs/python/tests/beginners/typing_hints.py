from typing import Any, Callable, Generic, Iterable, NamedTuple, Optional, Protocol, TypeVar, Union, get_type_hints

T = TypeVar("T")


class Stack(Generic[T]):
    def __init__(self) -> None:
        self._items: list[T] = []

    def push(self, item: T) -> None:
        self._items.append(item)

    def pop(self) -> Optional[T]:
        return self._items.pop() if self._items else None


class Batch(NamedTuple):
    inputs: list[float]
    label: int = 0


class HasLength(Protocol):
    def __len__(self) -> int: ...


def total(values: Iterable[Union[int, float]], start: float = 0.0) -> float:
    return sum(values, start)


def apply(function: Callable[[int], int], value: int) -> int:
    return function(value)


def count(thing: HasLength) -> int:
    return len(thing)


stack: Stack[str] = Stack()
stack.push("a")
print(stack.pop(), stack.pop(), total([1, 2.5]), apply(lambda v: v + 1, 3), count("abc"))
print(get_type_hints(total))
print(Batch([1.0]), Batch._fields, Batch.__annotations__)
value: Any = {"k": [1]}
print(value, Stack[int], Optional[int])

# --- on the GPU
import torch
from torch import Tensor, nn


def step(model: nn.Module, x: Tensor, loss_of: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, float]:
    out = model(x)
    loss = loss_of(out, torch.zeros_like(out))
    loss.backward()
    return out, loss.item()


out, loss = step(nn.Linear(4, 4).cuda(), torch.ones(2, 4, device="cuda"), nn.functional.mse_loss)
print(out.shape, loss, type(loss), isinstance(loss, float))
print(get_type_hints(step)["return"])
