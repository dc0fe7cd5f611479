"""`torch.distributed`: not here; one process runs."""


def is_available():
    return False


def is_initialized():
    return False


def get_rank(group=None):
    return 0


def get_world_size(group=None):
    return 1


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    raise NotImplementedError(f"torch.distributed.{name} is not modeled here: it needs several processes; run one process of the program")
