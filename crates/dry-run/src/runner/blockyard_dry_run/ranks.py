"""Where the program is one of several ranks: what PyTorch itself must be told of ranks that do not run.

`STANDIN_RANKS` has the ranks that run, after commas.
"""

import os
import sys

from blockyard_dry_run import places
from blockyard_dry_run.record import record

_DDP = (
    "DistributedDataParallel takes new buckets in its second step, and PyTorch frees the first ones when its watchdog of NCCL next looks, "
    "up to 100 ms later: a GPU decides by time whether both are there together, and here they are"
)


def running():
    """The ranks that run; none where the program is one process."""
    ranks = os.environ.get("STANDIN_RANKS")
    return {int(rank) for rank in ranks.split(",")} if ranks else None


def install(loaded):
    """`loaded(name, function)` calls a function with a module once it is loaded."""
    ranks = running()
    if ranks is None:
        return
    loaded("torch.nn.parallel.distributed", _mark_ddp)
    if len(ranks) < int(os.environ["WORLD_SIZE"]):
        loaded("torch.distributed.distributed_c10d", lambda c10d: _answer(c10d, ranks))


def _estimate(text):
    place = places.here() or {"file": "", "line": 0}
    record({"kind": "estimate", "text": text, **place})


def _mark_ddp(module):
    DDP = module.DistributedDataParallel
    init = DDP.__init__

    def __init__(self, *arguments, **options):
        _estimate(_DDP)
        init(self, *arguments, **options)

    DDP.__init__ = __init__


def _answer(c10d, ranks):
    """Object lists and groups of Gloo in which a rank does not run."""
    _replace_gloo(c10d, ranks)
    group_of, world_rank = c10d._group_or_default_group, c10d.get_global_rank

    def absent(source, group, group_source):
        """The rank that gives objects, if it does not run."""
        if group_source is not None:
            source = world_rank(group_of(group), group_source)
        return None if source is None or source in ranks else source

    broadcast = c10d.broadcast_object_list

    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
        source = 0 if src is None and group_src is None else src
        rank = absent(source, group, group_src)
        if rank is None or c10d._rank_not_in_group(group):
            return broadcast(object_list, src, group, device, group_src)
        _estimate(
            f"rank {rank} does not run: the objects that it broadcasts are taken to be those that this rank has in their place; "
            f"name rank {rank} with --ranks to have its own"
        )
        return broadcast(object_list, c10d.get_rank(), group, device)

    def refused(function, name, source_at):
        def call(*arguments, **options):
            source = options.get("src", arguments[source_at] if len(arguments) > source_at else None)
            if name == "scatter_object_list" and source is None and options.get("group_src") is None:
                source = 0
            rank = absent(source, options.get("group"), options.get("group_src"))
            if rank is not None:
                raise RuntimeError(f"{name}: rank {rank} does not run in this dry run, and what it sends is not known: name it with --ranks")
            return function(*arguments, **options)

        return call

    c10d.broadcast_object_list = broadcast_object_list
    c10d.scatter_object_list = refused(c10d.scatter_object_list, "scatter_object_list", 2)
    if hasattr(c10d, "recv_object_list"):
        c10d.recv_object_list = refused(c10d.recv_object_list, "recv_object_list", 1)


def _replace_gloo(c10d, ranks):
    """Gloo connects all members of a group. Where one does not run, PyTorch's fake group stands for it."""
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
