#!/usr/bin/env python3
"""What cuDNN takes for the convolutions of known networks, by batch: crates/base/gpus/src/layers.bin.

    python scripts/networks.py > networks.txt                        # the convolutions of networks, without their batch
    python scripts/layers.py choose networks.txt > layers.txt        # each once, with the batches to ask for
    python scripts/layers.py ask ./cudnn layers.txt answers 500      # scripts/cudnn.cpp, on an H200; at most 500 seconds
    python scripts/layers.py table crates/base/gpus/src/layers.bin answers.*.z
    python scripts/layers.py questions networks.txt answers.*.z      # what `cargo run -p blockyard-gpus --example layers` reads

The largest workspaces, which `torch.backends.cudnn.benchmark` tries, are in largest.bin: `choose --batches few` (or `four`), then
`ask --largest`, which takes 100 ms a question and a core. 216 layers of common networks have the batches `few`, 864 others `four`.

`ask` only asks and runs no convolution. How the file is read: crates/base/gpus/src/tables/layers.rs. With `--without NETWORKS` the layers
that only those networks have are left out, and `questions --only NETWORKS` gives those networks' sizes: so a tenth is held back.
"""

import argparse
import itertools
import os
import subprocess
import time
import zlib
from multiprocessing import Pool

import convolutions
import numpy as np

MANY = [*range(1, 33), *range(34, 65, 2), *range(72, 129, 8), *range(144, 257, 16)]
MANY = sorted({*MANY, 50, 100, 150, 200, 300, 384, 400, 500, 512})
SOME = [*range(1, 7), *range(8, 21, 2), 24, 28, 30, 32, 36, 40, 48, 50, 56, 60, 64, 72, 80, 96]
SOME += [100, 112, 120, 128, 150, 160, 192, 200, 224, 256]
FEW = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256]
FOUR = [16, 32, 64, 128]
BATCHES = {"few": FEW, "four": FOUR, "many": MANY, "some": SOME}
# Elements of a layer's largest operand. Fewer images than this are asked for anyway.
MAX_ELEMENTS, MIN_BATCH = 6e8, 2
# Types as PyTorch numbers them, and whether channels are last. Row `operation * 6 + kind` of a layer is of one operation and kind.
KINDS = [(8, 0), (8, 1), (7, 0), (6, 0), (7, 1), (6, 1)]
PROCESSES = os.cpu_count() or 1


class Layer:
    """A line of networks.txt without name and size."""

    def __init__(self, text):
        numbers = list(map(int, text.split()))
        self.is_transposed, self.factor, self.dims = numbers[:3]
        at = 3

        def take(count):
            nonlocal at
            at += count
            return numbers[at - count : at]

        dims = self.dims
        x, self.filter, y = take(dims + 1), take(dims + 2), take(dims + 1)
        self.settings = take(3 * dims)
        self.channels, self.groups = x[0], (y[0] if self.is_transposed else x[0]) // self.filter[1]
        # A transposed convolution is a gradient of the input.
        self.input, self.output = (y, x) if self.is_transposed else (x, y)

    def batches(self, level):
        size = max(np.prod(self.input, dtype=float), np.prod(self.output, dtype=float)) * self.factor
        return [batch for batch in BATCHES[level] if batch * size <= MAX_ELEMENTS or batch <= MIN_BATCH]

    def rows(self):
        """Types and orders with the passes that PyTorch asks cuDNN for."""
        is_depthwise = not self.is_transposed and self.groups > 1 and self.groups == self.channels
        for operation, (number, (dtype, last)) in itertools.product(range(3), enumerate(KINDS)):
            # PyTorch has its own kernels for the others.
            if not is_depthwise or last or dtype == 6:
                yield operation * len(KINDS) + number, operation, dtype, last

    def question(self, operation, dtype, last, batch):
        batch *= self.factor
        head = [operation, dtype, last, self.dims, batch]
        return " ".join(map(str, [*head, *self.input, *self.filter, batch, *self.output, *self.settings]))

    def identity(self):
        return self.dims, *self.input, *self.filter, *self.output, *self.settings


def key(identity):
    """FNV-1a, mixed at the end (`key` in crates/base/gpus/src/tables/layers.rs)."""
    mask = (1 << 64) - 1
    state = 0xCBF29CE484222325
    for number in identity:
        for byte in int(number).to_bytes(8, "little", signed=True):
            state = (state ^ byte) * 0x100000001B3 & mask
    state ^= state >> 29
    return (state * 0xBF58476D1CE4E5B9 & mask) >> 16


