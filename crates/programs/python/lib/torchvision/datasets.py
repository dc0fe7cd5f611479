"""Data sets of the right lengths and shapes. Images and labels are not known here."""

import operator

import torch
from torch._unknown import UnknownNumber
from torch.utils.data import Dataset

from torchvision._image import Image


def _label():
    return UnknownNumber(torch.int64)


class VisionDataset(Dataset):
    _lengths, _shape, _classes, _names = (60000, 10000), (1, 28, 28), 10, ()

    def __init__(self, root=None, train=True, transform=None, target_transform=None, download=False, **kwargs):
        self.root, self.train, self.transform, self.target_transform = root, train, transform, target_transform
        self.classes = list(self._names) or [str(i) for i in range(self._classes)]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self._length = self._lengths[0 if train else 1]
        from _host import note

        note(f"{type(self).__name__} has its length and its shapes here: images and labels are not known")

    def __len__(self):
        return self._length

    def __getattr__(self, name):
        # Attributes that a program may replace by its own tensors.
        if name in ("targets", "data"):
            value = self._all_labels() if name == "targets" else self._all_images()
            setattr(self, name, value)
            return value
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _all_labels(self):
        return [_label()] * len(self)

    def _all_images(self):
        from torch import _numpy

        channels, height, width = self._shape
        return _numpy.unknown_array((len(self), height, width, channels), "uint8")

    def __getitem__(self, index):
        # All images are alike: which one is meant need not be known.
        if type(index) is not UnknownNumber and not -len(self) <= operator.index(index) < len(self):
            raise IndexError("index out of range")
        image, target = Image(*self._shape), _label()
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class MNIST(VisionDataset):
    _names = [f"{i} - {name}" for i, name in enumerate("zero one two three four five six seven eight nine".split())]

    def _all_labels(self):
        return torch.empty(len(self), dtype=torch.int64)

    def _all_images(self):
        return torch.empty((len(self), *self._shape[1:]), dtype=torch.uint8)

    train_data = test_data = property(lambda self: self.data)
    train_labels = test_labels = property(lambda self: self.targets)


class FashionMNIST(MNIST):
    _names = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    _names = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class CIFAR10(VisionDataset):
    _lengths, _shape = (50000, 10000), (3, 32, 32)
    _names = "airplane automobile bird cat deer dog frog horse ship truck".split()


class CIFAR100(CIFAR10):
    _classes, _names = 100, ()


class FakeData(VisionDataset):
    def __init__(
        self,
        size=1000,
        image_size=(3, 224, 224),
        num_classes=10,
        transform=None,
        target_transform=None,
        random_offset=0,
    ):
        self._shape, self._classes = tuple(image_size), num_classes
        super().__init__(transform=transform, target_transform=target_transform)
        self._length = size


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from _refused import Missing

    return Missing(
        f"torchvision.datasets.{name}",
        "there are no files here; use torchvision.datasets.FakeData with the shape of the images",
    )
