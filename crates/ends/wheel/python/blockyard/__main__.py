"""The `blockyard` command: `python -m blockyard --help`."""

import os
import signal
import sys

from blockyard import _dry_run, _native, _on, _page


def main() -> int:
    # The command has no Python in it, so Python's own handler would wait for its end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    if _page.folder() is not None:
        os.environ.setdefault("BLOCKYARD_PAGE", str(_page.folder()))
    _dry_run.set_environment()
    if _on.is_asked(sys.argv[1:]):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return _on.fit(sys.argv[1:])
    return _native.command(["blockyard", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
