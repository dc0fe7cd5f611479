"""`python -m blockyard.watch train.py ARGUMENTS` is `blockyard watch -- python train.py ARGUMENTS` with this Python."""

import sys

from blockyard.__main__ import main

if __name__ == "__main__":
    sys.argv[1:] = ["watch", "--", sys.executable, *sys.argv[1:]]
    sys.exit(main())
