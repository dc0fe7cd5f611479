"""The examples of docs/python.md and docs/python-programs.md work."""

import pathlib
import re
import shutil

import pytest

ROOT = pathlib.Path(__file__).parents[4]


def _examples(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "snapshots").mkdir()
    for rank in ("rank0", "rank1"):
        shutil.copy(ROOT / "tests" / "fixtures" / "snapshots" / f"{rank}.pickle.gz", tmp_path / "snapshots")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    # The last two of the first page are for a machine with a GPU.
    *run, on_oom, enable = _examples("python.md")
    run += _examples("python-programs.md")
    assert len(run) == 5 and "on_oom(" in on_oom and "enable()" in enable
    names = {}
    for block in run:
        exec(block, names)  # noqa: S102
    printed = capsys.readouterr().out
    assert "placements identical" in printed and "2 ranks" in printed
    for gpu in (on_oom, enable):
        with pytest.raises(ModuleNotFoundError, match="torch"):
            exec(gpu, {})  # noqa: S102
