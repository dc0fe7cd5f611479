#!/usr/bin/env python3
"""What it costs to be watched, in pairs: `python scripts/watch_pairs.py 20 gpt` runs `watch_speed.py gpt` alone and watched, by turns."""

import pathlib
import re
import statistics
import subprocess
import sys

pairs, program = int(sys.argv[1]), sys.argv[2:]
alone = [sys.executable, str(pathlib.Path(__file__).with_name("watch_speed.py")), *program]
watched = ["blockyard", "watch", "--out", "/tmp/watch_pairs.pickle", "--", *alone]
shares, lost = [], 0
for pair in range(pairs):
    times = {}
    # Which of the two comes first changes, since a GPU grows warm.
    for command in (alone, watched) if pair % 2 == 0 else (watched, alone):
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        times[command[0]] = float(re.search(r"median ([\d.]+) ms", run.stdout).group(1))
        lost += run.stderr.count("lost")
    off, on = times[sys.executable], times["blockyard"]
    shares.append(100 * (on / off - 1))
    print(f"alone {off} ms, watched {on} ms", flush=True)
mean = statistics.mean(shares)
# Of 20 pairs the 95 percent bound of one side is 1.73 standard errors above the mean; 2 are taken.
bound = mean + 2 * statistics.stdev(shares) / pairs**0.5
print(
    f"PAIRS {' '.join(program)}: mean {mean:+.2f} percent, median {statistics.median(shares):+.2f}, "
    f"upper bound {bound:+.2f}, {lost} steps lost events"
)
