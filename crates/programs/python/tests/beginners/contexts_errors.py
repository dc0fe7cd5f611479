import contextlib
import io
import traceback


class Timer:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        print("enter", self.name)
        return self

    def __exit__(self, kind, error, trace):
        print("exit", self.name, kind.__name__ if kind else None)
        return kind is KeyError


@contextlib.contextmanager
def section(title):
    print(f"[{title}")
    try:
        yield title.upper()
    finally:
        print(f"{title}]")


class TrainingError(Exception):
    def __init__(self, epoch, reason):
        super().__init__(f"epoch {epoch}: {reason}")
        self.epoch = epoch


with Timer("outer"), section("load") as name:
    print(name)
with Timer("quiet"):
    {}["missing"]
try:
    try:
        int("x")
    except ValueError as error:
        raise TrainingError(3, "bad label") from error
except TrainingError as error:
    print(error, error.epoch, repr(error.__cause__))
    print(traceback.format_exception_only(type(error), error)[0].strip())
finally:
    print("finally")
with contextlib.suppress(ZeroDivisionError):
    1 / 0
out = io.StringIO()
with contextlib.redirect_stdout(out):
    print("captured")
print(repr(out.getvalue()))
with contextlib.ExitStack() as stack:
    for i in range(2):
        stack.callback(print, "closing", i)
try:
    assert 1 + 1 == 3, "arithmetic"
except AssertionError as error:
    print("assertion:", error)

# --- on the GPU
import torch
from torch import nn

with section("model"):
    model = nn.Linear(4, 2).cuda()
with torch.no_grad(), Timer("forward"):
    out = model(torch.ones(2, 4, device="cuda"))
print(out.requires_grad, out.shape)
try:
    model(torch.ones(2, 5, device="cuda"))
except RuntimeError as error:
    print(error)
try:
    torch.empty(1 << 40, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    print(type(error).__name__, str(error).split(".")[0])
