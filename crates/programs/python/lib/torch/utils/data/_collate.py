"""Batches of samples."""

import torch
from torch import _numpy


def default_convert(data):
    return data


def default_collate(batch):
    element = batch[0]
    if isinstance(element, torch.Tensor):
        return torch.stack(batch, 0)
    if _numpy.is_array(element):
        return torch.stack([torch.tensor(item) for item in batch], 0)
    if type(element) is torch.UnknownNumber and not element.dtype.is_floating_point:
        return torch.tensor(batch, dtype=element.dtype)
    if isinstance(element, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(element, int):
        return torch.tensor(batch)
    if isinstance(element, (str, bytes)):
        return batch
    if isinstance(element, dict):
        return {key: default_collate([item[key] for item in batch]) for key in element}
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        return type(element)(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(element, (list, tuple)):
        if not all(len(item) == len(element) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(samples) for samples in list(zip(*batch))]
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(element)}"
    )


def pin_memory(data):
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: pin_memory(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(item) for item in data))
    if isinstance(data, tuple):
        return [pin_memory(item) for item in data]
    if isinstance(data, list):
        return [pin_memory(item) for item in data]
    return data.pin_memory() if hasattr(data, "pin_memory") else data
