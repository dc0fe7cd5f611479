"""Calls of numpy, and what numpy itself prints for them: `python numpy_calls.py` writes `numpy.txt` beside this file.

A row is a call, ` => `, and its result as `repr`, with `str` behind it where that is another text; or the name of the exception.
The test `numpy` makes each call on ours.
"""

import pathlib
import sys
import warnings

A = "np.arange(24).reshape(2, 3, 4)"
B = "(np.arange(12).reshape(3, 4) * 7 % 5 - 1.5)"
C = "np.array([3, 1, 2, 1, 9, -4])"
D = "np.array([0.1, 2.5, -3.75, 1e-3, 7.0])"
E = "np.arange(100).reshape(10, 10).astype(np.float32) / 7"
F = "np.array([[True, False, True], [True, True, True]])"
R = "np.random.default_rng(0).random((4, 5, 30))"


def calls():
    yield from _reductions()
    yield from _orders()
    yield from _elements()
    yield from _shapes()
    yield from _indices()
    yield from _printing()
    yield from _types()
    yield from _random()
    yield from _legacy_random()
    yield from _others()


def _reductions():
    for name in ("sum", "mean", "max", "min", "prod", "std", "var", "any", "all", "argmax", "argmin", "median", "count_nonzero", "ptp"):
        for array in (A, B, F):
            for rest in ("", ", axis=0", ", axis=-1", ", axis=1, keepdims=True"):
                yield f"np.{name}({array}{rest})"
        yield f"np.{name}({A}, axis=(0, 2))"
        yield f"np.{name}({A}, keepdims=True)"
        yield f"np.{name}({E}, axis=1)"
        yield f"np.{name}({E})"
        yield f"np.{name}([])"
        yield f"np.{name}({A}, axis=3)"
    for name in ("sum", "mean", "std", "var", "prod"):
        for rest in ("", ", axis=0", ", axis=1", ", axis=2", ", axis=(0, 1)", ", axis=(1, 2)", ", axis=(0, 2)"):
            yield f"np.{name}({R}{rest})[..., :3].tolist()" if rest not in ("",) else f"np.{name}({R})"
        yield f"np.{name}({R}.T, axis=0)[0, :3].tolist()"
        yield f"np.{name}({R}[::2, ::-1], axis=-1)[0, :3].tolist()"
        yield f"np.{name}({R}.astype(np.float32), axis=-1)[0, :3].tolist()"
        yield f"{A}.{name}(axis=1)"
        yield f"{A}.{name}(dtype=np.float32)"
    for weights in ("[1, 2, 3, 4]", "[0.5, 0.25, 0.25, 0]"):
        yield f"np.average({B}, weights={weights}, axis=1)"
        yield f"np.average({B}, weights={weights})"
    for name in ("nansum", "nanmean"):
        yield f"np.{name}([1.0, np.nan, 3.0])"
        yield f"np.{name}(np.array([[1.0, np.nan, 3.0], [4, 5, 6]]), axis=0)"
        yield f"np.{name}({A}, axis=1)"
    yield from ("np.sum((np.arange(42) * 11 % 5 - 2).reshape(6, 7)[::-1] / 10)", "np.mean((np.arange(6) * 3 % 13).reshape(2, 3).astype('f4')[..., 1:] / np.float32(7))",
                "np.sum(((np.arange(42) * 11 % 5 - 2).reshape(6, 7) / 10)[::-1])", "np.mean(((np.arange(6) * 3 % 13).reshape(2, 3).astype('f4') / np.float32(7))[..., 1:])",
                "np.var((np.arange(6) * 11 % 9 / 3)[::-1])", f"np.sum({R}.transpose(2, 0, 1)[:, ::2])", f"np.prod({R}[::-1, 1:])", "np.sort(np.float64(1.0))",
                "np.mean((np.arange(6) * 11 % 13 / -7).reshape(3, 1, 2).T)", "np.percentile([-0.0], 50)")  # fmt: skip
    yield from ("np.std([1, 2, 3, 4], ddof=1)", "np.var([1, 2, 3, 4], ddof=1)", "np.sum([[1, 2], [3, 4]], where=[[True, False], [True, True]])",
                "np.sum([True, True])", "np.sum(np.ones(3, np.int8))", "np.sum(np.full(300, 200, np.uint8))",
                "np.sum(np.array([1, 2], np.uint8))", "np.sum([0.1] * 1000)",
                "np.sum(np.full(1000, 0.1, np.float32))", "np.mean(np.full(1000, 0.1, np.float32))", "sum(np.array([0.1, 0.2, 0.3]))",
                "np.max([1.0, np.nan])", "np.argmax([1.0, np.nan, 3])", "np.add.outer([1, 2], [3, 4])", "np.prod([1e200, 1e200])")  # fmt: skip


