"""`einops`: views, permutations and copies of tensors by patterns of axis names."""

import torch
from torch import Tensor

__version__ = "0.8.1"
__all__ = ["rearrange", "reduce", "repeat", "einsum", "pack", "unpack", "parse_shape", "asnumpy", "EinopsError"]

_REDUCTIONS = ("min", "max", "sum", "mean", "prod", "any", "all")


class EinopsError(RuntimeError):
    """A pattern that is wrong, or that a shape does not fit."""


def _groups(side, ellipsis, lengths):
    """The axes of one side, as lists of names: an axis of length one is an empty list."""
    expression, groups, inside = side, [], None
    for sign in ("(", ")"):
        side = side.replace(sign, f" {sign} ")
    for word in side.replace("…", "...").split():
        if word == "(":
            if inside is not None:
                raise EinopsError("Axis composition is one-level (brackets inside brackets not allowed)")
            inside = []
        elif word == ")":
            if inside is None:
                raise EinopsError("Brackets are not balanced")
            groups.append(inside)
            inside = None
        elif word == "...":
            if inside is None:
                groups += [[name] for name in ellipsis]
            else:
                inside += ellipsis
        else:
            names = _axis(word, lengths)
            if inside is None:
                groups.append(names)
            else:
                inside += names
    if inside is not None:
        raise EinopsError(f'Imbalanced parentheses in expression: "{expression}"')
    names = [name for group in groups for name in group]
    for name in names:
        if names.count(name) > 1:
            raise EinopsError(f'Indexing expression contains duplicate dimension "{name}"')
    return groups


def _axis(word, lengths):
    if word.isdecimal():
        if word == "1":
            return []
        name = f"{word} of {len(lengths)}"
        lengths[name] = int(word)
        return [name]
    if not word.isidentifier() or (word.startswith("_") or word.endswith("_")) and word != "_":
        raise EinopsError(f"Invalid axis identifier: {word}")
    return [word]


def _check(operation, left, right, lengths, pattern):
    lefts, rights = [{name for group in side for name in group} for side in (left, right)]
    if operation == "rearrange":
        if any(" of " in name for name in lefts | rights):
            raise EinopsError("Non-unitary anonymous axes are not supported in rearrange (exception is length 1)")
        if lefts != rights:
            raise EinopsError(f"Identifiers only on one side of expression (should be on both): {lefts ^ rights}")
    elif operation == "repeat":
        if lefts - rights:
            raise EinopsError(f"Unexpected identifiers on the left side of repeat: {lefts - rights}")
        if rights - lefts - set(lengths):
            raise EinopsError(f"Specify sizes for new axes in repeat: {rights - lefts - set(lengths)}")
    elif operation in _REDUCTIONS or callable(operation):
        if rights - lefts:
            raise EinopsError(f"Unexpected identifiers on the right side of reduce {operation}: {rights - lefts}")
    else:
        raise EinopsError(f"Unknown reduction {operation}. Expect one of {_REDUCTIONS}.")
    for name in lengths:
        if name not in lefts | rights:
            raise EinopsError(f"Axis {name} is not used in transform")


def _fill(left, shape, lengths):
    """The length of every axis, from the shape and the given lengths."""
    for group, length in zip(left, shape):
        unknown, product = [name for name in group if name not in lengths], 1
        for name in group:
            product *= lengths.get(name, 1)
        if len(unknown) > 1:
            raise EinopsError(f"Could not infer sizes for {set(unknown)}")
        if not unknown and product != length:
            raise EinopsError(f"Shape mismatch, {length} != {product}")
        if unknown:
            if product == 0 or length % product != 0:
                raise EinopsError(f"Shape mismatch, can't divide axis of length {length} in chunks of {product}")
            lengths[unknown[0]] = length // product


