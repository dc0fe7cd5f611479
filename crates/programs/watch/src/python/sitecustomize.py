"""Makes each Python of a watched program wait for PyTorch: its path of modules begins with this folder.

A `sitecustomize` of the environment runs after this module, as if this module did not exist.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_next():
    path = [folder for folder in sys.path if os.path.abspath(folder) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    import blockyard_watch

    blockyard_watch.install()
except Exception as fault:
    print(f"blockyard watch: not watched: {type(fault).__name__}: {fault}", file=sys.stderr)
_run_next()