def _orders():
    for array in (A, B, C, D):
        yield f"np.unique({array})"
    for name in ("sort", "cumsum", "cumprod", "diff"):
        for array in (A, B, C, D):
            for rest in ("", ", axis=0", ", axis=-1", ", axis=None"):
                yield f"np.{name}({array}{rest})"
    for rest in ("", ", axis=0", ", kind='stable'", ", axis=None"):
        yield f"np.argsort({D}{rest})"
        yield f"np.argsort({B}{rest})"
        yield f"np.argsort([[3, 1, 2], [9, 8, 7]]{rest})"
    for rest in ("return_index=True", "return_inverse=True", "return_counts=True", "return_counts=True, return_inverse=True"):
        yield f"np.unique({C}, {rest})"
        yield f"np.unique(['b', 'a', 'b'], {rest})"
    for q in ("50", "[25, 50, 75]", "99.5", "0", "100", "101"):
        for rest in ("", ", axis=0", ", axis=1, keepdims=True"):
            yield f"np.percentile({B}, {q}{rest})"
        yield f"np.percentile({D}, {q})"
        yield f"np.percentile({C}, {q})"
    yield from ("np.quantile([1, 2, 3, 4], 0.3)", "np.quantile([1.5, 2, 3, 4], [0.1, 0.9])", "np.median([1, 2, 3, 4])", "np.median([3, 1, 2])",
                "np.median(np.array([1, 2, 3, 4], np.float32))", "np.median([[1, 2], [3, np.nan]], axis=0)", "np.diff([1, 4, 9, 16], n=2)",
                "np.diff([True, False, True])", "np.cumsum([[1, 2], [3, 4]], axis=1, dtype=float)", "np.cumsum([True, True])",
                "np.searchsorted([1, 2, 3, 5], [0, 2, 4, 9])", "np.searchsorted([1, 2, 3, 5], 3, side='right')", "np.digitize([0.2, 6.4, 3.0], [0, 1, 2.5, 4])",
                "np.bincount([0, 1, 1, 3])", "np.bincount([0, 1, 1, 3], minlength=6)", "np.bincount([0, 1, 1], weights=[0.5, 1, 2])", "np.bincount([-1])",
                "np.histogram([1, 2, 1], bins=[0, 1, 2, 3])", "np.histogram([1.0, 2.5, 2.7, 9.0], bins=4)", "np.histogram(np.arange(20), bins=5, range=(0, 10))",
                "np.histogram([1, 2, 1], density=True)",
                "np.sort([3, np.nan, 1])", "np.sort([[3, 1], [2, 9]], kind='stable')", "a = np.array([3, 1, 2]); a.sort(); a",
                "a = np.array([[3, 1, 2], [1, 2, 0]]); a.sort(axis=0); a", "np.nonzero([0, 3, 0, 4])",
                "np.flatnonzero([[0, 1], [2, 0]])", "np.where([True, False, True])", "np.isin([1, 2, 3], [2, 5])",
                "np.intersect1d([3, 1], [2, 1])", "np.partition([3, 1, 2], 1)", "np.argsort([1, 1, 0])",
                "np.array([3, 1, 2]).argsort()", "np.array([3, 1, 2]).argsort()[::-1]", "np.array([[1, 2], [3, 4]]).cumsum(axis=0)")  # fmt: skip


_TWO = "add subtract multiply divide floor_divide mod power maximum minimum greater less equal not_equal greater_equal less_equal logical_and logical_or"
_ONE = "negative abs sign square sqrt floor ceil rint trunc isnan isinf isfinite logical_not positive"


