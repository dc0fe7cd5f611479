#!/usr/bin/env python3
"""Decision trees for what cuDNN takes for a convolution, learned from cuDNN's answers.

    pip install scikit-learn==1.9.1
    python scripts/convolutions.py ask 200 300000 > questions        # a seed and a number; or: ask-calls FILE
    ./cudnn config < questions > answers                             # scripts/cudnn.cpp, on an H200
    python scripts/convolutions.py learn crates/base/gpus/src/trees.bin questions answers [questions answers ...]

`trees.bin` was learned from 4.8 million questions: seeds 200 to 215 with about 280,000 each, seeds 100 to 115 with about 13,000 each,
and the convolutions of the recordings. Questions of the file that `--without` names are left out: those of every tenth line of the operator calls
(`ask-calls FILE --every 10`), so that these measure what is committed.

An engine of cuDNN has a formula for its workspace (`size`, the same in crates/base/gpus/src/tables/estimate.rs). A tree for each operation
says which one, a second which one where it is rare, and one for each formula with partial filters how many there are. Questions whose
answers save fewer than --worth mistakes are dropped, which bounds the size. How the file is read: crates/base/gpus/src/tables/trees.rs.
"""

import argparse
import collections
import gzip
import json
import random
from multiprocessing import Pool

import numpy as np

ROWS = 26


def line(tr, pas, dt, cl, x, w, y, s, p, d):
    """As a convolution's pass is asked of cuDNN: a transposed one is a gradient of the input."""
    op = [1, 0, 2][pas] if tr else pas
    a, b = (y, x) if tr else (x, y)
    return " ".join(map(str, [op, dt, cl, len(x) - 2, *a, *w, *b, *s, *p, *d]))


