"""Fragmentation: each text is a little longer than the one before, so that no cached block fits it.

Half of the texts stay, as in a cache of keys and values.
"""

import torch

MIB = 2**20
cache = []


def make_scores(length):
    return torch.empty(length * MIB, dtype=torch.uint8, device="cuda")


def read_text(length):
    scores = make_scores(length)
    kept = torch.empty(length * MIB // 4, dtype=torch.uint8, device="cuda")
    cache.append(kept)
    del scores


for text in range(60):
    read_text(length=24 + 4 * text)
