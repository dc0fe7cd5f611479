"""Makes the calls of `numpy.txt` on ours: `numpy_check.py FOLDER` prints each that differs and how many do not."""

import sys
import warnings

# Ours comes first, also where numpy is installed.
sys.path.insert(0, sys.path.pop())
warnings.simplefilter("ignore")
calls = {"__name__": "numpy_calls"}
with open(f"{sys.argv[1]}/numpy_calls.py") as file:
    exec(file.read(), calls)
import numpy

assert "fallbacks" in numpy.__file__
counts = {"equal": 0, "refused": 0, "unknown": 0}
with open(f"{sys.argv[1]}/numpy.txt") as file:
    for line in file:
        call, _, wanted = line.rstrip("\n").partition(" => ")
        found, error = calls["result"](call, calls["names"]())
        if found == wanted:
            counts["equal"] += 1
        elif error is not None and ("not modeled here: " in str(error) or "not computed here" in str(error)):
            counts["refused"] += 1
        elif error is None and "?" in found:
            counts["unknown"] += 1
        else:
            print(f"{call}\n    numpy: {wanted}\n    here:  {found} {error or ''}")
print(counts)
