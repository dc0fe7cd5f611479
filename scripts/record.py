#!/usr/bin/env python3
"""Records a run of PyTorch's CUDA caching allocator, in the format of docs/format.md.

    python scripts/record.py --out run.jsonl.gz train.py --epochs 1
    blockyard verify run.jsonl.gz

or around a part of a program, with the folder of this file on PYTHONPATH:

    import record
    with record.recording("run.jsonl.gz") as recording:
        for step in range(10):
            train_step()
            recording.mark(f"step {step}")      # the statistics of a moment, for a replay to compare

It needs PyTorch with CUDA and nothing else, sends nothing anywhere and notes no stacks, names of files or contents of
tensors. Begin before the first CUDA tensor where that is possible: then a replay knows everything.
"""

import argparse
import gzip
import json
import os
import runpy
import sys

ACTIONS = {
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
}
SEGMENT = (
    "address",
    "total_size",
    "stream",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "allocated_size",
    "active_size",
    "requested_size",
)
BLOCK = ("address", "size", "requested_size", "state")
# The first that is set counts, as for PyTorch.
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def trace_line(entry):
    """An entry of PyTorch's trace as a list; an out of memory has the device's free bytes in place of an address."""
    action = entry["action"]
    if action not in ACTIONS:
        raise ValueError(f"PyTorch's trace has an action {action!r}, which the format does not know")
    place = entry["device_free"] if action == "oom" else entry["addr"]
    return [action, place, entry["size"], entry["stream"]]


def segment_line(segment):
    """A segment of PyTorch's snapshot, with its blocks as lists; stacks are left out."""
    kept = {key: segment[key] for key in SEGMENT if key in segment}
    kept["blocks"] = [[block[key] for key in BLOCK] for block in segment["blocks"]]
    return kept


class Recording:
    """A running recording of one device."""

    def __init__(self, path, device=None, name=None, max_entries=None):
        import torch

        self._torch = torch
        self.path = os.fspath(path)
        self.name = name or os.path.basename(self.path).split(".")[0]
        torch.cuda.init()
        self.device = torch.cuda.current_device() if device is None else torch.device("cuda", device).index
        self._checkpoints = []
        self._is_running = True
        # Said now, not after hours of training.
        with open(self.path, "ab"):
            pass
        entries = {} if max_entries is None else {"max_entries": max_entries}
        torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", **entries)

    def _snapshot(self):
        taken = self._torch.cuda.memory._snapshot(self.device)
        trace = taken["device_traces"][self.device] if taken["device_traces"] else []
        # With one device in question, PyTorch may give the segments of all.
        segments = [segment for segment in taken["segments"] if segment.get("device", self.device) == self.device]
        return trace, segments

    def mark(self, label):
        """Notes the statistics of this moment. Takes a snapshot, so it costs time that grows with the trace."""
        stats = self._torch.cuda.memory_stats(self.device)
        trace, _ = self._snapshot()
        self._checkpoints.append([str(label), len(trace), dict(stats)])

    def stop(self):
        """Ends the recording and writes the file; a second call does nothing."""
        if not self._is_running:
            return
        self._is_running = False
        cuda = self._torch.cuda
        stats = dict(cuda.memory_stats(self.device))
        trace, segments = self._snapshot()
        cuda.memory._record_memory_history(enabled=None)
        properties = cuda.get_device_properties(self.device)
        meta = {
            "name": self.name,
            "torch": str(self._torch.__version__),
            "conf": next((os.environ[key] for key in SETTINGS if key in os.environ), ""),
            "total_memory": properties.total_memory,
            "device": properties.name,
        }
        lines = [
            {"meta": meta},
            {"trace": [trace_line(entry) for entry in trace]},
            {"checkpoints": self._checkpoints},
            {"segments": [segment_line(segment) for segment in segments]},
            {"stats": stats},
        ]
        opened = gzip.open if self.path.endswith(".gz") else open
        with opened(self.path, "wt", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
        print(f"{self.path}: {len(trace)} entries of the trace", file=sys.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *_failure):
        self.stop()


def recording(path, device=None, name=None, max_entries=None):
    """Starts a recording of a device, by default the current one; `max_entries` is the most entries of the trace, which keeps the last ones."""
    return Recording(path, device, name, max_entries)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="FILE", help="what to write: .jsonl, or packed .jsonl.gz")
    parser.add_argument("--device", type=int, metavar="N", help="which device; the current one without it")
    parser.add_argument("--max-entries", type=int, metavar="N", help="keep only the last N entries of the trace")
    parser.add_argument("program", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is called with")
    options = parser.parse_args()
    # So that the program can say `import record; record.running.mark(...)`.
    sys.modules["record"] = sys.modules[__name__]
    global running
    with recording(options.out, options.device, max_entries=options.max_entries) as running:
        sys.argv = [options.program, *options.arguments]
        sys.path.insert(0, os.path.dirname(os.path.abspath(options.program)))
        runpy.run_path(options.program, run_name="__main__")


# The recording that `main` made.
running = None

if __name__ == "__main__":
    main()
