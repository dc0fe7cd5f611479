"""Computes the results of operators over known values, with PyTorch's kernels for processors. Run by the stand-in in the program's process."""

import ctypes
import math
import sys

import torch

# The stand-in; `follow` sets it.
library = None

EXACT, ROUNDED, ASSUMED, UNKNOWN = range(4)
# Bytes of results that are computed, or twice those of the arguments: a program's large tensors cost addresses and no memory of the host.
MAX_BYTES = 1 << 24
DTYPES = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
    7: torch.float64, 8: torch.complex32, 9: torch.complex64, 10: torch.complex128, 11: torch.bool, 15: torch.bfloat16,
}  # fmt: skip
FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]
no_grad = torch._C._set_grad_enabled
known_dispatch = torch._C._dispatch_has_kernel_for_dispatch_key
# Whether an operator of this name takes a number in place of a tensor.
takes_numbers = getattr(torch._C, "_should_allow_numbers_as_tensors", lambda base: False)

# Tensors over bytes of the device, by their descriptions: these addresses stay the device's.
kept = {}
MAX_KEPT = 4096


def tensor(described):
    """A tensor over the bytes that a description names, wherever they lie: `(address, type, sizes, strides, bytes, on the device)`."""
    if not described[5]:
        return new_tensor(described)
    found = kept.get(described)
    if found is None:
        if len(kept) >= MAX_KEPT:
            kept.clear()
        found = kept[described] = new_tensor(described)
    return found


def new_tensor(described):
    address, dtype, sizes, strides, count, _ = described
    dtype = DTYPES[dtype]
    if count == 0:
        return torch.empty(sizes, dtype=dtype, device="cpu")
    storage = torch._C._construct_storage_from_data_pointer(address, torch.device("cpu"), count)
    return torch.empty(0, dtype=dtype, device="cpu").set_(storage, 0, sizes, strides)


# Operators of which a processor gives every bit that a GPU gives, also for floating-point numbers: each element is one rounding.
SAME = set(
    """abs add alias_copy amax amin arange argmax argmin argsort as_strided bitwise_and bitwise_not bitwise_or bitwise_xor cat ceil
    clamp clamp_max clamp_min clone copy copysign cummax cummin diag_embed diagonal_copy div eq expand_copy eye fill flip floor
    fmax fmin frac full gather ge gt index index_copy index_fill index_put index_select is_same_size isfinite isin isinf isnan le
    logical_and logical_not logical_or logical_xor lt masked_fill masked_scatter masked_select max maximum median min minimum mul
    narrow_copy ne neg nonzero one_hot ones permute_copy put reciprocal relu remainder repeat reshape roll round rsub scatter
    searchsorted select_scatter sgn sign signbit slice_scatter sort split_copy sqrt stack sub take threshold topk trace tril triu
    trunc unbind_copy unique_consecutive unique_dim unsqueeze_copy where zero zeros nms _to_copy _index_put_impl _local_scalar_dense
    _unique2 _reshape_alias_copy _foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_zero _foreach_copy _foreach_neg
    _foreach_abs _foreach_maximum _foreach_minimum _foreach_sqrt bucketize constant_pad_nd embedding""".split()
)
# Results whose number a kernel finds: the share of the elements that is assumed where they are not known.
FOUND = {"aten::nonzero": 0.5, "aten::_unique2": 1.0, "aten::unique_consecutive": 1.0, "aten::unique_dim": 1.0}
# The assumed results of comparisons with unknown numbers: numbers are finite and not equal to others.
COMPARED = {"aten::eq": False, "aten::ne": True, "aten::isnan": False, "aten::isin": False, "aten::isinf": False}
ORDERED = {"aten::ge", "aten::gt", "aten::le", "aten::lt"}
# Operators that find truth values, integers or one of the numbers, which a processor finds in many numbers within milliseconds.
FINDING = set(
    """all amax amin any argmax argmin count_nonzero eq ge gt isfinite isinf isnan le logical_and logical_not logical_or logical_xor
    lt max min ne nonzero signbit""".split()
)
# What the end of a search by beams is computed of, by the function that computes it: a beam could still become better, and not
# all have ended; then all have their number of new tokens.
OF_BEAMS = {
    "aten::any": ("_beam_search_has_unfinished_sequences", lambda sizes: True),
    "aten::all": ("_beam_search_has_unfinished_sequences", lambda sizes: False),
    "aten::sum.dim_IntList": ("_beam_search", lambda sizes: [sizes[-1]] * math.prod(sizes[:-1])),
}
# Parts of the names of operators whose work for an element grows with the number of elements.
SORTING = (
    "sort",
    "unique",
    "topk",
    "kthvalue",
    "median",
    "mode",
    "isin",
    "searchsorted",
    "bucketize",
    "bincount",
    "histc",
)
# Operators that write arguments without their schema saying so.
SECRET = {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::_batch_norm_impl_index", "aten::batch_norm",
          "aten::batch_norm_update_stats", "aten::batch_norm_gather_stats", "aten::batch_norm_gather_stats_with_counts",
          "aten::miopen_batch_norm", "aten::native_batch_norm_backward"}  # fmt: skip