def _elements():
    pairs = (
        ("[1, -2, 3]", "[4, 5, -2]"),
        ("[1.5, -2.5, 0.0]", "[2, 0.5, 3]"),
        ("[True, False, True]", "[True, True, False]"),
        ("np.arange(6).reshape(2, 3)", "[10, 20, 30]"),
        ("np.arange(3, dtype=np.uint8)", "np.int8(3)"),
        ("np.arange(3, dtype=np.float32)", "2.5"),
        ("np.arange(3, dtype=np.int32)", "np.float32(0.1)"),
        ("np.float64(7)", "2"),
        ("np.int64(7)", "-2"),
        ("np.int64(7)", "0.5"),
        ("[[1], [2]]", "np.arange(4)"),
        ("[1, 2, 3]", "[1, 2]"),
    )
    for name in _TWO.split():
        for left, right in pairs:
            yield f"np.{name}({left}, {right})"
    for name in _ONE.split():
        for array in ("[1, -2, 3]", "[1.5, -2.5, 4.0]", "[True, False]", "np.float32(2.5)", "np.array([[1, 4], [9, 16]], np.float32)", "5", "-0.75"):
            yield f"np.{name}({array})"
    for name in "exp log log2 log10 log1p expm1 sin cos tan tanh arctan sinh cosh arcsin".split():
        yield f"np.{name}([0.25, 0.5, 0.75, 1.0])"
        yield f"np.{name}([[0.0, 0.125], [0.3, 0.9]])"
        yield f"f'{{np.{name}(0.6):.6f}}'"
        yield f"round(np.{name}(0.6), 5)"
        yield f"np.{name}(np.array([0.25, 0.5], np.float32)).dtype"
    operators = "+ - * / // % ** & ^ == != < <= > >="
    for sign in operators.split():
        for left, right in (("np.array([1, 2, 3])", "2"), ("2", "np.array([1, 2, 3])"), ("np.array([1.5, 2.0])", "np.array([2, 4])"),
                            ("np.float32(1.5)", "2"), ("np.int64(5)", "np.int64(3)"), ("np.array([True, False])", "True"), ("np.uint8(200)", "np.uint8(100)")):  # fmt: skip
            yield f"{left} {sign} {right}"
    yield from ("np.array([True, False]) ** 2", "np.array([1.5, 1 / 3], np.float32).astype(str)", "np.arange(np.uint8(3)).dtype", "np.arange(np.float32(3)).dtype",
                "a = np.arange(4)[::-1]; b = a.ravel(); b[0] = 9; a", "np.squeeze(np.float64(1.5))", "np.array([], np.uint8) + 300", "a = np.array([-0.0, 4.0]); a **= 0.5; a", "np.maximum(0.0, -0.0)", "np.float64(1.5)[None]", "np.linalg.norm(np.float64(1.0), axis=0)", "np.array([1, 2]) << 2")  # fmt: skip
    yield from ("np.array([1, 2, 3]) | np.array([4, 1, 0])", "~np.array([True, False])", "~np.array([1, 2])", "-np.array([1, 2])", "abs(np.array([-1, 2]))",
                "divmod(np.array([7, -7]), 3)", "np.array([1, 2], np.uint8) + 300", "np.array([250], np.uint8) + np.uint8(10)", "np.int8(100) + np.int8(100)",
                "np.array([1, 2]) / 0", "np.array([0.0, -1.0]) / 0", "np.array([1, 2]) // 0", "np.array([2, 3]) ** -1", "np.array([2.0, 4.0]) ** 0.5",
                "np.array([2.0, 3.0]) ** 3", "np.array([2, 3]) ** 2.0", "2.0 ** np.array([1, 2, 3])", "np.array([1.5, 2.5, 3.5]) % 1", "np.array([-7.5]) // 2",
                "np.clip([1, 5, 9], 2, 6)", "np.clip([1.5, 5, 9], 2, None)", "np.array([1, 5, 9]).clip(2, 6)", "np.clip([1, 5, 9], [2, 2, 2], 6)", "np.clip(3, 0, 1)",
                "np.clip(np.array([1, 5], np.float32), 2, 4.5)", "np.round([1.234, 5.678], 1)", "np.round(2.5)", "np.round([0.5, 1.5, 2.5])", "np.round(1234.5, -2)",
                "np.round([15, 25], -1)", "np.array([1.26, 2.35]).round(1)", "np.around(3.14159, 3)", "round(np.float64(2.675), 2)", "round(np.float64(2.5))",
                "np.where([True, False], [1, 2], [3, 4])", "np.where(np.array([1, -1]) > 0, 1.5, 0)", "np.where([[True], [False]], [1, 2], 9)",
                "np.where(np.arange(3, dtype=np.float32) > 1, np.arange(3, dtype=np.float32), 0)", "np.isclose([1, 2], [1.0000001, 3])", "np.allclose([1, 2], [1, 2 + 1e-9])",
                "np.allclose([1, 2], [1, 3])", "np.array_equal([1, 2], [1, 2])", "np.array_equal([1, 2], [1, 2, 3])",
                "np.sqrt(-1)", "np.log(0)", "np.log([-1.0])", "np.exp(1000)",
                "np.exp(0)", "np.log(1)", "np.sin(0)", "np.sign(-0.0)",
                "a = np.zeros(2); np.add([1, 2], 3, out=a); a", "a = np.zeros(2, int); a += 1.5; a", "a = np.ones(2, int); a *= 3; a",
                "a = np.ones(2); a /= 4; a", "a = np.ones(2, int); a /= 2; a", "a = np.array([1, 2]); a -= 1; a",
                "np.array([1.0, 2.0]) == None", "np.array([1, 2]) == 'a'", "np.array(['a', 'b']) == 'a'", "np.array(['a', 'b']) != np.array(['a', 'c'])", "np.invert(np.uint8(1))",
                "np.subtract([True], [False])", "np.negative([True])", "np.fmax([1, np.nan], [2, 3])", "np.maximum([1, np.nan], 2)", "np.nan_to_num([np.nan])",
                "np.exp(-np.array([0.0, 1.0, 2.0])) / np.sum(np.exp(-np.array([0.0, 1.0, 2.0])))", "1 / (1 + np.exp(-np.array([-1.0, 0.0, 1.0])))",
                "np.log(np.array([0.25, 0.75])).sum().round(6)", "f'{np.mean(np.exp([0.1, 0.2])):.4f}'", "np.exp([1.0, 2.0]) > 3", "np.argmax(np.exp([1.0, 3.0, 2.0]))")  # fmt: skip


