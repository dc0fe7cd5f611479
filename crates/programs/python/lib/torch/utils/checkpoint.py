"""Activation checkpointing: tensors that a function saves for the backward pass are computed again instead of kept.

Contexts, frames and closures keep what PyTorch's keep, under PyTorch's names: they decide how long tensors live in cycles of
references, and how often Python's garbage collector runs.
"""

import contextlib
import itertools
import weakref
from collections import defaultdict
from contextlib import nullcontext

import _torch_autograd as _native

import torch
from torch._compile import import_dynamo
from torch.utils._pytree import tree_map


def noop_context_fn():
    return nullcontext(), nullcontext()


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    import_dynamo()
    if use_reentrant is None:
        from _host import note

        note("checkpoint without use_reentrant: True is assumed, as PyTorch does with a warning")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        return CheckpointFunction.apply(function, preserve, *args)
    generator = _checkpoint_without_reentrant_generator(
        function, preserve, context_fn, determinism_check, debug, early_stop, *args, **kwargs
    )
    next(generator)
    result = function(*args, **kwargs)
    try:
        next(generator)
    except StopIteration:
        return result


def _infer_device_type(*args):
    types = []

    def add(value):
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            types.append(value.device.type)

    tree_map(add, args)
    return types[0] if types and "cuda" not in types else "cuda"


def get_device_states(*args):
    devices = []

    def add(value):
        if isinstance(value, torch.Tensor) and value.device.type not in ("cpu", "meta"):
            devices.append(value.get_device())

    tree_map(add, args)
    _infer_device_type(*args)
    return devices, [torch.cuda.get_rng_state(device) for device in devices]


def set_device_states(devices, states, *, device_type=None):
    for device, state in zip(devices, states):
        torch.cuda.set_rng_state(state, device)


def _get_autocast_kwargs(device_type="cuda"):
    device_autocast_kwargs = {
        "enabled": torch.is_autocast_enabled(device_type),
        "dtype": torch.get_autocast_dtype(device_type),
        "cache_enabled": torch.is_autocast_cache_enabled(),
    }
    cpu_autocast_kwargs = {
        "enabled": False,
        "dtype": torch.bfloat16,
        "cache_enabled": torch.is_autocast_cache_enabled(),
    }
    return device_autocast_kwargs, cpu_autocast_kwargs


def _autocast_again(arguments):
    """The autocast of the forward pass, where it was on."""
    return torch.autocast("cuda", **arguments) if arguments["enabled"] else nullcontext()


class CheckpointFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        ctx.run_function = run_function
        ctx.preserve_rng_state = preserve_rng_state
        ctx.device_type = _infer_device_type(*args)
        ctx.device_autocast_kwargs, ctx.cpu_autocast_kwargs = _get_autocast_kwargs(ctx.device_type)
        if preserve_rng_state:
            # The states decide no size, so nobody sets them again.
            ctx.fwd_cpu_state = torch.get_rng_state()
            ctx.had_device_in_fwd = True
            ctx.fwd_devices, ctx.fwd_device_states = get_device_states(*args)
        ctx.inputs, ctx.tensor_indices = [], []
        tensor_inputs = []
        for i, arg in enumerate(args):
            if isinstance(arg, torch.Tensor):
                tensor_inputs.append(arg)
                ctx.tensor_indices.append(i)
                ctx.inputs.append(None)
            else:
                ctx.inputs.append(arg)
        ctx.save_for_backward(*tensor_inputs)
        with torch.no_grad():
            outputs = run_function(*args)
        return outputs

    @staticmethod
    def backward(ctx, *args):
        if not _native.is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        tensors = ctx.saved_tensors
        for i, index in enumerate(ctx.tensor_indices):
            inputs[index] = tensors[i]
        rng_devices = ctx.fwd_devices if ctx.preserve_rng_state else []
        with torch.random.fork_rng(devices=rng_devices, enabled=ctx.preserve_rng_state, device_type=ctx.device_type):
            detached_inputs = detach_variable(tuple(inputs))
            with (
                torch.enable_grad(),
                _autocast_again(ctx.device_autocast_kwargs),
                torch.autocast("cpu", **ctx.cpu_autocast_kwargs),
            ):
                outputs = ctx.run_function(*detached_inputs)
        if isinstance(outputs, torch.Tensor):
            outputs = (outputs,)
        outputs_with_grad, args_with_grad = [], []
        for i in range(len(outputs)):
            if torch.is_tensor(outputs[i]) and outputs[i].requires_grad:
                outputs_with_grad.append(outputs[i])
                args_with_grad.append(args[i])
        if not outputs_with_grad:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward(outputs_with_grad, args_with_grad)
        grads = tuple(value.grad if isinstance(value, torch.Tensor) else None for value in detached_inputs)
        return (None, None) + grads


class CheckpointError(RuntimeError):
    pass


_enable_checkpoint_early_stop = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    global _enable_checkpoint_early_stop
    before = _enable_checkpoint_early_stop
    _enable_checkpoint_early_stop = enable
    try:
        yield
    finally:
        _enable_checkpoint_early_stop = before


class _StopRecomputationError(Exception):
    pass


class _Handle:
    """The key of a tensor that was computed again."""


class _Holder:
    """The placeholder of a saved tensor until the function runs again; its handles are those of the backward passes."""

    def __init__(self):
        self.handles = {}