# Operators that make tensors by others that fill them.
MAKERS = {
    "zeros",
    "ones",
    "full",
    "rand",
    "randn",
    "randint",
    "randperm",
    "arange",
    "clone",
    "contiguous",
    "scalar_tensor",
    "detach_",
}
SCALED = "aten::_amp_foreach_non_finite_check_and_unscale_"
operators = []


class Operator:
    """An operator of PyTorch's, and how its arguments are given to it."""

    def __init__(self, call, schema):
        self.call, self.name = call, schema.name
        self.full = f"{self.name}.{schema.overload_name}" if schema.overload_name else self.name
        self.arguments = [(a.name, a.kwarg_only, str(a.type)) for a in schema.arguments]
        self.written = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        base = self.name.split("::")[-1]
        self.is_same = base.removesuffix("_") in SAME or base in SAME
        self.takes_numbers = takes_numbers(base)
        self.random = RANDOM.get(self.full)


# Types of arguments, by a letter for the stand-in; others are "x".
LETTERS = {
    "Tensor": "T", "Optional[Tensor]": "T", "List[Tensor]": "L", "List[Optional[Tensor]]": "L", "int": "n", "Optional[int]": "n",
    "SymInt": "n", "Optional[SymInt]": "n", "float": "n", "Optional[float]": "n", "bool": "n", "Optional[bool]": "n",
    "number": "n", "Optional[number]": "n", "Scalar": "n", "Optional[Scalar]": "n", "List[int]": "N", "List[SymInt]": "N",
    "Optional[List[int]]": "N", "Optional[List[SymInt]]": "N", "List[float]": "N", "Optional[List[float]]": "N", "List[bool]": "N",
    "List[number]": "N", "str": "S", "Optional[str]": "S", "Device": "D", "Optional[Device]": "D", "Optional[Generator]": "G",
}  # fmt: skip


