import copy
import math


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __repr__(self):
        return f"Vector({self.x!r}, {self.y!r})"

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    __rmul__ = __mul__

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))

    def __abs__(self):
        return math.hypot(self.x, self.y)

    def __bool__(self):
        return bool(abs(self))


class Account:
    count = 0

    def __init__(self, owner, balance=0):
        self.owner, self._balance = owner, balance
        Account.count += 1

    @property
    def balance(self):
        return self._balance

    @balance.setter
    def balance(self, value):
        if value < 0:
            raise ValueError("negative balance")
        self._balance = value

    @classmethod
    def empty(cls):
        return cls("nobody")

    @staticmethod
    def currency():
        return "EUR"


class Savings(Account):
    def __init__(self, owner, balance=0, rate=0.02):
        super().__init__(owner, balance)
        self.rate = rate

    def __str__(self):
        return f"{self.owner}: {self.balance:.2f} {self.currency()}"

    def __getattr__(self, name):
        return f"no {name}"


a, b = Vector(3, 4), Vector(1, 2)
print(a + b, 2 * a, abs(a), a == Vector(3, 4), bool(Vector(0, 0)), len({a, Vector(3, 4)}))
savings = Savings("Ada", 100)
savings.balance += 50.5
print(savings, savings.color, Account.count, Savings.empty().owner, isinstance(savings, Account))
try:
    savings.balance = -1
except ValueError as error:
    print(error, savings.balance)
shallow, deep = copy.copy([[1]]), copy.deepcopy({"a": [1]})
print(shallow, deep, vars(savings), sorted(name for name in dir(savings) if not name.startswith("__")))

# --- on the GPU
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(2, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

    def __len__(self):
        return sum(p.numel() for p in self.parameters())


net = Net(5).cuda()
print(net, len(net))
print(net(torch.tensor([[v.x, v.y] for v in (a, b)], dtype=torch.float32, device="cuda")).shape)
other = copy.deepcopy(net)
print([name for name, _ in other.named_parameters()], torch.cuda.memory_allocated())
print(Vector(net(torch.ones(1, 2, device="cuda")).item(), 1.0) + Vector(1, 2))
