"""The state of `nn.Module`: methods that the class imports."""

from collections import OrderedDict, namedtuple

import torch
from torch.nn.parameter import Parameter
from torch.utils.hooks import RemovableHandle


def _add_indent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first] + [" " * spaces + line for line in rest])


def _add_hook(hooks, handle, hook, is_first):
    hooks[handle.id] = hook
    if is_first:
        hooks.move_to_end(handle.id, last=False)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def get_extra_state(self):
    raise RuntimeError(
        "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
    )


set_extra_state = get_extra_state


def _register_state_hook(self, hooks, hook):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_state_dict_pre_hook(self, hook):
    return self._register_state_hook(self._state_dict_pre_hooks, hook)


def register_state_dict_post_hook(self, hook):
    return self._register_state_hook(self._state_dict_hooks, hook)


def register_load_state_dict_pre_hook(self, hook):
    return self._register_state_hook(self._load_state_dict_pre_hooks, hook)


def register_load_state_dict_post_hook(self, hook):
    return self._register_state_hook(self._load_state_dict_post_hooks, hook)


def _save_to_state_dict(self, destination, prefix, keep_vars):
    for name, param in self._parameters.items():
        if param is not None:
            destination[prefix + name] = param if keep_vars else param.detach()
    for name, buf in self._buffers.items():
        if buf is not None and name not in self._non_persistent_buffers_set:
            destination[prefix + name] = buf if keep_vars else buf.detach()


def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
    if destination is None:
        destination = OrderedDict()
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    if type(self).get_extra_state is not get_extra_state:
        destination[prefix + "_extra_state"] = self.get_extra_state()
    for name, module in self._modules.items():
        if module is not None:
            module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
    for hook in self._state_dict_hooks.values():
        hook(self, destination, prefix, {})
    return destination


def load_state_dict(self, state_dict, strict=True, assign=False):
    missing, unexpected, errors, used = [], [], [], set()
    # A plain dictionary has no versions, as a file from before batches were counted.
    has_versions = isinstance(state_dict, OrderedDict)
    state_dict = OrderedDict(state_dict)

    def load(module, prefix):
        for hook in list(module._load_state_dict_pre_hooks.values()):
            hook(module, state_dict, prefix, {}, strict, missing, unexpected, errors)
        if type(module).set_extra_state is not set_extra_state and prefix + "_extra_state" in state_dict:
            used.add(prefix + "_extra_state")
            module.set_extra_state(state_dict[prefix + "_extra_state"])
        own = {
            **{k: v for k, v in module._parameters.items() if v is not None},
            **{
                k: v
                for k, v in module._buffers.items()
                if v is not None and k not in module._non_persistent_buffers_set
            },
        }
        for name, param in own.items():
            key = prefix + name
            if key not in state_dict:
                if has_versions or name != "num_batches_tracked":
                    missing.append(key)
                continue
            used.add(key)
            input_param = state_dict[key]
            if input_param.shape != param.shape:
                errors.append(
                    f"size mismatch for {key}: copying a param with shape {input_param.shape} from checkpoint, the shape in current "
                    f"model is {param.shape}."
                )
                continue
            with torch.no_grad():
                if assign:
                    setattr(
                        module,
                        name,
                        Parameter(input_param, param.requires_grad) if isinstance(param, Parameter) else input_param,
                    )
                else:
                    param.copy_(input_param)
        for name, child in module._modules.items():
            if child is not None:
                load(child, prefix + name + ".")  # noqa: F821 - deleted below, after the call
        for hook in list(module._load_state_dict_post_hooks.values()):
            hook(module, _IncompatibleKeys(missing, unexpected))

    load(self, "")
    # The function is in its own closure, with all that it names: without this, parameters would wait for the garbage collector.
    del load
    unexpected = [key for key in state_dict if key not in used]
    if strict:
        if unexpected:
            errors.insert(0, "Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected) + ". ")
        if missing:
            errors.insert(0, "Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". ")
    if errors:
        raise RuntimeError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
        )
    return _IncompatibleKeys(missing, unexpected)
