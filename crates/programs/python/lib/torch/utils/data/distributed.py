"""Sampling for several processes: there is one."""

from torch.utils.data import RandomSampler as _RandomSampler


class DistributedSampler(_RandomSampler):
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        super().__init__(dataset)

    def set_epoch(self, epoch):
        pass
