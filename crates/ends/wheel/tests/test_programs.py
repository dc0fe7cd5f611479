"""PyTorch programs run without PyTorch."""

import pathlib
import subprocess
import sys

import pytest

import blockyard

PROGRAM = """
import sys
import torch
print(sys.argv[1:])
x = torch.empty(3 * 2**18, device="cuda")
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def test_a_program_prints_and_leaves_a_snapshot(program, capsys):
    done = blockyard.run(program, "--steps", 3)
    assert capsys.readouterr().out == "['--steps', '3']\n3145728 20971520\n" == done.stdout
    assert done.status == 0 and done.traceback is None
    assert done.snapshot.summary.peak_reserved == 20 << 20
    assert done.snapshot.verify()
    assert "train.py ran to its end" in repr(done)
    assert done._repr_html_().startswith("<iframe")


def test_settings_reach_the_allocator(program):
    done = blockyard.run(program, conf="expandable_segments:True", echo=False)
    assert done.stdout.endswith("3145728 20971520\n")
    assert done.snapshot.conf == "expandable_segments:True"


def test_a_program_that_fails_has_a_traceback(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text("import torch\nx = torch.empty(2**40, device='cuda')\n")
    done = blockyard.run(path, echo=False)
    assert done.status == 1 and "OutOfMemoryError" in done.traceback.splitlines()[-1]
    assert done.snapshot.summary.ooms == 1
    with pytest.raises(blockyard.BlockyardError, match="no-such-file.py"):
        blockyard.run("no-such-file.py")
    with pytest.raises(blockyard.BlockyardError, match="GPU"):
        blockyard.run(path, gpu="voodoo2")


# Exits with 7 where Ctrl-C comes back from a program that is still running.
INTERRUPTED = """
import os, signal, sys, threading
import blockyard
# A shell lets what it starts in the background ignore Ctrl-C, and Python keeps that.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1, signal.raise_signal, [signal.SIGINT]).start()
try:
    blockyard.run(sys.argv[1])
except KeyboardInterrupt:
    os._exit(7)
"""


def test_ctrl_c_comes_back_before_the_program_ends(tmp_path):
    path = tmp_path / "endless.py"
    path.write_text("while True:\n    pass\n")
    # The program goes on for 600 seconds, so patience ends a test in which Ctrl-C waits for it.
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(path)], timeout=120, check=False)
    assert done.returncode == 7


def test_the_command_runs_programs_too():
    example = pathlib.Path(__file__).parents[4] / "examples" / "programs" / "language_model.py"
    done = blockyard.run(example, echo=False)
    assert done.status == 0 and done.snapshot.summary.peak_allocated > 0
