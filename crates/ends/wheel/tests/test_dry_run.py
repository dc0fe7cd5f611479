"""Dry runs: over a package that stands for PyTorch's, and without any."""

import pathlib
import subprocess
import sys
import types

import pytest

import blockyard
from blockyard import _magic

TRAIN = """
import sys, torch
print(sys.argv[1:])
torch.take(1000)
optimizer = torch.optim.Optimizer()
for step in range(9):
    torch.take(500)
    torch.give(500)
    print("step", step, flush=True)
    optimizer.step()
"""


pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def program(stub):
    path = stub / "train.py"
    path.write_text(TRAIN)
    return path


needs_library = pytest.mark.needs_library


@needs_library
def test_a_run_has_the_fields_of_the_report(program, capsys):
    done = blockyard.dry_run(program, ["--batch", 8], gpu=["h100", "rtx4090"], steps=3)
    printed = capsys.readouterr()
    assert printed.out == "['--batch', '8']\nstep 0\nstep 1\nstep 2\n" and printed.err == ""
    assert [line.text for line in done.lines] == printed.out.splitlines()
    assert all(line.exact and line.why is None for line in done.lines) and done.exact
    assert done.status == 0 and done.error is None and done.version == 1
    assert [(peak.device, peak.allocated) for peak in done.peaks] == [(0, 1500)]
    assert [(step.number, step.peak_allocated, step.allocated) for step in done.steps] == [(1, 1500, 1000), (2, 1500, 1000), (3, 1500, 1000)]
    assert sum(holder.bytes for holder in done.holders) == 500
    assert [(gpu.id, gpu.fits, gpu.at) for gpu in done.gpus] == [("h100", True, None), ("rtx4090", True, None)]
    assert done.to_dict()["steady"] is done.steady is False
    assert done.addresses == blockyard.ReplayedOrders.of(done.to_dict()["addresses"])
    assert "train.py ran to its end" in repr(done) and "nothing was assumed" in repr(done)


def test_replayed_orders_have_a_type():
    sizes = {"least": 1 << 20, "most": 1 << 20}
    peak = {"device": 0, "allocated": sizes, "reserved": {"least": 1 << 20, "most": 3 << 20}, "allocated_at_end": sizes}
    differs = blockyard.ReplayedOrders.of({"orders": 8, "equal": False, "peaks": [peak], "why_not": None})
    assert (differs.orders, differs.equal, differs.why_not) == (8, False, None)
    assert differs.peaks[0].reserved == (1 << 20, 3 << 20)
    assert str(differs) == "depends on the driver's addresses: cuda:0: peak reserved from 1 MiB to 3 MiB"
    equal = blockyard.ReplayedOrders.of({"orders": 8, "equal": True, "peaks": [], "why_not": None})
    assert str(equal) == "8 other orders of addresses give the same numbers"
    none = blockyard.ReplayedOrders.of({"orders": 0, "equal": None, "peaks": [], "why_not": "a request ran out of memory"})
    assert str(none) == "not replayed under other orders of addresses: a request ran out of memory"
    assert blockyard.ReplayedOrders.of(None) is None


@needs_library
def test_a_program_that_fails_has_an_answer(program, capsys):
    program.write_text("import torch\ntorch.take(700)\n1 / 0\n")
    done = blockyard.dry_run(program, echo=False)
    assert capsys.readouterr() == ("", "")
    assert (done.status, done.error, done.error_at.line) == (1, "ZeroDivisionError", 3)
    assert done.peaks[0].allocated == 700
    assert f"ended with status 1 (ZeroDivisionError at {program}:3)" in str(done)
    with pytest.raises(blockyard.BlockyardError):
        # The stub writes no real one.
        done.snapshot()
    without = blockyard.dry_run(program, echo=False, snapshot=False)
    with pytest.raises(blockyard.BlockyardError, match="no snapshot"):
        without.snapshot()


@needs_library
def test_what_a_program_says_of_errors_is_passed_on(program, capsys):
    program.write_text("import sys\nprint('error: of the program', file=sys.stderr)\nprint('a warning', file=sys.stderr)\n")
    assert blockyard.dry_run(program).peaks == []
    assert capsys.readouterr().err == "a warning\nerror: of the program\n"


@needs_library
def test_a_cell_is_a_program(program, capsys):
    done = _magic.blockyard("h100 --steps 2", TRAIN)
    assert capsys.readouterr().out == "[]\nstep 0\nstep 1\n"
    assert done.name == "cell.py" and len(done.steps) == 2
    with pytest.raises(blockyard.BlockyardError, match="%%blockyard: unrecognized arguments: --stepz"):
        _magic.blockyard("h100 --stepz 2", TRAIN)
    with pytest.raises(blockyard.BlockyardError, match="voodoo2"):
        _magic.blockyard("voodoo2", TRAIN)


def test_the_extension_registers_the_magic():
    registered = []
    shell = types.SimpleNamespace(register_magic_function=lambda *given, **named: registered.append((given, named)))
    blockyard.load_ipython_extension(shell)
    assert registered == [((_magic.blockyard,), {"magic_kind": "cell", "magic_name": "blockyard"})]


def test_without_pytorch_the_error_says_what_to_install(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text("print('never')")
    with pytest.raises(blockyard.BlockyardError, match="has no PyTorch: install it with `pip install torch`"):
        blockyard.dry_run(path)
    assert capsys.readouterr() == ("", ""), "it is raised, and not printed too"
    with pytest.raises(blockyard.BlockyardError, match="no-such-python does not start"):
        blockyard.dry_run(path, python="no-such-python")
    with pytest.raises(blockyard.BlockyardError, match="no such file"):
        blockyard.dry_run(tmp_path / "missing.py")


def test_a_pytorch_without_cuda_is_named(program, tmp_path):
    (tmp_path / "site-packages" / "torch" / "version.py").write_text("__version__ = '2.11.0+cpu'\ncuda = None\n")
    with pytest.raises(blockyard.BlockyardError, match=r"2\.11\.0\+cpu.*built without CUDA"):
        blockyard.dry_run(program)


# Exits with 7 where Ctrl-C came back after the program had seen it.
INTERRUPTED = """
import os, pathlib, signal, sys, threading, time
import blockyard
path = pathlib.Path(sys.argv[1])
def interrupt():
    while not path.with_name("started").exists():
        time.sleep(0.05)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt).start()
try:
    blockyard.dry_run(path)
except KeyboardInterrupt:
    os._exit(7 if path.with_name("seen").exists() else 8)
"""

ENDLESS = """
import pathlib, time
pathlib.Path(__file__).with_name("started").touch()
try:
    time.sleep(600)
except KeyboardInterrupt:
    pathlib.Path(__file__).with_name("seen").touch()
    raise
"""


@needs_library
def test_ctrl_c_is_for_the_program_first(program):
    program.write_text(ENDLESS)
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(program)], timeout=120, check=False)
    assert done.returncode == 7
