"""The estimates of other tools for recorded programs, beside a dry run: `python scripts/dry_run_peers.py --blockyard BLOCKYARD RECORD.json.gz...`.

PYTHON has PyTorch and the programs' libraries, accelerate among them. For each program, in bytes of peak allocated on the first GPU:

- the GPU: what the program printed there;
- `blockyard dry-run` of the program;
- `FakeTensorMode` with PyTorch's own `MemTracker`, around the unchanged program. Without a GPU no program gets past its first
  CUDA tensor, so both run inside a dry run, which only gives them a CUDA device. Further help, without which none ends: a read of
  a value that does not exist gets 1; `Module.to`, which PyTorch refuses for fake tensors, makes new parameters; pinned memory is
  memory; the tracker forgets a finished pass, and installs no hook on what needs no gradient;
- `accelerate estimate-memory`'s rule for training with Adam in float32, four times the weights, of the model that steps;
- a closed formula: weights, gradients of what is trained, two states of Adam of each in float32, and where the model has the sizes
  of a transformer its activations by Korthikanti and others 2022, "Reducing Activation Recomputation in Large Transformer
  Models", section 4.1: b s h (34 + 5 a s / h) bytes a layer in half precision, twice that in float32.

Only the first two say anything of the peak reserved.
"""

import argparse
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 300
MARK = "peers of a dry run: "


def recorded(record):
    """The most that the program printed or its statistics had; it may have reset its peaks."""
    printed = [
        [int(n) for n in re.findall(rf"\b{what} (\d+)", "\n".join(record["stdout"]))]
        for what in ("peak", "peak reserved")
    ]
    statistics = [record["stats"][f"{what}_bytes.all.peak"] for what in ("allocated", "reserved")]
    return [max([*numbers, most]) for numbers, most in zip(printed, statistics)]


def run(command, blockyard, folder, *arguments):
    """One process; the seconds that it took, its output and its end."""
    begin = time.monotonic()
    command = [blockyard, "dry-run", "--python", sys.executable, "--gpu", "h200", *command, *map(str, arguments)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder, start_new_session=True)
    try:
        text = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        text = "", f"Error: no end within {PATIENCE} seconds"
    return time.monotonic() - begin, subprocess.CompletedProcess(command, process.returncode, *text)


