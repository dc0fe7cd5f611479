"""`torch.func`: gradients by the backward pass; calls that PyTorch batches run in a loop and are marked as an estimate."""

__path__ = []  # Modules below are found, and refused in a sentence.

import contextlib as _contextlib
import functools as _functools

from _refused import Missing as _Missing

import torch
import torch.autograd.functional
from torch.utils._pytree import tree_map as _tree_map


def _owner(module, name):
    *path, last = name.split(".")
    for part in path:
        module = module._modules[part]
    return module, last


@_contextlib.contextmanager
def _replaced(module, tensors):
    before = []
    try:
        for name, tensor in tensors.items():
            owner, last = _owner(module, name)
            table = owner._parameters if last in owner._parameters else owner._buffers
            if last not in table:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")
            before.append((table, last, table[last]))
            table[last] = tensor
        yield
    finally:
        for table, last, tensor in reversed(before):
            table[last] = tensor


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    given = parameter_and_buffer_dicts
    given = (given,) if isinstance(given, dict) else given
    names = [name for each in given for name in each]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    tensors = {name: value for each in given for name, value in each.items()}
    known = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    if strict and set(tensors) != set(known):
        missing, unexpected = sorted(set(known) - set(tensors)), sorted(set(tensors) - set(known))
        raise RuntimeError(f"Missing key(s): {missing}; unexpected key(s): {unexpected}.")
    if tie_weights:
        for name, tensor in list(tensors.items()):
            for other, value in known.items():
                if value is known.get(name) and other not in tensors:
                    tensors[other] = tensor
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, tensors):
        return module(*args, **(kwargs or {}))


def _tensors(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [t for item in tree for t in _tensors(item)] if isinstance(tree, (tuple, list)) else []


def _like(tree, found):
    """The tensors of an iterator in the places of a tree's."""
    return _tree_map(lambda leaf: next(found) if isinstance(leaf, torch.Tensor) else leaf, tree)


def _wrapped(tree):
    """Views at a new level: a gradient that a caller asks for still reaches the viewed tensors."""
    return _tree_map(
        lambda leaf: (
            leaf.view_as(leaf)
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad
            else leaf.detach()
            if isinstance(leaf, torch.Tensor)
            else leaf
        ),
        tree,
    )


def _unwrapped(tree, is_outer):
    return tree if is_outer else _tree_map(lambda leaf: leaf.detach() if isinstance(leaf, torch.Tensor) else leaf, tree)


def _chosen(args, argnums):
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def _ask(tree):
    for tensor in _tensors(tree):
        if not tensor.requires_grad:
            tensor.requires_grad_()


def _gradients(outputs, inputs, grads=None, retain_graph=True, create_graph=True):
    outputs = list(outputs)
    grads = [None] * len(outputs) if grads is None else list(grads)
    pairs = [(out, grad) for out, grad in zip(outputs, grads) if out.requires_grad]
    if not pairs:
        return [torch.zeros_like(t) for t in inputs]
    found = torch.autograd.grad(
        [out for out, _ in pairs], inputs, [grad for _, grad in pairs], retain_graph, create_graph, allow_unused=True
    )
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, inputs)]


def _estimated(name, text):
    torch._torch_memory.note_estimate(f"torch.func.{name}", text)


