"""PyTorch's CUDA caching allocator, rebuilt to the byte: open what PyTorch recorded, and ask what would have been.

    import blockyard

    snapshot = blockyard.open("snapshot.pickle")            # what torch.cuda.memory._dump_snapshot wrote
    snapshot.devices                                        # the devices with their events
    answer = blockyard.open("run.jsonl.gz").what_if("expandable_segments:True")
    print(answer)

`blockyard.dry_run` runs a program with the PyTorch that is installed, without a GPU, and says what it takes; `%load_ext blockyard` and
`%%blockyard h100` do the same with a notebook's cell. `blockyard.torch` runs the same allocator inside PyTorch; `python -m blockyard` is the command.
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
    Finding,
    FirstOom,
    Growth,
    Holder,
    HoldingLine,
    Leaks,
    Limit,
    Moment,
    Outcome,
    PeakDiff,
    Search,
    Summary,
    Verdict,
    WhatIf,
)
from blockyard._dry_run import (
    AddressOrders,
    AddressRange,
    ChildPeak,
    DeviceOutside,
    DevicePeak,
    DryRun,
    DryRunNote,
    GpuFit,
    Line,
    PeakHolder,
    PrintedLine,
    StepPeak,
    dry_run,
)
from blockyard._files import Device, Run, Snapshot, open, play
from blockyard._fit import (
    Fit,
    FitLayout,
    FitLayouts,
    FitMap,
    FitRow,
    FitRun,
    FitSetting,
    FitSettings,
    FitSite,
    fit,
    fit_layouts,
    fit_map,
    fit_settings,
)
from blockyard._guard import Guard, GuardRow, guard
from blockyard._magic import load_ipython_extension
from blockyard._native import BlockyardError, Table, version
from blockyard._programs import Program, run
from blockyard._ranks import Ranks, SiteDifference, rank, ranks

__version__ = version()

__all__ = [
    "AddressOrders",
    "AddressRange",
    "AllocatorOutcome",
    "Autopsy",
    "BlockyardError",
    "Bound",
    "Certificate",
    "Change",
    "ChildPeak",
    "ComparedAllocators",
    "Device",
    "DeviceOutside",
    "DevicePeak",
    "Diff",
    "DiffTerm",
    "DryRun",
    "DryRunNote",
    "Finding",
    "FirstOom",
    "Fit",
    "FitLayout",
    "FitLayouts",
    "FitMap",
    "FitRow",
    "FitRun",
    "FitSetting",
    "FitSettings",
    "FitSite",
    "GpuFit",
    "Growth",
    "Guard",
    "GuardRow",
    "Holder",
    "HoldingLine",
    "Leaks",
    "Limit",
    "Line",
    "Moment",
    "Outcome",
    "PeakDiff",
    "PeakHolder",
    "PrintedLine",
    "Program",
    "Ranks",
    "Run",
    "Search",
    "SiteDifference",
    "Snapshot",
    "StepPeak",
    "Summary",
    "Table",
    "Verdict",
    "WhatIf",
    "dry_run",
    "fit",
    "fit_layouts",
    "fit_map",
    "fit_settings",
    "guard",
    "load_ipython_extension",
    "open",
    "play",
    "rank",
    "ranks",
    "run",
]
