"""Runs in the page: as files, in a notebook, in the browser."""

import html
import os
import pathlib
import tempfile
import webbrowser
from collections.abc import Iterable

from blockyard import _native

# The name of a file, its bytes, and the memory that is meant: the number of a device, "host", or None for all.
Content = tuple[str, bytes, str | None]

_FOLDER = pathlib.Path(__file__).with_name("page")

# What a notebook carries for one cell beside the page itself, packed.
MAX_CELL_BYTES = 4_000_000


def folder() -> pathlib.Path | None:
    """The built page that comes with the package; None in a package without the page, as in one built by hand."""
    return _FOLDER if (_FOLDER / "boot.js").is_file() else None


def write_whole(path: "str | os.PathLike[str]", content: bytes) -> None:
    """Writes beside the file and puts it in its place once it is complete."""
    path = pathlib.Path(path)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


class Shown:
    """Runs and snapshots that are written in other formats and shown in the page."""

    def _content(self) -> Content:
        raise NotImplementedError

    def export(self, path: "str | os.PathLike[str]") -> None:
        """Writes the run in another format, by the end of the path.

        `.html` is one page that opens without a network, `.pickle` opens on pytorch.org/memory_viz, `.jsonl` is a recording, `.svg` and
        `.png` are a figure of memory over time, `.csv` is a table.

        >>> import tempfile, pathlib
        >>> from blockyard import play
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.csv"
        >>> play("a = alloc 3 MiB").export(path)
        >>> path.read_text().splitlines()[1].split(",")[-1]
        '20971520'
        """
        write_whole(path, self._exported(pathlib.Path(path).suffix.removeprefix(".")))

    def report(
        self,
        path: "str | os.PathLike[str] | None" = None,
        *,
        redact: bool = False,
        notes: "str | Iterable[str] | None" = None,
        conf: str | None = None,
        limit: int | None = None,
        capacity: int | None = None,
    ) -> str:
        """One HTML page about the run, to read, to send and to print: the verdict, figures, who holds the memory, what other settings do.

        Returns the page, and writes it to `path` if `path` is given. The page has no script and needs no network. `redact` leaves out
        stacks, and the names of functions, files and tensors. `notes` are paragraphs of your own. `conf`, `limit` and `capacity` are the terms
        of the replays for the verdict and the settings, as in `autopsy`.

        >>> from blockyard import play
        >>> "It fits: at most 3 MiB are allocated" in play("a = alloc 3 MiB").report()
        True
        """
        paragraphs = [] if notes is None else [notes] if isinstance(notes, str) else list(notes)
        page = self._report(_native.ReportArguments(redact, paragraphs, conf, limit, capacity))
        if path is not None:
            write_whole(path, page.encode())
        return page

    def _report(self, arguments: _native.ReportArguments) -> str:
        raise NotImplementedError

    def show(self) -> pathlib.Path:
        """Opens the page in the browser, with the run in it, and returns the path of the page's file, which is left for the browser."""
        content = self._exported("html")
        name = pathlib.PurePath(self._content()[0]).name
        with tempfile.NamedTemporaryFile(prefix=f"{name}-", suffix=".html", delete=False) as file:
            file.write(content)
        path = pathlib.Path(file.name)
        webbrowser.open(path.as_uri())
        return path

    def _exported(self, kind: str) -> bytes:
        name, content, device = self._content()
        if device is None and kind in ("svg", "png", "csv", "jsonl"):
            device = self._one_device()
        return _native.export(content, name, kind, device, folder())

    def _one_device(self) -> str | None:
        return None

    def _repr_html_(self) -> str | None:
        name, content, device = self._content()
        if folder() is None and "BLOCKYARD_PAGE" not in os.environ:
            # The text alone: a package built by hand may have no page.
            return None
        cell = _native.frame(content, name, device, folder(), MAX_CELL_BYTES)
        if cell is not None:
            return cell
        figure = self._exported("svg").decode()
        return (
            f"<p>{html.escape(repr(self))} is too large for a notebook's cell, which carries {MAX_CELL_BYTES // 10**6} MB: "
            f'<code>show()</code> opens it in the browser, <code>export("run.html")</code> writes it as a page.</p>'
            f'<div style="background:#fff;max-width:100%;overflow:auto">{figure}</div>'
        )
