"""Pictures, which are not drawn here."""

import torch
from _host import note


def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor), 0)
    _say(tensor)
    shape = (1, *tensor.shape) if tensor.dim() == 2 else tuple(tensor.shape)
    channels = 3 if shape[-3] == 1 else shape[-3]
    if len(shape) == 3 or shape[0] == 1:
        return torch.empty((channels, *shape[-2:]), dtype=tensor.dtype)
    count, height, width = shape[0], shape[-2] + padding, shape[-1] + padding
    columns = min(nrow, count)
    return torch.empty(
        (channels, height * -(-count // columns) + padding, width * columns + padding), dtype=tensor.dtype
    )


def save_image(tensor, fp, format=None, **kwargs):
    for part in tensor if isinstance(tensor, (list, tuple)) else [tensor]:
        _say(part)
    note("pictures are not drawn here: no file is written")


def _say(tensor):
    if tensor.is_cuda:
        note(
            "pictures are not drawn here: the GPU memory that torchvision takes for a picture is left out; pass tensor.cpu()"
        )