def _shapes():
    yield from ("np.zeros(3)", "np.zeros((2, 3), int)", "np.ones((2, 2), dtype=np.float32)", "np.full((2, 2), 7)", "np.full(2, 0.5, np.float32)", "np.full((2, 2), [1, 2])",
                "np.eye(3)", "np.eye(2, 3, k=1, dtype=int)", "np.arange(5)", "np.arange(1, 10, 3)", "np.arange(0, 1, 0.25)", "np.arange(0.1, 1, 0.3)",
                "np.arange(5, dtype=np.float32)", "np.arange(5, 0, -2)", "np.arange(3.0)", "np.arange(0, 1, 0.1)", "np.linspace(0, 1, 5)", "np.linspace(0, 1, 5, endpoint=False)",
                "np.linspace(0, 10, 7)", "np.linspace(0, 5, 4, dtype=int)", "np.linspace(1, 0, 3)", "np.linspace(0, 1, 1)", "np.linspace(-3, 3, 50).tolist()",
                "np.logspace(0, 3, 4)", "np.zeros_like([1, 2])", "np.ones_like([[1.5]])", "np.full_like([1, 2], 7.9)", "np.empty((2, 0))", "np.array(5)", "np.array(2.5)",
                "np.array([1, 2.5])", "np.array([True, 2])", "np.array([[1, 2], [3, 4]], float)", "np.array([1, 2], np.int8)", "np.array([1.7, -2.2], int)", "np.array(['a', 'bcd'])",
                "np.array([1, 'a'])", "np.array([None, 1])", "np.array([[1, 2], [3]])", "np.array([300], np.uint8)", "np.array([1, 2], ndmin=2)", "np.array(range(4))", "np.array((1, 2))",
                "np.array([np.float32(1.5), 2])", "np.array([np.int8(1), np.int16(2)])", "np.array([2**63])", "np.array([np.arange(2), np.arange(2)])", "np.asarray([1, 2], np.float32)",
                "np.array(1, complex)", "np.array([])", "np.array([[], []])")  # fmt: skip
    for index, array in (("A", A), ("B", B)):
        for method in ("T", "shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "ravel()", "flatten()", "tolist()", "reshape(-1)", "reshape(4, -1)", "reshape((2, -1))", "reshape(5, 5)",
                       "transpose()", "swapaxes(0, 1)", "copy()", "astype(int)", "astype(np.float32)", "astype(bool)", "astype(str)", "astype('uint8')", "squeeze()", "repeat(2)", "repeat(2, axis=0)",
                       "flags.c_contiguous", "T.flags.c_contiguous", "T.ravel()", "T.reshape(-1)", "T.copy().strides", "base is None", "reshape(-1).base is None", "sum", "flatten('F')"):  # fmt: skip
            if method != "sum":
                yield f"{array}.{method}"
    yield from ("np.concatenate([[1, 2], [3]])", "np.concatenate(([[1, 2]], [[3, 4]]), axis=1)", "np.concatenate([[1, 2], [3.5]])", "np.concatenate([[1], [[2]]])", "np.concatenate([[[1, 2]], [[3]]])",
                "np.concatenate([[[1]], [[2]]], axis=None)", "np.stack([[1, 2], [3, 4]])", "np.stack([[1, 2], [3, 4]], axis=1)", "np.stack([[1, 2], [3, 4]], axis=-1)", "np.stack([[1], [1, 2]])",
                "np.vstack([[1, 2], [3, 4]])", "np.vstack(([[1, 2]], [3, 4]))", "np.hstack([[1, 2], [3]])", "np.hstack(([[1], [2]], [[3], [4]]))", "np.column_stack(([1, 2], [3, 4]))",
                "np.append([1, 2], 3)", "np.append([[1, 2]], [[3, 4]], axis=0)", "np.append([1, 2], [3.5])",
                "np.split(np.arange(6), 3)", "np.split(np.arange(6), [2, 5])", "np.split(np.arange(6), 4)", "np.array_split(np.arange(7), 3)", "np.tile([1, 2], 2)",
                "np.tile([1, 2], (2, 2))", "np.repeat([1, 2], 2)", "np.repeat([1, 2], [1, 3])", "np.repeat([[1, 2], [3, 4]], 2, axis=1)", "np.reshape([1, 2, 3, 4], (2, 2))", "np.transpose([[1, 2], [3, 4]])",
                "np.transpose(np.ones((1, 2, 3)), (2, 0, 1)).shape", "np.moveaxis(np.ones((1, 2, 3)), 0, -1).shape", "np.squeeze(np.ones((1, 2, 1))).shape", "np.squeeze(np.ones((1, 2)), axis=1)",
                "np.expand_dims([1, 2], 0)", "np.expand_dims([1, 2], -1)", "np.expand_dims(np.ones(2), (0, 2)).shape", "np.flip([1, 2, 3])", "np.flip([[1, 2], [3, 4]], axis=0)", "np.flip([[1, 2], [3, 4]])",
                "np.pad([1, 2], 1)",
                "np.pad([[1]], ((1, 0), (0, 2)), constant_values=9)", "np.pad([1, 2], 1, mode='edge')", "np.meshgrid([1, 2], [3, 4, 5])", "np.meshgrid([1, 2], [3, 4], indexing='ij')", "np.broadcast_to([1, 2], (2, 2))",
                "np.broadcast_to([1, 2], (3, 3))", "np.atleast_2d([1, 2])", "np.atleast_1d(3)", "np.triu(np.ones((3, 3)))", "np.tril(np.arange(9).reshape(3, 3), -1)", "np.diag([1, 2])", "np.diag([[1, 2], [3, 4]])",
                "np.dot([1, 2], [3, 4])", "np.dot([[1, 2], [3, 4]], [5, 6])", "np.dot([1.5, 2.5], [3, 4])", "np.dot([[1.0, 2], [3, 4]], [[5, 6], [7, 8]])",
                "np.array([[1, 2], [3, 4]]) @ np.array([1, 1])", "np.matmul(np.ones((2, 3)), np.ones((3, 2)))", "np.matmul(np.ones((2, 3)), np.ones((2, 2)))", "np.dot([1, 2], [1, 2, 3])",
                "np.matmul(np.arange(8).reshape(2, 2, 2), np.ones((2, 2), int))", "np.outer([1, 2], [3, 4])", "np.dot(np.full(9, 0.1), np.full(9, 0.1)).round(6)",
                "np.linalg.norm([3, 4])", "np.linalg.norm([[3.0, 4.0], [6.0, 8.0]], axis=1)", "np.linalg.norm([[3, 4], [0, 0]])", "np.linalg.norm([1, -2], ord=1)", "np.linalg.norm([1, -2], np.inf)",
                "np.linalg.norm([[3.0, 4.0]], axis=1, keepdims=True)", "np.linalg.inv([[1.0]])", "np.take([4, 5, 6], [0, 2])", "np.take([[1, 2], [3, 4]], 1, axis=1)",
                "np.select([[True, False], [False, True]], [[1, 2], [3, 4]])", "np.einsum('ij->i', np.ones((2, 2)))", "np.shape([[1, 2]])", "np.ndim([[1]])")  # fmt: skip