def _plan(shape, pattern, operation, given):
    """The steps of an operation on a tensor of this shape: the first shape, the order of axes, how many of them are reduced and from which on,
    the new axes, the last shape."""
    if pattern.count("->") != 1:
        raise EinopsError(f"Pattern needs one '->': {pattern}")
    sides, lengths = pattern.split("->"), dict(given)
    has = [("..." in side or "…" in side) for side in sides]
    if has[1] and not has[0]:
        raise EinopsError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    axes = len(_groups(sides[0], [], dict(lengths)))
    if len(shape) < axes if has[0] else len(shape) != axes:
        raise EinopsError(
            f"Wrong shape: expected {'>=' if has[0] else ''}{axes} dims. Received {len(shape)}-dim tensor."
        )
    ellipsis = [f"...{i}" for i in range(len(shape) - axes)] if has[0] else []
    left = _groups(sides[0], ellipsis, lengths)
    right = _groups(sides[1], ellipsis, lengths)
    _check(operation, left, right, lengths, pattern)
    _fill(left, shape, lengths)
    before = [name for group in left for name in group]
    after = [name for group in right for name in group]
    kept = [name for name in after if name in before]
    reduced = [name for name in before if name not in after]
    order = [before.index(name) for name in kept + reduced]
    final = []
    for group in right:
        length = 1
        for name in group:
            length *= lengths[name]
        final.append(length)
    return (
        [lengths[name] for name in before] if any(len(group) != 1 for group in left) else None,
        order if order != list(range(len(order))) else None,
        list(range(len(kept), len(order))),
        {i: lengths[name] for i, name in enumerate(after) if name not in before},
        final if any(len(group) != 1 for group in right) else None,
        len(after),
    )


def _reduced(tensor, operation, axes):
    if callable(operation):
        return operation(tensor, tuple(axes))
    if operation == "mean" and not tensor.is_floating_point():
        raise NotImplementedError("reduce_mean is not available for non-floating tensors")
    if operation in ("min", "max"):
        return getattr(tensor, "a" + operation)(dim=axes)
    if operation in ("sum", "mean"):
        return getattr(tensor, operation)(dim=axes)
    for axis in reversed(axes):
        tensor = getattr(tensor, operation)(dim=axis)
    return tensor


def _apply(tensor, pattern, operation, given):
    first, order, reduced, added, final, axes = _plan(tensor.shape, pattern, operation, given)
    if first is not None:
        tensor = tensor.reshape(first)
    if order is not None:
        tensor = tensor.permute(order)
    if reduced:
        tensor = _reduced(tensor, operation, reduced)
    if added:
        lengths = [-1] * axes
        for axis, length in added.items():
            tensor = tensor.unsqueeze(axis)
            lengths[axis] = length
        tensor = tensor.expand(lengths)
    return tensor if final is None else tensor.reshape(final)


def reduce(tensor, pattern, reduction, **axes_lengths):
    try:
        if isinstance(tensor, list):
            if not tensor:
                raise TypeError("Rearrange/Reduce/Repeat can't be applied to an empty list")
            tensor = torch.stack(tensor)
        if type(tensor).__module__ == "numpy":
            raise NotImplementedError("einops over numpy's arrays is not modeled here: use torch.from_numpy(array)")
        if not isinstance(tensor, Tensor):
            raise RuntimeError(f"Tensor type unknown to einops {type(tensor)}")
        return _apply(tensor, pattern, reduction, axes_lengths)
    except EinopsError as error:
        message = f' Error while processing {reduction}-reduction pattern "{pattern}".'
        message += "\n Input is list. " if isinstance(tensor, list) else f"\n Input tensor shape: {tensor.shape}. "
        raise EinopsError(message + f"Additional info: {axes_lengths}.\n {error}") from None


def rearrange(tensor, pattern, **axes_lengths):
    return reduce(tensor, pattern, "rearrange", **axes_lengths)


def repeat(tensor, pattern, **axes_lengths):
    return reduce(tensor, pattern, "repeat", **axes_lengths)


