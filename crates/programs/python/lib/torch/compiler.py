"""`torch.compiler`: nothing is compiled."""


def is_compiling():
    return False


def disable(fn=None, recursive=True):
    return fn if fn is not None else (lambda f: f)


def cudagraph_mark_step_begin():
    pass


def reset():
    pass


allow_in_graph = disable
assume_constant_result = wrap_numpy = nested_compile_region = disable


def compile(*args, **kwargs):
    import torch

    return torch.compile(*args, **kwargs)


def is_dynamo_compiling():
    return False


is_exporting = is_dynamo_compiling


def list_backends(exclude_tags=()):
    return ["cudagraphs", "inductor", "openxla", "tvm"]


def substitute_in_graph(original_fn, **kwargs):
    return disable


class set_stance:
    def __init__(self, stance="default", **kwargs):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass

    def __call__(self, function):
        return function
