"""Modes that a `with` switches: gradients, inference, autocast."""

import functools

import _torch_autograd as _native


class _Decorator:
    """A context manager that can decorate a function too; a decorated generator runs in the mode at each turn."""

    def clone(self):
        return self.__class__()

    def __call__(self, function):
        if isinstance(function, type):
            return function

        @functools.wraps(function)
        def decorated(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return decorated


class _Optional(_Decorator):
    def __new__(cls, orig_func=None):
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)


class no_grad(_Optional):
    def __enter__(self):
        self.prev = _native.set_grad_enabled(False)

    def __exit__(self, *exc):
        _native.set_grad_enabled(self.prev)


class enable_grad(_Optional):
    def __enter__(self):
        # What is made in inference mode has no history, whatever is enabled inside.
        self.prev = _native.set_grad_enabled(not _native.is_inference())

    def __exit__(self, *exc):
        _native.set_grad_enabled(self.prev)


class set_grad_enabled(_Decorator):
    def __init__(self, mode):
        self.mode = mode
        self.prev = _native.set_grad_enabled(bool(mode))

    def __call__(self, function):
        _native.set_grad_enabled(self.prev)
        return super().__call__(function)

    def clone(self):
        return self.__class__(self.mode)

    def __enter__(self):
        _native.set_grad_enabled(self.mode)

    def __exit__(self, *exc):
        _native.set_grad_enabled(self.prev)


class inference_mode(_Decorator):
    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def clone(self):
        return self.__class__(self.mode)

    def __enter__(self):
        self.before = (
            _native.set_inference(self.mode),
            _native.set_grad_enabled(not self.mode and _native.is_grad_enabled()),
        )

    def __exit__(self, *exc):
        inference, grad = self.before
        _native.set_inference(inference)
        _native.set_grad_enabled(grad)


def is_grad_enabled():
    return _native.is_grad_enabled()


def is_inference_mode_enabled():
    return _native.is_inference()


class autocast(_Decorator):
    def __init__(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
        import torch

        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = dtype if dtype is not None else (torch.bfloat16 if device_type == "cpu" else torch.float16)
        self._enabled = enabled
        self._cache_enabled = True if cache_enabled is None else cache_enabled
        self._states = []

    def clone(self):
        return self.__class__(self.device, self.fast_dtype, self._enabled, self._cache_enabled)

    def __enter__(self):
        on_gpu = self.device == "cuda"
        dtype = self.fast_dtype if self._enabled else None
        self._states.append(_native.enter_autocast(dtype if on_gpu else _native.autocast_dtype(), self._cache_enabled))
        return self

    def __exit__(self, *exc):
        self._states.pop().exit()
        return False


class set_multithreading_enabled:
    """The backward pass has one thread for each device, with and without."""

    def __init__(self, mode=True):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass
