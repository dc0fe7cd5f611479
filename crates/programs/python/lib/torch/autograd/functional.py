"""`torch.autograd.functional`: products with Jacobians and Hessians, by the backward pass."""

import torch


def _as_tuple(value):
    is_tuple = isinstance(value, (tuple, list))
    return is_tuple, tuple(value) if is_tuple else (value,)


def _prepared(inputs, create_graph, need_graph):
    return tuple(t.view_as(t) if create_graph else t.detach().requires_grad_(need_graph) for t in inputs)


def _finished(results, create_graph):
    return (
        results if create_graph else tuple(_finished(r, False) if isinstance(r, tuple) else r.detach() for r in results)
    )


def _grad(outputs, inputs, grad_outputs=None, create_graph=False, retain_graph=None):
    if grad_outputs is None:
        grad_outputs = (None,) * len(outputs)
    pairs = [(out, grad) for out, grad in zip(outputs, grad_outputs) if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outputs, grad_outputs = zip(*pairs)
    del pairs
    return torch.autograd.grad(
        outputs, inputs, grad_outputs, allow_unused=True, create_graph=create_graph, retain_graph=retain_graph
    )


def _filled(grads, like):
    return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(grads, like))


def _one(results, is_tuple):
    return results if is_tuple else results[0]


def _vector(v, create_graph, inputs, name):
    if v is None:
        if len(inputs) != 1 or inputs[0].nelement() != 1:
            raise RuntimeError(f"The vector v can only be None if the {name} is a single Tensor with a single element.")
        return None
    v = _prepared(_as_tuple(v)[1], create_graph, False)
    if [t.size() for t in v] != [t.size() for t in inputs]:
        raise RuntimeError(f"v has to have the sizes of the {name}")
    return v


def _single(outputs, is_tuple, name):
    if is_tuple or not isinstance(outputs[0], torch.Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    with torch.enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs)
        inputs = _prepared(inputs, create_graph, True)
        outputs = func(*inputs)
        is_outputs_tuple, outputs = _as_tuple(outputs)
        v = _vector(v, create_graph, outputs, "output of the user-provided function")
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        found = _filled(_grad(outputs, inputs, v, create_graph), inputs)
    outputs, found = _finished(outputs, create_graph), _finished(found, create_graph)
    return _one(outputs, is_outputs_tuple), _one(found, is_inputs_tuple)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    with torch.enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs)
        inputs = _prepared(inputs, create_graph, True)
        v = _vector(v, create_graph, inputs, "input to the user-provided function")
        outputs = func(*inputs)
        is_outputs_tuple, outputs = _as_tuple(outputs)
        grad_outputs = tuple(torch.zeros_like(out, requires_grad=True) for out in outputs)
        grad_inputs = _grad(outputs, inputs, grad_outputs, True)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        found = _filled(_grad(grad_inputs, grad_outputs, v, create_graph), outputs)
    outputs, found = _finished(outputs, create_graph), _finished(found, create_graph)
    return _one(outputs, is_outputs_tuple), _one(found, is_outputs_tuple)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    if vectorize:
        torch._torch_memory.note_estimate("jacobian", "vectorize=True is run as a loop over the outputs")
    with torch.enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs)
        inputs = _prepared(inputs, create_graph, True)
        outputs = func(*inputs)
        is_outputs_tuple, outputs = _as_tuple(outputs)
        found = ()
        for out in outputs:
            rows = tuple([] for _ in inputs)
            for j in range(out.nelement()):
                vj = _grad((out.reshape(-1)[j],), inputs, None, create_graph, True)
                for row, grad, own in zip(rows, vj, inputs):
                    row.append(grad if grad is not None else torch.zeros_like(own))
            found += (tuple(torch.stack(row, dim=0).view(out.size() + own.size()) for row, own in zip(rows, inputs)),)
        found = _finished(found, create_graph)
        found = found if is_inputs_tuple else tuple(each[0] for each in found)
        return _one(found, is_outputs_tuple)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    is_inputs_tuple, inputs = _as_tuple(inputs)

    def value(*given):
        out = func(*given)
        _single((out,), isinstance(out, tuple), "hessian")
        return out.squeeze()

    def slope(*given):
        return jacobian(value, given, create_graph=True)

    found = jacobian(slope, inputs, create_graph=create_graph, vectorize=vectorize)
    return found if is_inputs_tuple else found[0][0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    with torch.enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs)
        inputs = _prepared(inputs, create_graph, True)
        v = _vector(v, create_graph, inputs, "input to the user-provided function")
        outputs = func(*inputs)
        is_outputs_tuple, outputs = _as_tuple(outputs)
        _single(outputs, is_outputs_tuple, "vhp")
        jac = _grad(outputs, inputs, None, True)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        found = _filled(_grad(jac, inputs, v, create_graph), inputs)
    outputs, found = _finished(outputs, create_graph), _finished(found, create_graph)
    return _one(outputs, is_outputs_tuple), _one(found, is_inputs_tuple)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    with torch.enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs)
        inputs = _prepared(inputs, create_graph, True)
        v = _vector(v, create_graph, inputs, "input to the user-provided function")
        outputs = func(*inputs)
        is_outputs_tuple, outputs = _as_tuple(outputs)
        _single(outputs, is_outputs_tuple, "hvp")
        jac = _grad(outputs, inputs, None, True)
        grad_jac = tuple(torch.zeros_like(inp, requires_grad=True) for inp in inputs)
        double_back = _grad(jac, inputs, grad_jac, True)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        found = _filled(_grad(double_back, grad_jac, v, create_graph), inputs)
    outputs, found = _finished(outputs, create_graph), _finished(found, create_graph)
    return _one(outputs, is_outputs_tuple), _one(found, is_inputs_tuple)