def classify(name, overload):
    """The facts about an operator that the stand-in needs: number, letters of the arguments, places that are written, flags, assumed share."""
    try:
        space, base = name.split("::")
        call = getattr(getattr(getattr(torch.ops, space), base), overload or "default")
        schema = call._schema
    except (AttributeError, ValueError):
        return "0|||||0"
    operator = Operator(call, schema)
    full = operator.full
    kinds = [LETTERS.get(kind, "x") for _, _, kind in operator.arguments]
    number = len(operators)
    operators.append(operator)
    if space != "aten" or name in SECRET:
        operator.written = sorted(
            {*operator.written, *(i for i, kind in enumerate(kinds) if kind in "TL" and (space != "aten" or i > 2))}
        )
    only = {i for i in operator.written if schema.arguments[i].is_out}
    if base in ("zero_", "fill_", "copy_", "scatter_") or operator.random:
        only |= set(operator.written)
    # What the host asks for within the operator, and what the operator changes, is computed before the operator runs.
    asks = name in FOUND or name == "torchvision::nms" or any(str(r.type) == "bool" for r in schema.returns)
    operator.is_early = asks or base == "scatter_" or not only.issuperset(operator.written)
    is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
    is_composite = known_dispatch(full, "CompositeImplicitAutograd")
    runs = known_dispatch(full, "CPU") or known_dispatch(full, "CompositeExplicitAutograd")
    # Operators of all devices may call kernels past the dispatcher. Those that only make room for results never do.
    makes_room = (
        base.startswith(("empty", "new_", "_to_copy", "resize", "set_")) or base.removesuffix("_like") in MAKERS
    )
    has_kernel = known_dispatch(full, "CUDA") or (known_dispatch(full, "CompositeExplicitAutograd") and not makes_room)
    is_random = torch.Tag.nondeterministic_seeded in call.tags
    flags = ""
    if not is_composite and not is_view:
        flags += "k"
        can = has_kernel and runs and (not is_random or operator.random is not None) and "x" not in kinds
        if can and (space == "aten" or name == "torchvision::nms") and name not in SECRET:
            flags += "c"
        if name == "aten::_local_scalar_dense":
            flags = "kv"
        if name in COMPARED or name in ORDERED or name == SCALED or full in OF_BEAMS:
            flags += "a"
        if full in OF_BEAMS:
            flags += "t"
        if base in FINDING:
            flags += "n"
        if operator.random and base != "native_dropout":
            flags += "r"
    if any("List" in str(r.type) for r in schema.returns):
        flags += "l"
    if full in ("aten::fill_.Scalar", "aten::zero_"):
        flags += "f"
    if any(part in base for part in SORTING):
        flags += "s"

    def join(places):
        return ",".join(map(str, places))

    return f"{number}|{''.join(kinds)}|{join(operator.written)}|{join(sorted(only))}|{flags}|{FOUND.get(name, 0)}"


def draw(kind, count, seed, offset, *numbers):
    out = torch.empty(
        count,
        dtype={0: torch.float32, 3: torch.float32, 4: torch.float32, 5: torch.float32}.get(kind, torch.int64),
        device="cpu",
    )
    list_ = (ctypes.c_uint64 * max(1, len(numbers)))(*numbers)
    if count and not library.blockyard_values_random(kind, out.data_ptr(), count, seed, offset, list_):
        return None
    return out


def state():
    """Seed and offset of the device's generator."""
    if torch.cuda.is_current_stream_capturing():
        return None
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    return generator.initial_seed(), generator.get_offset()


def dense(described):
    """Whether elements lie in the order of their places, without gaps: the order in which kernels draw."""
    run = 1
    for size, stride in zip(reversed(described[2]), reversed(described[3])):
        if size != 1 and stride != run:
            return False
        run *= size
    return True


def elements(described):
    return math.prod(described[2])


# Each gives what the operator writes into its first argument, and how sure that is.


def uniform(given, start, low=0.0, high=1.0):
    kind = DTYPES[given[1]]
    if kind == torch.float64:
        return None
    values = draw(0, elements(given), *start)
    values = (values.double() * (high - low) + low).float().to(kind)
    return torch.where(values == high, torch.full_like(values, low), values), EXACT


def integers(given, start, low, high):
    span = high - low
    kind = 2 if span >= 1 << 28 else 1
    if span <= 0 or span >= 1 << 63:
        return None
    return (draw(kind, elements(given), *start, span) + low).to(DTYPES[given[1]]), EXACT


def from_to(given, start, low, high=None):
    if high is None:
        return None
    return integers(given, start, low, high)


def to(given, start, high):
    return integers(given, start, 0, high)


