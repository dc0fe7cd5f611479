"""What all tests share."""

import pathlib
import shutil
import signal

import pytest

from blockyard import _command

_STUB = pathlib.Path(__file__).parents[3] / "programs" / "dry-run" / "tests" / "stub" / "site-packages"


def pytest_configure(config):
    config.addinivalue_line("markers", "needs_library: dry runs need the library that stands for CUDA's")


def pytest_runtest_setup(item):
    if item.get_closest_marker("needs_library") and not _command.has_standin():
        pytest.skip("the package was built without the library, or for another processor")


@pytest.fixture
def ctrl_c():
    """Ctrl-C interrupts, even where the tests were started in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def stub(tmp_path, monkeypatch, cache):
    """A stand-in for PyTorch that has no shared libraries, for the programs in the folder that it returns."""
    torch = tmp_path / "site-packages"
    shutil.copytree(_STUB, torch)
    (torch / "torch" / "lib").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(torch))
    return tmp_path