def _indices():
    a = "a = np.arange(20).reshape(4, 5)"
    for index in ("0", "-1", "1, 2", "1:3", ":, 1", "::2, ::-1", "..., 0", "None", "[0, 2]", "[0, 2], [1, 3]", ":, [0, 2]", "a > 9", "a[:, 0] > 4", "[True, False, True, False]", "np.array([[0, 1], [2, 3]])", "1:2, [0, 1]",
                  "[[0], [1]], [2, 3]", "4", "0, 9", "0, 0, 0", "1.5", "()", "...", "-2:, -2:", "np.int64(1)", "np.array(1)", "True", "slice(1, 3)", "(slice(None), 2)", "[]", "a % 2 == 0, 1", "[9]", "'x'"):  # fmt: skip
        yield f"{a}; a[{index}]"
    for index, value in (("0", "9"), ("1, 2", "7.9"), (":, 0", "[1, 2, 3, 4]"), ("a > 10", "0"), ("[0, 1], [1, 2]", "[50, 60]"), ("::2", "-1"), ("0", "[1, 2]"), ("...", "3"), ("[0, 0]", "8"), (":, [0, 2]", "5")):  # fmt: skip
        yield f"{a}; a[{index}] = {value}; a"
    yield from ("a = np.arange(6); b = a[1:4]; b[0] = 99; a", "a = np.arange(6); b = a.reshape(2, 3); b[0, 0] = 9; a", "a = np.arange(4); b = a[[0, 1]]; b[0] = 9; a", "a = np.arange(4).reshape(2, 2); b = a.T; b[0, 1] = 9; a",
                "a = np.arange(4); b = a.copy(); b[0] = 9; a", "a = np.arange(4); b = a.ravel(); b[0] = 9; a", "a = np.arange(4); b = a.flatten(); b[0] = 9; a", "a = np.arange(6); a[1:] = a[:-1]; a", "a = np.arange(4).reshape(2, 2); a[:] = a.T; a",
                "a = np.arange(3); a += a[::-1]; a", "a = np.zeros(3); a[1] = 2; a", "a = np.zeros((2, 2)); a[0] += 1; a", "a = np.zeros(3); a[[0, 0]] += 1; a", "a = np.zeros(3, np.uint8); a[0] = 256; a",
                "a = np.array(['ab', 'c']); a[0] = 'xyz'; a", "a = np.arange(3); a.fill(7); a", "[int(x) for x in np.arange(3)]", "[x for x in np.arange(2.0)]",
                "list(np.arange(4).reshape(2, 2))", "3 in np.arange(5)", "len(np.ones((3, 2)))", "np.arange(5)[np.argmax([1, 9, 2])]", "[1, 2, 3][np.int64(1)]", "np.array([10, 20])[np.array([True, False])]", "for_x = dict(zip(np.array(['a', 'b']), [1, 2])); for_x")  # fmt: skip