def said(done):
    """The answer of a process inside, or why there is none."""
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return json.loads(line[len(MARK) :])
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(" ")]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return {"error": (errors or lines or ["no output"])[-1][:160]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--blockyard", required=True, help="the command `blockyard`")
    parser.add_argument("--json", help="writes all numbers here")
    parser.add_argument("records", nargs="+")
    options = parser.parse_args()
    blockyard = str(pathlib.Path(options.blockyard).resolve())
    rows = []
    print(
        "| program | GPU, MiB | dry run | FakeTensorMode, MemTracker | accelerate | formula | reserved: GPU, dry run | seconds: dry run, FakeTensorMode |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in options.records:
        with gzip.open(name) as file:
            record = json.load(file)
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text(record["source"])
            report = pathlib.Path(folder, "report.json")
            ours_seconds, _ = run(["--quiet", "--json", report], blockyard, folder, program)
            peak = json.loads(report.read_text())["peaks"][0]
            this = pathlib.Path(__file__).resolve()
            _, done = run(["--quiet"], blockyard, folder, this, "--inside", "model", program)
            model = said(done)
            fake_seconds, done = run(["--quiet"], blockyard, folder, this, "--inside", "fake", program)
            fake = said(done)
        allocated, reserved = recorded(record)
        row = {
            "program": record["program"],
            "allocated": allocated,
            "reserved": reserved,
            "ours": peak,
            "model": model,
            "fake": fake,
            "seconds": [ours_seconds, fake_seconds],
        }
        rows.append(row)
        print(as_line(row), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


def as_line(row):
    truth = row["allocated"]

    def beside(value):
        return (
            "-"
            if value is None
            else f"{value / 2**20:,.1f} ({(value - truth) / truth:+.1%})"
            if value != truth
            else "equal"
        )

    fake = row["fake"]
    fakes = beside(fake.get("peak")) + (f" until {fake['error']}" if fake.get("error") else "")
    held = "equal" if row["ours"]["reserved"] == row["reserved"] else f"{row['ours']['reserved'] / 2**20:,.0f}"
    return (
        f"| {row['program']} | {truth / 2**20:,.1f} | {beside(row['ours']['allocated'])} | {fakes} "
        f"| {beside(row['model'].get('accelerate'))} | {beside(row['model'].get('formula'))} "
        f"| {row['reserved'] / 2**20:,.0f}, {held} | {row['seconds'][0]:.0f}, {row['seconds'][1]:.0f} |"
    )


def inside(peer, program):
    sys.argv = [program]
    answer = {"model": of_model, "fake": of_fake}[peer](program)
    print(MARK + json.dumps(answer), flush=True)


def of_model(program):
    """The rule of accelerate and the closed formula, of the largest model that ran."""
    import runpy

    import torch

    found = {}

    def look(module, inputs):
        count = sum(p.numel() for p in module.parameters())
        if count <= found.get("count", 0):
            return
        shapes = [tuple(v.shape) for v in inputs if isinstance(v, torch.Tensor)]
        found.update(module=module, count=count, shapes=shapes)

    def look_at_named(module, inputs, named):
        shapes = [tuple(v.shape) for v in (*inputs, *named.values()) if isinstance(v, torch.Tensor)]
        look(module, inputs)
        if module is found.get("module"):
            found["shapes"] = max(shapes, found["shapes"], key=lambda all: max((len(s) for s in all), default=0))

    original = torch.nn.Module.__call__

    def call(self, *inputs, **named):
        look_at_named(self, inputs, named)
        return original(self, *inputs, **named)

    torch.nn.Module.__call__ = call
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit:
        pass
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    model = found["module"]
    size, _ = calculate_maximum_sizes(model)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    trained = [p for p in model.parameters() if p.requires_grad]
    states = sum(p.numel() * p.element_size() for p in trained) + sum(p.numel() * 8 for p in trained)
    return {
        "accelerate": int(max(estimate_training_usage(size, "float32").values())),
        "formula": int(weights + states + activations(model, found["shapes"])),
    }


def activations(model, shapes):
    """Bytes of a transformer's activations, or 0 where the model does not say its sizes."""
    config = getattr(model, "config", None)
    sizes = [getattr(config, name, None) for name in ("num_hidden_layers", "hidden_size", "num_attention_heads")]
    ids = [shape for shape in shapes if len(shape) == 2]
    if not all(sizes) or not ids:
        return 0
    layers, hidden, heads = sizes
    batch, length = ids[0]
    wide = 2 if next(model.parameters()).element_size() == 4 else 1
    return wide * layers * (batch * length * hidden * 34 + 5 * batch * heads * length * length)


def skip_frozen(kind, name):
    """A hook on a tensor that needs no gradient is not an error."""
    original = getattr(kind, name)

    def register(self, hook):
        return original(self, hook) if self.requires_grad else None

    setattr(kind, name, register)


def of_fake(program):
    """PyTorch's fake tensors and its tracker of memory, around the program."""
    import runpy

    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    def instead(name, value):
        original = getattr(torch.Tensor, name)

        def read(self, *arguments):
            return value(self) if isinstance(self, FakeTensor) else original(self, *arguments)

        setattr(torch.Tensor, name, read)

    def moved(self, make, recurse=True):
        seen = {}
        for module in self.modules() if recurse else [self]:
            for kept, wrap in ((module._parameters, True), (module._buffers, False)):
                for name, tensor in kept.items():
                    if tensor is None:
                        continue
                    if id(tensor) not in seen:
                        with torch.no_grad():
                            other = make(tensor)
                        seen[id(tensor)] = torch.nn.Parameter(other, tensor.requires_grad) if wrap else other
                    kept[name] = seen[id(tensor)]
        return self

    torch.nn.Module._apply = moved

    def one(tensor):
        return 1.0 if tensor.is_floating_point() else tensor.dtype != torch.bool and 1

    instead("item", one)
    instead("__float__", lambda tensor: 1.0)
    instead("__int__", lambda tensor: 1)
    instead("__bool__", lambda tensor: False)
    instead("tolist", lambda tensor: [1] * tensor.numel())
    torch.Tensor.pin_memory = lambda self, *arguments: self
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        skip_frozen(torch.Tensor, name)

    class Tracker(MemTracker):
        def _pre_fw_hook(self, module, inputs):
            try:
                super()._pre_fw_hook(module, inputs)
            except NotImplementedError:
                self.reset_mod_stats()
                super()._pre_fw_hook(module, inputs)

    error = None
    with FakeTensorMode(allow_non_fake_inputs=True), Tracker() as tracker:
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit:
            pass
        except BaseException as raised:  # what it counted until then is the answer
            error = f"{type(raised).__name__}: {raised}".split("\n")[0][:120]
        peaks = tracker.get_tracker_snapshot("peak")
    devices = [counts["Total"] for device, counts in peaks.items() if device.type == "cuda"]
    return {"peak": max(devices, default=0), "error": error}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(*sys.argv[2:4])
    else:
        main()