def choose(arguments):
    """Those of a network's first size, which is the usual one, get many batches."""
    first, level = {}, {}
    for line in open(arguments.networks):
        name, size, layer = line.rstrip("\n").split(" ", 2)
        is_usual = first.setdefault(name, size) == size or size == "224x224" or name.startswith("diffusers")
        if is_usual or layer not in level:
            level[layer] = "many" if is_usual else "some"
    for chosen in ("many", "some"):
        for layer, its in level.items():
            if its == chosen:
                print(arguments.batches or chosen, layer)


def codes(asked, answers):
    """A code for each question, -1 where cuDNN gave no answer."""
    is_known, rows, given = [], [], []
    for question, reply in itertools.zip_longest(asked, answers, fillvalue=""):
        words = reply.split()
        is_known.append(len(words) >= 4 and words[0] not in ("none", "fail"))
        if is_known[-1]:
            knobs = dict(word.split(":") for word in words[4:])
            rows.append(convolutions.row(question))
            given.append([int(words[1]), int(words[3]), *(int(knobs.get(knob, -2)) for knob in ("0", "2", "12"))])
    out = np.full(len(asked), -1, np.int64)
    if rows:
        rows, given = np.array(rows, np.int64), np.array(given, np.int64)
        labels = convolutions.labels(rows, *given.T)
        found = sum(
            convolutions.sizes(rows, kind, (labels >> 6) & 4095, labels >> 18) * ((labels & 63) == kind)
            for kind in range(34)
        )
        assert (found == given[:, 0]).all(), "a code gives another size"
        out[np.array(is_known)] = labels
    return out.tolist()


def work(job):
    """The answers for some layers, a line for each row: the layer, the batches, the number of the row, and the runs of codes."""
    command, mode, lines, end = job
    left = end - time.time()
    if left < 5:
        return None
    asked, rows = [], []
    for line in lines:
        level, text = line.split(" ", 1)
        layer = Layer(text)
        batches = layer.batches(level)
        for number, operation, dtype, last in layer.rows():
            rows.append((text, level, number, batches))
            asked += [layer.question(operation, dtype, last, batch) for batch in batches]
    done = subprocess.run(
        [command, mode, str(left + 20)], input="\n".join(asked) + "\n", capture_output=True, text=True
    )
    answers = done.stdout.splitlines()
    if len(answers) < len(asked):
        return None
    found, at, out = codes(asked, answers), 0, []
    for text, level, number, batches in rows:
        its = found[at : at + len(batches)]
        at += len(batches)
        runs = [f"{place}:{code}" for place, code in enumerate(its) if place == 0 or code != its[place - 1]]
        out.append(f"{text};{level};{len(batches)};{number};{' '.join(runs)}")
    return out, len(answers), done.stderr.strip()


def ask(arguments):
    began = time.time()
    end = began + arguments.seconds
    lines = open(arguments.layers).read().splitlines()
    mode = "largest" if arguments.largest else "config"
    starts = range(0, len(lines), arguments.chunk)
    jobs = [(arguments.cudnn, mode, lines[at : at + arguments.chunk], end) for at in starts]
    out, size, part, total, used = [], 0, 0, 0, 0

    def write():
        nonlocal out, size, part
        with open(f"{arguments.out}.{part}.z", "wb") as file:
            file.write(zlib.compress("\n".join(out).encode(), 6))
        out, size, part = [], 0, part + 1

    with Pool(PROCESSES) as pool:
        for result in pool.imap_unordered(work, jobs):
            if result is None:
                continue
            rows, count, said = result
            total, used = total + count, used + 1
            if used % 50 == 1:
                print(f"{time.time() - began:.0f} s, {used} of {len(jobs)} jobs, {total} answers; {said}", flush=True)
            out += rows
            size += sum(map(len, rows))
            if size > 1.2e8:
                write()
    write()
    print(f"{time.time() - began:.0f} s, {used} of {len(jobs)} jobs, {total} answers", flush=True)


def answered(paths):
    """Of each layer: the list of batches, how many of them were asked for, and the runs by row."""
    layers = {}
    for path in paths:
        for line in zlib.decompress(open(path, "rb").read()).decode().splitlines():
            text, level, count, number, runs = line.split(";")
            if count == "0":
                # All of the level's batches are too large.
                continue
            of = layers.setdefault(text, (level, int(count), {}))
            of[2][int(number)] = [tuple(map(int, run.split(":"))) for run in runs.split()]
    return layers


