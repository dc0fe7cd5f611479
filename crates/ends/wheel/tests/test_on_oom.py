"""What is left when a request finds no memory: a stand-in for PyTorch fails, the snapshot is a real one."""

import gzip
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap

import blockyard

FIXTURES = pathlib.Path(__file__).parents[4] / "tests" / "fixtures"
OOM = FIXTURES / "oom" / "loss_history_100.pickle.gz"

# PyTorch as far as `on_oom` needs it: an observer that is called before the error is raised, as the allocator does it.
TORCH = """
import gzip, pickle, sys, types

class OutOfMemoryError(RuntimeError):
    pass

observers, histories = [], []
torch = types.ModuleType("torch")
torch.OutOfMemoryError = OutOfMemoryError
torch._C = types.SimpleNamespace(
    _cuda_attach_out_of_memory_observer=observers.append, _cuda_isHistoryEnabled=lambda: is_recorded
)
def snapshot():
    if fails:
        raise RuntimeError("no snapshot today")
    with gzip.open(SNAPSHOT) as file:
        return pickle.load(file)
memory = types.SimpleNamespace(
    _snapshot=snapshot, _record_memory_history=lambda **options: histories.append(options)
)
torch.cuda = types.SimpleNamespace(memory=memory, init=lambda: None)
sys.modules["torch"] = torch
is_recorded = fails = False

def allocate():
    for observer in observers:
        observer(0, 1 << 30, 0, 0)
    raise OutOfMemoryError("CUDA out of memory.")
"""


def run(tmp_path, program, **variables):
    """The ended process of a program that has the stand-in for PyTorch."""
    path = tmp_path / "train.py"
    path.write_text(f"SNAPSHOT = {str(OOM)!r}\n{TORCH}\nimport blockyard.torch\n" + textwrap.dedent(program))
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )


def test_a_failure_leaves_a_snapshot_and_a_report_and_its_own_error(tmp_path):
    ended = run(tmp_path, "blockyard.torch.on_oom('dump/')\nprint(histories)\nallocate()")
    assert ended.returncode == 1 and "OutOfMemoryError: CUDA out of memory." in ended.stderr
    assert ended.stdout == "[{'max_entries': 100000}]\n"
    files = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert files == ["rank0-1.html", "rank0-1.pickle"], ended.stderr
    with gzip.open(OOM) as file:
        assert pickle.loads((tmp_path / "dump" / "rank0-1.pickle").read_bytes()) == pickle.load(file)
    assert "Out of memory by a leak" in (tmp_path / "dump" / "rank0-1.html").read_text()
    assert blockyard.open(tmp_path / "dump" / "rank0-1.pickle").devices


def test_files_are_bounded_and_nothing_is_overwritten(tmp_path):
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "rank3-1.pickle").write_bytes(b"of an earlier run")
    program = """
    blockyard.torch.on_oom("dump", max_files=2, report=False)
    for _ in range(4):
        try:
            allocate()
        except OutOfMemoryError:
            pass
    """
    ended = run(tmp_path, program, RANK="3")
    assert ended.returncode == 0, ended.stderr
    files = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert files == ["rank3-1.pickle", "rank3-2.pickle", "rank3-3.pickle"]
    assert (tmp_path / "dump" / "rank3-1.pickle").read_bytes() == b"of an earlier run"


def test_what_goes_wrong_hides_no_error(tmp_path):
    program = "blockyard.torch.on_oom('dump')\nfails = True\nallocate()"
    ended = run(tmp_path, program)
    assert ended.returncode == 1 and "OutOfMemoryError: CUDA out of memory." in ended.stderr
    assert "the snapshot was not written: RuntimeError: no snapshot today" in ended.stderr
    assert not list((tmp_path / "dump").iterdir())


def test_a_history_that_the_program_records_goes_on(tmp_path):
    ended = run(tmp_path, "is_recorded = True\nblockyard.torch.on_oom('dump')\nprint(histories)")
    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr


def test_counts_are_checked(tmp_path):
    ended = run(tmp_path, "blockyard.torch.on_oom('dump', max_files=0)")
    assert "ValueError: max_files and max_entries are at least 1" in ended.stderr
    assert not (tmp_path / "dump").exists()


def test_importing_the_module_imports_no_torch():
    program = "import sys, blockyard.torch; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
