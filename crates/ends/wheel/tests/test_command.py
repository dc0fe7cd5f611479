"""`python -m blockyard` is the `blockyard` command."""

import pathlib
import subprocess
import sys

FIXTURES = pathlib.Path(__file__).parents[4] / "tests" / "fixtures"


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "blockyard", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_a_recording_is_verified():
    done = run("verify", FIXTURES / "programs" / "multistream.jsonl.gz")
    assert done.returncode == 0, done.stderr
    assert "identical" in done.stdout


def test_a_wrong_argument_is_a_failure():
    done = run("no-such-command")
    assert done.returncode == 2 and "`no-such-command` is neither a command nor a file" in done.stderr


def test_a_missing_file_is_named():
    done = run("verify", "missing.jsonl")
    assert done.returncode == 2 and "missing.jsonl: not replayed" in done.stdout


def test_the_program_is_installed():
    program = pathlib.Path(sys.executable).with_name("blockyard")
    assert subprocess.run([program, "--version"], capture_output=True, check=True).stdout.startswith(b"blockyard ")


def test_the_package_has_a_course_and_its_sheets(tmp_path):
    own = tmp_path / "mine.md"
    own.write_text("---\nid: mine\ntitle: Mine\nsummary: One card.\ncapacity: 64 MiB\n---\n\n## One\nA card.\n")
    done = run("site", tmp_path / "course", own, "--title", "Week 3")
    assert done.returncode == 0, done.stderr
    assert "Week 3" in (tmp_path / "course" / "course.html").read_text()
    for name in ("index.html", "open/mine.md", "blockyard-web_bg.wasm", "service-worker.js"):
        assert (tmp_path / "course" / name).exists(), name
    done = run("lesson", "reserved", "--handout", tmp_path / "sheet.html", "--key", tmp_path / "key.html")
    assert done.returncode == 0 and "<svg" in (tmp_path / "sheet.html").read_text(), done.stderr
