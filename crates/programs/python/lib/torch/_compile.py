"""What the first call of some functions does in PyTorch: `torch._disable_dynamo` imports `torch._dynamo`."""

import gc

# How many new containers the import leaves, by the moments of an H200's collections.
_LEFT = 250
_left = None


def import_dynamo():
    """The import makes so many objects that Python's garbage collector runs some hundred times: what is garbage dies, and what
    is alive is old afterwards."""
    global _left
    if _left is None:
        if gc.isenabled():
            gc.collect(1)
        _left = [[] for _ in range(_LEFT)]
