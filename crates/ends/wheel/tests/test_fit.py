"""The largest value that fits, over a package that stands for PyTorch's."""

import json
import os
import pathlib
import shutil

import pytest

import blockyard
from blockyard import _cluster, _fit, _fit_on_cluster

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

needs_library = pytest.mark.needs_library


@pytest.fixture
def program(stub):
    path = stub / "train.py"
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
    assert found.to_dict()["vary"]["name"] == found.vary["name"] == "batch-size"
    assert found.growth.kind == "linear" and found.growth.exact and found.version == 1
    assert [row.fits for row in found.settings] == [False, False] and found.next.failed.at.endswith("train.py:11")
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


LAYOUTS = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--dp", type=int, default=1)
parser.add_argument("--tp", type=int, default=1)
options = parser.parse_args()
torch.take(800_000 // options.tp)
"""

LENGTHS = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--length", type=int, default=1)
options = parser.parse_args()
torch.take(10_000 * options.batch * options.length)
"""


@needs_library
def test_a_map_has_a_row_for_each_value(program):
    program.write_text(LENGTHS)
    found = blockyard.fit_map(program, vary={"batch": (1, 200), "length": (1, 3)}, gpu="h100", echo=False)
    assert [(row.value, row.largest) for row in found.rows] == [(1, 104), (2, 52), (3, 34)]
    assert found.rows[1].next.value == 53 and found.others == [] and str(found) == "1: 104, 2: 52, 3: 34"
    under = blockyard.fit_map(program, vary={"batch": (1, 200)}, settings=["expandable_segments:True"], gpu="h100", echo=False)
    assert [(row.conf, row.largest) for row in under.rows] == [("", 104), ("expandable_segments:True", 104)]


@needs_library
def test_layouts_have_a_verdict_each(program):
    program.write_text(LAYOUTS)
    mesh = {"dp": range(1, 9), "tp": [1, 2]}
    found = blockyard.fit_layouts(program, mesh=mesh, ranks=8, gpu="h100", limit=500_000, echo=False)
    assert [(row.layout, row.fits) for row in found.layouts] == [({"dp": 4, "tp": 2}, True), ({"dp": 8, "tp": 1}, False)]
    assert found.best == {"dp": 4, "tp": 2} and found.layouts[0].peak_reserved == 400_000
    assert [rank.rank for rank in found.layouts[0].ranks] == [0] and found.mesh == ["dp", "tp"]


# Each layout leaves a line behind; the first time, the process of the worker that started it is ended.
KILLS = """
import os, pathlib, signal
runs = pathlib.Path(__file__).with_name("runs.txt")
is_first = not runs.exists()
with runs.open("a") as file:
    file.write(f"{options.dp} {options.tp}\\n")
if is_first:
    workers = pathlib.Path(__file__).with_name("workers.txt").read_text().split()
    pid = os.getpid()
    while pid > 1 and str(pid) not in workers:
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    if pid > 1:
        os.kill(pid, signal.SIGKILL)
"""

MESH = {"dp": [2, 4, 8], "tp": [4, 2, 1]}


def same_as_here(program, scheduler, **options):
    """Asks a scheduler for layouts whose first run ends its worker, and holds the answer against that of this process."""
    program.write_text(LAYOUTS + KILLS)
    asked = {"mesh": MESH, "ranks": 8, "gpu": ["h100", "t4"], "limit": 500_000, "echo": False, **options}
    found = blockyard.fit_layouts(program, scheduler=scheduler, keep=program.with_name("there.jsonl"), **asked)
    runs = program.with_name("runs.txt").read_text().splitlines()
    assert set(runs) == {"2 4", "4 2", "8 1"}, runs
    here = blockyard.fit_layouts(program, keep=program.with_name("here.jsonl"), **asked)
    kept = ("kept", "runs", "known")
    left = {name: value for name, value in found.raw.items() if name not in kept}
    assert left == {name: value for name, value in here.raw.items() if name not in kept}
    assert [row.fits for row in found.layouts] == [True, True, False] and found.best == {"dp": 2, "tp": 4}
    assert found.others[0].gpu == "t4" and found.raw["runs"] + found.raw["known"] == here.raw["runs"] + here.raw["known"]


@needs_library
def test_layouts_on_dask_with_a_worker_that_is_killed(program):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            workers = set(client.run(os.getpid).values())
            program.with_name("workers.txt").write_text(" ".join(map(str, workers)))
            same_as_here(program, client)
            assert len(workers & set(client.run(os.getpid).values())) == 1, "one of two was ended"


@needs_library
def test_layouts_on_ray(program):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        workers = ray.get([ray.remote(lambda: os.getpid()).remote() for _ in range(2)])
        program.with_name("workers.txt").write_text(" ".join(map(str, workers)))
        same_as_here(program, "ray")
    finally:
        ray.shutdown()


@needs_library
def test_a_task_that_fails_is_a_layout_with_its_error(program, monkeypatch):
    def lost(_scheduler, work, calls):
        return [MemoryError("of a worker") if call[2]["dp"] == [4] else work(*call) for call in calls]

    monkeypatch.setattr(_cluster, "each", lost)
    program.write_text(LAYOUTS)
    found = blockyard.fit_layouts(program, mesh=MESH, ranks=8, limit=500_000, gpu="h100", scheduler="ray", echo=False)
    errors = [row.error for row in found.layouts]
    assert errors == [None, "MemoryError: of a worker", None] and found.best == {"dp": 2, "tp": 4}
    monkeypatch.setattr(_cluster, "each", lambda *_: [MemoryError("of all")])
    with pytest.raises(MemoryError, match="of all"):
        blockyard.fit_layouts(program, mesh=MESH, ranks=8, scheduler="ray", echo=False)


class _Here:
    """A scheduler that is this process."""

    def __init__(self, name):
        assert name == "ray://there:10001"

    def __enter__(self):
        return None

    def __exit__(self, *_):
        pass


@needs_library
def test_the_command_makes_each_layout_a_task(program, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_cluster, "Connection", _Here)
    program.write_text(BATCHES)
    words = ["fit", str(program), "--vary", "batch=1..8", "--mesh", "dp=2,4,8,tp=4,2,1", "--ranks=8", "--gpu", "h100"]
    words += ["--limit", "500000", "--keep", str(tmp_path / "there.jsonl")]
    out, page = tmp_path / "map.json", tmp_path / "map.html"
    on = ["--on", "ray://there:10001", "--json", str(out), "--report", str(page)]
    assert _fit_on_cluster.is_asked([*words, *on]) and not _fit_on_cluster.is_asked(words) and not _fit_on_cluster.is_asked([*words, "--", "--on"])
    assert _fit_on_cluster.fit([*words, *on]) == 0
    asked = {"vary": {"batch": (1, 8)}, "mesh": MESH, "ranks": 8, "gpu": "h100", "limit": 500_000, "echo": False}
    here = blockyard.fit_map(program, keep=tmp_path / "here.jsonl", **asked)
    found = json.loads(out.read_text())
    assert found["rows"] == here.raw["rows"] and found["by"] == here.raw["by"]
    assert str(here) in capsys.readouterr().out and "Peak memory over batch" in page.read_text()
    there = blockyard.fit_map(program, keep=tmp_path / "again.jsonl", scheduler=_Inline(), **asked)
    assert there.raw["rows"] == here.raw["rows"]


class _Inline:
    """A client of Dask that works at once."""

    def submit(self, work, *call, **_):
        self.answer = work(*call)
        return type("Future", (), {"result": lambda _, answer=self.answer: answer})()

    def gather(self, futures):
        return futures


def test_words_of_a_cluster_that_are_wrong_are_told(capsys):
    for words, why in [
        (["t.py", "--on", "ray"], "give --mesh and --ranks"),
        (["t.py", "--on", "slurm", "--mesh", "dp=1,2", "--ranks", "2"], "not 'slurm'"),
        (["t.py", "--on", "ray", "--mesh", "dp=1,x", "--ranks", "2"], 'dp: "1,x" is'),
        (["t.py", "--on", "ray", "--mesh", "dp=1,2", "--ranks", "7"], "no layout of dp=1,2 has 7 ranks"),
        (["t.py", "--on", "ray", "--mesh", "dp=1,2", "--ranks", "2", "--report", "x.html"], "--vary names"),
    ]:
        assert _fit_on_cluster.fit(["fit", *words]) == 1 and why in capsys.readouterr().err


def test_tasks_are_layouts_and_share_loaded_modules():
    assert _fit.parts(MESH, 8, False) == [{"dp": [2], "tp": [4]}, {"dp": [4], "tp": [2]}, {"dp": [8], "tp": [1]}]
    three = {"pp": [1, 2], "dp": range(1, 9), "tp": [1, 2]}
    assert [part["pp"] for part in _fit.parts(three, 8, True)] == [[1], [2]]
    assert _fit.parts("dp=1..3,tp=1,2,4", 4, True) == [{"dp": [1], "tp": [4]}, {"dp": [2], "tp": [2]}]
    assert _fit.parts(three, 7, False) == [{"pp": [1], "dp": [7], "tp": [1]}]


BATCHES = LAYOUTS.replace("options = parser", 'parser.add_argument("--batch", type=int)\noptions = parser') + "torch.take(10_000 * options.batch)\n"


@needs_library
def test_each_layout_has_a_largest_value(program, tmp_path):
    program.write_text(BATCHES)
    mesh, page = {"dp": [4, 8], "tp": [1, 2]}, tmp_path / "curves.html"
    found = blockyard.fit_map(program, vary={"batch": (1, 99)}, mesh=mesh, ranks=8, at_once=2, report=page, gpu="h100", echo=False)
    assert [(row.layout, row.largest) for row in found.rows] == [({"dp": 4, "tp": 2}, 64), ({"dp": 8, "tp": 1}, 24)]
    assert str(found) == "dp=4 tp=2: 64, dp=8 tp=1: 24" and "<svg" in page.read_text()
    assert found.rows[0].probes[0].outside["CUDA context"] > 500_000_000


@needs_library
def test_settings_are_replayed_over_a_snapshot(program):
    recorded = pathlib.Path(__file__).parents[4] / "tests" / "fixtures" / "snapshots" / "checkerboard_default_100.pickle.gz"
    copy = f"import shutil, torch\ntorch.cuda.memory._dump_snapshot = lambda path: shutil.copy({str(recorded)!r}, path)\ntorch.take(1)\n"
    program.write_text(copy)
    found = blockyard.fit_settings(program, settings=["expandable_segments:True"], gpu="h100", limit="1 GiB", echo=False)
    assert found.best == "expandable_segments:True" and [row.fits for row in found.settings] == [False, True]
    assert found.settings[1].run is not None and found.error is None


def test_wrong_arguments_of_the_others_are_refused(program):
    with pytest.raises(ValueError, match="two options"):
        blockyard.fit_map(program, vary={"batch-size": (1, 2)})
    with pytest.raises(ValueError, match="a number of ranks"):
        blockyard.fit_map(program, vary={"batch-size": (1, 2)}, mesh={"dp": [1]})
    with pytest.raises(ValueError, match="settings are missing"):
        blockyard.fit_settings(program, settings=[])
    with pytest.raises(TypeError, match="dask"):
        blockyard.fit_layouts(program, mesh=MESH, ranks=8, scheduler="slurm")
    with pytest.raises(ValueError, match="would delete"):
        blockyard.fit_layouts(program, mesh=MESH, ranks=8, scheduler="ray", fresh=True)
    with pytest.raises(blockyard.BlockyardError, match="no layout of the mesh"):
        blockyard.fit_layouts(program, mesh=MESH, ranks=7, scheduler="ray", echo=False)
