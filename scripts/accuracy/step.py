"""Three steps of a training, and the peaks of PyTorch's allocator: `python step.py MODEL BATCH`.

Models are made by their constructors, without weights and without a network.
"""

import contextlib
import json
import sys

import torch
from programs import LANGUAGE, VISION, is_autocast, optimizer_kind
from torch import nn
from torch.nn import functional

LENGTH = 512


def convolutions(channels):
    layers = []
    for before, after in zip(channels, channels[1:]):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return layers


def small(name):
    if name == "mlp":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
        )
    if name == "mlp-deep":
        hidden = [[nn.Linear(2048, 2048), nn.BatchNorm1d(2048), nn.ReLU(), nn.Dropout(0.2)] for _ in range(8)]
        return nn.Sequential(nn.Flatten(), nn.Linear(3072, 2048), nn.ReLU(), *sum(hidden, []), nn.Linear(2048, 1000))
    if name == "cnn":
        layers = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25)]
        return nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)
        )
    return nn.Sequential(
        *convolutions([3, 64, 128, 256, 512]), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    )


def make(name):
    """The model, on the current device."""
    if name in VISION:
        import torchvision

        return torchvision.models.get_model(name, weights=None)
    if name in LANGUAGE:
        import transformers

        _, kind, sizes = LANGUAGE[name]
        config = getattr(transformers, f"{kind}Config")(**sizes, attn_implementation="sdpa")
        return getattr(transformers, "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM")(config)
    return small(name)


def data(name, batch):
    """What a step gets, on the current device: input and labels."""
    if name in LANGUAGE:
        ids = torch.randint(0, 50000, (batch, LENGTH))
        return ids, ids
    shapes = {"mlp": (1, 28, 28), "cnn": (1, 28, 28), "mlp-deep": (3, 32, 32), "cnn-deep": (3, 32, 32)}
    classes = 10 if name in ("mlp", "cnn", "cnn-deep") else 1000
    return torch.randn(batch, *shapes.get(name, (3, 224, 224))), torch.randint(0, classes, (batch,))


def loss_of(model, name, inputs, labels):
    if name in LANGUAGE:
        return model(input_ids=inputs, labels=labels).loss
    return functional.cross_entropy(model(inputs), labels)


def main(name, batch):
    with torch.device("cuda"):
        model = make(name).train()
    kinds = {
        "sgd": (torch.optim.SGD, {"momentum": 0.9}),
        "adam": (torch.optim.Adam, {}),
        "adamw": (torch.optim.AdamW, {}),
    }
    kind, options = kinds[optimizer_kind(name)]
    optimizer = kind(model.parameters(), lr=1e-4, **options)
    for _ in range(3):
        with torch.device("cuda"):
            inputs, labels = data(name, batch)
        with torch.autocast("cuda", torch.bfloat16) if is_autocast(name) else contextlib.nullcontext():
            loss = loss_of(model, name, inputs, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    peaks = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    retries = torch.cuda.memory_stats()["num_alloc_retries"]
    print(json.dumps({"model": name, "batch": batch, **peaks, "retries": retries}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
