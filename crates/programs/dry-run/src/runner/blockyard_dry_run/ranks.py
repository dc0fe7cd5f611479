"""Changes to PyTorch's Python for a program of several ranks, of which some do not run.

`STANDIN_RANKS` has the ranks that run, separated by commas; without it all ranks are processes that the program itself
starts.
"""

import ctypes
import os
import sys
import time

from blockyard_dry_run import checkpoints, objects
from blockyard_dry_run.record import estimate

_DDP = (
    "DistributedDataParallel takes new buckets in its second step, and PyTorch frees the first ones when its watchdog "
    "of NCCL next looks, up to 100 ms later: a GPU decides by time whether both exist at once, and here both do"
)

# Seconds in which NCCL's watchdog looks at its work twice.
_LOOKS = 0.25


def running():
    """The ranks that run; none where the program is one process."""
    ranks = os.environ.get("STANDIN_RANKS")
    return {int(rank) for rank in ranks.split(",")} if ranks else None


def install(loaded):
    """Installs the changes; `loaded(name, function)` calls a function with a module once the module is loaded."""
    loaded("torch.nn.parallel.distributed", _mark_ddp)
    ranks = running()
    if ranks is None:
        return
    has_absent = len(ranks) < int(os.environ["WORLD_SIZE"])

    def on_c10d(c10d):
        objects.install(c10d, ranks)
        if has_absent:
            _replace_gloo(c10d, ranks)

    loaded("torch.distributed.distributed_c10d", on_c10d)
    if has_absent:
        loaded("torch.distributed.checkpoint.utils", lambda utils: checkpoints.plan_here(utils, ranks))
        loaded("torch.distributed.checkpoint.default_planner", lambda planner: checkpoints.leave_out(planner, ranks))


def finish():
    """Lets NCCL's watchdog find all work done, and drop the tensors that it keeps, before PyTorch ends.

    This is called after the program has ended and its memory is counted. Where the program did not end its groups, the
    watchdog would free memory after PyTorch destroyed its allocator, which crashes.
    """
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None or not c10d.is_initialized():
        return
    try:
        library = ctypes.CDLL("libblockyard_standin.so")
        library.blockyard_nccl_finish()
    except (OSError, AttributeError):
        return
    # The watchdog looks ten times a second.
    time.sleep(_LOOKS)


def _mark_ddp(module):
    DDP = module.DistributedDataParallel
    init = DDP.__init__

    def __init__(self, *arguments, **options):
        estimate(_DDP)
        init(self, *arguments, **options)

    DDP.__init__ = __init__


def _replace_gloo(c10d, ranks):
    """Puts PyTorch's fake group in the place of Gloo, which connects all members, where a member does not run."""
    gloo = getattr(c10d, "ProcessGroupGloo", None)
    fake = getattr(sys.modules["torch._C._distributed_c10d"], "FakeProcessGroup", None)
    if gloo is None or fake is None:
        return
    create = getattr(fake, "_create_internal", fake)
    # PyTorch asks Gloo's groups for it.
    fake._set_sequence_number_for_group = lambda self: None
    fake._get_sequence_number_for_group = lambda self: 0
    helper = c10d._new_process_group_helper
    members = []

    def new_process_group_helper(group_size, group_rank, global_ranks_in_group, *arguments, **options):
        members.append(global_ranks_in_group or range(group_size))
        try:
            return helper(group_size, group_rank, global_ranks_in_group, *arguments, **options)
        finally:
            members.pop()

    class Gloo(type):
        def __call__(cls, store, rank, size, *arguments, **options):
            if ranks.issuperset(members[-1] if members else range(size)):
                return gloo(store, rank, size, *arguments, **options)
            return create(rank, size)

        def __instancecheck__(cls, thing):
            return isinstance(thing, (gloo, fake))

        def __getattr__(cls, name):
            return getattr(gloo, name)

    class ProcessGroupGloo(metaclass=Gloo):
        pass

    def monitored_barrier(group=c10d.GroupMember.WORLD, *arguments, **options):
        backend = c10d._get_pg_default_device(group)
        found = c10d._group_or_default_group(group)._get_backend(backend)
        return c10d.barrier(group) if isinstance(found, fake) else monitored(group, *arguments, **options)

    monitored = c10d.monitored_barrier
    c10d.monitored_barrier = monitored_barrier
    c10d.ProcessGroupGloo = ProcessGroupGloo
    c10d._new_process_group_helper = new_process_group_helper
