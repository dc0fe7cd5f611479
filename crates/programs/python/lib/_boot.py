"""Starts a run natively: `python _boot.py LIBRARY FOLDER`, where LIBRARY is our extension and FOLDER is the folder of the run."""

import sys
from importlib import machinery, util


def _load(path):
    loader = machinery.ExtensionFileLoader("_blockyard", path)
    module = util.module_from_spec(util.spec_from_file_location("_blockyard", path, loader=loader))
    sys.modules["_blockyard"] = module
    loader.exec_module(module)


if __name__ == "__main__":
    _load(sys.argv[1])
    import _run

    _run.main(sys.argv[2])
