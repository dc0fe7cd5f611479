"""Files are opened, and what they hold crosses to Python whole."""

import doctest
import gzip
import json
import pathlib
import pickle
import signal
import sys
import threading
import types

import polars
import pyarrow
import pytest

import blockyard
from blockyard import _answer, _answers, _files, _page, _progress, _programs

FIXTURES = pathlib.Path(__file__).parents[4] / "tests" / "fixtures"
GNN = FIXTURES / "programs" / "gnn_random.jsonl.gz"
LOSS_HISTORY = FIXTURES / "oom" / "loss_history_100.pickle.gz"
MIB = 1 << 20


def frame(line, name="f"):
    return {"name": name, "filename": "train.py", "line": line}


def snapshot():
    """What `torch.cuda.memory._snapshot()` returns: one segment, a block in use, one freed, one from before the trace."""
    base = 0x7F0000000000
    entry = {"stream": 0, "time_us": 7, "compile_context": "N/A", "user_metadata": ""}
    trace = [
        {**entry, "action": "free_requested", "addr": base + 8 * MIB, "size": 2 * MIB, "frames": []},
        {**entry, "action": "free_completed", "addr": base + 8 * MIB, "size": 2 * MIB, "frames": []},
        {**entry, "action": "alloc", "addr": base, "size": 3 * MIB, "frames": [frame(3), frame(9, "main")]},
        {**entry, "action": "alloc", "addr": base + 3 * MIB, "size": 5 * MIB, "frames": [frame(4)]},
        {**entry, "action": "free_requested", "addr": base + 3 * MIB, "size": 5 * MIB, "frames": []},
        {**entry, "action": "free_completed", "addr": base + 3 * MIB, "size": 5 * MIB, "frames": []},
    ]
    block = {"requested_size": 3 * MIB, "size": 3 * MIB, "address": base, "state": "active_allocated", "frames": [frame(3)]}
    rest = {"requested_size": 0, "size": 17 * MIB, "address": base + 3 * MIB, "state": "inactive", "frames": []}
    segment = {
        "device": 0,
        "address": base,
        "total_size": 20 * MIB,
        "allocated_size": 3 * MIB,
        "active_size": 3 * MIB,
        "requested_size": 3 * MIB,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block, rest],
    }
    return {
        "segments": [segment],
        "device_traces": [trace],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
        "external_annotations": [],
    }


def test_a_dictionary_and_its_file_are_the_same(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot()))
    for opened in (blockyard.open(snapshot()), blockyard.open(path), blockyard.open(str(path))):
        assert [device.index for device in opened.devices] == [0]
        assert len(opened.events) == 6 and len(opened.allocations) == 3


def test_host_memory_stands_beside_the_devices():
    opened = blockyard.open(FIXTURES / "snapshots" / "small_2.15.pickle")
    assert [device.index for device in opened.devices] == [0]
    host = opened.host
    assert repr(host) == "<blockyard.Device host>" and host.index is None
    assert host.summary.peak_allocated == (16 + 512) * 1024
    assert [holder.bytes for holder in host.top()] == [(16 + 512) * 1024]
    assert len(host.events) == 6 and len(host.allocations) == 2
    assert "not replayed" in " ".join(host.verify().reasons) and not host.verify()
    with pytest.raises(blockyard.BlockyardError, match="not replayed"):
        host.what_if("expandable_segments:True")
    assert opened.verify() and len(opened.events) == 12
    assert ["saved for backward"] in [holder.names for holder in opened.top()]
    again = blockyard.open(opened._data.pickle())
    assert again.host.summary.peak_allocated == host.summary.peak_allocated
    assert blockyard.open(FIXTURES / "snapshots" / "small_2.11.pickle").host is None


def test_host_memory_is_exported_alone(tmp_path):
    host = blockyard.open(FIXTURES / "snapshots" / "small_2.15.pickle").host
    host.export(tmp_path / "host.pickle")
    alone = blockyard.open(tmp_path / "host.pickle")
    assert alone.devices == [] and len(alone.host.events) == 6


def test_events_are_an_arrow_table():
    table = polars.DataFrame(blockyard.open(snapshot()).events)
    assert table.columns == ["action", "address", "size", "stream", "time_us", "stack"]
    assert table["action"].to_list()[2:5] == ["alloc", "alloc", "free_requested"]
    assert table["size"].sum() == (2 * 2 + 3 + 5 * 3) * MIB
    assert table["stack"].to_list()[1:4] == [None, "train.py:3 f\ntrain.py:9 main", "train.py:4 f"]


def test_allocations_have_lifetimes():
    table = pyarrow.table(blockyard.open(snapshot()).allocations)
    assert table["size"].to_pylist() == [2 * MIB, 3 * MIB, 5 * MIB]
    assert table["allocated_at"].to_pylist() == [None, 2, 3]
    assert table["freed_at"].to_pylist() == [0, None, 4]


