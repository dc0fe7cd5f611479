"""PyTorch's CUDA caching allocator, rebuilt to the byte: open what PyTorch recorded, and ask what would have been.

    import blockyard

    snapshot = blockyard.open("snapshot.pickle")            # what torch.cuda.memory._dump_snapshot wrote
    snapshot.devices                                        # the devices with their events
    answer = blockyard.open("run.jsonl.gz").what_if("expandable_segments:True")
    print(answer)

`blockyard.torch` runs the same allocator inside PyTorch; `python -m blockyard` is the command.
"""

from blockyard._answers import (
    AllocatorOutcome,
    Autopsy,
    Bound,
    Certificate,
    Change,
    ComparedAllocators,
    Diff,
    DiffTerm,
    FirstOom,
    Growth,
    Holder,
    Leaks,
    Limit,
    Moment,
    Outcome,
    PeakDiff,
    Search,
    Summary,
    WhatIf,
)
from blockyard._files import Device, Run, Snapshot, open, play
from blockyard._native import BlockyardError, Table, version
from blockyard._programs import Program, run
from blockyard._ranks import Ranks, SiteDifference, rank, ranks

__version__ = version()

__all__ = [
    "AllocatorOutcome",
    "Autopsy",
    "BlockyardError",
    "Bound",
    "Certificate",
    "Change",
    "ComparedAllocators",
    "Device",
    "Diff",
    "DiffTerm",
    "FirstOom",
    "Growth",
    "Holder",
    "Leaks",
    "Limit",
    "Moment",
    "Outcome",
    "PeakDiff",
    "Program",
    "Ranks",
    "Run",
    "Search",
    "SiteDifference",
    "Snapshot",
    "Summary",
    "Table",
    "WhatIf",
    "open",
    "play",
    "rank",
    "ranks",
    "run",
]
