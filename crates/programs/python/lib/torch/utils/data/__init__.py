"""Data sets, samplers and loaders, in one process."""

import torch
from torch.utils.data import _collate
from torch.utils.data._collate import default_collate, default_convert


class Dataset:
    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])

    def __class_getitem__(cls, item):
        return cls


class IterableDataset(Dataset):
    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset):
    def __init__(self, *tensors):
        if not all(tensors[0].size(0) == tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class ConcatDataset(Dataset):
    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __len__(self):
        return sum(map(len, self.datasets))

    def __getitem__(self, index):
        if index < 0:
            index += len(self)
        for dataset in self.datasets:
            if index < len(dataset):
                return dataset[index]
            index -= len(dataset)
        raise IndexError("index out of range")


class ChainDataset(IterableDataset):
    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            yield from dataset


class StackDataset(Dataset):
    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("At least one dataset should be passed, and either by position or by name")
        self.datasets = args or kwargs
        self._length = len(next(iter(self.datasets.values() if kwargs else args)))
        if any(len(dataset) != self._length for dataset in (self.datasets.values() if kwargs else args)):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {key: dataset[index] for key, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self):
        return self._length


class Subset(Dataset):
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    total = len(dataset)
    if sum(lengths) <= 1.0 + 1e-9 and any(isinstance(length, float) for length in lengths):
        sizes = [int(total * part) for part in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order, start, parts = torch.randperm(sum(lengths), generator=generator).tolist(), 0, []
    if order and type(order[0]) is not int:
        order = list(range(total))
    for length in lengths:
        parts.append(Subset(dataset, order[start : start + length]))
        start += length
    return parts


class Sampler:
    def __init__(self, data_source=None):
        pass

    def __class_getitem__(cls, item):
        return cls


class SequentialSampler(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


def _known(numbers, otherwise):
    """Random numbers as PyTorch draws them. Without a seed they are not known; no size depends on them."""
    return numbers if not numbers or type(numbers[0]) is int else otherwise


def _shuffled(n, generator):
    """Shuffled indices."""
    return _known(torch.randperm(n, generator=generator).tolist(), list(range(n)))


class RandomSampler(Sampler):
    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source, self.replacement, self._num_samples, self.generator = (
            data_source,
            replacement,
            num_samples,
            generator,
        )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        if self.generator is None:
            seed = torch.empty((), dtype=torch.int64).random_().tolist()
            generator = torch.Generator()
            if type(seed) is int:
                generator.manual_seed(seed)
            else:
                generator.seed()
        else:
            generator = self.generator
        if self.replacement:
            for _ in range(self.num_samples // 32):
                drawn = torch.randint(high=n, size=(32,), dtype=torch.int64, generator=generator).tolist()
                yield from _known(drawn, [i % n for i in range(32)])
            rest = self.num_samples % 32
            drawn = torch.randint(high=n, size=(32,), dtype=torch.int64, generator=generator).tolist()
            yield from _known(drawn, [i % n for i in range(32)])[:rest]
        else:
            for _ in range(self.num_samples // n):
                yield from _shuffled(n, generator)
            yield from _shuffled(n, generator)[: self.num_samples % n]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for i in _shuffled(len(self.indices), self.generator):
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    def __init__(self, weights, num_samples, replacement=True, generator=None):
        self.weights, self.num_samples = weights, num_samples

    def __iter__(self):
        return iter([i % len(self.weights) for i in range(self.num_samples)])

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else (count + self.batch_size - 1) // self.batch_size


class _SingleProcessDataLoaderIter:
    def __init__(self, loader):
        self._loader = loader
        torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        self._batches = None if loader._is_iterable else iter(loader._index_sampler)
        self._items = iter(loader.dataset) if loader._is_iterable else None

    def __iter__(self):
        return self

    def __next__(self):
        loader = self._loader
        if self._items is not None:
            if loader.batch_size is None:
                data = next(self._items)
            else:
                samples = []
                for item in self._items:
                    samples.append(item)
                    if len(samples) == loader.batch_size:
                        break
                if not samples or (loader.drop_last and len(samples) < loader.batch_size):
                    raise StopIteration
                data = loader.collate_fn(samples)
                del samples
        else:
            index = next(self._batches)
            if loader.batch_sampler is not None:
                data = loader.collate_fn([loader.dataset[i] for i in index])
            else:
                data = loader.collate_fn(loader.dataset[index])
        return _collate.pin_memory(data) if loader.pin_memory else data

    def __len__(self):
        return len(self._loader)


class DataLoader:
    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers:
            from _host import note

            note(
                "DataLoader's workers are processes; here this process makes the batches and holds the same tensors on the GPU"
            )
        self.dataset, self.num_workers, self.pin_memory, self.drop_last = dataset, num_workers, pin_memory, drop_last
        self.generator = generator
        self._is_iterable = isinstance(dataset, IterableDataset)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
            self.sampler = sampler
        elif self._is_iterable:
            self.sampler = None
        else:
            self.sampler = (
                sampler
                if sampler is not None
                else RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
            if batch_size is not None:
                batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_size, self.batch_sampler = batch_size, batch_sampler
        self.collate_fn = collate_fn or (
            default_convert if batch_sampler is None and not self._is_iterable else default_collate
        )

    @property
    def _index_sampler(self):
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def __iter__(self):
        return _SingleProcessDataLoaderIter(self)

    def __len__(self):
        if self._is_iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self._index_sampler)

    def __class_getitem__(cls, item):
        return cls


def get_worker_info():
    return None


from torch.utils.data import distributed
from torch.utils.data.distributed import DistributedSampler
