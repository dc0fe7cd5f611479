import argparse
import collections
import datetime
import enum
import heapq
import inspect
import io
import json
import logging
import os
import pathlib
import pprint
import re
import statistics
import string
import sys
import textwrap
import warnings

print(re.findall(r"\w+", "one two, three"), re.sub(r"(\w)(\d+)", r"\2-\1", "a1 b22"), re.split(r"[,;]\s*", "a, b;c"))
print(re.match(r"(?P<key>[a-z]+)=(?P<value>\d+)$", "abc=12").groupdict(), re.search(r"b+?", "abbb").span())
print(re.findall(r"(?i)HELLO|wor(?=ld)", "hello world"), re.sub(r"[^a-z ]", "", "It's 9 o'clock".lower()))
print([m.group() for m in re.finditer(r"(?<!x)\d{2,3}", "x12 345 6789")], re.escape("a.b*c"), bool(re.fullmatch(r"a|b", "ab")))
print(re.findall(r"'s|'t|'re| ?[a-zA-Z]+| ?\d+| ?[^\sa-zA-Z\d]+|\s+(?!\S)|\s+", "He's 42 years  old!"))
print(re.compile(r"^(\w+)\s+\1$", re.M | re.I).findall("the The\nno yes"), re.sub("a", lambda m: m.group().upper(), "banana", count=2))
print(re.findall(r"((a|b)+)(c)?", "abac ab"), re.split(r"(-)", "a-b-c"), re.sub(r"(?P<x>b)", r"[\g<x>\g<0>]", "abc"))
try:
    re.compile("(a")
except re.error as e:
    print(e)
print(json.dumps({"a": [1, 2.5, None, True], "b": {"c": "é\n"}}, sort_keys=True), json.dumps([1, {"x": ()}], indent=2))
print(json.loads(' {"a": [1, -2.5e3, "x\\u00e9", null, false], "b": {}} '), json.dumps((1, 2), separators=(",", ":")))
try:
    json.loads("[1, 2")
except json.JSONDecodeError as e:
    print(e)
parser = argparse.ArgumentParser(prog="train", description="Train.")
parser.add_argument("data")
parser.add_argument("--lr", type=float, default=1e-3, metavar="LR", help="learning rate (default: %(default)s)")
parser.add_argument("--batch-size", "-b", type=int, default=64)
parser.add_argument("--no-cuda", action="store_true", default=False)
parser.add_argument("--sizes", nargs="+", type=int)
parser.add_argument("--arch", choices=["a", "b"], default="a")
print(parser.parse_args(["x", "--lr", "0.1", "-b", "8", "--no-cuda", "--sizes", "1", "2", "--arch=b"]))
print(parser.parse_args(["x"]), parser.parse_known_args(["x", "--other", "3"])[1])
sys.stderr = io.StringIO()
try:
    parser.parse_args(["x", "--lr", "y"])
except SystemExit as e:
    print("exit", e.code, sys.stderr.getvalue().splitlines()[-1])
print(string.ascii_lowercase[:3], string.Template("$a ${b}").substitute(a=1, b=2), string.capwords("a bc"))
heap = [5, 1, 4]
heapq.heapify(heap)
heapq.heappush(heap, 2)
print([heapq.heappop(heap) for _ in range(4)], heapq.nlargest(2, [1, 5, 3]))
print(statistics.mean([1, 2, 3]), statistics.stdev([1, 2, 4]), statistics.median([3, 1, 2, 4]), statistics.quantiles([1, 2, 3, 4, 5]))
print(textwrap.dedent("  a\n    b\n"), textwrap.wrap("the quick brown fox", 10), textwrap.indent("a\nb", "> "))


def f(a, b=2, *args, c, d: int = 4, **kwargs):
    pass


print(inspect.signature(f), list(inspect.signature(f).parameters), inspect.isfunction(f), inspect.isclass(int))
print(pathlib.Path("a") / "b.txt", pathlib.Path("a/b.tar.gz").suffix, pathlib.Path("/x/y.py").stem, pathlib.Path("x").exists())
print(datetime.timedelta(seconds=3725), datetime.datetime(2024, 2, 29, 12, 30).strftime("%Y-%m-%d %H:%M:%S %j %a"))
print(datetime.datetime(2024, 3, 1) - datetime.datetime(2024, 2, 1, 1), str(datetime.datetime(2024, 1, 2) + datetime.timedelta(days=60)))
pprint.pprint({"b": list(range(30)), "a": {"x": 1}})
out = io.StringIO()
out.write("x\n")
print("y", file=out)
print(repr(out.getvalue()))
log = logging.getLogger("train")
log.addHandler(logging.StreamHandler(sys.stdout))
log.setLevel(logging.INFO)
log.info("step %d of %s", 3, "ten")
log.debug("unseen")
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    warnings.warn("careful")
print(found[0].message, found[0].category.__name__)


class Color(enum.Enum):
    RED = 1
    BLUE = enum.auto()


print(Color.RED, Color(2), [c.name for c in Color], Color["BLUE"].value)
print(os.path.join("a", "b", "../c.txt"), os.path.splitext("x.tar.gz"), os.environ.get("NOT_THERE", "default"))
print(collections.Counter("banana").most_common(2), collections.deque([1, 2, 3], maxlen=2))