def _printing():
    yield from ("np.arange(2000)", "np.arange(2000).reshape(40, 50)", "np.arange(60)", "np.arange(60) * 1.5", "np.linspace(0, 1, 30)", "np.ones((3, 3, 3))", "np.ones((12, 12))", "np.zeros((30, 40))", "np.array([1e10, 1.0])", "np.array([1e-10, 1.0])",
                "np.array([1e-5, 1e-4])", "np.array([123456789.0])", "np.array([1e8])", "np.array([99999999.5])", "np.array([np.nan, 1.5, np.inf])", "np.array([-np.inf, 2])", "np.array([np.nan])", "np.array([1.0, 1000.5, 0.1])", "np.array([1, 1001.0]) / 3", "np.array([0.1 + 0.2])",
                "np.array([1 / 3, 2 / 3])", "np.array([1 / 3], np.float32)", "np.array([1e6, 1.5], np.float32)", "np.array([0.1, 1234.5], np.float32)", "np.array([0.1, 100], np.float16)", "np.array([1e-7], np.float32)", "np.array([-1.5, 22.25])", "np.array([True, False])", "np.array(True)",
                "np.array([[True], [False]])", "np.array([-1, 100, 5])", "np.array([1], np.uint8)", "np.array([], np.float32)", "np.zeros((0, 3))", "np.zeros((2, 0), int)", "np.array('abc')", "np.array(['a', 'bc', \"it's\"])",
                "np.float64(0.1)", "np.float32(0.1)", "np.float16(0.1)", "np.float32(1e10)", "np.float32(16777216)", "np.float32(1e-5)", "np.float64(1e16)", "np.float64(123456789012345680.0)", "np.float32(1e16)", "np.int64(5)", "np.uint8(255)", "np.bool_(True)", "np.True_", "np.str_('a')", "np.float64('nan')", "np.float32('inf')",
                "[np.float64(1.5), np.int64(2)]", "(np.float32(0.5),)", "{'a': np.float64(1)}", "f'{np.float32(0.1)}'", "f'{np.float32(0.1):.3f}'", "f'{np.int64(5):03d}'", "f'{np.array([1, 2])}'", "'%d %.2f' % (np.int64(3), np.float32(0.5))", "str(np.float32(3.0))", "repr(np.array(3))", "str(np.array(3.0))",
                "np.random.default_rng(1).random((3, 4))", "np.random.default_rng(1).normal(size=(2, 3)) * 1e3", "np.array([1.5, 2.5]).astype(str)", "np.array([123.456, 1e-3])", "np.array([0.00001, 123456.0])", "np.array([12345678.9, 0.1])", "np.array([[1.0, 20.5], [300.25, 4]])", "np.array([5e-324, 1.0])", "np.array([1.7976931348623157e308])",
                "np.arange(10000).reshape(10, 10, 100)", "np.array([0.5, 0.25, 0.125, 0.0625])", "np.array([1e3, 1e4, 1e5, 1e6])", "np.arange(1001)", "np.arange(1001.0)", "np.ones((2, 2, 2, 2))", "np.array2string(np.array([1.5, 2]), separator=', ')", "np.array2string(np.array([1 / 3, 2]), precision=2)",
                "np.set_printoptions(precision=3); r = repr(np.array([1 / 3, 20])); np.set_printoptions(precision=8); r", "np.set_printoptions(suppress=True); r = repr(np.array([1e-6, 20])); np.set_printoptions(suppress=False); r",
                "np.set_printoptions(threshold=5); r = repr(np.arange(9)); np.set_printoptions(threshold=1000); r", "np.set_printoptions(linewidth=30); r = repr(np.arange(20)); np.set_printoptions(linewidth=75); r", "str(np.float64(5)) + str(np.float64(1e-5)) + str(np.float64(1e22))")  # fmt: skip


