"""Sends objects from rank to rank over the store, whatever their size.

PyTorch sends an object as bytes on the device, and bytes of the device are followed up to some size only. PyTorch's own
calls still run, because they take the device's memory.
"""

import pickle

from blockyard_dry_run.record import estimate


class _Exchange:
    """One collective of a group: the objects of the ranks that run, exchanged over the store."""

    counts = {}

    def __init__(self, c10d, ranks, group):
        name = group.group_name
        # Ranks call the collectives of a group in the same order.
        number = self.counts[name] = self.counts.get(name, 0) + 1
        self.key = f"blockyard/objects/{name}/{number}"
        self.store = c10d._get_default_store()
        self.members = c10d.get_process_group_ranks(group)
        self.own = c10d.get_rank()
        self.running = [rank for rank in self.members if rank in ranks]
        self.absent = [rank for rank in self.members if rank not in ranks]

    def give(self, thing, to="all"):
        self.store.set(f"{self.key}/{to}/{self.own}", pickle.dumps(thing))

    def take(self, rank, to="all"):
        return pickle.loads(self.store.get(f"{self.key}/{to}/{rank}"))

    def gathered(self, thing):
        """The object of each member; for a member that does not run, the object of this rank."""
        if self.absent:
            estimate(
                f"rank {self.absent[0]} does not run: "
                "the object that is gathered of it is assumed to be this rank's own"
            )
        return [self.take(rank) if rank in self.running else pickle.loads(pickle.dumps(thing)) for rank in self.members]


def install(c10d, ranks):
    """Replaces PyTorch's collectives of objects in this module."""
    group_of, world_rank, read = c10d._group_or_default_group, c10d.get_global_rank, c10d._tensor_to_object

    def call(original, exchange, group, *arguments):
        """Makes PyTorch's own call, whose objects are not read.

        Over memory of the host, no call is made where a rank does not run.
        """
        if c10d._get_object_coll_device(group) == "cpu" and exchange.absent:
            return
        c10d._tensor_to_object = lambda *tensor: None
        try:
            original(*arguments)
        finally:
            c10d._tensor_to_object = read

    def is_foreign(group):
        """Whether PyTorch's own function does all.

        This holds where this rank is not a member, and where Gloo is real and connects all members.
        """
        if c10d._rank_not_in_group(group):
            return True
        group = group_of(group)
        is_host = c10d._get_object_coll_device(group) == "cpu"
        return is_host and ranks.issuperset(c10d.get_process_group_ranks(group))

    def source_of(src, group, group_src):
        if group_src is not None:
            return world_rank(group_of(group), group_src)
        return 0 if src is None else src

    broadcast, all_gather = c10d.broadcast_object_list, c10d.all_gather_object
    gather, scatter = c10d.gather_object, c10d.scatter_object_list

    def all_gather_object(object_list, obj, group=None):
        if is_foreign(group):
            return all_gather(object_list, obj, group)
        exchange = _Exchange(c10d, ranks, group_of(group))
        exchange.give(obj)
        call(all_gather, exchange, group, object_list, obj, group)
        object_list[: len(exchange.members)] = exchange.gathered(obj)

    def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
        if is_foreign(group):
            return gather(obj, object_gather_list, dst, group, group_dst)
        exchange = _Exchange(c10d, ranks, group_of(group))
        exchange.give(obj)
        call(gather, exchange, group, obj, object_gather_list, dst, group, group_dst)
        if exchange.own == source_of(dst, group, group_dst):
            object_gather_list[:] = exchange.gathered(obj)

    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
        if is_foreign(group):
            return broadcast(object_list, src, group, device, group_src)
        exchange = _Exchange(c10d, ranks, group_of(group))
        source = source_of(src, group, group_src)
        kept = list(object_list)
        if source in exchange.absent:
            estimate(
                f"rank {source} does not run: the objects that it broadcasts are assumed to be those that this rank "
                f"has in their place; name rank {source} with --ranks to have its own"
            )
            call(broadcast, exchange, group, object_list, exchange.own, group, device)
        else:
            if source == exchange.own:
                exchange.give(kept)
            call(broadcast, exchange, group, object_list, source, group, device)
            kept = exchange.take(source)
        if source != exchange.own:
            object_list[:] = kept

    def scatter_object_list(
        scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
    ):
        if is_foreign(group):
            return scatter(scatter_object_output_list, scatter_object_input_list, src, group, group_src)
        exchange = _Exchange(c10d, ranks, group_of(group))
        source = source_of(src, group, group_src)
        _refuse_absent("scatter_object_list", source, ranks)
        if source == exchange.own:
            for member, thing in zip(exchange.members, scatter_object_input_list):
                if member in ranks:
                    exchange.give(thing, to=member)
        call(scatter, exchange, group, scatter_object_output_list, scatter_object_input_list, source, group)
        scatter_object_output_list[0] = exchange.take(source, to=exchange.own)

    c10d.all_gather_object, c10d.gather_object = all_gather_object, gather_object
    c10d.broadcast_object_list, c10d.scatter_object_list = broadcast_object_list, scatter_object_list
    if hasattr(c10d, "recv_object_list"):
        receive = c10d.recv_object_list

        def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, **more):
            if src is not None or group_src is not None:
                _refuse_absent("recv_object_list", source_of(src, group, group_src), ranks)
            return receive(object_list, src, group, device, group_src, **more)

        c10d.recv_object_list = recv_object_list


def _refuse_absent(name, rank, ranks):
    if rank not in ranks:
        raise RuntimeError(
            f"{name}: rank {rank} does not run in this dry run, and what it sends is not known: name it with --ranks"
        )
