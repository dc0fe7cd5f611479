"""Stands where the event loops of Python's own library are: a page runs a program from its first to its last line."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotImplementedError(
        f"asyncio.{name} is not available in the page's Python; the command blockyard python has it"
    )


def get_event_loop():
    """Pyodide asks for this function by name when it starts."""
    __getattr__("get_event_loop")
