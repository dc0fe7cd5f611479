"""Compares the runs of train.py: PyTorch's own allocator with itself, and with Blockyard.

Usage: compare.py FOLDER    (writes training.md there; the exit status is 1 where Blockyard differs in what PyTorch repeats)
"""

import json
import os
import sys
from collections import Counter

FOLDER = sys.argv[1]
MODES = {"": "", "fresh-": ", casts not kept"}


def read(name):
    try:
        with open(os.path.join(FOLDER, name + ".json")) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def compared(what, left, right):
    """Whether two sequences are the same, in words and as a truth value."""
    differing = [index for index, (one, other) in enumerate(zip(left, right)) if one != other]
    if not differing and len(left) == len(right):
        return f"{what}: the same {len(left):,}", True
    index = differing[0] if differing else min(len(left), len(right))
    order = "in another order" if Counter(left) == Counter(right) else "NOT the same in another order"
    return f"{what}: {len(differing):,} of {len(left):,} differ, the first is number {index:,}; {order}", False


def differing_statistics(left, right):
    keys = sorted(key for key in left if key in right and key != "num_sync_all_streams")
    return [f"{key} {left[key]:,} and {right[key]:,}" for key in keys if left[key] != right[key]]


def compare(run, one, other, rest):
    """Notes on one pair of runs, and whether all that both must agree in is the same."""
    notes, is_same = [], True
    for key in ("losses", "requests"):
        words, equal = compared(key, one[key], other[key])
        # Requests whose order PyTorch itself does not repeat are not compared.
        is_same &= equal or (key in rest)
        notes.append(f"* {run}: {words}")
    differing = differing_statistics(one["stats"], other["stats"])
    is_same &= not differing or "stats" in rest
    words = "all the same" if not differing else f"{len(differing)} differ: {'; '.join(differing[:5])}"
    notes.append(f"* {run}: statistics: {words}")
    return notes, is_same


def main():
    rows = ["| run | what | PyTorch's own | again | Blockyard | |", "| --- | --- | ---: | ---: | ---: | --- |"]
    notes, is_same = [], True
    names = [(model, setting, mode) for mode in MODES for model in ("gpt2", "gnn") for setting in ("default", "expandable")]
    for model, setting, mode in names:
        run = f"{model}, {setting}{MODES[mode]}"
        runs = [read(f"{model}-{setting}-{mode}{each}") for each in ("native", "again", "plugin")]
        if None in runs:
            notes.append(f"* {run}: MISSING: number {runs.index(None) + 1} of native, again and plugin")
            is_same = False
            continue
        for key, words in [("peak_allocated", "peak allocated"), ("peak_reserved", "peak reserved")]:
            values = [each[key] for each in runs]
            is_same &= len(set(values)) == 1
            cells = " | ".join(f"{value:,}" for value in values)
            rows.append(f"| {run} | {words}, bytes | {cells} | {'same' if len(set(values)) == 1 else 'DIFFERS'} |")
        rows.append(f"| {run} | last loss | {' | '.join(format(each['last_loss'], '.9f') for each in runs)} | |")
        rows.append(f"| {run} | seconds | {' | '.join(str(each['seconds']) for each in runs)} | |")
        native, again, ours = runs
        twice, repeats = compare(f"{run}, PyTorch twice", native, again, ())
        beside, equal = compare(f"{run}, PyTorch and Blockyard", native, ours, () if repeats else ("requests", "stats"))
        is_same &= equal
        notes += [*twice, *beside]
    text = "\n".join([*rows, "", *notes, "", "all the same" if is_same else "NOT all the same"])
    with open(os.path.join(FOLDER, "training.md"), "w") as file:
        file.write(text + "\n")
    print(text)
    return 0 if is_same else 1


sys.exit(main())
