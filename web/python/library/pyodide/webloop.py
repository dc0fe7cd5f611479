"""Stands where Pyodide's event loop is: see `asyncio` beside this package."""


def _initialize_event_loop():
    pass
