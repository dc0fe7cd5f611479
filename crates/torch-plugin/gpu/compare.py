"""Compares the runs of train.py under both allocators.

Usage: compare.py FOLDER    (writes training.md there; the exit status is 1 where anything differs)
"""

import json
import os
import sys

FOLDER = sys.argv[1]


def read(name):
    try:
        with open(os.path.join(FOLDER, name + ".json")) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def first_difference(left, right):
    for index, (one, other) in enumerate(zip(left, right)):
        if one != other:
            return index
    return None if len(left) == len(right) else min(len(left), len(right))


def same(what, left, right):
    index = first_difference(left, right)
    if index is None:
        return f"{what}: the same {len(left):,}", True
    tails = [part[index] if index < len(part) else "nothing" for part in (left, right)]
    return f"{what}: DIFFER at {index:,} of {len(left):,}: {tails[0]} and {tails[1]}", False


def main():
    rows = ["| run | what | PyTorch's own | Blockyard | |", "| --- | --- | ---: | ---: | --- |"]
    notes, is_same = [], True
    for model in ("gpt2", "gnn"):
        for setting in ("default", "expandable"):
            run = f"{model}, {setting}"
            native, ours = read(f"{model}-{setting}-native"), read(f"{model}-{setting}-plugin")
            if native is None or ours is None:
                notes.append(f"* {run}: MISSING ({'native' if native is None else 'plugin'})")
                is_same = False
                continue
            for key, words in [("peak_allocated", "peak allocated"), ("peak_reserved", "peak reserved")]:
                left, right = native[key], ours[key]
                is_same &= left == right
                rows.append(f"| {run} | {words}, bytes | {left:,} | {right:,} | {'same' if left == right else 'DIFFERS'} |")
            rows.append(f"| {run} | last loss | {native['last_loss']:.9f} | {ours['last_loss']:.9f} | |")
            rows.append(f"| {run} | seconds | {native['seconds']} | {ours['seconds']} | |")
            for key in ("losses", "requests"):
                words, equal = same(key, native[key], ours[key])
                is_same &= equal
                notes.append(f"* {run}: {words}")
            skipped = ("num_sync_all_streams",)
            differing = [
                f"{key} {value:,} and {ours['stats'].get(key)}"
                for key, value in sorted(native["stats"].items())
                if key in ours["stats"] and ours["stats"][key] != value and key not in skipped
            ]
            is_same &= not differing
            notes.append(f"* {run}: statistics {'all the same' if not differing else 'DIFFER: ' + '; '.join(differing[:5])}")
    text = "\n".join([*rows, "", *notes, "", "all the same" if is_same else "NOT all the same"])
    with open(os.path.join(FOLDER, "training.md"), "w") as file:
        file.write(text + "\n")
    print(text)
    return 0 if is_same else 1


sys.exit(main())
