"""The base class of optimizers."""

import functools
from collections import OrderedDict, defaultdict
from copy import deepcopy

import _torch_memory as _memory

import torch
from torch._compile import import_dynamo


class _RequiredParameter:
    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


# Hooks of every optimizer's steps.
_GLOBAL_PRE_HOOKS, _GLOBAL_POST_HOOKS = OrderedDict(), OrderedDict()


def _added(hooks, hook, prepend=False):
    from torch.utils.hooks import RemovableHandle

    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    return _added(_GLOBAL_PRE_HOOKS, hook)


def register_optimizer_step_post_hook(hook):
    return _added(_GLOBAL_POST_HOOKS, hook)


def _profiled(step):
    @functools.wraps(step)
    def wrapper(*args, **kwargs):
        self, *_ = args
        before = _memory.set_phase("optimizer")
        try:
            for hook in [*_GLOBAL_PRE_HOOKS.values(), *self._optimizer_step_pre_hooks.values()]:
                hook(self, args, kwargs)
            grad = torch.is_grad_enabled()
            torch._torch_autograd.set_grad_enabled(False)
            try:
                out = step(*args, **kwargs)
            finally:
                torch._torch_autograd.set_grad_enabled(grad)
            for hook in [*self._optimizer_step_post_hooks.values(), *_GLOBAL_POST_HOOKS.values()]:
                hook(self, args, kwargs)
            return out
        finally:
            _memory.set_phase(before)

    return wrapper


class Optimizer:
    def __getattr__(self, name):
        from torch import _names

        if _names.is_public("torch.optim.Optimizer", name):
            raise AttributeError(f"Optimizer.{name} is not modeled here")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__ and not hasattr(cls.__dict__["step"], "__wrapped__"):
            cls.step = (
                _profiled_user(cls.__dict__["step"])
                if not cls.__module__.startswith("torch.")
                else _profiled(cls.__dict__["step"])
            )

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
        self._state_hooks = {kind: OrderedDict() for kind in ("save_pre", "save_post", "load_pre", "load_post")}
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + torch.typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        param_groups = list(params)
        if len(param_groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(param_groups[0], dict):
            param_groups = [{"params": param_groups}]
        for param_group in param_groups:
            self.add_param_group(dict(param_group))

    def add_param_group(self, param_group):
        import_dynamo()
        params = param_group["params"]
        if isinstance(params, torch.Tensor):
            param_group["params"] = [params]
        else:
            param_group["params"] = list(params)
        param_group["params"] = [p[1] if isinstance(p, tuple) else p for p in param_group["params"]]
        for param in param_group["params"]:
            if not isinstance(param, torch.Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + torch.typename(param)
                )
            if not param.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        known = set()
        for group in self.param_groups:
            known.update(id(p) for p in group["params"])
        if not known.isdisjoint(id(p) for p in param_group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        import_dynamo()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if set_to_none:
                        p.grad = None
                    else:
                        if p.grad.grad_fn is not None:
                            p.grad.detach_()
                        else:
                            p.grad.requires_grad_(False)
                        if p.grad.is_sparse:
                            p.grad.zero_()
                            continue
                        per_device = getattr(self, "_zeroing", None)
                        if per_device is None:
                            per_device = self._zeroing = []
                        per_device.append(p.grad)
        per_device = self.__dict__.pop("_zeroing", None)
        if per_device:
            torch._foreach_zero_(per_device)

    def step(self, closure=None):
        raise NotImplementedError

    def register_step_pre_hook(self, hook):
        from torch.utils.hooks import RemovableHandle

        handle = RemovableHandle(self._optimizer_step_pre_hooks)
        self._optimizer_step_pre_hooks[handle.id] = hook
        return handle

    def register_step_post_hook(self, hook):
        from torch.utils.hooks import RemovableHandle

        handle = RemovableHandle(self._optimizer_step_post_hooks)
        self._optimizer_step_post_hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook, prepend=False):
        return _added(self._state_hooks["save_pre"], hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        return _added(self._state_hooks["save_post"], hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        return _added(self._state_hooks["load_pre"], hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        return _added(self._state_hooks["load_post"], hook, prepend)

    @staticmethod
    def profile_hook_step(func):
        return _profiled(func)

    def state_dict(self):
        for hook in self._state_hooks["save_pre"].values():
            hook(self)
        numbers, start = {}, 0
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, torch.Tensor) else key: value for key, value in self.state.items()}
        made = {"state": state, "param_groups": groups}
        for hook in self._state_hooks["save_post"].values():
            changed = hook(self, made)
            made = made if changed is None else changed
        return made

    def load_state_dict(self, state_dict):
        for hook in self._state_hooks["load_pre"].values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups = self.param_groups
        saved = state_dict["param_groups"]
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        by_number = {}
        for group, old in zip(groups, saved):
            if len(group["params"]) != len(old["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            by_number.update(zip(old["params"], group["params"]))
        state = defaultdict(dict)
        for number, values in state_dict["state"].items():
            param = by_number[number]
            state[param] = {
                key: (
                    value.to(dtype=param.dtype, device=param.device)
                    if isinstance(value, torch.Tensor) and key != "step"
                    else deepcopy(value)
                )
                for key, value in values.items()
            }
        for group, old in zip(groups, saved):
            group.update({key: value for key, value in old.items() if key != "params"})
        self.state = state
        for hook in self._state_hooks["load_post"].values():
            hook(self)

    def __repr__(self):
        text = self.__class__.__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group.keys()):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"


def _profiled_user(step):
    @functools.wraps(step)
    def wrapper(*args, **kwargs):
        before = _memory.set_phase("optimizer")
        try:
            return step(*args, **kwargs)
        finally:
            _memory.set_phase(before)

    return wrapper


def group_by_device_and_dtype(lists):
    """Groups of the positions of parallel lists, by the device and type of the first one's tensors."""
    groups = {}
    for index, tensor in enumerate(lists[0]):
        groups.setdefault((tensor.device, tensor.dtype), []).append(index)
    return [[[column[i] for i in indices] if column else [] for column in lists] for indices in groups.values()]