def _types():
    yield from ("np.dtype('float32')", "np.dtype(int)", "np.dtype('U5')", "np.float32", "np.int64", "str(np.dtype(np.uint8))", "np.dtype('f4') == np.float32", "np.arange(2).dtype == int", "np.arange(2).dtype == 'int64'", "np.arange(2.0).dtype.name", "np.arange(2.0).dtype.kind", "np.arange(2).dtype.itemsize",
                "np.issubdtype(np.float32, np.floating)", "np.issubdtype(np.arange(2).dtype, np.integer)", "isinstance(np.float64(1), float)", "isinstance(np.float32(1), float)", "isinstance(np.int64(1), int)", "isinstance(np.bool_(1), bool)", "isinstance(np.arange(1)[0], np.integer)", "type(np.arange(2)[0])", "type(np.arange(2.0)[0])",
                "type(np.ones(1).tolist()[0])", "type(np.ones(1)[0].item())", "type(np.float64(1) + 1)", "type(np.sum([1]))", "type(np.mean([1]))", "type(np.argmax([1]))", "type(np.array([1]))", "np.finfo(np.float32).eps", "np.finfo(float).max", "np.finfo(np.float32).min", "np.finfo(np.float16).tiny", "np.iinfo(np.int32).max", "np.iinfo('uint8').min",
                "float(np.float32(0.1))", "int(np.float64(2.9))", "bool(np.array([1]))", "bool(np.array([1, 2]))", "float(np.array([1.5]))", "float(np.array(1.5))", "int(np.array(3))",
                "np.float64(3).is_integer()", "np.int64(3).item()", "np.float32(1.5).item()", "hash(np.int64(5)) == hash(5)", "np.int64(5) == 5", "np.float64(0.5) < 1", "np.bool_(True) and 3", "np.pi", "np.e", "np.inf", "np.newaxis", "np.nan", "np.int32(7) / 2", "np.int32(7) // 2", "np.int32(7) * 1.5", "np.float32(1) / 3", "np.float32(1) / np.float64(3)", "np.int8(1) + 1",
                "np.uint8(255) + 1", "np.int64(2) ** 3", "np.float64(2) ** 0.5", "-np.float32(1)", "abs(np.int64(-3))", "round(np.float32(1.256), 2)", "np.float(1)", "np.int", "np.bool(1)", "np.Inf", "np.float64(1.0).dtype", "np.int64(1).shape", "np.array([1, 2]).dtype.type", "np.zeros(2, dtype='f4').dtype", "np.zeros(2, bool)", "np.zeros(2, 'int32')",
                "np.array([1, 2]).astype(np.float16) / 3", "np.array([3.7, -3.7]).astype(np.int32)", "np.array(['1', '2.5']).astype(float)", "np.array(['1', '2']).astype(int)", "np.array([0, 1]).astype(bool)", "np.array([200, 300]).astype(np.uint8)", "np.array([1, 0]).astype(str)", "np.array([1.5]).astype(object)", "np.zeros(2, complex)", "np.array([1 + 2j])", "json.dumps(np.float64(1.5))",
                "json.dumps(np.int64(1))", "json.dumps(np.arange(3).tolist())", "statistics.mean(np.array([1.0, 2.0]).tolist())", "math.sqrt(np.float64(4))", "sorted(np.array([3, 1]))", "max(np.array([1, 5]))", "sum(np.array([1, 2]))", "pickle.loads(pickle.dumps(np.arange(3)))", "copy.deepcopy(np.arange(3))", "np.frombuffer(b'\\x01\\x00\\x02\\x00', np.int16)", "np.arange(3, dtype=np.int16).tobytes()")  # fmt: skip


def _random():
    for seed in ("0", "42", "12345678901234567890", "[1, 2, 3]"):
        g = f"g = np.random.default_rng({seed})"
        for call in ("random()", "random(3)", "random((2, 2))", "random(3, dtype=np.float32)", "integers(0, 10, 3)", "integers(10)", "integers(5, size=(2, 3))", "integers(0, 1 << 40, 3)", "integers(0, 256, 9, dtype=np.uint8)", "integers(1, 6, 4, endpoint=True)", "integers(-5, 5, 6, dtype=np.int16)",
                     "integers(0, 2, 5, dtype=np.int32)", "integers(3, 3)", "uniform(-1, 1, 4)", "uniform()", "normal(0, 2, 3)", "normal()", "standard_normal(4)", "standard_normal((50, 50)).sum()", "choice(5)", "choice(5, 3)", "choice(5, 3, replace=False)",
                     "choice([10, 20, 30])", "choice(['a', 'b', 'c'], 4)", "choice(10, 4, p=[0.1] * 10)", "choice(np.arange(12).reshape(4, 3), 2)", "choice(20000, 5, replace=False)", "choice(20000, 2000, replace=False)[:5]", "choice(3, 5, replace=False)",
                     "permutation(8)", "permutation([1, 2, 3, 4])", "permutation(np.arange(6).reshape(3, 2))"):  # fmt: skip
            yield f"{g}; g.{call}"
        yield f"{g}; a = np.arange(6); g.shuffle(a); a"
        yield f"{g}; a = np.arange(12).reshape(6, 2); g.shuffle(a); a"
        yield f"{g}; a = list('abcdef'); g.shuffle(a); a"
        yield f"{g}; g.integers(0, 10, 3); g.random(); g.integers(0, 10, 3); g.normal(size=2)"
    yield from ("np.random.default_rng(-1)", "str(np.random.default_rng(0))", "np.random.SeedSequence(5).generate_state(4)", "np.random.Generator(np.random.PCG64(3)).random(2)", "np.random.default_rng(0).normal([0, 10], [1, 2])", "np.random.default_rng(0).integers([1, 2], 5)", "type(np.random.default_rng(0).random())")  # fmt: skip


