#!/usr/bin/env python3
"""Makes the page's samples (web/samples): snapshots of dry runs of the programs in examples/samples.

    cargo build -p blockyard-standin -p blockyard-cli
    python scripts/samples.py --python PYTHON

PYTHON has a PyTorch for CUDA; no GPU is needed. The stacks of a sample name the files of the program without
a folder, and the files of packages from `site-packages` on.
"""

import argparse
import gzip
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Each program, and the options of its dry run.
PROGRAMS = {
    "kept_losses": ["--total-memory", "2GiB"],
    "growing_sizes": ["--total-memory", "2GiB"],
    "activations": ["--total-memory", "2016MiB"],
    "ranks": ["--total-memory", "1536MiB", "--nproc-per-node", "2"],
}
MAX_BYTES = 60_000


def main():
    parser = argparse.ArgumentParser(description="Makes the page's samples.")
    parser.add_argument("--python", required=True, help="the Python that has PyTorch")
    parser.add_argument("--target", type=Path, default=ROOT / "target" / "debug", help="the folder of the build")
    options = parser.parse_args()
    environment = {**os.environ, "BLOCKYARD_STANDIN": str(options.target / "libblockyard_standin.so")}
    for name, own in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            call = [options.target / "blockyard", "dry-run", "--quiet", "--python", options.python, *own]
            call += ["--snapshot", f"{folder}/{name}.pickle", f"{name}.py"]
            # A program that runs out of memory ends with another status than 0, as it should.
            subprocess.run(call, cwd=ROOT / "examples" / "samples", env=environment, stderr=subprocess.DEVNULL)
            found = sorted(Path(folder).iterdir())
            if not found:
                sys.exit(f"{name}.py has no snapshot")
            for path in found:
                write_sample(path)


def write_sample(path):
    snapshot = pickle.loads(path.read_bytes())
    for device in snapshot["device_traces"]:
        for entry in device:
            shorten(entry)
    for segment in snapshot["segments"]:
        shorten(segment)
        for block in segment["blocks"]:
            shorten(block)
    target = ROOT / "web" / "samples" / f"{path.name}.gz"
    data = gzip.compress(pickle.dumps(snapshot), 9, mtime=0)
    if len(data) > MAX_BYTES:
        sys.exit(f"{target.name} has {len(data)} bytes, of which {MAX_BYTES} are allowed")
    target.write_bytes(data)
    print(f"{target.name}: {len(data)} bytes")


def shorten(recorded):
    """Takes the folders of this machine out of the names of files, and the frames of the dry run."""
    frames = recorded.get("frames", [])
    for frame in frames:
        folder, part, rest = frame["filename"].rpartition("site-packages/")
        frame["filename"] = part + rest
    recorded["frames"] = [frame for frame in frames if "/runner/" not in frame["filename"]]
    for frame in recorded["frames"]:
        assert not frame["filename"].startswith("/"), frame


if __name__ == "__main__":
    main()
