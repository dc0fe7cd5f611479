"""Runs are exported, shown in a notebook, and opened in the browser. What a browser makes of a cell is tested end to end (tests/e2e)."""

import base64
import gzip
import html
import pathlib
import re

import pytest

import blockyard
from blockyard import _page

SNAPSHOTS = pathlib.Path(__file__).parents[4] / "tests" / "fixtures" / "snapshots"


def parts(page):
    """The files that a page carries, unpacked."""
    found = {}
    for name, packed, text in re.findall(r'<script type="text/plain" data-file="([^"]+)"( data-packed)?>([^<]*)<', page):
        content = base64.b64decode(text)
        found[html.unescape(name)] = gzip.decompress(content) if packed else content
    return found


def test_a_snapshot_is_exported(tmp_path):
    snapshot = blockyard.open(SNAPSHOTS / "rank0.pickle.gz")
    for end, begin in (("pickle", b"\x80\x04"), ("jsonl", b'{"meta"'), ("svg", b"<svg"), ("png", b"\x89PNG"), ("csv", b"step,events")):
        snapshot.export(tmp_path / f"out.{end}")
        assert (tmp_path / f"out.{end}").read_bytes().startswith(begin), end
    again = blockyard.open(tmp_path / "out.pickle")
    assert again.summary.to_dict() == snapshot.summary.to_dict()
    with pytest.raises(blockyard.BlockyardError, match="bmp"):
        snapshot.export(tmp_path / "out.bmp")
    assert not (tmp_path / "out.bmp").exists() and not list(tmp_path.glob("*.unfinished"))


def test_an_exported_page_carries_program_and_snapshot(tmp_path):
    blockyard.open(SNAPSHOTS / "rank0.pickle.gz").devices[0].export(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    files = parts(page)
    for name in ("blockyard-web_bg.wasm", "blockyard-worker_bg.wasm", "boot.js"):
        assert files[name] == (_page.folder() / name).read_bytes()
    assert blockyard.open(files["open/rank0.pickle"]).summary.events > 0
    assert "http://" not in page and "https://" not in page


def test_a_cell_shows_the_page_in_a_frame():
    run = blockyard.play("a = alloc 3 MiB", capacity=30 << 20, conf="max_split_size_mb:64", name="mine")
    cell = run._repr_html_()
    assert cell.startswith("<iframe") and 'sandbox="allow-scripts"' in cell
    page = html.unescape(re.search('srcdoc="([^"]*)"', cell).group(1))
    assert 'data-address="?embed=stage#open=mine.workload"' in page
    text = parts(page)["open/mine.workload"].decode()
    assert text.endswith("a = alloc 3 MiB") and "capacity 31457280" in text and "conf max_split_size_mb:64" in text
    # What each cell costs a notebook.
    assert len(cell) < 2_500_000, len(cell)


def test_what_is_too_large_for_a_cell_says_so(monkeypatch):
    monkeypatch.setattr(_page, "MAX_CELL_BYTES", 50_000)
    cell = blockyard.open(SNAPSHOTS / "rank0.pickle.gz")._repr_html_()
    assert "too large for a notebook" in cell and "export(" in cell and "<svg" in cell
    assert len(cell) < 1_000_000


def test_without_a_page_the_text_stands_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(_page, "folder", lambda: None)
    monkeypatch.delenv("BLOCKYARD_PAGE", raising=False)
    snapshot = blockyard.open(SNAPSHOTS / "rank0.pickle.gz")
    assert snapshot._repr_html_() is None
    monkeypatch.setenv("BLOCKYARD_PAGE", str(tmp_path))
    with pytest.raises(blockyard.BlockyardError, match="no built page"):
        snapshot.export(tmp_path / "out.html")


def test_show_opens_the_browser(monkeypatch):
    opened = []
    monkeypatch.setattr(_page.webbrowser, "open", opened.append)
    path = blockyard.play("a = alloc 3 MiB").show()
    assert opened == [path.as_uri()] and path.read_text().startswith("<!doctype html>")
    path.unlink()
