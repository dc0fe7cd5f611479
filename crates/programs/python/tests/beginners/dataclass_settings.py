from dataclasses import asdict, dataclass, field, fields, replace


@dataclass
class Settings:
    name: str = "mlp"
    hidden: int = 32
    lr: float = 1e-3
    layers: list = field(default_factory=lambda: [16, 8])
    tags: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        if self.hidden <= 0:
            raise ValueError(f"hidden must be positive, not {self.hidden}")


@dataclass(frozen=True, order=True)
class Result:
    epoch: int
    accuracy: float = field(compare=False, default=0.0)


base = Settings(tags={"author": "me"})
wide = replace(base, hidden=64, name="wide")
print(base)
print(wide)
print(asdict(wide))
print([f.name for f in fields(Settings)], base == Settings(), Result(1) < Result(2), sorted([Result(3), Result(1, 0.5)]))
try:
    Settings(hidden=-1)
except ValueError as error:
    print("error:", error)
try:
    Result(1).epoch = 2
except Exception as error:
    print(type(error).__name__, error)

# --- on the GPU
import torch
from torch import nn

sizes = [4, wide.hidden, *wide.layers, 2]
model = nn.Sequential(*[layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU())][:-1]).cuda()
print(model)
print(sum(p.numel() for p in model.parameters()))
result = Result(0, accuracy=(model(torch.randn(8, 4, device="cuda")).argmax(1) == 0).float().mean().item())
print(result)
print(asdict(result))
