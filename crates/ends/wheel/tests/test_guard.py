"""The guard, and pytest's plug-in, over a package that stands for PyTorch's."""

import re
import subprocess
import sys

import pytest

import blockyard

# 128 KiB to the end, and 64 KiB for each `--batch` in a step.
TRAIN = """
import argparse, torch, traced
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=1)
options = parser.parse_args()
traced.take(131_072)
optimizer = torch.optim.Optimizer()
traced.take(65_536 * options.batch)
traced.give(65_536 * options.batch)
optimizer.step()
"""

LAYER = "traced.take(32_768)\noptimizer ="

needs_library = pytest.mark.needs_library


@pytest.fixture
def program(stub):
    folder = stub / "repository"
    folder.mkdir()
    path = folder / "train.py"
    path.write_text(TRAIN)
    return path


def add_a_layer(program):
    program.write_text(TRAIN.replace("optimizer =", LAYER))


def outcome_of(program, test, *options):
    """Pytest's exit status and words over one test file of the repository."""
    folder = program.parent
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (folder / "test_memory.py").write_text("import pytest\n" + test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@needs_library
def test_a_peak_that_grew_has_rows_to_the_byte(program, capsys):
    file = program.with_name("memory.toml")
    [begun] = blockyard.guard(program, ["--batch", 2], gpu="h100", steps=1, budget="512 KiB", file=file, update=True)
    assert begun.passed and begun.rows == [] and begun.peak_allocated == 262_144
    assert "train.py --batch 2 on h100: written" in capsys.readouterr().out
    text = file.read_text()
    assert 'budget = "512 KiB"' in text and "peak_allocated = 262144  # 256 KiB" in text
    [same] = blockyard.guard(program, ["--batch", 2], file=file, echo=False)
    assert same.passed and [row.change for row in same.rows] == [0] and capsys.readouterr().out == ""
    add_a_layer(program)
    [grown] = blockyard.guard(program, ["--batch", 2], file=file, echo=False)
    assert not grown.passed and grown.failures == ["allocated", "reserved"] and not grown.estimate
    assert [(row.at, row.change) for row in grown.rows] == [("train.py:7", 32_768), (None, 0)]
    assert grown.rows[0].code == "traced.take(32_768)" and grown.to_dict()["gpu"] == "h100"
    assert grown.run.peaks[0].allocated == grown.peak_allocated == 262_144 + 32_768
    assert str(grown).startswith("train.py --batch 2 on h100: FAILS\n")
    assert file.read_text() == text


@needs_library
def test_what_cannot_be_answered_is_raised(program):
    file = program.with_name("memory.toml")
    with pytest.raises(blockyard.BlockyardError, match="neither a baseline nor a budget of `train.py` on h200"):
        blockyard.guard(program, file=file, echo=False)
    with pytest.raises(blockyard.BlockyardError, match="no such file"):
        blockyard.guard(program.with_name("missing.py"), file=file, budget=1, echo=False)


@needs_library
def test_the_mark_fails_a_test_over_its_budget(program):
    test = '@pytest.mark.gpu_memory(program="train.py", gpu="h100", budget={!r})\ndef test_fits(gpu_memory):\n    assert gpu_memory.exact\n'
    status, words = outcome_of(program, test.format(196_608))
    assert status == 0 and "1 passed" in words, words
    status, words = outcome_of(program, test.format("191 KiB"))
    assert status == 1 and "1 failed" in words, words
    assert "over the budget: the peak reserved is 196,608 bytes (192 KiB), which is 1,024 bytes more than 191 KiB" in words
    assert "Traceback" not in words and not program.with_name("memory.toml").exists()


@needs_library
def test_the_mark_fails_a_test_over_its_baseline_with_the_lines(program):
    # Without the fixture, and of a class of unittest, too.
    test = (
        '@pytest.mark.gpu_memory("train.py", args=["--batch", 2], steps=1)\ndef test_one():\n    pass\n'
        "import unittest\n"
        '@pytest.mark.gpu_memory("train.py", gpu="t4", tolerance="40 KiB")\nclass Cases(unittest.TestCase):\n    def test_two(self):\n        pass\n'
    )
    status, words = outcome_of(program, test)
    assert status == 1 and "2 failed" in words and "neither a baseline nor a budget of `train.py --batch 2` on h200" in words, words
    status, words = outcome_of(program, test, "--gpu-memory-update")
    assert status == 0 and "2 passed" in words, words
    assert program.with_name("memory.toml").read_text().count("[[program]]") == 2
    assert outcome_of(program, test)[0] == 0
    add_a_layer(program)
    status, words = outcome_of(program, test)
    # The other has the tolerance for it.
    assert status == 1 and "1 failed, 1 passed" in words, words
    assert re.search(r"\+32,768  train.py:7  `traced.take\(32_768\)`, new\n +\+0  everything else", words), words


@needs_library
def test_the_file_may_lie_elsewhere(program):
    inner = program.parent / "models"
    inner.mkdir()
    program.rename(inner / "train.py")
    test = '@pytest.mark.gpu_memory("train.py")\ndef test_one():\n    pass\n'
    status, words = outcome_of(program, test, "--gpu-memory-update", "--gpu-memory-file", "models/memory.toml")
    assert status == 0 and (inner / "memory.toml").exists(), words
    assert outcome_of(program, test, "-o", "gpu_memory_file=models/memory.toml")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "the program is missing"),
        ('"train.py", "h100"', "only the program may stand without its name"),
        ('"train.py", bugdet="1 GiB"', "there is no argument `bugdet`; this is gpu_memory(program, gpu=None"),
        ('"train.py", program="train.py"', "`program` is given twice"),
        ('"train.py", steps="3"', "`steps` is '3', and should be of type int"),
        ('"train.py", args="--batch 2"', "`args` is '--batch 2', and should be of type list or tuple"),
        ('"train.py", budget=True', "`budget` is True"),
        ('"train.py", budget="much"', "--budget"),
        ('"train.py", gpu="voodoo2", budget=1', "no GPU has this name"),
        ('"missing.py", budget=1', "missing.py: no such file"),
    ],
)
def test_wrong_arguments_are_named(program, arguments, words):
    status, text = outcome_of(program, f"@pytest.mark.gpu_memory({arguments})\ndef test_one():\n    pass\n")
    assert status == 1 and "1 failed" in text and words in text, text


def test_two_marks_and_none_are_named(program):
    mark = '@pytest.mark.gpu_memory("train.py", budget=1)\n'
    status, text = outcome_of(program, f"{mark}{mark}def test_one():\n    pass\n")
    assert status == 1 and "a test has one such mark" in text, text
    status, text = outcome_of(program, "def test_one(gpu_memory):\n    pass\n")
    assert status != 0 and "needs the mark @pytest.mark.gpu_memory" in text, text


def test_the_plug_in_costs_nothing_where_it_is_not_used(program):
    test = (
        "import sys\n"
        "def test_one():\n"
        "    assert 'pytest_blockyard' in sys.modules\n"
        "    assert not [name for name in sys.modules if name.split('.')[0] == 'blockyard']\n"
    )
    status, text = outcome_of(program, test)
    assert status == 0 and "1 passed" in text, text


def test_the_plug_in_is_typed_strictly(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--package", "pytest_blockyard"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