def whole(given, start):
    kind = DTYPES[given[1]]
    if kind == torch.int64:
        return draw(2, elements(given), *start, 1 << 63).to(kind), EXACT
    return None


def coin(given, start, share=0.5):
    return (draw(0, elements(given), *start) < share).to(DTYPES[given[1]]), EXACT


def coins(given, start, shares):
    if not (dense(shares) and elements(shares) == elements(given)):
        return None
    values = draw(4, elements(given), *start)
    return (values <= tensor(shares).float().reshape(-1)).to(DTYPES[given[1]]), EXACT


def gauss(given, start, mean=0.0, deviation=1.0):
    kind = DTYPES[given[1]]
    if kind == torch.float64:
        return None
    return (draw(5, elements(given), *start) * deviation + mean).to(kind), ROUNDED


RANDOM = {
    "aten::uniform_": uniform, "aten::random_.from": from_to, "aten::random_.to": to, "aten::random_": whole,
    "aten::bernoulli_.float": coin, "aten::bernoulli_.Tensor": coins, "aten::normal_": gauss,
    "aten::randperm.generator_out": "order", "aten::native_dropout": "dropout",
}  # fmt: skip


def randomly(operator, args, certainty):
    """The result of a random operator; `None` where it is not known."""
    start = state()
    if start is None:
        return None
    if operator.random == "order":
        count, _, out = args
        if DTYPES[out[1]] != torch.int64 or 8 * count > MAX_BYTES:
            return None
        values = draw(6, count, *start)
        return None if values is None else ([values], [values], EXACT)
    if operator.random == "dropout":
        given, share, is_training = args
        kind, count = DTYPES[given[1]], elements(given)
        if (
            is_training is False
            or certainty == UNKNOWN
            or not 0 < share < 1
            or kind == torch.float64
            or not dense(given)
        ):
            return None
        # As many elements a thread as 16 bytes hold and leave no rest.
        each = next(each for each in (8, 4, 2, 1) if each * given[4] <= 16 * count and count % each == 0)
        mask = (draw(3, count, *start, each) < 1.0 - share).reshape(given[2])
        out = (tensor(given).float() * mask * (1.0 / (1.0 - share))).to(kind)
        return [out, mask], [], certainty
    given, *rest = args
    if rest and rest[-1] is None:
        rest = rest[:-1]
    if given is None or not dense(given) or elements(given) == 0:
        return None
    made = operator.random(given, start, *rest)
    if made is None:
        return None
    values, sure = made
    if any(isinstance(item, tuple) for item in rest):
        sure = max(sure, certainty)
    if sure == UNKNOWN:
        return None
    return [], [values.reshape(given[2])], sure


def is_within(is_it):
    """Whether one of the functions that called the operator is the one that is meant."""
    frame = sys._getframe(2)
    for _ in range(4):
        if frame is None:
            return False
        if is_it(frame.f_code):
            return True
        frame = frame.f_back
    return False


def covers(args):
    """Whether a scatter writes every element: places of one dimension that are all different."""
    target, _, index = args[:3]
    return (
        len(target[2]) == 1 and tuple(index[2]) == tuple(target[2]) and tensor(index).unique().numel() == target[2][0]
    )


def supposed(operator, args):
    """The assumed result of an operator over unknown values."""
    if operator.name == SCALED:
        there = args[1]
        value = tensor(there).clone() if there is not None else None
        return None if value is None else ([], [None] * len(args[0]) + [value], ASSUMED)
    if operator.full in OF_BEAMS:
        # `generate` of transformers goes on until its number of new tokens, as without beams.
        function, value = OF_BEAMS[operator.full]
        if not is_within(lambda code: code.co_name == function):
            return None
        return [torch.tensor(value(args[0][2]), device="cpu")], [], ASSUMED
    given = args[0] if isinstance(args[0], tuple) else next((item for item in args if isinstance(item, tuple)), None)
    if given is None or operator.written:
        return None
    other = args[1] if len(args) > 1 else None
    sizes = given[2]
    if isinstance(other, tuple) and operator.name != "aten::isin":
        sizes = torch.broadcast_shapes(tuple(given[2]), tuple(other[2]))
    if math.prod(sizes) > MAX_BYTES:
        return None
    value = COMPARED.get(operator.name)
    # What a distribution checks is right.
    if is_within(lambda code: "torch/distributions/" in code.co_filename):
        value = True
    elif isinstance(other, tuple) and other[:4] == given[:4] and operator.name in ("aten::eq", "aten::ne"):
        value = not value
    if value is None:
        return None
    return [torch.full(sizes, value, dtype=torch.bool, device="cpu")], [], ASSUMED


