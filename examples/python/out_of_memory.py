"""Why a training ran out of memory, and what would have helped.

python examples/python/out_of_memory.py SNAPSHOT [LIMIT in bytes]
"""

import sys

import blockyard


def main() -> None:
    snapshot = blockyard.open(sys.argv[1])
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else None
    print(snapshot.summary)
    found = snapshot.autopsy(limit=limit)
    print(found)
    if found.cause is None:
        return
    for change in found.changes:
        print("helps:", change.sentence)
    # The same requests under the first setting that helps, beside the run as recorded.
    settings = [change.value for change in found.changes if change.kind == "setting"]
    if settings:
        print(snapshot.what_if(settings[0], limit=limit))


if __name__ == "__main__":
    main()
