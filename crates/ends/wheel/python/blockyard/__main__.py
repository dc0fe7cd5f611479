"""The `blockyard` command: `python -m blockyard --help`."""

import os
import signal
import sys

from blockyard import _command, _fit_on_cluster, _native, _page


def main() -> int:
    # The command has no Python in it, so Python's own handler would wait for its end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    if _page.folder() is not None:
        os.environ.setdefault("BLOCKYARD_PAGE", str(_page.folder()))
    _command.set_environment()
    if _fit_on_cluster.is_asked(sys.argv[1:]):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return _fit_on_cluster.fit(sys.argv[1:])
    return _native.command(["blockyard", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
