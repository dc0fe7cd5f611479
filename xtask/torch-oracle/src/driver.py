"""Runs a program on PyTorch and writes what it asked of the allocator between the lines that it prints: `driver.py PROGRAM OUT`."""

import json
import sys

import torch

torch.cuda.init()
torch.manual_seed(0)
torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=10**8)


class Printed:
    """Counts requests at the end of each line."""

    def __init__(self):
        self.lines, self.text = [], ""

    def write(self, text):
        self.text += text
        while "\n" in self.text:
            line, self.text = self.text.split("\n", 1)
            count = torch._C._cuda_memoryStats(0)["allocation"]["all"]
            self.lines.append([line, count["allocated"] + count["freed"]])

    def flush(self):
        pass


path, out = sys.argv[1:3]
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