class _NoopSaveInputs(torch.autograd.Function):
    """Keeps the inputs as a node of the graph does."""

    @staticmethod
    def forward(*args):
        return torch.empty((0,))

    @staticmethod
    def setup_context(ctx, inputs, output):
        tensor_indices, tensors = zip(*[(i, o) for i, o in enumerate(inputs) if isinstance(o, torch.Tensor)])
        places = {index: place for place, index in enumerate(tensor_indices)}
        args = [None if isinstance(o, torch.Tensor) else o for o in inputs]

        def get_args(saved_tensors):
            found = [saved_tensors[places[i]] if i in tensor_indices else o for i, o in enumerate(args)]
            return found[1:]

        ctx.get_args = get_args
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise AssertionError("Did not expect to backward on this graph")


class _CheckpointFrame:
    def __init__(self, recompute_fn, early_stop, metadata_fn):
        self.recompute_fn = recompute_fn
        self.input_saver = None
        self.weak_holders = []
        # By backward pass; a weak dictionary, so that what a partial backward pass releases dies.
        self.recomputed = defaultdict(weakref.WeakKeyDictionary)
        self.recomp_counter = defaultdict(int)
        self.is_recomputed = defaultdict(bool)
        self.early_stop = early_stop
        self.metadata_fn = metadata_fn
        self.x_metadatas = []
        self.forward_completed = False
        self.ignore_saved_mismatch = False

    def check_recomputed_tensors_match(self, gid):
        if self.ignore_saved_mismatch:
            return
        if len(self.weak_holders) != self.recomp_counter[gid]:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.weak_holders)}\n"
                f"Number of tensors saved during recomputation: {self.recomp_counter[gid]}."
            )
        for index, weak_holder in enumerate(self.weak_holders):
            holder = weak_holder()
            if holder is None:
                continue
            found = self.metadata_fn(self.recomputed[gid][holder.handles[gid]])
            if self.x_metadatas[index] != found:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                    f"the forward pass.\ntensor at position {index}:\nsaved metadata: {self.x_metadatas[index]}\n"
                    f"recomputed metadata: {found}\n"
                )


class _recomputation_hook(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, target_frame_ref, gid):
        def pack_hook(x):
            x = x.detach() if x.requires_grad else x
            target_frame = target_frame_ref()
            index = target_frame.recomp_counter[gid]
            target_frame.recomp_counter[gid] += 1
            if index >= len(target_frame.weak_holders):
                if not target_frame.forward_completed:
                    target_frame.ignore_saved_mismatch = True
                    return x
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    "forward pass.\n"
                )
            holder = target_frame.weak_holders[index]()
            if holder is not None:
                holder.handles[gid] = _Handle()
                target_frame.recomputed[gid][holder.handles[gid]] = x
            if target_frame.early_stop and target_frame.recomp_counter[gid] == len(target_frame.weak_holders):
                raise _StopRecomputationError
            return x

        def unpack_hook(x):
            return x

        super().__init__(pack_hook, unpack_hook)


def _metadata(x):
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


# Numbers in the place of that of a backward pass, where nothing runs backward.
_outside = itertools.count(-2, -1)


class _checkpoint_hook(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, frame):
        def pack_hook(x):
            holder = _Holder()
            frame.weak_holders.append(weakref.ref(holder))
            with torch.no_grad():
                frame.x_metadatas.append(frame.metadata_fn(x))
            return holder

        def unpack_hook(holder):
            gid = _native.current_graph_task()
            if gid == -1:
                gid = next(_outside)
            if not frame.is_recomputed[gid]:
                ctx = frame.input_saver.grad_fn
                args = ctx.get_args(ctx.saved_tensors)
                try:
                    with _recomputation_hook(weakref.ref(frame), gid), torch.enable_grad():
                        frame.recompute_fn(*args)
                except _StopRecomputationError:
                    pass
                frame.is_recomputed[gid] = True
                frame.check_recomputed_tensors_match(gid)
            if holder.handles[gid] is None:
                raise CheckpointError(
                    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are "
                    "calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with "
                    "details on your use case."
                )
            found = frame.recomputed[gid][holder.handles[gid]]
            holder.handles[gid] = None
            return found

        super().__init__(pack_hook, unpack_hook)


def _checkpoint_without_reentrant_generator(
    fn, preserve_rng_state, context_fn, determinism_check, debug, early_stop, *args, **kwargs
):
    device_type = _infer_device_type(*args)
    forward_context, recompute_context = context_fn()
    device_autocast_kwargs, cpu_autocast_kwargs = _get_autocast_kwargs(device_type=device_type)
    if preserve_rng_state:
        fwd_cpu_state = torch.get_rng_state()
        fwd_devices, fwd_device_states = get_device_states(*args)

    def recompute_fn(*inputs):
        kwargs, *args = inputs
        rng_devices = fwd_devices if preserve_rng_state else []
        with torch.random.fork_rng(devices=rng_devices, enabled=preserve_rng_state, device_type=device_type):
            if preserve_rng_state:
                # As in PyTorch, they live as long as the function.
                fwd_cpu_state, fwd_device_states  # noqa: B018
            with (
                _autocast_again(device_autocast_kwargs),
                torch.autocast("cpu", **cpu_autocast_kwargs),
                recompute_context,
            ):
                fn(*args, **kwargs)

    new_frame = _CheckpointFrame(
        recompute_fn,
        early_stop if _enable_checkpoint_early_stop is None else _enable_checkpoint_early_stop,
        _metadata if determinism_check == "default" else lambda x: None,
    )
    dummy = torch.empty((0,), requires_grad=True)
    new_frame.input_saver = _NoopSaveInputs.apply(dummy, kwargs, *args)
    if new_frame.input_saver.grad_fn is None:
        yield
        return
    with _checkpoint_hook(new_frame), forward_context:
        yield
    new_frame.forward_completed = True


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
