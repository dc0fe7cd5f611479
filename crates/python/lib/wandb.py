"""Logs of experiments: the calls pass, and nothing leaves the machine."""

from _passing import Passing as _Passing

config = _Passing("wandb.config")
run = None


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Passing(f"wandb.{name}")
