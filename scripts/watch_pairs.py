#!/usr/bin/env python3
"""What it costs to be watched, by turns in one process.

    blockyard watch -- python scripts/watch_pairs.py 100 host       # or another program of watch_speed.py

Each round makes steps alone, with events and no stack, with the stacks of large requests, and with all stacks, in another
order than the round before. A round is short, since machines are faster for seconds and then slower. Alone means that the
library is attached and takes nothing: PyTorch cannot detach it. What that costs is seen from steps before it is attached. A
loss of one event or two is such a turn.
"""

import itertools
import pathlib
import statistics
import sys

import blockyard_watch
import torch
import watch_speed

ALONE = None
# Which requests have a stack, in bytes.
WAYS = {"alone": ALONE, "no stacks": 1 << 62, "large stacks": 1 << 20, "all stacks": 0}
rounds, name = int(sys.argv[1]), sys.argv[2]
# The steps of a turn: until the state is known again, and those that are timed.
UNTIMED, TIMED = 3, 4

watch = blockyard_watch._watch
queued = [call for call in torch.cuda._queued_calls if call[0] != watch.attach]
torch.cuda._queued_calls[:] = queued
step, _ = watch_speed.program(name)
before = watch_speed.times(step, 100)
watch.attach()
library = watch.library


def turn_to(way):
    """Takes events and stacks from now on as this way does."""
    stacks_from = WAYS[way]
    watch.library = None if stacks_from is ALONE else library
    library.blockyard_watch_set_on(int(stacks_from is not ALONE))
    if stacks_from is not ALONE:
        library.blockyard_watch_stacks_from(stacks_from)


times = {way: [] for way in WAYS}
shares = {way: [] for way in WAYS if way != "alone"}
orders = itertools.cycle(itertools.permutations(WAYS))
for _, order in zip(range(rounds), itertools.islice(orders, 0, None, 5)):
    medians = {}
    for way in order:
        turn_to(way)
        taken = watch_speed.times(step, TIMED, UNTIMED)
        times[way] += taken
        medians[way] = statistics.median(taken)
    for way, all_shares in shares.items():
        all_shares.append(100 * (medians[way] / medians["alone"] - 1))
turn_to("no stacks")

clock = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
print(f"CLOCK {clock.read_text().strip() if clock.is_file() else 'not known'}")


def tenth(seconds):
    """The milliseconds that a tenth of the steps stays below: what else the machine does makes steps slower alone."""
    return 1e3 * sorted(seconds)[len(seconds) // 10]


print(
    f"ALONE {name}: {1e3 * statistics.median(before):.3f} ms, a tenth below {tenth(before):.3f}, before it is attached"
)
for way, seconds in times.items():
    print(f"STEPS {name}, {way}: {1e3 * statistics.median(seconds):.3f} ms, a tenth below {tenth(seconds):.3f}")
for way, all_shares in shares.items():
    mean = statistics.mean(all_shares)
    # Of 20 pairs and more the 95 percent bound of one side is at most 1.73 standard errors above the mean; 2 are taken.
    bound = mean + 2 * statistics.stdev(all_shares) / rounds**0.5
    print(
        f"PAIRS {name}, {way}: mean {mean:+.2f} percent, median {statistics.median(all_shares):+.2f}, "
        f"upper bound {bound:+.2f}"
    )