def size_of(tr, x, w, s, p, d, op=0):
    out = []
    for i in range(len(x) - 2):
        k = d[i] * (w[i + 2] - 1) + 1
        out.append((x[i + 2] - 1) * s[i] - 2 * p[i] + k + op if tr else (x[i + 2] + 2 * p[i] - k) // s[i] + 1)
    return out


def recorded(r):
    def P(*a):
        return r.choice(a)

    nd = P(1, 2, 2, 2, 2, 3)
    tr = r.random() < 0.12
    k = P(1, 1, 3, 3, 3, 5, 7, 4, 2)
    s = P(1, 1, 1, 2)
    p = P(0, k // 2)
    cl = nd == 2 and r.random() < 0.15
    c, o = P(1, 3, 16, 32, 48, 64, 96, 128, 256, 512), P(1, 10, 16, 32, 48, 64, 96, 128, 256, 512, 1024)
    g = 1
    if r.random() < 0.12 and c > 1:
        g = c
        o = c * P(1, 1, 2)
    n = P(1, 2, 4, 8, 16, 32, 64, 128)
    hw = P(4, 7, 8, 14, 16, 24, 28, 32, 56, 64, 112, 128, 224) if nd < 3 else P(4, 8, 16, 32)
    if nd == 1:
        hw = P(16, 50, 96, 100, 128, 256, 512, 1000)
    dt = P(8, 8, 6, 7)
    return nd, tr, k, s, p, 1, cl, c, o, g, n, [hw] * nd, dt, 0


# Of channels and of sides, in the shapes that are not like recorded ones.
CHANNELS = """1 2 3 4 8 12 16 20 24 32 40 48 64 80 96 100 112 120 128 160 192 200 240 256 288 320 384 400 480 512 576 640
672 768 960 1024 1152 1280 1536 2048"""
SIDES = (
    """1 2 3 4 5 6 7 8 10 12 13 14 16 20 24 25 26 28 32 40 48 50 56 64 80 96 100 112 128 160 192 224 256 299 384 512"""
)
CHANNELS, SIDES = ([int(number) for number in text.split()] for text in (CHANNELS, SIDES))


def wide(r):
    def P(*a):
        return r.choice(a)

    nd = P(1, 2, 2, 2, 2, 2, 2, 3)
    tr = r.random() < 0.12
    k = P(1, 1, 3, 3, 3, 3, 5, 7, 4, 2, 9, 11)
    s = P(1, 1, 1, 2, 2, k, 4)
    d = P(1, 1, 1, 1, 1, 1, 2, 3)
    p = P(0, d * (k // 2), 1)
    if r.random() < 0.1:
        p = r.randint(0, 4)
    cl = r.random() < 0.2

    def ch():
        return r.choice(CHANNELS) if r.random() < 0.9 else r.randint(1, 600)

    c, o, g = ch(), ch(), 1
    if r.random() < 0.15 and c > 1:
        g = P(c, 2, 4, 8, 16, 32)
    if c % g:
        g = 1
    if g == c:
        o = c * P(1, 1, 2)
    elif g > 1:
        o = o // g * g or g
    n = P(1, 2, 3, 4, 5, 8, 10, 12, 16, 20, 24, 32, 48, 50, 64, 96, 100, 128, 200, 256, 512)

    def q():
        return r.choice(SIDES) if r.random() < 0.9 else r.randint(1, 300)

    hw = [q()] * nd
    if r.random() < 0.2:
        hw = [q() for _ in hw]
    if nd == 1:
        hw = [q() * P(1, 2, 4, 8, 16)]
    if nd == 3:
        hw = [min(v, 64) for v in hw]
    dt = P(8, 8, 8, 6, 7)
    op = r.randint(0, s - 1) if tr and s > 1 and r.random() < 0.5 else 0
    return nd, tr, k, s, p, d, cl, c, o, g, n, hw, dt, op


def case(r, share):
    """Three lines, one for each pass, or None."""
    nd, tr, k, s, p, d, cl, c, o, g, n, hw, dt, op = (recorded if r.random() < share else wide)(r)
    size = 1
    for v in hw:
        size *= v
    if n * max(c, o) * size > 2e8:
        return None
    if n * max(c, o) * size > 6e7 and r.random() < 0.5:
        return None
    ks, ss, ps, ds = [k] * nd, [s] * nd, [p] * nd, [d] * nd
    if nd == 1:
        hw, ks, ss, ps, ds = [1] + hw, [1] + ks, [1] + ss, [0] + ps, [1] + ds
    x = [n, c] + hw
    w = ([c, o // g] if tr else [o, c // g]) + ks
    out = size_of(tr, x, w, ss, ps, ds, op) if nd != 1 or not tr else size_of(tr, x, w, ss, ps, ds)
    if nd == 1 and tr:
        out[1] += op
    if min(out) < 1:
        return None
    y = [n, o] + out
    total = n * o
    for v in out:
        total *= v
    if total > 3e8:
        return None
    if not tr and g > 1 and g == c and not cl and dt != 6:
        return None
    return [line(tr, pas, dt, int(cl), x, w, y, ss, ps, ds) for pas in range(3)]


def of_calls(path, every):
    """The convolutions of a file of operator calls, whether PyTorch asks cuDNN for them or not."""
    types = {"f32": 8, "f16": 6, "bf16": 7}
    with gzip.open(path, "rt") as file:
        lines = [json.loads(line) for number, line in enumerate(file) if number % every == 0]
    for record in lines:
        if not record["op"].startswith("conv"):
            continue
        given = record["args"]
        tr = "transpose" in record["op"]
        nd = int(record["op"][-2])
        x, w, s, p, d = given["x"], given["w"], [given["stride"]] * nd, [given["padding"]] * nd, [1] * nd
        if nd == 1:
            x, w, s, p, d = x[:2] + [1] + x[2:], w[:2] + [1] + w[2:], [1] + s, [0] + p, [1, 1]
        y = [x[0], w[1] * given["groups"] if tr else w[0]] + size_of(tr, x, w, s, p, d)
        for pas in range(3):
            yield line(tr, pas, types[given["dtype"]], int(given["channels_last"]), x, w, y, s, p, d)


def row(question):
    v = list(map(int, question.split()))
    dm = v[3]
    at = 4
    x = v[at : at + dm + 2]
    at += dm + 2
    w = v[at : at + dm + 2]
    at += dm + 2
    y = v[at : at + dm + 2]
    at += dm + 2
    s, p, d = v[at : at + dm], v[at + dm : at + 2 * dm], v[at + 2 * dm : at + 3 * dm]
    one = [1] * (3 - dm)
    none = [0] * (3 - dm)
    sides = [*one, *x[2:], *one, *w[2:], *one, *y[2:]]
    return [*v[:3], dm, x[0], x[1], y[1], x[1] // w[1], *sides, *one, *s, *none, *p, *one, *d]


NAMES = "op dt cl dm N C K G xd xh xw wd wh ww yd yh yw sd sh sw pd ph pw dd dh dw".split()


def up(a, b):
    return -(-a // b)


def shape(M):
    return {n: M[:, i] for i, n in enumerate(NAMES)}


def operands(M):
    g = shape(M)
    es = np.where(g["dt"] == 8, 4, np.where(g["dt"] == 9, 8, 2))
    u = 16 // es

    def r(v):
        return up(v, u) * u

    px = g["xd"] * g["xh"] * g["xw"]
    py = g["yd"] * g["yh"] * g["yw"]
    rs = g["wd"] * g["wh"] * g["ww"]
    cg = g["C"] // g["G"]
    p = [g["N"] * px * g["C"] * es, g["K"] * cg * rs * es, g["N"] * py * g["K"] * es]
    P = [g["N"] * px * r(g["C"]) * es, r(g["K"]) * r(cg) * rs * es, g["N"] * py * r(g["K"]) * es]
    cl = g["cl"] == 1

    def mv(ch, sp):
        return (~cl) & (ch > 1) & (sp > 1)

    mov = [mv(g["C"], px), mv(cg, rs), mv(g["K"], py)]
    pad = [g["C"] % u != 0, (cg % u != 0) | (g["K"] % u != 0), g["K"] % u != 0]
    NP = [np.where(mov[i] | pad[i], P[i], 0) for i in range(3)]
    NU = [np.where(mov[i], p[i], 0) for i in range(3)]
    return g, es, u, r, px, py, rs, cg, p, P, NP, NU


TILES = {
    26: (256, 128),
    27: (64, 64),
    28: (64, 32),
    29: (32, 128),
    30: (16, 64),
    31: (32, 16),
    32: (64, 16),
    33: (32, 32),
}


def sizes(M, kind, count, rest, pre=None):
    """Bytes for one kind."""
    g, es, u, r, px, py, rs, cg, p, P, NP, NU = pre or operands(M)
    z = 0 * p[0]
    if kind < 24:
        B = [NP, NU, p][kind >> 3]
        return sum((B[b] for b in range(3) if kind >> b & 1), z) + rest
    if kind == 24:
        return sum(NP) + count * (P[1] // es * 4) + rest
    if kind == 25:
        return g["N"] * (p[1] // es * 4) + rest
    a, b = TILES[kind]
    B, c, k = (NP, r(cg), r(g["K"])) if kind < 30 else (NU, cg, g["K"])
    t = up(k, a) * up(c * rs, b)
    return sum(B) + count * t * a * b * 4 + 4 * t * (count + 1) + rest


def code(kind, count, rest):
    return (rest << 18) | (count << 6) | kind


def labels(M, ws, eng, k0, k2, k12):
    pre = operands(M)
    best = np.full(len(ws), 1 << 62)
    out = np.zeros(len(ws), np.int64)

    def t(rest, kind):
        nonlocal best, out
        m = (rest >= 0) & (rest < best)
        best = np.where(m, rest, best)
        out = np.where(m, code(kind, 0, rest), out)

    t(ws, 0)
    for j in range(3):
        for mask in (7, 5, 3, 6, 1, 4, 2):
            t(ws - sizes(M, j * 8 + mask, 0, 0, pre), j * 8 + mask)
    op = M[:, 0]

    def fam(m, kind, count, rests):
        nonlocal out
        c = np.clip(count, 0, 4095)
        r = ws - sizes(M, kind, c, 0, pre)
        for x in rests:
            out = np.where(m & (c > 0) & (c == count) & (r == x), code(kind, c, x), out)

    w = op == 2
    t25 = w & (eng == 62)
    for x in (0, 400, 272):
        out = np.where(t25 & (ws - sizes(M, 25, 0, 0, pre) == x), code(25, 0, x), out)
    fam(w & np.isin(eng, (33, 34, 49, 50)), 24, k0, (144, 128))
    for kind, (e, tl) in {
        26: ((10,), (3,)),
        27: ((10, 30), (5,)),
        28: ((10,), (8,)),
        29: ((10,), (23,)),
        30: ((40, 39), (14,)),
        31: ((40,), (11,)),
        32: ((39,), (10,)),
        33: ((39,), (12,)),
    }.items():
        fam(w & np.isin(eng, e) & np.isin(k2, tl), kind, k12, (175,))
    return out


def features(M):
    g, es, u, r, px, py, rs, cg, p, P, NP, NU = operands(M)
    kg = g["K"] // g["G"]
    op = g["op"]
    rows = g["N"] * py
    rin = g["N"] * px
    gm = np.where(op == 0, rows, np.where(op == 1, rin, g["K"]))
    gn = np.where(op == 0, g["K"], np.where(op == 1, g["C"], cg * rs))
    gk = np.where(op == 0, cg * rs, np.where(op == 1, g["K"] * rs, rows))

    def t(a, b):
        return up(gm, a) * up(gn, b)

    tiles = [t(a, b) for a, b in ((64, 64), (128, 64), (64, 128), (128, 128), (256, 128), (128, 256))]
    f = [g[name] for name in "dt cl dm N C K G xd xh xw wd wh ww yd yh yw sh sw ph pw dw".split()]
    f += [cg, kg, px, py, rs, rows, rin]
    f += [g["C"] % 8, g["K"] % 8, g["C"] % 4, g["K"] % 4, cg % 8, kg % 8]
    f += [*p[:3], p[0] + p[2], gm, gn, gk, gm * gn, gm * gn * gk, g["C"] * g["K"]]
    f += [np.maximum(py - px, 0), np.maximum(px - py, 0), px % 8, py % 8, g["xw"] % 8, g["yw"] % 8]
    f += [*tiles, up(t(128, 128), 132), up(gk, 64)]
    return np.stack(f, 1)


RARE = 63
COUNTED = [24, 26, 27, 28, 29, 30, 31, 32, 33]
WILD = ~np.int64(4095 << 6)


def worthwhile(tree, worth):
    """Without questions whose answers save fewer mistakes."""
    feature, threshold, left, right, label, mistakes = (part.copy() for part in tree)
    cost = mistakes.astype(float) + worth
    # Answers come after their question.
    for node in range(len(feature) - 1, -1, -1):
        if left[node] >= 0:
            below = cost[left[node]] + cost[right[node]]
            if cost[node] <= below:
                left[node] = right[node] = -1
            else:
                cost[node] = below
    return feature, threshold, left, right, label, mistakes


def number(v):
    out = bytearray()
    while v >= 0x80:
        out.append(v & 0x7F | 0x80)
        v >>= 7
    out.append(v)
    return bytes(out)


def simple(lo, hi):
    """The number of at least lo and below hi that ends in most zero bits."""
    e = max(hi - lo, 1).bit_length()
    while e > 0:
        t = -(-lo >> e) << e
        if lo <= t < hi:
            return t
        e -= 1
    return lo


def fit(task):
    from sklearn.tree import DecisionTreeClassifier

    name, X, y, least = task
    u, inv, ct = np.unique(y, return_inverse=True, return_counts=True)
    k = ct[inv] >= least
    if not k.any():
        k[:] = True
    X, y = X[k], y[k]
    d = DecisionTreeClassifier(criterion="entropy", random_state=0)
    d.fit(X, y)
    i = d.tree_
    v = i.value[:, 0, :]
    lab = d.classes_[v.argmax(1)]
    err = ((1 - v.max(1) / v.sum(1)) * i.n_node_samples).astype(np.float32)
    lo = np.full(len(i.feature), -1.0)
    hi = np.full(len(i.feature), np.inf)
    n = np.zeros(len(X), np.int64)
    r = np.arange(len(X))
    while len(r):
        m = n[r]
        r = r[i.children_left[m] >= 0]
        m = n[r]
        if not len(r):
            break
        x = X[r, i.feature[m]].astype(np.float64)
        go = x <= i.threshold[m]
        np.maximum.at(lo, m[go], x[go])
        np.minimum.at(hi, m[~go], x[~go])
        n[r] = np.where(go, i.children_left[m], i.children_right[m])
    th = np.array([simple(int(a), int(b)) if np.isfinite(b) else 0 for a, b in zip(lo, hi)])
    print(name, "rows", len(y), "of", len(k), "labels", len(d.classes_), "leaves", d.get_n_leaves(), flush=True)
    return name, (i.feature.copy(), th, i.children_left.copy(), i.children_right.copy(), lab, err)


def apply(tree, X):
    f, th, left, right, lab, _ = tree
    n = np.zeros(len(X), np.int64)
    while True:
        q = left[n] >= 0
        if not q.any():
            return lab[n]
        a = np.where(q, f[n], 0)
        go = X[np.arange(len(X)), a] <= th[n]
        n = np.where(q, np.where(go, left[n], right[n]), n)


def joined(tree):
    """Joins neighbours that say the same."""
    f, th, left, right, lab, err = (x.copy() for x in tree)
    for n in range(len(f) - 1, -1, -1):
        if left[n] >= 0 and left[left[n]] < 0 and left[right[n]] < 0 and lab[left[n]] == lab[right[n]]:
            lab[n] = lab[left[n]]
            left[n] = right[n] = -1
    return f, th, left, right, lab, err


def emit(tree, leaf, node=0):
    f, th, left, right, lab, _ = tree
    out = bytearray()
    todo = [node]
    while todo:
        n = todo.pop()
        if left[n] < 0:
            out += number(2 * leaf(int(lab[n])))
        else:
            t = max(int(th[n]), 0)
            e = 0
            while t and t % 2 == 0 and t >= 64:
                t //= 2
                e += 1
            out += number(2 * (e * 64 + int(f[n])) + 1) + number(t)
            todo += [right[n], left[n]]
    return bytes(out)


def write(trees, path):
    used = collections.Counter()
    for (kind, *_), t in trees.items():
        if kind != "count":
            used.update(int(x) for x in t[4][t[2] < 0])
    codes = [c for c, _ in sorted(used.items(), key=lambda x: (-x[1], x[0]))]
    place = {c: i for i, c in enumerate(codes)}
    out = number(len(codes)) + b"".join(number(c) for c in codes)
    for op in range(3):
        # Feature 0 is the type: 6 and 7 are half precision.
        out += number(1) + number(7) + emit(trees["main", op, 0], place.get) + emit(trees["main", op, 1], place.get)
    for op in range(3):
        out += number(1) + number(7) + emit(trees["rare", op, 0], place.get) + emit(trees["rare", op, 1], place.get)
    for k in COUNTED:
        out += emit(trees["count", k], lambda v: v)
    with open(path, "wb") as file:
        file.write(out)
    print(path, len(out), "bytes, compressed", len(gzip.compress(out, 9)), "codes", len(codes), flush=True)


def build(M, X, L, least, procs, worth):
    op = M[:, 0]
    main = np.where((L & 63) >= 24, L & WILD, L)
    tasks = []
    for o in (2, 0, 1):
        for h in (1, 0):
            m = (op == o) & ((M[:, 1] >= 8) == bool(h))
            y = main[m]
            _, inv, ct = np.unique(y, return_inverse=True, return_counts=True)
            rare = (ct < len(y) * 0.001)[inv]
            tasks.append((("main", o, h), X[m], np.where(rare, RARE, y), 0))
            tasks.append((("rare", o, h), X[m][rare], y[rare], least))
    for k in COUNTED:
        m = (L & 63) == k
        tasks.append((("count", k), X[m], (L[m] >> 6) & 4095, 1))
    with Pool(procs) as pool:
        res = dict(pool.imap_unordered(fit, tasks, chunksize=1))
    return {k: joined(worthwhile(v, worth["main rare count".split().index(k[0])])) for k, v in res.items()}


def read(paths):
    """Questions, and of their answers the workspace, the engine, and knobs 0, 2 and 12."""
    rows, answers = [], []
    for questions, replies in zip(paths[::2], paths[1::2]):
        with open(questions) as asked, open(replies) as given:
            for question, reply in zip(asked, given):
                words = reply.split()
                if len(words) < 4:
                    continue
                knobs = dict(word.split(":") for word in words[4:])
                rows.append(row(question))
                answers.append([int(words[1]), int(words[3]), *(int(knobs.get(k, -2)) for k in ("0", "2", "12"))])
    return np.array(rows), np.array(answers)


def learn(arguments):
    M, answers = read(arguments.files)
    if arguments.without:
        with open(arguments.without) as file:
            without = {tuple(row(question)) for question in file}
        chosen = np.array([tuple(each) not in without for each in M.tolist()])
        M, answers = M[chosen], answers[chosen]
    L = labels(M, *answers.T)
    trees = build(M, features(M).astype(np.float32), L, arguments.least, arguments.processes, arguments.worth)
    write(trees, arguments.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    ask = commands.add_parser("ask")
    ask.add_argument("seed", type=int)
    ask.add_argument("count", type=int)
    ask.add_argument("--share", type=float, default=0.7, help="of shapes like those of the operator calls")
    ask.set_defaults(run=asked)
    calls_ = commands.add_parser("ask-calls")
    calls_.add_argument("file")
    calls_.add_argument("--every", type=int, default=1)
    calls_.set_defaults(run=lambda arguments: print("\n".join(of_calls(arguments.file, arguments.every))))
    learns = commands.add_parser("learn")
    learns.add_argument("out")
    learns.add_argument("files", nargs="+")
    learns.add_argument("--without")
    learns.add_argument(
        "--worth", type=float, nargs=3, default=[3, 4, 2], help="of trees of codes, of rare codes, of counts"
    )
    learns.add_argument("--least", type=int, default=24, help="of a rare code")
    learns.add_argument("--processes", type=int, default=2)
    learns.set_defaults(run=learn)
    arguments = parser.parse_args()
    arguments.run(arguments)


def asked(arguments):
    r, count = random.Random(arguments.seed), 0
    while count < arguments.count:
        for question in case(r, arguments.share) or []:
            print(question)
            count += 1


if __name__ == "__main__":
    main()
