"""Runs a program with its history recorded, as it was recorded on a GPU: `driver.py PROGRAM NAME OUT`."""

import contextlib
import io
import json
import os
import sys

path, name, out = sys.argv[1:4]
import torch

torch.cuda.init()
torch.manual_seed(0)
memory = torch.cuda.memory
memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=10**6)
with open(path) as file:
    source = file.read()
if os.environ.get("KEEP_CLOSED"):
    # As Python 3.12.3 closes a generator: its variables are kept until the generator is freed.
    source = source.replace(".close()", "")
printed, error = io.StringIO(), None
with contextlib.redirect_stdout(printed):
    try:
        exec(compile(source, path, "exec"), {"__name__": "__main__"})
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
traces = [[[entry["action"], entry["size"]] for entry in trace] for trace in memory._snapshot()["device_traces"]]
with open(out, "w") as file:
    json.dump({"stdout": printed.getvalue(), "traces": traces, "error": error}, file)
