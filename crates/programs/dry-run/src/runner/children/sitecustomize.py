"""Makes each Python that the program starts follow its values and peaks: its path of modules begins with this folder.

A `sitecustomize` of the environment runs after this module, as if this module did not exist.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_next():
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        # Python asks for the name alone, which is then bound to an empty module, as where none is installed.
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _follow():
    runner = os.path.dirname(_HERE)
    sys.path.insert(0, runner)
    try:
        from blockyard_dry_run import child
    finally:
        sys.path.remove(runner)
    child.follow()


try:
    _follow()
except Exception as fault:
    print(f"blockyard: this process is not followed: {type(fault).__name__}: {fault}", file=sys.stderr)
_run_next()
