"""Progress of long work through tqdm, where it is installed and somebody looks on."""

import sys
import threading
from typing import Any

_state = threading.local()


def report(phase: str | None, done: int, total: int) -> None:
    """Called by long work, ten times a second at most; `phase` is None once the work has ended."""
    bar = getattr(_state, "bar", None)
    if bar is not None and bar.desc != phase:
        bar.close()
        bar = _state.bar = None
    if phase is None or total == 0:
        return
    if bar is None:
        bar = _state.bar = _new_bar(phase, total)
    if bar is not None:
        bar.total = total
        bar.update(done - bar.n)


def _new_bar(phase: str, total: int) -> Any:
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(total=total, leave=False)
    # `set_description` would put a colon behind the words, by which they are compared.
    bar.desc = phase
    return bar
