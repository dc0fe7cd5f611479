"""Functions of a program with a backward function of the program."""

import _torch_autograd as _native


class FunctionCtx:
    def __init__(self):
        self._to_save, self._needs, self._not_differentiable, self._dirty = (), (), (), ()
        self._materialize, self._saved = True, None

    def save_for_backward(self, *tensors):
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        pass

    def mark_dirty(self, *tensors):
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        self._not_differentiable = tensors

    def set_materialize_grads(self, value):
        self._materialize = value

    @property
    def saved_tensors(self):
        if self._saved is None:
            return ()
        saved = self._saved.get()
        if saved is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
                "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
                "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
                "saved tensors after calling backward."
            )
        return saved

    @property
    def needs_input_grad(self):
        return self._needs


BackwardCFunction = FunctionCtx


class Function:
    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        from torch import Tensor

        tensors = [a for a in args if isinstance(a, Tensor)]
        context = FunctionCtx()
        records = _native.is_grad_enabled() and any(t.requires_grad for t in tensors)
        context._needs = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        before = _native.set_grad_enabled(False)
        try:
            if "setup_context" in cls.__dict__:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(context, args, result)
            else:
                result = cls.forward(context, *args, **kwargs)
        finally:
            _native.set_grad_enabled(before)
        outputs = list(result) if isinstance(result, tuple) else [result]
        made = []
        for output in outputs:
            if isinstance(output, Tensor) and not any(output is d for d in context._dirty):
                if any(output is t for t in tensors):
                    output = output.view_as(output) if records else output
            made.append(output)
        if records:
            positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
            differentiable = [
                o for o in made if isinstance(o, Tensor) and not any(o is n for n in context._not_differentiable)
            ]

            def run(*grads):
                if context._materialize:
                    grads = tuple(_zeros(shape) if g is None else g for g, shape in zip(grads, shapes))
                found = cls.backward(context, *grads)
                found = found if isinstance(found, tuple) else (found,)
                return [found[i] if i < len(found) else None for i in positions]

            shapes = [(o.shape, o.dtype, o.device) for o in differentiable]
            name = cls.__name__ + "Backward"
            try:
                context._saved = _native.apply_custom(name, tensors, differentiable, run, context._to_save)
            except BaseException:
                # A hook for saved tensors raised: the function's results die before the exception is caught.
                result = outputs = output = made = differentiable = context._to_save = None
                raise
        context._to_save = ()
        return tuple(made) if isinstance(result, tuple) else made[0]


def _zeros(description):
    import torch

    shape, dtype, device = description
    return torch.zeros(shape, dtype=dtype, device=device)


def once_differentiable(function):
    return function
