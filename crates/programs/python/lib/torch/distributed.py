"""`torch.distributed`, which is not modeled: one process runs."""

__path__ = []  # Modules below are found, and refused in a sentence.


from _refused import Missing as _Missing


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
    return _Missing(f"torch.distributed.{name}", "it needs several processes; run one process of the program")
