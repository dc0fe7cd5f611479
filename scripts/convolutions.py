#!/usr/bin/env python3
"""Decision trees for the workspaces of cuDNN that were not recorded, learned from those that were.

    pip install scikit-learn==1.9.1
    cargo xtask zoo FILE --write-features target/features.csv
    python scripts/convolutions.py target/features.csv crates/torch/src/trees.bin

A line of a features file is the hash of a convolution, its pass, the code of its workspace and its features. Of several files, the
first that has a convolution counts. There is a tree for each pass; a code that fewer than LEAST convolutions have is not learned.
How the file is read: crates/torch/src/tables/estimate.rs.
"""

import argparse
import collections
import math

LEAST = 3
PASSES = 3


def read(paths):
    rows = {}
    for path in paths:
        with open(path) as file:
            for line in file:
                key, tree, code, *features = map(int, line.split(","))
                rows.setdefault(key, (tree, code, features))
    return rows.values()


def number(value):
    """A number as groups of seven bits, the lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def written(tree, places):
    """A tree in the order of a reader who follows the answer "at most" first."""
    out, codes = bytearray(), tree.classes_
    inner = tree.tree_
    left = [0]
    while left:
        node = left.pop()
        if inner.children_left[node] < 0:
            out += number(2 * places[int(codes[inner.value[node].argmax()])])
            continue
        # Features are whole numbers of at least 0.
        most = math.floor(inner.threshold[node])
        out += number(2 * int(inner.feature[node]) + 1) + number(most)
        left += [inner.children_right[node], inner.children_left[node]]
    return bytes(out)


def main():
    from sklearn.tree import DecisionTreeClassifier

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="+")
    parser.add_argument("out")
    arguments = parser.parse_args()
    rows = list(read(arguments.features))
    counts = collections.Counter(code for _, code, _ in rows)
    rows = [row for row in rows if counts[row[1]] >= LEAST]
    trees = []
    for wanted in range(PASSES):
        chosen = [row for row in rows if row[0] == wanted]
        tree = DecisionTreeClassifier(criterion="entropy", random_state=0)
        tree.fit([row[2] for row in chosen], [row[1] for row in chosen])
        print(f"pass {wanted}: {len(chosen)} convolutions, {tree.get_n_leaves()} leaves")
        trees.append(tree)
    used = collections.Counter(int(code) for tree in trees for code in tree.classes_)
    codes = sorted(used, key=lambda code: (-counts[code], code))
    places = {code: place for place, code in enumerate(codes)}
    with open(arguments.out, "wb") as file:
        file.write(number(len(codes)) + b"".join(number(code) for code in codes))
        for tree in trees:
            file.write(written(tree, places))
        print(f"{len(codes)} codes, {file.tell()} bytes")


if __name__ == "__main__":
    main()
