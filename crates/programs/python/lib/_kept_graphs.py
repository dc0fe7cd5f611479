"""Why a program ran out of memory, where one of its lists is the cause: a list of tensors keeps the backward graph of each tensor,
and the graphs keep the activations of all iterations.

The graphs and the names that lead to them are those at the exception, so each byte is counted and not guessed. Whether the program
would have fit without the list is not known, and the text does not claim it.
"""

import linecache
import re

import _host

# A list is a cause if its graphs hold at least one part in `_PART` of the allocated bytes.
_PART = 4


def describe(reasons, file):
    """The list whose graphs hold the most memory of the first GPU, as the line that appends to it and a text; `None` unless the
    graphs hold enough. `reasons` has the reasons of each block, by the block's number."""
    requested = _host.requested_bytes()
    lists = {}
    for number, found in reasons.items():
        name, places = list_of(found)
        if name is not None:
            all_places, total = lists.get(name, (set(), 0))
            lists[name] = all_places | places, total + requested[number]
    if not lists:
        return None
    name, (places, kept) = max(lists.items(), key=lambda item: item[1][1])
    allocated = sum(requested[number] for number in reasons)
    if len(places) < 2 or kept * _PART < allocated:
        return None
    text = (
        f"`{name}` keeps the backward graphs of {len(places)} tensors, and the graphs keep {_host.bytes_text(kept)} of the "
        f"{_host.bytes_text(allocated)} that the program holds. Append what `.item()` returns, a number, or what `.detach()` "
        "returns, a tensor without its graph"
    )
    return appending_line(linecache.getlines(file), name), text


def list_of(reasons):
    """The list, and its places, whose graphs alone keep a block. `None` where anything else keeps the block too, since the block
    would then be alive without the list."""
    names, places = set(), set()
    for reason in reasons:
        name, place = element(reason.graph_of) if reason.kind == "saved" else (None, None)
        names.add(name)
        places.add(place)
    return (names.pop(), places) if len(names) == 1 else (None, places)


def element(name):
    """The list and the place of a name such as `losses[3]`, `losses[3] in train` or `self.pairs[3][0]`."""
    found = re.match(r"(.*?)\[([0-9]+)\]", name)
    return found.groups() if found else (None, None)


def appending_line(lines, name):
    """The line that appends to the list, counted from 1; 0 unless there is exactly one such line."""
    found = [number for number, line in enumerate(lines, 1) if line.lstrip().startswith(f"{name}.append(")]
    return found[0] if len(found) == 1 else 0