def test_a_recording_answers_what_if():
    run = blockyard.open(GNN)
    answer = run.what_if("expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:1")
    assert answer.baseline.peak_reserved == 6_589_251_584
    assert [outcome.peak_reserved for outcome in answer.settings] == [2_545_942_528, 19_706_937_344, None]
    assert "too small" in answer.settings[2].error
    assert "peak reserved 2.37 GiB" in repr(answer)
    assert answer.to_dict()["question"] == "what-if"


def test_a_workload_goes_out_of_memory():
    text = "repeat 5 as i { keep[i] = alloc 2 MiB\nhole[i] = alloc 2 MiB }\nrepeat 5 as i { free hole[i] }\nbig = alloc 20 MiB"
    run = blockyard.play(text, capacity=30 * MIB)
    answer = run.what_if()
    assert answer.baseline.ooms == 1 and answer.baseline.first_oom.size == 20 * MIB
    autopsy = run.autopsy()
    assert autopsy.cause is not None and autopsy.sentence in str(autopsy)
    assert run.autopsy(capacity=1 << 30).cause is None


def test_a_run_that_went_out_of_memory_is_asked_under_the_limit_that_its_file_implies():
    snapshot = blockyard.open(LOSS_HISTORY)
    answer = snapshot.what_if("expandable_segments:True")
    assert (answer.limit.low, answer.limit.high, answer.limit.source) == (594 * MIB, 614 * MIB - 1, "inferred")
    assert not answer.baseline.fits and not answer.baseline.depends_on_limit
    assert answer.baseline.ooms == answer.baseline.ooms_at_high == 1
    assert answer.settings[0].depends_on_limit and not answer.settings[0].fits
    assert "between 594 MiB and 614 MiB" in str(answer) and "depends on the limit" in str(answer)
    verdict = snapshot.verdict()
    assert verdict.kind == "leak" and verdict.headline in str(verdict) and "train.py:26" in verdict.headline
    assert verdict.setting is None and verdict.held[0].line == "loss_history train.py:26"
    found = snapshot.autopsy()
    assert found.limit == answer.limit
    change = next(change for change in found.in_vain if change.value == "expandable_segments:True")
    assert change.depends_on_limit and not change.proved
    given = snapshot.what_if("expandable_segments:True", limit=600 * MIB)
    assert given.limit.source == "given" and given.limit.low == given.limit.high == 600 * MIB
    assert given.settings[0].ooms == given.settings[0].ooms_at_high == 1
    assert snapshot.search().best is None


def test_errors_say_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError):
        blockyard.open(tmp_path / "missing.pickle")
    model = tmp_path / "model.pickle"
    model.write_bytes(pickle.dumps({"weight": [1, 2, 3]}))
    with pytest.raises(blockyard.BlockyardError, match="snapshot"):
        blockyard.open(model)
    cut = tmp_path / "cut.pickle"
    cut.write_bytes(pickle.dumps(snapshot())[:-100])
    with pytest.raises(blockyard.BlockyardError):
        blockyard.open(cut)
    evil = tmp_path / "evil.pickle"
    evil.write_bytes(b"\x80\x04cos\nsystem\n(S'touch evil'\ntR.")
    with pytest.raises(blockyard.BlockyardError, match="code|GLOBAL|opcode"):
        blockyard.open(evil)
    lines = tmp_path / "run.jsonl.gz"
    lines.write_bytes(gzip.compress(json.dumps({"meta": {}}).encode()))
    with pytest.raises(blockyard.BlockyardError):
        blockyard.open(lines)
    with pytest.raises(blockyard.BlockyardError, match="line 1"):
        blockyard.play("x = alloc nothing")


def test_examples_in_docstrings_hold():
    for module in (_answer, _files, _page, _programs):
        found = doctest.testmod(module)
        assert found.attempted > 0 and found.failed == 0, module.__name__


@pytest.mark.parametrize("name", ["resnet50_amp", "rank0", "mem_pool_cache_100"])
def test_a_snapshot_is_verified(name):
    snapshot = blockyard.open(FIXTURES / "snapshots" / f"{name}.pickle.gz")
    certificate = snapshot.verify()
    assert certificate, certificate
    assert certificate.placements == certificate.identical > 0
    assert "placements identical" in str(certificate)


def test_a_snapshot_of_an_out_of_memory_says_why():
    snapshot = blockyard.open(FIXTURES / "snapshots" / "checkerboard_default_100.pickle.gz")
    autopsy = snapshot.autopsy()
    assert autopsy.cause is not None and any(change.proved for change in autopsy.changes), autopsy
    assert snapshot.what_if("expandable_segments:True").settings[0].ooms == 0


