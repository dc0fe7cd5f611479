"""Names for the types of arrays."""

from typing import Any

import numpy as _np

ArrayLike = DTypeLike = Any
NBitBase = object


class NDArray(_np.ndarray):
    """`NDArray[np.float32]`, which only says something to a reader."""
