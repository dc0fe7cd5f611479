from abc import ABC, abstractmethod
from enum import Enum, IntEnum, auto


class Mode(Enum):
    TRAIN = "train"
    EVAL = "eval"

    @property
    def is_training(self):
        return self is Mode.TRAIN


class Level(IntEnum):
    LOW = auto()
    HIGH = auto()


class Metric(ABC):
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)
        return self

    @abstractmethod
    def compute(self): ...


class Mean(Metric):
    def compute(self):
        return sum(self.values) / len(self.values)


class Best(Metric):
    def compute(self):
        return max(self.values)


print(Mode("train"), Mode.EVAL.value, [mode.name for mode in Mode], Mode.TRAIN.is_training, Mode["EVAL"] is Mode.EVAL)
print(Level.HIGH > Level.LOW, Level.HIGH + 1, list(Level), f"{Level.LOW:d}")
try:
    Mode("test")
except ValueError as error:
    print(error)
try:
    Metric()
except TypeError as error:
    print("cannot be made:", "abstract" in str(error))
metrics = {"mean": Mean(), "best": Best()}
for value in (0.5, 0.75, 0.25):
    for metric in metrics.values():
        metric.update(value)
print({name: metric.compute() for name, metric in metrics.items()}, isinstance(Mean(), Metric), Mean.__mro__[1].__name__)

# --- on the GPU
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.1)).cuda()
for mode in Mode:
    model.train(mode.is_training)
    metrics["mean"].update(model(torch.randn(8, 4, device="cuda")).mean().item())
    print(mode, model.training, metrics["mean"].compute())