def bound(operator, args):
    """The arguments of an operator's call, and the copies of those that it writes on the device.

    The host's tensors are copied: an operator may end after they are gone. The device's bytes stay where they are.
    """
    positional, named, written = [], {}, []
    for place, ((name, is_named, _kind), value) in enumerate(zip(operator.arguments, args)):
        is_written = place in operator.written
        if isinstance(value, tuple):
            made = tensor(value)
            if operator.takes_numbers and not value[5] and not value[2] and not is_written and value[1] in (4, 7, 11):
                # A number that Python made a tensor of, whose type gives way to that of the others.
                made = made.item()
            elif is_written and operator.name == "aten::copy_":
                made = torch.empty_like(made)
            elif is_written or not value[5]:
                made = made.clone()
            if is_written and value[5]:
                written.append(made)
            value = made
        elif isinstance(value, list) and any(isinstance(item, tuple) for item in value):
            made = [tensor(item) if isinstance(item, tuple) else item for item in value]
            for i, item in enumerate(value):
                if isinstance(item, tuple) and (is_written or not item[5]):
                    made[i] = made[i].clone()
                if is_written and item[5]:
                    written.append(made[i])
            value = made
        elif name == "dtype" and value is not None:
            value = DTYPES[value]
        elif name == "memory_format" and value is not None:
            value = FORMATS[value]
        elif name in ("layout", "device"):
            value = torch.device("cpu") if name == "device" and value is not None else None
        elif name == "pin_memory":
            value = None
        if is_named:
            named[name] = value
        else:
            positional.append(value)
    return positional, named, written


def compute(operator, args, call, certainty):
    """The computed call of an operator over known values: results, arguments that it writes, how sure both are."""
    positional, named, written = call
    result = operator.call(*positional, **named)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    results = [item for one in results for item in (one if isinstance(one, (tuple, list)) else [one])]
    # A truth value that the operator gives to the host.
    truth = int(result) if isinstance(result, bool) else None
    results = [item for item in results if isinstance(item, torch.Tensor)]
    if operator.name == "aten::scatter_" and not covers(args):
        # The elements that are not written stay.
        certainty = max(certainty, library.blockyard_values_certainty(args[0][0], args[0][4]))
        if certainty == UNKNOWN:
            return None
    if not operator.is_same and any(item.is_floating_point() for item in [*results, *written]):
        certainty = max(certainty, ROUNDED)
    return results, written, certainty, truth


def overlaps(operator, args):
    """Whether an operator writes bytes that it also reads."""
    read, written = [], []
    for place, value in enumerate(args):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, tuple):
                (written if place in operator.written else read).append((item[0], item[0] + item[4]))
    return any(low < last and first < high for low, high in read for first, last in written)


