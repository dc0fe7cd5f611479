"""PyTorch's CUDA caching allocator, rebuilt to the byte: open what PyTorch recorded, and ask what would have been.

    import blockyard

    snapshot = blockyard.open("snapshot.pickle")            # what torch.cuda.memory._dump_snapshot wrote
    snapshot.devices                                        # the devices with their events
    answer = blockyard.open("run.jsonl.gz").what_if("expandable_segments:True")
    print(answer)

`blockyard.dry_run` runs a program with the PyTorch that is installed, without a GPU, and reports its memory; `%load_ext blockyard` and
`%%blockyard h100` do the same with a notebook's cell. `blockyard.torch` runs the same allocator inside PyTorch; `python -m blockyard` is the command.
"""

from blockyard import _answers
from blockyard._answers import *  # noqa: F403
from blockyard._dry_run import DryRun, dry_run
from blockyard._files import Device, Run, Snapshot, open, play
from blockyard._fit import fit, fit_layouts, fit_map, fit_settings
from blockyard._guard import Guard, guard
from blockyard._magic import load_ipython_extension
from blockyard._native import BlockyardError, Table, version
from blockyard._programs import Program, run
from blockyard._ranks import Ranks, SiteDifference, rank, ranks
from blockyard._watch import watch

__version__ = version()

__all__ = [
    "BlockyardError",
    "Device",
    "DryRun",
    "Guard",
    "Program",
    "Ranks",
    "Run",
    "SiteDifference",
    "Snapshot",
    "Table",
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
    "watch",
]
__all__ += _answers.__all__