def normal(layer, batches, rows):
    """Formula, count and remainder by batch, of each row. Large remainders are left of the copies of all operands, where there is as much, so that
    rows of both orders of channels have the same ones."""
    questions, code = [], []
    for row, runs in rows.items():
        question = convolutions.row(layer.question(row // len(KINDS), *KINDS[row % len(KINDS)], 1))
        questions += [question] * len(batches)
        code.append(np.repeat([code for _, code in runs], np.diff([start for start, _ in runs] + [len(batches)])))
    questions, code = np.array(questions, np.int64), np.concatenate(code)
    questions[:, 4] = np.tile(batches, len(rows)) * layer.factor
    kind, count, rest = code & 63, code >> 6 & 4095, code >> 18
    operands = convolutions.operands(questions)
    large = (kind < 24) & (rest >= 1000)
    size = np.zeros(len(code), np.int64)
    for each in np.unique(kind):
        size = np.where(kind == each, convolutions.sizes(questions, each, count, rest, operands), size)
    copies = sum(operands[10])
    has_all = large & (size >= copies)
    kind = np.where(has_all, 7, np.where(large, 0, kind))
    rest = np.where(has_all, size - copies, np.where(large, size, rest))
    # No answer at all.
    kind, count, rest = np.where(code < 0, 62, kind), np.where(code < 0, 0, count), np.where(code < 0, 0, rest)
    parts = [np.split(part, len(rows)) for part in (kind, count, rest)]
    return dict(zip(rows, zip(*parts)))


def lines(batches, kind, count, rest):
    """Runs over which formula and count stay and the remainder lies on a line: place, formula, count, remainder, its growth by batch."""
    kind, count, rest = kind.tolist(), count.tolist(), rest.tolist()

    def is_same(at, start):
        return at < len(batches) and kind[at] == kind[start] and count[at] == count[start]

    start, out = 0, []
    while start < len(batches):
        end, growth = start + 1, 0
        if is_same(end, start):
            growth, left = divmod(rest[end] - rest[start], batches[end] - batches[start])
            at = end if left == 0 else len(batches)
            while is_same(at, start) and rest[at] - rest[start] == growth * (batches[at] - batches[start]):
                at += 1
            # Two points are on a line anyway.
            end, growth = (at, growth) if left == 0 and (growth == 0 or at - start > 2) else (end, 0)
        out.append((start, kind[start], count[start], rest[start], growth))
        start = end
    return out


def encoded(lists, text, level, count, rows):
    """A layer as the file has it."""
    number, signed = convolutions.number, lambda value: convolutions.number(value * 2 if value >= 0 else -value * 2 - 1)
    layer, batches = Layer(text), BATCHES[level][:count]
    normals = normal(layer, batches, rows)
    out = bytearray(
        number(lists.index(BATCHES[level]))
        + number(layer.factor)
        + number(count)
        + number(sum(1 << row for row in rows))
    )
    for operation in range(3):
        before = {}
        for place in range(len(KINDS)):
            if operation * len(KINDS) + place not in rows:
                continue
            kind, counts, rest = normals[operation * len(KINDS) + place]
            equal = [
                (row, int(rest[0] - other[2][0]))
                for row, other in before.items()
                if (kind == other[0]).all()
                and (counts == other[1]).all()
                and (rest - other[2] == rest[0] - other[2][0]).all()
            ]
            before[place] = kind, counts, rest
            if equal:
                out += number(equal[0][0]) + signed(equal[0][1])
                continue
            of = lines(batches, kind, counts, rest)
            out += number(len(of) + len(KINDS))
            last_start = 0
            for start, formula, parts, remainder, growth in of:
                out += number(start - last_start) + number(formula * 2 + (growth != 0))
                out += number(parts) if formula in convolutions.COUNTED else b""
                out += number(remainder) + (signed(growth) if growth else b"")
                last_start = start
    return bytes(out)


def numbers(data):
    """Reads what `convolutions.number` wrote, from an iterator over bytes."""
    for byte in data:
        value, shift = byte & 127, 7
        while byte >= 128:
            byte = next(data)
            value, shift = value | (byte & 127) << shift, shift + 7
        yield value


def kept(path):
    """A table's lists of batches, and the bodies of its layers by name and number of images of one."""
    data = iter(zlib.decompress(open(path, "rb").read()))
    read = numbers(data).__next__
    lists = [list(itertools.accumulate([read() for _ in range(read())])) for _ in range(read())]
    name, found = 0, {}
    for _ in range(read()):
        name, size = name + read(), read()
        body = bytes(itertools.islice(data, size))
        _, factor = itertools.islice(numbers(iter(body)), 2)
        found.setdefault((name, factor), []).append(body)
    return lists, found


def table(arguments):
    number = convolutions.number
    layers = answered(arguments.answers)
    lists, before = kept(arguments.besides) if arguments.besides else ([], {})
    lists += [BATCHES[level] for level in sorted(BATCHES) if BATCHES[level] not in lists]
    if arguments.without:
        left = {layer for network, _, layer in listed(arguments.networks) if not is_held(network, arguments.without)}
        layers = {layer: of for layer, of in layers.items() if layer in left}
    # Several have one name where networks make different numbers of images of one.
    names = {text: (key(layer.identity()), layer.factor) for text in layers for layer in [Layer(text)]}
    layers = {text: of for text, of in layers.items() if names[text] not in before}
    with Pool(arguments.processes) as pool:
        bodies = pool.starmap(encoded, [(lists, text, *of) for text, of in layers.items()], chunksize=100)
    entries = [(name, body) for (name, _), its in before.items() for body in its]
    entries = sorted(entries + [(names[text][0], body) for text, body in zip(layers, bodies)])
    out = bytearray(number(len(lists)))
    for batches in lists:
        out += number(len(batches))
        out += b"".join(number(now - last) for last, now in zip([0, *batches], batches))
    out += number(len(entries))
    for (last, _), (name, body) in zip([(0, b""), *entries], entries):
        out += number(name - last) + number(len(body)) + body
    with open(arguments.out, "wb") as file:
        file.write(zlib.compress(out, 9))
    sizes = sum(len(rows) * count for _, count, rows in layers.values())
    print(
        f"{len(entries)} layers, {len(layers)} new, {sizes} sizes of these, {len(out)} bytes, {len(zlib.compress(out, 9))} compressed"
    )


def listed(path):
    for line in open(path):
        yield line.rstrip("\n").split(" ", 2)


def is_held(network, names):
    return network in names.split(",")


def questions(arguments):
    """Lines of a question and its bytes."""
    layers = answered(arguments.answers)
    chosen = {
        layer
        for network, _, layer in listed(arguments.networks)
        if not arguments.only or is_held(network, arguments.only)
    }
    for text in sorted(chosen & set(layers)):
        level, count, rows = layers[text]
        layer = Layer(text)
        for at, runs in rows.items():
            operation, (dtype, last) = at // len(KINDS), KINDS[at % len(KINDS)]
            ends = [start for start, _ in runs[1:]] + [count]
            for (start, code), end in zip(runs, ends):
                if code < 0:
                    continue
                asked = [layer.question(operation, dtype, last, batch) for batch in BATCHES[level][start:end]]
                matrix = np.array([convolutions.row(question) for question in asked])
                sizes = convolutions.sizes(matrix, code & 63, code >> 6 & 4095, code >> 18)
                for question, size in zip(asked, np.broadcast_to(sizes, len(asked))):
                    print(question, size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("choose")
    command.add_argument("networks")
    command.add_argument("--batches", choices=["few", "four"])
    command.set_defaults(run=choose)
    command = commands.add_parser("ask")
    command.add_argument("cudnn")
    command.add_argument("layers")
    command.add_argument("out")
    command.add_argument("seconds", type=float)
    command.add_argument("--chunk", type=int, default=40)
    command.add_argument("--largest", action="store_true")
    command.set_defaults(run=ask)
    command = commands.add_parser("table")
    command.add_argument("out")
    command.add_argument("answers", nargs="+")
    command.add_argument("--networks")
    command.add_argument("--processes", type=int, default=2)
    command.add_argument("--without", default="")
    command.add_argument("--besides", help="a table whose layers are kept")
    command.set_defaults(run=table)
    command = commands.add_parser("questions")
    command.add_argument("networks")
    command.add_argument("answers", nargs="+")
    command.add_argument("--only", default="")
    command.set_defaults(run=questions)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
