"""The `blockyard` command: `python -m blockyard --help`."""

import signal
import sys

from blockyard import _native


def main():
    # The command has no Python in it, so Python's own handler would wait for its end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _native.command(["blockyard", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
