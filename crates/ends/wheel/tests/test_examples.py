"""The examples run as they stand."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[4]
FIXTURES = ROOT / "tests" / "fixtures"


def run(name, *arguments):
    command = [sys.executable, ROOT / "examples" / "python" / name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_why_a_training_ran_out_of_memory():
    printed = run("out_of_memory.py", FIXTURES / "snapshots" / "checkerboard_default_100.pickle.gz", 1 << 30)
    assert "are cached for this stream" in printed
    assert "helps: with expandable_segments:True the request passes" in printed
    assert "expandable_segments:True" in printed.splitlines()[-1]


def test_many_ranks(tmp_path):
    pytest.importorskip("distributed")
    for rank in ("rank0", "rank1"):
        shutil.copy(FIXTURES / "snapshots" / f"{rank}.pickle.gz", tmp_path)
    (tmp_path / "rank2.pickle").write_bytes((FIXTURES / "snapshots" / "rank0.pickle.gz").read_bytes()[:5000])
    printed = run("many_ranks.py", tmp_path)
    assert "3 ranks; 1 failed" in printed and "failed: " in printed


def test_every_example_is_run_here():
    names = {path.name for path in (ROOT / "examples" / "python").glob("*.py")}
    assert names == {"out_of_memory.py", "many_ranks.py"}
