"""Skips the initialization of large parameters on the host, where `BLOCKYARD_DRY_RUN_SKIP_INIT` is set.

Such parameters take addresses and no memory until the program writes them.
"""

import functools
import os
import sys

from blockyard_dry_run import places
from blockyard_dry_run.record import record

_TEXT = (
    "parameters on the host are not initialized (--skip-init): random numbers that the host draws later differ from "
    "PyTorch's, and values that the program itself reads from these parameters are arbitrary"
)
# Smaller parameters are initialized: their bytes are followed to the device.
_MAX_BYTES = 1 << 20
_said = set()


def install():
    """Skips initialization, if that is asked for. PyTorch is loaded."""
    init = sys.modules.get("torch.nn.init")
    if not os.environ.get("BLOCKYARD_DRY_RUN_SKIP_INIT") or init is None:
        return
    replaced = {}
    for name, function in vars(init).copy().items():
        if name.endswith("_") and not name.startswith("_") and callable(function):
            replaced[function] = _skipping(function)
    # Modules of PyTorch have imported some of these functions under other names.
    for module in [module for name, module in sys.modules.items() if name.startswith("torch.nn")]:
        for name, value in list(vars(module).items()):
            if callable(value) and getattr(value, "__module__", None) == "torch.nn.init" and value in replaced:
                setattr(module, name, replaced[value])


def _skipping(function):
    @functools.wraps(function)
    def initialize(*arguments, **options):
        tensor = arguments[0] if arguments else options.get("tensor")
        is_large = (
            tensor is not None and tensor.device.type == "cpu" and tensor.numel() * tensor.element_size() > _MAX_BYTES
        )
        if not is_large:
            return function(*arguments, **options)
        _say()
        return tensor

    return initialize


def _say():
    place = places.here() or {"file": "", "line": 0}
    key = (place["file"], place["line"])
    if key not in _said:
        _said.add(key)
        record({"kind": "estimate", "text": _TEXT, **place})