def test_a_snapshot_has_peaks_and_who_holds_them():
    snapshot = blockyard.open(FIXTURES / "snapshots" / "resnet50_amp.pickle.gz")
    assert snapshot.summary.peak_allocated == 1_781_156_352 and snapshot.summary.peak_reserved == 2_002_780_160
    peak = snapshot.at("peak", top=1000)
    assert peak.allocated == snapshot.summary.peak_allocated == sum(holder.bytes for holder in peak.top)
    assert peak.allocated == peak.requested + peak.rounding
    assert peak.reserved == peak.allocated + peak.pending + peak.cached
    first, second = snapshot.top(2)
    assert first.bytes >= second.bytes and "torch/nn/modules/conv.py" in first.stack
    assert snapshot.at(0).event == 0
    with pytest.raises(blockyard.BlockyardError, match="moment"):
        snapshot.at("noon")


def test_other_questions_are_answered_as_by_the_command():
    run = blockyard.open(GNN)
    bound = run.bound()
    assert bound.lower_bound == 2_403_611_136 <= bound.layout_peak and bound.to_dict()["question"] == "bound"
    compared = run.compare_allocators()
    assert compared.requests == bound.requests and len(compared.allocators) > 3
    assert compared.allocators[0].peak_reserved == 6_589_251_584 and "peak reserved 6.14 GiB" in str(compared)
    leaks = run.leaks()
    assert bool(leaks) == bool(leaks.growing) and str(leaks).startswith(leaks.sentence)
    longer = blockyard.play("a = alloc 3 MiB\nb = alloc 30 MiB")
    change = blockyard.play("a = alloc 3 MiB").diff(longer)
    assert change and change.allocated.change == 30 * MIB == sum(term.change for term in change.allocated.terms)
    assert change.to_dict()["question"] == "diff" and not longer.diff(longer)


def test_two_steps_of_a_run_are_compared():
    steps = "\n".join(f'step "{step}"\nx{step} = alloc {step} MiB' for step in (1, 2, 3, 4))
    run = blockyard.play(steps)
    change = run.diff_steps(2, 4)
    assert change.allocated.change == 7 * MIB and change.to_dict()["steps"] == [2, 4]
    assert [term.site for term in change.allocated.terms] == [["line 8"], ["line 6"]]
    with pytest.raises(blockyard.BlockyardError, match="4 iterations, counted from 1, and no iteration 9"):
        run.diff_steps(1, 9)


@pytest.mark.usefixtures("ctrl_c")
def test_long_work_without_the_lock_ends_on_ctrl_c():
    run = blockyard.open(GNN)
    ticks = []
    begun = threading.Event()

    def tick():
        begun.wait()
        ticks.extend(range(10))
        signal.raise_signal(signal.SIGINT)

    other = threading.Thread(target=tick)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        # The signal may come at once: not before here.
        begun.set()
        # Until the other thread has ended its work, which needs the lock, and sends the signal.
        while True:
            run.search()
    assert len(ticks) == 10
    other.join()


def test_progress_is_reported_while_somebody_looks_on(monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, leave):
            self.total, self.n, self.desc, self.is_closed = total, 0, "", False
            bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.is_closed = True

    monkeypatch.setattr(_progress.sys, "stderr", types.SimpleNamespace(isatty=lambda: True))
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    # Longer and longer, until the work takes longer than the pause between two reports.
    for power in range(12, 21):
        if not bars:
            blockyard.play(f"repeat {1 << power} {{\na = alloc 3 MiB\nfree a\n}}").search()
    assert bars[-1].is_closed and bars[0].total > 0 and bars[0].n <= bars[0].total


QUESTIONS = {
    "verdict": _answers.Verdict,
    "what-if": _answers.WhatIf,
    "search": _answers.Search,
    "autopsy": _answers.Autopsy,
    "bound": _answers.Bound,
    "compare-allocators": _answers.ComparedAllocators,
    "diff": _answers.Diff,
    "leaks": _answers.Leaks,
}


def test_answers_that_the_command_printed_are_read():
    count = 0
    for path in (FIXTURES / "answers").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            raw = json.loads(line)
            if raw.get("question") in QUESTIONS:
                answer = QUESTIONS[raw["question"]].of(raw)
                assert answer.to_dict() is raw and str(answer), path
                count += 1
    assert count >= 20


def test_a_limit_is_given_in_bytes_or_as_the_command_takes_it():
    run = blockyard.open(LOSS_HISTORY).devices[0]
    assert run.what_if(limit=600 * MIB).limit == run.what_if(limit="600 MiB").limit
    assert run.ask("what-if", "--limit", "600 MiB")["limit"] == run.what_if(limit=600 * MIB).limit.to_dict()
    with pytest.raises(blockyard.BlockyardError, match="3.0"):
        run.what_if(release="3.0")
    with pytest.raises(blockyard.BlockyardError, match="why"):
        run.ask("why")


def test_the_plug_in_finds_its_functions_in_the_package():
    from blockyard import _plugin, torch

    assert torch.enable is _plugin.enable and set(torch.__all__) == {*_plugin.__all__, "on_oom"}
    found = pathlib.Path(_plugin._find(None))
    assert found.parent == pathlib.Path(_plugin.__file__).parent and found.name.startswith("_native")
