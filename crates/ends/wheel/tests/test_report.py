"""Reports of snapshots, devices and runs. What is in a report is tested in Rust (crates/show/report)."""

import pathlib

import pytest

import blockyard

FIXTURES = pathlib.Path(__file__).parents[4] / "tests" / "fixtures"
OOM = FIXTURES / "oom" / "loss_history_100.pickle.gz"


def test_a_snapshot_has_a_report(tmp_path):
    snapshot = blockyard.open(OOM)
    page = snapshot.report(tmp_path / "out.html", notes=["first <b>", "second"])
    assert (tmp_path / "out.html").read_text() == page
    assert not list(tmp_path.glob("*.unfinished"))
    assert "<h1>loss_history_100.pickle.gz</h1>" in page and "Out of memory by a leak at" in page
    assert "train.py:26" in page and "first &lt;b&gt;" in page and "second" in page
    assert "<script" not in page and len(page) < 1_000_000


def test_names_are_left_out():
    page = blockyard.open(OOM).report(redact=True)
    assert "loss_history" not in page and ".py" not in page and "call site 1" in page


def test_a_device_and_a_run_have_reports():
    snapshot = blockyard.open(FIXTURES / "snapshots" / "rank0.pickle.gz")
    assert snapshot.devices[0].report().startswith("<!doctype html>")
    run = blockyard.play("a = alloc 30 MiB\nb = alloc 30 MiB", capacity=40 << 20, name="mine")
    page = run.report(notes="one note")
    assert "<h1>mine</h1>" in page and "Out of memory" in page and "one note" in page
    recording = blockyard.open(FIXTURES / "programs" / "cudagraph_mlp.jsonl.gz")
    assert "placements identical" in recording.report() or "events identical" in recording.report()


def test_a_limit_is_that_of_the_report():
    page = blockyard.open(OOM).report(limit=1 << 30)
    assert "The limit of reserved bytes was given: 1 GiB" in page
    with pytest.raises(blockyard.BlockyardError, match="PYTORCH_CUDA_ALLOC_CONF"):
        blockyard.open(OOM).report(conf="nonsense:1")
