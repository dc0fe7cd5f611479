"""Commands of `blockyard`, each in a separate process because of Ctrl-C and output, and their JSON."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from blockyard import _native

# The beginning of the command's own error texts.
_ERROR = "error: "

# The package's library that stands for CUDA's, the extension that programs load, and the library that watches a program.
_LIBRARIES = {
    "BLOCKYARD_STANDIN": "libblockyard_standin.so.1",
    "BLOCKYARD_EXTENSION": "lib_blockyard.so.1",
    "BLOCKYARD_WATCH": "libblockyard_watch.so.1",
}


def has_standin() -> bool:
    """Whether the package was built with the library that stands for CUDA's."""
    return pathlib.Path(__file__).with_name(_LIBRARIES["BLOCKYARD_STANDIN"]).is_file()


def set_environment() -> None:
    """Names the package's libraries, and the Python that runs programs, unless the environment names them."""
    for variable, name in _LIBRARIES.items():
        library = pathlib.Path(__file__).with_name(name)
        if library.is_file():
            os.environ.setdefault(variable, str(library))
    os.environ.setdefault("BLOCKYARD_PYTHON", sys.executable)


def ask(command: str, words: Sequence[object], options: Mapping[str, object], echo: bool) -> dict[str, Any]:
    """The JSON of a command that runs programs; the command's output is printed if `echo` is true.

    `options` are as in `words_of`. Without a Python among them, programs run with this one. BlockyardError has the command's own words.
    """
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        report = pathlib.Path(folder, "report.json")
        given = {**options, "python": options.get("python") or sys.executable, "json": report}
        errors = _run([sys.executable, "-m", "blockyard", command, *words_of(given), *map(str, words)], echo)
        if not report.is_file():
            raise _native.BlockyardError(_cause(errors))
        if echo:
            # The program's own words after all.
            sys.stderr.writelines(line for line in errors.splitlines(keepends=True) if line.startswith(_ERROR))
        answer: dict[str, Any] = json.loads(report.read_text())
        return answer


def joined(names: str | Sequence[str]) -> str:
    """Names as an option takes them, separated by commas."""
    return names if isinstance(names, str) else ",".join(names)


def words_of(options: Mapping[str, object]) -> Iterator[str]:
    """The words of a command's options: None is left out, True is the name alone, a list is the option for each value."""
    for name, given in options.items():
        option = "--" + name.replace("_", "-")
        if given is True:
            yield option
            continue
        for value in given if isinstance(given, list) else [given]:
            if value is not None and value is not False:
                yield from (option, str(value))


def _run(command: list[str], echo: bool) -> str:
    """Runs the command, passes on its output as it comes, and returns its standard error."""
    # The command gets a separate process group: in a notebook Ctrl-C reaches this process alone, in a terminal all processes; the group gets it once.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    errors: list[str] = []
    reader = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr if echo else None, errors))
    reader.start()
    try:
        with _interrupting(process):
            _pass_on(process.stdout, sys.stdout if echo else None, [])
            process.wait()
    finally:
        reader.join()
    return "".join(errors)


@contextlib.contextmanager
def _interrupting(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Hands Ctrl-C to the program, and waits until it ended."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        raise


def _pass_on(lines: IO[str] | None, out: IO[str] | None, kept: list[str]) -> None:
    for line in lines or ():
        kept.append(line)
        # What may be the command's own error is kept back: it is raised.
        if out is not None and not (out is sys.stderr and line.startswith(_ERROR)):
            out.write(line)
            out.flush()


def _cause(errors: str) -> str:
    lines = [line for line in errors.splitlines() if line.strip()]
    wrong = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
    return "\n".join(wrong or lines) or "the command ended without a word"
