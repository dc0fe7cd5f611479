"""pytest-blockyard: a test fails where a PyTorch program takes more of a GPU's memory than it may. No GPU is needed.

    @pytest.mark.gpu_memory(program="train.py", gpu="h100", budget="60 GiB", args=["--batch-size", 8], steps=3)
    def test_memory(gpu_memory):
        assert gpu_memory.exact

A separate package, so that pytest's start loads nothing of `blockyard`: it is loaded for the first test that has the mark.
"""

import pathlib
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    import blockyard

_NAME = "gpu_memory"
_KEY = pytest.StashKey["blockyard.Guard"]()
_USE = "gpu_memory(program, gpu=None, budget=None, args=(), steps=None, tolerance=None, conf=None)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, and the same in the configuration."""
    group = parser.getgroup("blockyard", "GPU memory of programs")
    group.addoption(
        "--gpu-memory-file",
        metavar="FILE",
        help="the file with baselines; memory.toml in pytest's root folder without it",
    )
    group.addoption(
        "--gpu-memory-update",
        action="store_true",
        help="write what the programs take into the file, as the new baselines",
    )
    parser.addini("gpu_memory_file", "the file with baselines, from pytest's root folder on", default="memory.toml")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line(
        "markers",
        f"{_USE}: run the program without a GPU before the test, and fail where it takes more than its budget or its baseline",
    )


@pytest.fixture
def gpu_memory(request: pytest.FixtureRequest) -> "blockyard.DryRun":
    """What the program of the test's mark took: a `blockyard.DryRun`."""
    guarded = _guarded(request.node)
    if guarded is None:
        raise pytest.UsageError(f"{request.node.nodeid}: the fixture {_NAME} needs the mark @pytest.mark.{_USE}")
    return guarded.run


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fails the test where its program does not pass."""
    guarded = _guarded(item)
    if guarded is not None and not guarded.passed:
        pytest.fail(guarded.text.rstrip("\n"), pytrace=False)


def _guarded(item: pytest.Item) -> "blockyard.Guard | None":
    """The guard's answers about the item's program, which is run once; none without a mark."""
    mark = item.get_closest_marker(_NAME)
    if mark is None:
        return None
    if _KEY not in item.stash:
        item.stash[_KEY] = _run(item, mark)
    return item.stash[_KEY]


def _run(item: pytest.Item, mark: pytest.Mark) -> "blockyard.Guard":
    from blockyard import BlockyardError
    from blockyard._guard import guard

    if sum(other.name == _NAME for other in item.own_markers) > 1:
        _refuse("a test has one such mark: write a test for each program, or give each `pytest.param` its mark")
    named = _arguments(mark)
    config = item.config
    file = pathlib.Path(config.rootpath, config.getoption("--gpu-memory-file") or config.getini("gpu_memory_file"))
    program = pathlib.Path(file.parent, named.pop("program"))
    try:
        found = guard(
            program,
            named.pop("args", ()),
            **named,
            file=file,
            update=config.getoption("--gpu-memory-update"),
            echo=False,
        )
    except BlockyardError as error:
        pytest.fail(f"@pytest.mark.{_NAME}: {error}", pytrace=False)
    if len(found) > 1:
        _refuse(f"{file.name} has the program on {', '.join(one.gpu for one in found)}: name the GPU")
    return found[0]


def _arguments(mark: pytest.Mark) -> dict[str, Any]:
    """The arguments of a mark by their names; a mark that has others fails its test."""
    kinds: dict[str, tuple[type, ...]] = {
        "program": (str, pathlib.Path),
        "gpu": (str,),
        "budget": (str, int),
        "args": (list, tuple),
        "steps": (int,),
        "tolerance": (str, int),
        "conf": (str,),
    }
    if len(mark.args) > 1:
        _refuse(f"only the program may stand without its name; this is {_USE}")
    named = dict(zip(("program",), mark.args, strict=False))
    for name, value in mark.kwargs.items():
        if name not in kinds:
            _refuse(f"there is no argument `{name}`; this is {_USE}")
        if name in named:
            _refuse(f"`{name}` is given twice")
        named[name] = value
    for name, value in named.items():
        if value is not None and (not isinstance(value, kinds[name]) or isinstance(value, bool)):
            words = " or ".join(kind.__name__ for kind in kinds[name])
            _refuse(f"`{name}` is {value!r}, and should be of type {words}")
    if named.get("program") is None:
        _refuse(f"the program is missing; this is {_USE}")
    return {name: value for name, value in named.items() if value is not None}


def _refuse(why: str) -> NoReturn:
    pytest.fail(f"@pytest.mark.{_NAME}: {why}", pytrace=False)
