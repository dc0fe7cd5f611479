"""Functions of a program with a backward function of the program."""

import inspect

import _torch_autograd as _native


class FunctionCtx:
    def save_for_backward(self, *tensors):
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        self.non_differentiable = tensors

    def set_materialize_grads(self, value):
        self.materialize_grads = value


class BackwardCFunction(_native._FunctionBase, FunctionCtx):
    """The context of a call, which is the call's node in the backward graph too. The node keeps the context; the context
    keeps no node."""

    def name(self):
        return type(self).__name__

    def _grad_fn(self):
        from torch._storage import GradFn

        node = self._graph_node()
        if node is None:
            raise RuntimeError(
                "Attribute 'next_functions' is invalid for this instance of _C._FunctionBase. Accessing this attribute directly "
                "on an instance of autograd.Function is a legacy access pattern that is no longer supported."
            )
        return GradFn(node)

    @property
    def next_functions(self):
        return self._grad_fn().next_functions

    def _sequence_nr(self):
        return self._grad_fn()._sequence_nr()

    def apply(self, *args):
        return self._forward_cls.backward(self, *args)


class FunctionMeta(type):
    def __init__(cls, name, bases, attrs):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
            "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        if cls.setup_context is not Function.setup_context:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            return _apply(cls, bound.args, {}, cls.setup_context)
        return _apply(cls, args, kwargs, None)


def _apply(cls, args, kwargs, setup_context):
    """What PyTorch's native code does (`THPFunction_apply`)."""
    from torch import Tensor

    tensors = [a for a in args if isinstance(a, Tensor)]
    context = cls._backward_cls()
    # A context has its own dictionary in PyTorch, which the garbage collector clears by itself.
    context.__dict__  # noqa: B018
    records = _native.is_grad_enabled() and any(t.requires_grad for t in tensors)
    context.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
    before = _native.set_grad_enabled(False)
    try:
        if setup_context is not None:
            result = cls.forward(*args, **kwargs)
            setup_context(context, args, result)
        else:
            result = cls.forward(context, *args, **kwargs)
    finally:
        _native.set_grad_enabled(before)
    outputs = list(result) if isinstance(result, tuple) else [result]
    made = []
    for output in outputs:
        if isinstance(output, Tensor) and not any(output is d for d in context.dirty_tensors or ()):
            if any(output is t for t in tensors):
                output = _view_as_self(output)
        made.append(output)
    if records:
        is_tensor = [isinstance(a, Tensor) for a in args]
        are_differentiable = [not any(o is n for n in context.non_differentiable or ()) for o in made]
        try:
            name = cls.__name__ + "Backward"
            _native.apply_custom(context, name, tensors, is_tensor, made, are_differentiable, context.to_save or ())
        except BaseException:
            # A hook for saved tensors raised: the function's results die before the exception is caught.
            result = outputs = output = made = context.to_save = None
            raise
    context.to_save = context.non_differentiable = context.dirty_tensors = None
    return tuple(made) if isinstance(result, tuple) else made[0]


def _view_as_self(tensor):
    before = _native.set_grad_enabled(False)
    try:
        return tensor.view_as(tensor)
    finally:
        _native.set_grad_enabled(before)


def once_differentiable(function):
    return function
