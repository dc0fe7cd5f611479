"""Watching from Python, in programs without PyTorch: what a watched program does is tested by the command."""

import os
import pathlib
import subprocess
import sys

import pytest

import blockyard
from blockyard import _command

has_library = pathlib.Path(_command.__file__).with_name("libblockyard_watch.so.1").is_file()
pytestmark = pytest.mark.skipif(not has_library, reason="the package was built without the library")


def run(tmp_path, *words):
    return subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)


def test_a_program_is_started_watched(tmp_path):
    (tmp_path / "train.py").write_text("import sys\nprint('blockyard_watch' in sys.modules, sys.argv[1:])\nsys.exit(7)")
    ended = run(tmp_path, "-m", "blockyard.watch", "train.py", "--batch", "8")
    assert (ended.returncode, ended.stdout) == (7, "True ['--batch', '8']\n"), ended.stderr


def test_a_program_watches_itself_once_and_leaves_no_process(tmp_path):
    program = "import os, blockyard\nblockyard.watch()\nblockyard.watch()\nprint(os.environ['BLOCKYARD_WATCH_SOCKET'])"
    (tmp_path / "train.py").write_text(program)
    ended = run(tmp_path, "train.py")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("nothing was watched") == 1, ended.stderr
    assert not os.path.exists(os.path.dirname(ended.stdout.strip()))


def test_a_wrong_option_is_an_error(capfd):
    with pytest.raises(blockyard.BlockyardError, match="ended with status 2"):
        blockyard.watch(stop_before_failure=0)
    assert "stop-before-failure" in capfd.readouterr().err
