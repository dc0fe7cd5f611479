"""Runs a program on PyTorch and writes what it asked of the allocator between the lines that it prints: `driver.py PROGRAM OUT VALUES`.

VALUES is `followed`, or `unknown`: then no operator is observed, which is several times as fast, and each line says how often something was read
that would have been known.
"""

import ctypes
import json
import sys
import time

import torch

path, out, values = sys.argv[1:4]
torch.cuda.init()
standin = ctypes.CDLL("libblockyard_standin.so")
standin.blockyard_block_events.restype = ctypes.c_uint64
standin.blockyard_unsure.restype = ctypes.c_uint64
if values == "unknown":
    standin.blockyard_values_stop()
torch.manual_seed(0)
torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=10**8)
begun = standin.blockyard_block_events()


class Printed:
    """Counts allocations and frees at the end of each line, and what was not sure."""

    def __init__(self):
        self.lines, self.text = [], ""

    def write(self, text):
        if text.startswith("#"):
            # A call has ended: the thread of its backward pass lets go of the last gradients once it gets Python's lock.
            time.sleep(0.0001)
        self.text += text
        while "\n" in self.text:
            line, self.text = self.text.split("\n", 1)
            self.lines.append([line, standin.blockyard_block_events() - begun, standin.blockyard_unsure()])

    def flush(self):
        pass


with open(path) as file:
    source = file.read()
printed, shown, error = Printed(), sys.stdout, None
sys.stdout = printed
try:
    exec(compile(source, path, "exec"), {"__name__": "__main__"})
except Exception as caught:
    error = f"{type(caught).__name__}: {caught}"
finally:
    sys.stdout = shown
actions = {"alloc": 1, "free_completed": -1}
trace = torch.cuda.memory._snapshot()["device_traces"][0]
events = [actions[entry["action"]] * entry["size"] for entry in trace if entry["action"] in actions]
with open(out, "w") as file:
    json.dump({"lines": printed.lines, "events": events, "error": error}, file)
