"""Pictures, which are not drawn here."""

import torch


def make_grid(tensor, nrow=8, padding=2, **kwargs):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor), 0)
    _say(tensor)
    count, height, width = tensor.shape[0], tensor.shape[-2] + padding, tensor.shape[-1] + padding
    columns = min(nrow, count)
    return torch.empty((3, height * -(-count // columns) + padding, width * columns + padding))


def save_image(tensor, fp, **kwargs):
    for part in tensor if isinstance(tensor, (list, tuple)) else [tensor]:
        _say(part)


def _say(tensor):
    if tensor.is_cuda:
        from _host import note

        note(
            "pictures are not drawn here: the GPU memory that torchvision takes for a picture is left out; pass tensor.cpu()"
        )