def begin(number, args, certainty):
    """The results of an operator that starts, and how many results it finds; `None` where these are not known."""
    operator = operators[number]
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return None
    before = torch.is_grad_enabled()
    no_grad(False)
    try:
        with torch._C.DisableTorchFunction():
            if operator.random:
                made = randomly(operator, args, certainty)
            elif certainty == UNKNOWN:
                made = supposed(operator, args)
            else:
                call = bound(operator, args)
                if not operator.is_early and not (operator.written and overlaps(operator, args)):
                    # At the end the sizes of the results are known.
                    def later():
                        return compute(operator, args, call, certainty)

                    later.most_bytes = max(MAX_BYTES, 2 * sum(value[4] for value in args if isinstance(value, tuple)))
                    return later, None
                made = compute(operator, args, call, certainty)
    finally:
        no_grad(before)
    if made is None:
        return None
    count = made[3] if len(made) > 3 else None
    if operator.name in FOUND or operator.name == "torchvision::nms":
        count = made[0][0].shape[args[1] if operator.name == "aten::unique_dim" else 0]
    return made, count


def put(described, value):
    if value is None or tuple(value.shape) != tuple(described[2]) or value.dtype != DTYPES[described[1]]:
        return False
    tensor(described).copy_(value)
    return True


def end(made, results, written):
    """Writes the computed results; returns how sure each tensor's bytes are, or `None` where nothing is computed."""
    before = torch.is_grad_enabled()
    no_grad(False)
    try:
        with torch._C.DisableTorchFunction():
            if callable(made):
                # A result that is an argument is listed twice.
                sizes = {
                    described[0]: elements(described) * DTYPES[described[1]].itemsize
                    for described in [*results, *written]
                }
                made = made() if sum(sizes.values()) <= made.most_bytes else None
                if made is None:
                    return None
            values, changed, sure = made[:3]
            marks = []
            # A result that is an argument is written as that.
            places = {described[0] for described in written}
            for i, described in enumerate(results):
                if described[0] in places:
                    marks.append(UNKNOWN)
                else:
                    marks.append(sure if i < len(values) and put(described, values[i]) else UNKNOWN)
            for i, described in enumerate(written):
                marks.append(sure if i < len(changed) and put(described, changed[i]) else UNKNOWN)
            return tuple(marks)
    finally:
        no_grad(before)


def check(kind, number):
    """The number with which the check that the program is in passes, as a text; `None` if it need not be another."""
    other = passing(sys._getframe(1), kind, number)
    return None if other is None else repr(float(other))


def follow(standin, path):
    """Starts to follow values; `standin` is the stand-in, `path` that of `libtorch_cpu.so`. False where this PyTorch cannot be observed."""
    global library
    library = standin
    for name, types in {
        "blockyard_values_begin": [ctypes.c_char_p],
        "blockyard_values_expect": [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64],
        "blockyard_values_found": [ctypes.c_uint64],
        "blockyard_values_storage": [ctypes.c_uint64] * 4,
        "blockyard_values_ready": [ctypes.py_object] * 4,
        "blockyard_values_certainty": [ctypes.c_uint64] * 2,
        "blockyard_values_random": [ctypes.c_int] + [ctypes.c_uint64] * 4 + [ctypes.POINTER(ctypes.c_uint64)],
    }.items():
        getattr(library, name).argtypes = types
    if not library.blockyard_values_begin(path.encode()):
        return False
    a = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], device="cpu")
    b = torch.tensor([2.0] * 7, device="cpu")
    probes = [
        lambda: torch.add(a, b, alpha=7), lambda: torch.add(a, b, alpha=1.5), lambda: torch.full_like(a, True),
        lambda: torch.stack([a, b]), lambda: torch.div(a, b, rounding_mode="floor"),
    ]  # fmt: skip
    is_known = True
    for number, probe in enumerate(probes):
        library.blockyard_values_expect(number, a._cdata, b._cdata)
        result = probe()
        is_known = is_known and bool(library.blockyard_values_found(result._cdata))
    storage = a.untyped_storage()
    is_known = is_known and bool(
        library.blockyard_values_storage(a._cdata, storage._cdata, storage.data_ptr(), storage.nbytes())
    )
    if not is_known or not library.blockyard_values_ready(classify, begin, end, check):
        library.blockyard_values_stop()
        return False
    # Values of the helper that must live as long as the program.
    follow.kept = (classify, begin, end, check)
    return True