def einsum(*arguments):
    *tensors, pattern = arguments
    if not isinstance(pattern, str):
        raise ValueError(
            "The last argument passed to `einops.einsum` must be a string, representing the einsum pattern."
        )
    if "->" not in pattern:
        raise ValueError("Einsum pattern must contain '->'.")
    letters, found = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", {}

    def shortened(side):
        return "".join(name if name == "..." else found.setdefault(name, letters[len(found)]) for name in side.split())

    inputs, output = pattern.split("->")
    inputs = [shortened(side) for side in inputs.split(",")]
    if len(inputs) != len(tensors):
        raise ValueError("Number of tensors must match number of commas + 1 in pattern")
    for name in output.split():
        if name != "..." and name not in found:
            raise EinopsError(f"Unknown axis {name} on right side of einsum {pattern}.")
    return torch.einsum(",".join(inputs) + "->" + shortened(output), *tensors)


def _star(pattern, name):
    axes = pattern.split()
    if len(axes) != len(set(axes)):
        raise EinopsError(f'Duplicates in axes names in {name}(..., "{pattern}")')
    if "*" not in axes:
        raise EinopsError(f'No *-axis in {name}(..., "{pattern}")')
    before = axes.index("*")
    return before, len(axes) - before - 1


def pack(tensors, pattern):
    before, behind = _star(pattern, "pack")
    reshaped, shapes = [], []
    for i, tensor in enumerate(tensors):
        shape = tensor.shape
        if len(shape) < before + behind:
            raise EinopsError(
                f"packed tensor #{i} (enumeration starts with 0) has shape {shape}, while pattern {pattern} assumes at least {before + behind} axes"
            )
        end = len(shape) - behind
        shapes.append(shape[before:end])
        reshaped.append(tensor.reshape((*shape[:before], -1, *shape[end:])))
    return torch.cat(reshaped, dim=before), shapes


def unpack(tensor, packed_shapes, pattern):
    before, behind = _star(pattern, "unpack")
    shape = tensor.shape
    if len(shape) != before + 1 + behind:
        raise EinopsError(f"unpack(..., {pattern}) received input of wrong dim with shape {shape}")
    sizes = []
    for packed in packed_shapes:
        size = 1
        for length in packed:
            size *= length
        sizes.append(-1 if -1 in packed else size)
    if sizes.count(-1) > 1:
        raise EinopsError(
            f"unpack(..., {pattern}) received more than one -1 in {packed_shapes} and can't infer dimensions"
        )
    if -1 in sizes:
        sizes[sizes.index(-1)] = shape[before] - sum(sizes) - 1
    ends, end = [], 0
    for size in sizes:
        end += size
        ends.append(end)
    if ends and ends[-1] != shape[before]:
        raise EinopsError(
            f'Error during unpack(..., "{pattern}"): could not split axis of size {shape[before]} into requested {packed_shapes}'
        )
    filler = (slice(None),) * before
    return [
        tensor[(*filler, slice(end - size, end))].reshape((*shape[:before], *packed, *shape[before + 1 :]))
        for size, end, packed in zip(sizes, ends, packed_shapes)
    ]


def parse_shape(x, pattern):
    axes = pattern.split()
    if len(axes) != len(x.shape) and "..." not in axes:
        raise RuntimeError(f"Can't parse shape with different number of dimensions: {pattern} {x.shape}")
    if "..." in axes:
        at = axes.index("...")
        axes[at : at + 1] = ["_"] * (len(x.shape) - len(axes) + 1)
    result = {}
    for name, length in zip(axes, x.shape):
        if name.isdecimal():
            if int(name) != length:
                raise RuntimeError(f"Length of anonymous axis does not match: {pattern} {x.shape}")
        elif name != "_":
            result[name] = length
    return result


def asnumpy(tensor):
    return tensor.detach().cpu().numpy()
