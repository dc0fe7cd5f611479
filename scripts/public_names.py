"""Writes the public names of PyTorch into crates/programs/python/lib/torch/_public.py: `python scripts/public_names.py`, where torch 2.11 is installed.

This list distinguishes names that Blockyard does not have from names that PyTorch does not have either.
"""

import importlib
import pkgutil
import types
import warnings
from pathlib import Path

import torch

# What programs name. Of the parts that are not in Blockyard at all (torch.distributed, torch.fx and others) every name is refused.
MODULES = """
torch torch.accelerator torch.amp torch.autograd torch.autograd.forward_ad torch.autograd.function torch.autograd.functional
torch.autograd.grad_mode torch.autograd.gradcheck torch.autograd.graph torch.autograd.profiler torch.backends torch.backends.cpu
torch.backends.cuda torch.backends.cudnn torch.backends.mkl torch.backends.mps torch.backends.openmp torch.compiler torch.cuda
torch.cuda.amp torch.cuda.graphs torch.cuda.memory torch.cuda.nvtx torch.cuda.random torch.cuda.streams torch.distributions
torch.distributions.constraints torch.distributions.kl torch.distributions.transforms torch.fft torch.func torch.functional torch.futures
torch.hub torch.jit torch.linalg torch.nn torch.nn.attention torch.nn.attention.bias torch.nn.attention.flex_attention
torch.nn.functional torch.nn.init torch.nn.parallel torch.nn.parameter torch.nn.utils torch.nn.utils.clip_grad
torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn torch.nn.utils.stateless torch.optim
torch.optim.lr_scheduler torch.optim.optimizer torch.optim.swa_utils torch.overrides torch.profiler torch.random torch.return_types
torch.serialization torch.signal.windows torch.special torch.testing torch.types torch.utils torch.utils.benchmark torch.utils.checkpoint
torch.utils.data torch.utils.data.distributed torch.utils.flop_counter torch.utils.hooks torch.version
""".split()
CLASSES = [torch.Tensor, torch.nn.Module, torch.optim.Optimizer]


def public(module):
    names = getattr(module, "__all__", None)
    if names is None or module is torch:
        names = [name for name in dir(module) if not name.startswith("_")]
    for name in sorted(set(names)):
        value = getattr(module, name, None)
        is_foreign = isinstance(value, types.ModuleType) and not value.__name__.startswith("torch")
        if not is_foreign and getattr(value, "__module__", "") not in ("typing", "typing_extensions"):
            yield name


def main():
    warnings.simplefilter("ignore")
    lines = [
        '"""The public names of PyTorch 2.11, by module and class; written by scripts/public_names.py."""',
        "",
        "NAMES = {",
    ]
    for module in MODULES:
        lines.append(f'    "{module}": "{" ".join(public(importlib.import_module(module)))}",')
    for kind in CLASSES:
        path = (
            f"torch.{kind.__name__}"
            if kind is torch.Tensor
            else f"{'torch.nn' if kind is torch.nn.Module else 'torch.optim'}.{kind.__name__}"
        )
        lines.append(f'    "{path}": "{" ".join(name for name in dir(kind) if not name.startswith("_"))}",')
    lines += ["}", "# The modules of each package.", "MODULES = {"]
    for name in MODULES:
        package = importlib.import_module(name)
        inside = [
            module.name
            for module in pkgutil.iter_modules(getattr(package, "__path__", []))
            if not module.name.startswith("_")
        ]
        if inside:
            lines.append(f'    "{name}": "{" ".join(inside)}",')
    path = Path(__file__).parents[1] / "crates/programs/python/lib/torch/_public.py"
    path.write_text("\n".join([*lines, "}"]) + "\n")


main()
