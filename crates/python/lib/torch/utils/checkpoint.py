"""Activation checkpointing: tensors that a function saves for the backward pass are computed again instead of kept."""

import weakref
from contextlib import nullcontext

import _torch_autograd as _native

import torch


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=None,
    determinism_check="default",
    debug=False,
    early_stop=True,
    preserve_rng_state=True,
    **kwargs,
):
    if use_reentrant is None:
        from _host import note

        note("checkpoint without use_reentrant: True is assumed, as PyTorch does with a warning")
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        return _Reentrant.apply(function, preserve_rng_state, *args)
    return _without_reentrant(function, early_stop, *args, **kwargs)


def _autocast_again():
    dtype = _native.autocast_dtype()
    return lambda: (
        torch.autocast("cuda", dtype=dtype, enabled=dtype is not None) if dtype is not None else nullcontext()
    )


class _Reentrant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        ctx.run_function = run_function
        ctx.autocast = _autocast_again()
        ctx.inputs, ctx.tensor_indices = [], []
        tensors = []
        for i, arg in enumerate(args):
            if isinstance(arg, torch.Tensor):
                tensors.append(arg)
                ctx.tensor_indices.append(i)
                ctx.inputs.append(None)
            else:
                ctx.inputs.append(arg)
        ctx.save_for_backward(*tensors)
        with torch.no_grad():
            outputs = run_function(*args)
        return outputs

    @staticmethod
    def backward(ctx, *args):
        inputs = list(ctx.inputs)
        tensors = ctx.saved_tensors
        for i, index in enumerate(ctx.tensor_indices):
            inputs[index] = tensors[i]
        detached = []
        for value in inputs:
            if isinstance(value, torch.Tensor):
                x = value.detach()
                x.requires_grad = value.requires_grad
                detached.append(x)
            else:
                detached.append(value)
        with torch.enable_grad(), ctx.autocast():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, torch.Tensor):
            outputs = (outputs,)
        with_grad, grads = [], []
        for i in range(len(outputs)):
            if torch.is_tensor(outputs[i]) and outputs[i].requires_grad:
                with_grad.append(outputs[i])
                grads.append(args[i])
        if not with_grad:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward(with_grad, grads)
        return (None, None) + tuple(x.grad if isinstance(x, torch.Tensor) else None for x in detached)


class _Stop(Exception):
    pass


class _Holder:
    """The placeholder of a saved tensor until the function runs again."""


class _Frame:
    def __init__(self, recompute, early_stop):
        self.recompute = recompute
        self.keep = self.input_saver = None
        self.early_stop = early_stop
        self.holders = []
        self.recomputed = weakref.WeakKeyDictionary()
        self.is_recomputed = False
        self.count = 0


class _RecomputeHooks(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, frame):
        def pack(x):
            index = frame.count
            frame.count += 1
            if index < len(frame.holders):
                holder = frame.holders[index]()
                if holder is not None:
                    frame.recomputed[holder] = x.detach()
                if frame.early_stop and frame.count == len(frame.holders):
                    raise _Stop()
            return x.detach()

        def unpack(x):
            return x

        super().__init__(pack, unpack)


class _CheckpointHooks(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, frame):
        def pack(x):
            holder = _Holder()
            frame.holders.append(weakref.ref(holder))
            return holder

        def unpack(holder):
            if not frame.is_recomputed:
                args = frame.input_saver.saved()
                try:
                    with _RecomputeHooks(frame), torch.enable_grad():
                        frame.recompute(*args)
                except _Stop:
                    pass
                frame.is_recomputed = True
            if holder not in frame.recomputed:
                raise RuntimeError(
                    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once."
                )
            tensor = frame.recomputed[holder]
            del frame.recomputed[holder]
            return tensor

        super().__init__(pack, unpack)


class _Inputs(torch.autograd.Function):
    """Keeps the inputs as a node of the graph does."""

    @staticmethod
    def forward(ctx, dummy, owner, *args):
        tensors = [(i, a) for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        indices = {index: at for at, (index, _) in enumerate(tensors)}
        rest = [None if isinstance(a, torch.Tensor) else a for a in args]
        ctx.save_for_backward(*(a for _, a in tensors))

        def saved():
            kept = ctx.saved_tensors
            return [kept[indices[i]] if i in indices else rest[i] for i in range(len(rest))]

        owner.saved = saved
        return torch.empty((0,))

    @staticmethod
    def backward(ctx, *grads):
        raise AssertionError("Did not expect to backward on this graph")


class _Saver:
    pass


def _without_reentrant(function, early_stop, *args, **kwargs):
    autocast = _autocast_again()

    def recompute(*inputs):
        kwargs, *args = inputs
        with autocast():
            function(*args, **kwargs)

    frame = _Frame(recompute, early_stop)
    dummy = torch.empty((0,), requires_grad=True)
    saver = _Saver()
    frame.keep = _Inputs.apply(dummy, saver, kwargs, *args)
    frame.input_saver = saver
    if not _native.is_grad_enabled():
        return function(*args, **kwargs)
    with _CheckpointHooks(frame):
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    def run_function(start, end, functions):
        def forward(input):
            for j in range(start, end + 1):
                input = functions[j](input)
            return input

        return forward

    if isinstance(functions, torch.nn.Sequential):
        functions = list(functions.children())
    segment_size = len(functions) // segments
    end = -1
    for start in range(0, segment_size * (segments - 1), segment_size):
        end = start + segment_size - 1
        input = checkpoint(run_function(start, end, functions), input, use_reentrant=bool(use_reentrant))
    return run_function(end + 1, len(functions) - 1, functions)(input)


class CheckpointPolicy:
    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)


def set_checkpoint_early_stop(enable):
    return nullcontext()


class CheckpointError(RuntimeError):
    pass


def noop_context_fn():
    return nullcontext(), nullcontext()


class set_checkpoint_debug_enabled:
    def __init__(self, enabled):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass


def detach_variable(inputs):
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    made = []
    for value in inputs:
        if isinstance(value, torch.Tensor):
            detached = value.detach()
            detached.requires_grad = value.requires_grad
            value = detached
        made.append(value)
    return tuple(made)


def check_backward_validity(inputs):
    if not any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs):
        from _host import note

        note("None of the inputs have requires_grad=True. Gradients will be None")


def get_device_states(*args):
    devices = sorted({t.get_device() for t in args if isinstance(t, torch.Tensor) and t.is_cuda})
    return devices, [torch.cuda.get_rng_state(device) for device in devices]


def set_device_states(devices, states, *, device_type=None):
    for device, state in zip(devices, states):
        torch.cuda.set_rng_state(state, device)
