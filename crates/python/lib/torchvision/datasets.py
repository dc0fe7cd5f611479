"""Data sets of the right lengths and shapes. Images are not known here, and labels are placeholders."""

from torch.utils.data import Dataset

from torchvision._image import Image


class VisionDataset(Dataset):
    _lengths, _shape, _classes, _names = (60000, 10000), (1, 28, 28), 10, ()

    def __init__(self, root=None, train=True, transform=None, target_transform=None, download=False, **kwargs):
        self.root, self.train, self.transform, self.target_transform = root, train, transform, target_transform
        self.classes = list(self._names) or [str(i) for i in range(self._classes)]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self._length = self._lengths[0 if train else 1]
        from _host import note

        note(
            f"{type(self).__name__} has its length and its shapes here: images are not known, and labels are placeholders"
        )

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
        return [self._label(i) for i in range(len(self))]

    def _all_images(self):
        import numpy

        channels, height, width = self._shape
        return numpy.empty((len(self), height, width, channels), dtype="uint8")

    def _label(self, index):
        return index * 2654435761 % 2**32 % self._classes

    def __getitem__(self, index):
        index = int(index)
        if not -len(self) <= index < len(self):
            raise IndexError("index out of range")
        image, target = Image(*self._shape), self._label(index % len(self))
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class MNIST(VisionDataset):
    _names = [f"{i} - {name}" for i, name in enumerate("zero one two three four five six seven eight nine".split())]

    def _all_labels(self):
        import torch

        return torch.tensor(super()._all_labels())

    def _all_images(self):
        import torch

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