def _legacy_random():
    for seed in ("0", "42", "4294967295"):
        for call in ("rand()", "rand(3)", "rand(2, 2)", "random(3)", "random_sample((2, 2))", "uniform(-1, 1, 4)", "randn()", "randn(3)", "randn(2, 3)", "normal(5, 2, 3)", "standard_normal(2)", "randint(10)", "randint(0, 10, 5)", "randint(0, 1 << 40, 3)", "randint(0, 256, 9, dtype=np.uint8)", "randint(5, size=(2, 2))",
                     "randint(3, 4, 2)", "randint(3, 3)", "choice(5)", "choice(5, 3)", "choice(5, 3, replace=False)", "choice(['a', 'b'], 3)", "choice(3, 4, p=[0.2, 0.3, 0.5])", "permutation(8)", "permutation([1, 2, 3, 4])", "permutation(np.arange(6).reshape(3, 2))",
                     "get_state()[1][:3]"):  # fmt: skip
            yield f"np.random.seed({seed}); np.random.{call}"
        yield f"r = np.random.RandomState({seed}); r.randint(100, size=3); r.randn(2)"
        yield f"np.random.seed({seed}); a = np.arange(6); np.random.shuffle(a); a"
        yield f"np.random.seed({seed}); a = [[1], [2], [3]]; np.random.shuffle(a); a"
        yield f"np.random.seed({seed}); np.random.randn(3); np.random.rand(2); np.random.randn(2)"
        yield f"np.random.seed({seed}); s = np.random.get_state(); a = np.random.rand(); np.random.set_state(s); a == np.random.rand()"
    yield "np.random.seed(-1)"
    yield "np.random.seed([1, 2])"
    yield "np.random.seed(0); np.random.exponential(2.0, 3)"
    yield "np.random.seed(0); np.random.choice(4, 2, replace=False, p=[0.4, 0.3, 0.2, 0.1])"
    yield "np.random.default_rng(0).spawn(2)[1].random(2)"
    yield "str(np.random.RandomState(0))"


def _others():
    yield from ("f = io.BytesIO(); np.save(f, np.arange(3.0)); f.seek(0); np.load(f)", "f = io.BytesIO(); np.save(f, np.ones((2, 2), np.float32)); f.getvalue()", "f = io.BytesIO(); np.savez(f, a=np.arange(2), b=np.ones(1)); f.seek(0); sorted(np.load(f).files)", "np.loadtxt(['1 2', '3 4'])",
                "np.vectorize(lambda x: x + 1)([1, 2])", "np.fft.fft([1, 2])",
                "np.ones(3).std(ddof=1)", "np.testing.assert_allclose([1.0], [1.0])", "np.errstate(all='ignore').__class__.__name__", "np.sum([1, 2], axis=0, out=np.zeros(()))", "np.sort([2, 1], order='x')", "np.zeros(2, order='F')", "np.sum([1], unknown=2)")  # fmt: skip


def result(call, names):
    """What a call gives, as a row has it, and the exception that it raised or `None`."""
    *before, last = call.split("; ")
    names = dict(names)
    try:
        for statement in before:
            exec(statement, names)
        value = eval(last, names)
        text, other = repr(value), str(value)
    except Exception as error:
        return type(error).__name__, error
    return (text if text == other else f"{text} ~ {other}").replace("\n", "\\n"), None


def names():
    import copy
    import io
    import json
    import math
    import pickle
    import statistics

    import numpy as np

    return {"np": np, "copy": copy, "io": io, "json": json, "math": math, "pickle": pickle, "statistics": statistics}


if __name__ == "__main__":
    # The tests beside this file have the names of Python's modules.
    sys.path.pop(0)
    warnings.simplefilter("ignore")
    rows = list(dict.fromkeys(calls()))
    out = pathlib.Path(__file__).with_name("numpy.txt") if len(sys.argv) < 2 else pathlib.Path(sys.argv[1])
    out.write_text("".join(f"{row} => {result(row, names())[0]}\n" for row in rows))
    print(len(rows))
