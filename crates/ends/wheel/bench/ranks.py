"""Many ranks, measured: files of many ranks are generated, then opened by one process, by a cluster, and by pickle alone.

    python crates/ends/wheel/bench/ranks.py FOLDER [--ranks 64] [--megabytes 20] [--workers 2]

A generated rank repeats the trace of a recorded rank, each time on other streams and at other addresses, until the file is large enough; sizes
change within their rounding, from rank to rank. One file is cut off, and one worker is killed while it works. Prints a JSON object.
"""

import argparse
import gzip
import json
import os
import pathlib
import pickle
import signal
import threading
import time

import blockyard

RECORDED = pathlib.Path(__file__).parents[4] / "tests" / "fixtures" / "snapshots"
CONFS = ["", "expandable_segments:True"]
# Further apart than any two addresses of a recorded rank.
APART = 1 << 44


def generate(folder, ranks, megabytes):
    """Writes the files of all ranks, and returns their paths."""
    recorded = [pickle.loads(gzip.decompress((RECORDED / f"rank{n}.pickle.gz").read_bytes())) for n in (0, 1)]
    paths = []
    for rank in range(ranks):
        path = folder / f"rank{rank}.pickle"
        base = recorded[rank % 2]
        if not path.exists():
            one = len(pickle.dumps(repeated(base, rank, 2), 4)) - len(pickle.dumps(repeated(base, rank, 1), 4))
            # Ranks differ in how much they hold.
            copies = max(1, round(megabytes * 1e6 / one * (1 - 0.02 * (rank % 5))))
            path.write_bytes(pickle.dumps(repeated(base, rank, copies), 4))
        paths.append(path)
    cut = paths[ranks // 2]
    content = cut.read_bytes()
    cut.write_bytes(content[: len(content) // 2])
    return paths


def repeated(base, rank, copies):
    """The snapshot with `copies` copies of its trace and its segments, each copy at separate addresses."""
    device = next(index for index, trace in enumerate(base["device_traces"]) if trace)
    trace, segments = [], []
    for copy in range(copies):
        trace += [moved(entry, rank, copy) for entry in base["device_traces"][device]]
        for segment in base["segments"]:
            blocks = [moved(block, rank, copy) for block in segment["blocks"]]
            segments.append({**moved(segment, rank, copy), "blocks": blocks})
    traces = [trace if index == device else [] for index in range(len(base["device_traces"]))]
    return {**base, "device_traces": traces, "segments": segments, "external_annotations": []}


def moved(item, rank, copy):
    found = dict(item)
    for name in ("addr", "address"):
        if name in found:
            found[name] += APART * copy
    if "stream" in found:
        # A stream's blocks serve that stream alone, so copies do not touch one another.
        found["stream"] += copy << 8
    for name in ("size", "requested_size"):
        # What callers asked for; the sizes of segments and blocks stay.
        is_request = name == "requested_size" or found.get("action") in ("alloc", "free_requested", "free_completed")
        if is_request and "total_size" not in found and found.get(name):
            found[name] = within_rounding(found[name], rank)
    return found


def within_rounding(size, rank):
    rounded = -(-size // 512) * 512
    return rounded - (rounded - size + 7 * rank) % 512


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    paths = generate(options.folder, options.ranks, options.megabytes)
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    result = {"ranks": len(paths), "megabytes": round(megabytes), "cpus": os.cpu_count()}
    result["pickle_load_s"] = timed(lambda: [load(path) for path in paths])
    result["open_s"] = timed(lambda: [opened(path) for path in paths])
    alone = []
    result["one_process_s"] = timed(lambda: alone.append(blockyard.ranks(paths, confs=CONFS)))
    import distributed

    with distributed.LocalCluster(
        n_workers=options.workers, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster) as client:
            victim = sorted(client.run(os.getpid).values())[0]
            threading.Timer(result["one_process_s"] / 8, os.kill, [victim, signal.SIGKILL]).start()
            many = []
            result["cluster_s"] = timed(lambda: many.append(blockyard.ranks(paths, client, confs=CONFS)))
    found = many[0]
    rows = [row for row in found.rows if row.get("error") is None]
    result["failed"] = [(row["rank"], row["error"]) for row in found.failed]
    result["complete"] = sorted({row["rank"] for row in found.rows}) == list(range(len(paths)))
    same = ("rank", "peak_reserved", "placements", "identical", "error")
    result["same_as_one_process"] = [[row.get(name) for name in same] for row in found.rows] == [
        [row.get(name) for name in same] for row in alone[0].rows
    ]
    result["placements"] = sum(row["placements"] for row in rows)
    result["identical"] = sum(row["identical"] for row in rows)
    result["most_process_memory_mb"] = max(row["process_memory"] for row in rows) // 1_000_000
    result["largest_file_mb"] = max(path.stat().st_size for path in paths) // 1_000_000
    for name in ("pickle_load", "open", "one_process", "cluster"):
        result[f"{name}_mb_per_s"] = round(megabytes / result[f"{name}_s"], 1)
    result["summary"] = str(found)
    print(json.dumps(result, indent=1))


def load(path):
    try:
        with open(path, "rb") as file:
            pickle.load(file)
    except (EOFError, pickle.UnpicklingError):
        # The file that is cut off.
        pass


def opened(path):
    try:
        blockyard.open(path)
    except blockyard.BlockyardError:
        pass


def timed(work):
    begun = time.perf_counter()
    work()
    return round(time.perf_counter() - begun, 1)


if __name__ == "__main__":
    main()
