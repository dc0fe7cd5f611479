"""The largest value that fits, over a package that stands for PyTorch's."""

import pathlib
import shutil

import pytest

import blockyard
from blockyard import _dry_run

STUB = pathlib.Path(__file__).parents[2] / "dry-run" / "tests" / "stub" / "site-packages"

# The package's limit is one MiB; a value takes 20,000 bytes, and the program 100,000 more.
TRAIN = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--fails-at", type=int)
options = parser.parse_args()
if options.batch_size == options.fails_at:
    raise ValueError("a value that the program does not take")
torch.take(100_000)
optimizer = torch.optim.Optimizer()
torch.take(20_000 * options.batch_size)
torch.give(20_000 * options.batch_size)
optimizer.step()
"""

needs_library = pytest.mark.skipif(not _dry_run._LIBRARY.is_file(), reason="the package was built without the library, or for another processor")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program, and a stand-in for PyTorch that has no shared libraries."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch = tmp_path / "site-packages"
    shutil.copytree(STUB, torch)
    (torch / "torch" / "lib").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(torch))
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


@needs_library
def test_the_largest_value_is_found(program, capsys):
    found = blockyard.fit(program, vary={"batch-size": (1, 512)}, gpu="h100")
    assert "batch-size 47" in capsys.readouterr().out
    assert found.largest == 47 and found.next.value == 48 and not found.next.fits
    assert found.gpu == "h100" and found.error is None and found.others == []
    by_value = {run.value: run for run in found.probes}
    assert by_value[47].fits and by_value[47].peak_allocated == 47 * 20_000 + 100_000
    assert found.to_dict()["vary"]["name"] == "batch-size"
    # Known runs are not made again.
    again = blockyard.fit(program, vary={"batch-size": (1, 512)}, gpu="h100", echo=False)
    assert again.raw["runs"] == 0 and again.largest == 47 and capsys.readouterr().out == ""


@needs_library
def test_a_run_that_fails_is_named(program):
    found = blockyard.fit(program, ["--fails-at", 1], vary={"batch-size": (1, 64)}, echo=False)
    assert found.failed_at == 1 and "ValueError" in found.error and found.largest is None


def test_wrong_arguments_are_refused(program):
    with pytest.raises(ValueError, match="one option"):
        blockyard.fit(program, vary={})
    with pytest.raises(ValueError, match="low, high"):
        blockyard.fit(program, vary={"batch-size": (1,)})
    with pytest.raises(blockyard.BlockyardError, match="no such file"):
        blockyard.fit(program.with_name("missing.py"), vary={"batch-size": (1, 2)}, echo=False)