def grad_and_value(func, argnums=0, has_aux=False):
    @_functools.wraps(func)
    def wrapper(*args, **kwargs):
        _estimated("grad", "the order in which the graph is freed at the end was not checked; sizes were")
        is_outer = torch.is_grad_enabled() and any(t.requires_grad for t in _tensors([args, kwargs]))
        with torch.enable_grad():
            args, kwargs = _wrapped(args), _wrapped(kwargs)
            chosen = _chosen(args, argnums)
            _ask(chosen)
            output, aux = func(*args, **kwargs), None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                    )
                output, aux = output
            if not isinstance(output, torch.Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            found = _gradients([output], _tensors(chosen))
            found = _unwrapped(_like(chosen, iter(found)), is_outer)
            output, aux = _unwrapped(output, is_outer), _unwrapped(aux, is_outer)
        return (found, (output, aux)) if has_aux else (found, output)

    return wrapper


def grad(func, argnums=0, has_aux=False):
    both = grad_and_value(func, argnums, has_aux)

    @_functools.wraps(func)
    def wrapper(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func, *primals, has_aux=False):
    with torch.enable_grad():
        primals = _wrapped(primals)
        _ask(primals)
        outputs, aux = func(*primals), None
        if has_aux:
            outputs, aux = outputs
            aux = _unwrapped(aux, False)
        flat = _tensors(outputs)
        results = _unwrapped(outputs, False)

    def wrapper(cotangents, retain_graph=True, create_graph=None):
        create_graph = torch.is_grad_enabled() if create_graph is None else create_graph
        found = _gradients(flat, _tensors(primals), _tensors(cotangents), retain_graph, create_graph)
        return _like(primals, iter(found))

    return (results, wrapper, aux) if has_aux else (results, wrapper)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    _estimated("jvp", "forward mode is computed by two backward passes here")
    outputs, found = torch.autograd.functional.jvp(func, tuple(primals), tuple(tangents))
    return outputs, found


def _jacobian(name):
    def transform(func, argnums=0, has_aux=False, **options):
        @_functools.wraps(func)
        def wrapper(*args):
            _estimated(name, "the rows of a Jacobian are computed one after the other here")
            positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

            def of_chosen(*chosen):
                given = list(args)
                for position, tensor in zip(positions, chosen):
                    given[position] = tensor
                return func(*given)

            found = torch.autograd.functional.jacobian(
                of_chosen,
                tuple(args[i] for i in positions),
                create_graph=torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(args)),
            )
            return found[0] if isinstance(argnums, int) else found

        return wrapper

    transform.__name__ = name
    return transform


jacrev, jacfwd = _jacobian("jacrev"), _jacobian("jacfwd")


def hessian(func, argnums=0):
    @_functools.wraps(func)
    def wrapper(*args):
        _estimated("hessian", "the rows of a Hessian are computed one after the other here")
        if not isinstance(argnums, int):
            raise NotImplementedError(
                "torch.func.hessian is modeled for one argument; use torch.autograd.functional.hessian"
            )

        def of_chosen(tensor):
            return func(*args[:argnums], tensor, *args[argnums + 1 :])

        return torch.autograd.functional.hessian(of_chosen, args[argnums])

    return wrapper


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    @_functools.wraps(func)
    def wrapper(*args, **kwargs):
        _estimated("vmap", "the function runs once for each element of the batch here, and the results are stacked")
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)

        def dims_of(arg, dim):
            """For each tensor of an argument the dimension of its batch."""
            if isinstance(arg, torch.Tensor) or dim is None or isinstance(dim, int):
                return [dim] * len(_tensors(arg))
            pairs = [(arg[key], dim[key]) for key in arg] if isinstance(arg, dict) else list(zip(arg, dim))
            return [d for pair in pairs for d in dims_of(*pair)]

        batched = [(arg, dims_of(arg, dim)) for arg, dim in zip(args, dims)]
        sizes = {t.shape[d] for arg, of_arg in batched for t, d in zip(_tensors(arg), of_arg) if d is not None}
        sizes |= {t.shape[0] for t in _tensors(kwargs)}
        if len(sizes) != 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, and at least one such tensor, got sizes "
                f"{sorted(sizes)}"
            )
        results = []
        for i in range(sizes.pop()):
            given = [
                _like(arg, iter([t if d is None else t.select(d, i) for t, d in zip(_tensors(arg), of_arg)]))
                for arg, of_arg in batched
            ]
            results.append(
                func(*given, **_tree_map(lambda t, i=i: t.select(0, i) if isinstance(t, torch.Tensor) else t, kwargs))
            )
        out = out_dims if isinstance(out_dims, int) else 0
        stacked = iter([torch.stack(parts, out) for parts in zip(*map(_tensors, results))])
        return _like(results[0], stacked)

    return wrapper


def stack_module_state(models):
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")

    def stacked(named):
        made = {}
        for name, _ in named(models[0]):
            parts = [dict(named(model))[name] for model in models]
            made[name] = torch.stack([p.detach() for p in parts]).requires_grad_(parts[0].requires_grad)
        return made

    return stacked(lambda model: model.named_parameters()), stacked(lambda model: model.named_buffers())


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.func.{name}", "use torch.autograd.grad")
