"""Progress of long work through tqdm, where it is installed and somebody looks on, and a limit of its memory."""

import contextlib
import os
import pathlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

from blockyard._native import BlockyardError

_state = threading.local()


@contextlib.contextmanager
def memory_limit(most: int | None) -> Iterator[None]:
    """Long work of this thread raises BlockyardError within it once the process has more than `most` bytes of memory.

    The memory is looked at ten times a second, so that the process may have somewhat more until the next look.
    """
    before = getattr(_state, "most_memory", None)
    _state.most_memory = most
    try:
        yield
        check_memory()
    finally:
        _state.most_memory = before


def check_memory() -> None:
    """Raises BlockyardError if the process has more memory than `memory_limit` allows."""
    most = getattr(_state, "most_memory", None)
    if most is None:
        return
    has = process_memory()
    if has > most:
        raise BlockyardError(f"the process has {has:,} bytes of memory, more than the {most:,} that it may have")


def process_memory() -> int:
    """The memory of this process now, in bytes."""
    # The second number of Linux's file is the resident pages.
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def report(phase: str | None, done: int, total: int) -> None:
    """Called by long work, ten times a second at most; `phase` is None once the work has ended."""
    if phase is not None:
        check_memory()
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
    # `set_description` would add a colon to the words, which are compared with the next phase.
    bar.desc = phase
    return bar
